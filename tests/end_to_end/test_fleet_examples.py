"""The examples of the own fleet, as their README tells to run them."""

import importlib.util
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests import needs
from tests.end_to_end.conftest import Site
from warehouse import measures

EXAMPLES = Path(__file__).parents[2] / "examples"
pytestmark = pytest.mark.slow


def example(name: str, folder: Path) -> Site:
    """A copy of one example, its bill prepared, the whole way gone."""
    spec = importlib.util.spec_from_file_location("prepare", EXAMPLES / "prepare.py")
    prepare = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(prepare)
    there = folder / name
    shutil.copytree(EXAMPLES / name, there, ignore=shutil.ignore_patterns("data", "export"))
    for file in (there / "bill.sql", there / "inferledger.yaml"):
        file.write_text(file.read_text().replace("../../../shared/samples", str(needs.samples("README.md").parent)))
    prepare.prepare(there)
    site = Site(there, datetime(2026, 7, 2, tzinfo=UTC))
    site.whole_way()
    return site


def test_deepseeks_day_costs_what_was_published(tmp_path):
    snapshot = example("deepseek-day", tmp_path).snapshot()
    wanted = ["effective_cost_usd", "usage_cost_usd", "cost_per_mtok_usd", "cost_per_mtok_output_usd"]
    (row,) = measures.table(snapshot, [*wanted, "cost_per_mtok_input_usd", "total_tokens"]).to_pylist()
    assert str(row["effective_cost_usd"]) == str(row["usage_cost_usd"]) == "87072.000000000"
    assert row["total_tokens"] == 776_000_000_000
    assert row["cost_per_mtok_usd"] == pytest.approx(0.1122, abs=0.00005)
    assert row["cost_per_mtok_output_usd"] == pytest.approx(0.3002, abs=0.0002)
    assert row["cost_per_mtok_input_usd"] == pytest.approx(0.0603, abs=0.00005)
    assert snapshot.sql("SELECT DISTINCT method FROM cost_day WHERE kind = 'usage'").to_pylist() == [
        {"method": "pool_role"}
    ]


def test_an_hour_of_the_azure_trace_leaves_the_rest_of_the_day_idle(tmp_path):
    snapshot = example("azure-code", tmp_path).snapshot()
    (row,) = measures.table(snapshot, ["self_hosted_cost_usd", "total_tokens", "requests"]).to_pylist()
    assert (row["requests"], row["total_tokens"]) == (8_819, 18_059_974 + 245_896)
    by_kind = {
        each["kind"]: each["effective_cost_usd"]
        for each in measures.table(snapshot, ["effective_cost_usd"], ["kind"]).to_pylist()
    }
    # one p5.48xlarge at $55.04 an hour, the whole day, with calls in 45 of its minutes
    assert str(row["self_hosted_cost_usd"]) == "1320.960000000"
    assert (str(by_kind["usage"]), str(by_kind["idle"])) == ("41.280000000", "1279.680000000")
    hours = snapshot.sql("SELECT DISTINCT hour FROM cost_hour WHERE kind = 'usage' AND tokens > 0").to_pylist()
    assert sorted(each["hour"].hour for each in hours) == [18, 19]
