"""The company as a whole: repeatable, any size, and a second delivery of its bill."""

import json
from pathlib import Path

import pytest

from demo.organisation import config, deliver_restatement, write
from tests.demo.conftest import Company


def content(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_same_arguments_give_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one", days=3, scale=0.02)
    write(tmp_path / "two", days=3, scale=0.02)
    deliver_restatement(tmp_path / "one")
    deliver_restatement(tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_another_seed_gives_other_calls(tmp_path: Path) -> None:
    write(tmp_path / "one", days=2, scale=0.01)
    write(tmp_path / "two", days=2, scale=0.01, seed=8)
    assert content(tmp_path / "one" / "truth") != content(tmp_path / "two" / "truth")


@pytest.mark.parametrize(("days", "scale"), [(1, 0.01), (2, 0.001), (3, 0.02), (5, 0.005)])
def test_small_companies_are_whole(tmp_path: Path, days: int, scale: float) -> None:
    organisation = write(tmp_path, days=days, scale=scale)
    company = Company(organisation)
    assert organisation.gateway_calls == sum(1 for _ in company.log()) > 0
    assert company.sql("SELECT count(*) FROM cur") == [(organisation.bill_lines,)]
    assert organisation.files == sum(1 for name in content(tmp_path) if not name.startswith(".next-delivery"))
    deliver_restatement(tmp_path)


def test_an_old_company_is_not_written_over(tmp_path: Path) -> None:
    write(tmp_path, days=1, scale=0.001)
    with pytest.raises(FileExistsError, match="empty folder"):
        write(tmp_path, days=1, scale=0.001)


@pytest.mark.parametrize(("days", "scale"), [(0, 1.0), (3, 0.0), (3, -1.0)])
def test_nonsense_sizes_are_refused(tmp_path: Path, days: int, scale: float) -> None:
    with pytest.raises(ValueError, match="days must be"):
        write(tmp_path, days=days, scale=scale)


def test_restatement_keeps_the_first_delivery(tmp_path: Path) -> None:
    write(tmp_path, days=4, scale=0.02)
    before = content(tmp_path / "cur")
    deliver_restatement(tmp_path)
    after = content(tmp_path / "cur")
    latest = "inferledger-cur2/metadata/BILLING_PERIOD=2026-11/inferledger-cur2-Manifest.json"
    assert {name: data for name, data in after.items() if name in before and name != latest} == {
        name: data for name, data in before.items() if name != latest
    }
    executions = {json.loads(data)["executionId"] for name, data in after.items() if name.endswith("Manifest.json")}
    assert len(executions) == 2
    assert json.loads(after[latest])["executionId"] != json.loads(before[latest])["executionId"]


def test_restatement_needs_a_company(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no delivery is waiting"):
        deliver_restatement(tmp_path)


def test_config_is_valid_and_knows_no_truth(tmp_path: Path) -> None:
    from inferledger import config as configurations

    text = config()
    path = tmp_path / "inferledger.yaml"
    path.write_text(text)
    settings = configurations.load(path)
    assert {rule.set["team"] for rule in settings.owners if "team" in rule.set} >= {"search", "support", "platform"}
    assert [source.name for source in settings.sources] == [
        "aws-bill",
        "gateway",
        "metrics-us-east-1",
        "metrics-eu-west-1",
    ]
    assert "truth" not in text
    assert "backfill-script" not in text


@pytest.mark.slow
def test_the_size_that_is_documented(tmp_path: Path) -> None:
    """Calls, lines, samples and money of two of the default company's days."""
    organisation = write(tmp_path, days=2)
    company = Company(organisation)
    assert 30_000 <= organisation.gateway_calls <= 80_000
    assert 200_000 <= organisation.samples <= 700_000
    assert 3_000 <= organisation.bill_lines <= 12_000
    ((nano,),) = company.sql("SELECT sum(nano)::BIGINT FROM cur WHERE of_model")
    assert 2_000 <= nano / 1e9 <= 15_000
    ((coding,),) = company.sql(
        "SELECT sum(cost_nano_usd) FILTER (actual_app IN ('code-agent', 'code-review', 'migration-agent'))"
        " / sum(cost_nano_usd) FROM by_hour"
    )
    assert 0.25 < coding < 0.5
