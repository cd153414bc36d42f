"""Driving the sources: one that fails does not stop the others, a kill leaves no trace, text stays out."""

import signal
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

import collector.usage
from collector import batches
from collector.queries import HERE, queries
from collector.registry import kinds
from collector.run import Step, collect
from collector.settings import CollectorSettings
from collector.source import StoredObject
from tests.collector.conftest import AS_OF, Builder, House, python
from tests.collector.writing import Export, bedrock, lines, payload
from warehouse.engine import WarehouseBusy
from warehouse.settings import EngineSettings


def gateway(folder: Path, name: str = "gateway") -> dict[str, Any]:
    return {"name": name, "kind": "litellm", "location": str(folder), "claims": {"tags": ["app"]}}


def test_a_source_that_fails_is_reported_and_the_others_are_loaded(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    bad = {"name": "bill", "kind": "bill", "location": str(tmp_path / "nowhere")}
    report = house.collect(bad, gateway(tmp_path / "log"))
    assert not report.ok
    assert [(finding.source, finding.what) for finding in report.findings] == [("bill", "no such file or folder")]
    assert house.row("SELECT count(*) FROM usage_record") == (1,)


def test_only_the_named_sources_are_collected(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "one" / "a.jsonl", [payload(1)])
    lines(tmp_path / "two" / "a.jsonl", [payload(2)])
    house.configure(gateway(tmp_path / "one", "one"), gateway(tmp_path / "two", "two"))
    report = house.collect(only={"two"})
    assert [loaded.source for loaded in report.loaded] == ["two"]
    with pytest.raises(ValueError, match="no source is called three; there are models, prices"):
        house.collect(only={"three"})


def test_progress_is_told_after_every_batch_group(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    house.configure(gateway(tmp_path / "log"))
    steps: list[Step] = []
    collect(house.layout, house.settings, {"gateway"}, AS_OF, steps.append)
    assert steps == [Step("gateway", 1, 1, "a.jsonl")]


def test_locations_are_relative_to_the_configuration(house: House, tmp_path: Path) -> None:
    lines(house.data.parent / "log" / "a.jsonl", [payload(1)])
    assert house.collect({"name": "gateway", "kind": "litellm", "location": "./log"}).ok
    assert house.row("SELECT count(*) FROM usage_record") == (1,)


@pytest.mark.parametrize(
    ("sources", "says"),
    [
        ([{"name": "a", "kind": "litelm", "location": "x"}], "litelm"),
        ([{"name": "a", "kind": "bill"}], "location"),
        ([{"name": "a b", "kind": "bill", "location": "x"}], "name"),
        ([{"name": "a", "kind": "bill", "location": "x"}, {"name": "a", "kind": "litellm", "location": "y"}],
         "two sources are called a"),
        ([{"name": "a", "kind": "bill", "location": "x", "acount": "1"}], "Extra inputs are not permitted"),
    ],
)  # fmt: skip
def test_a_typo_in_a_source_is_found_when_the_configuration_is_read(sources: list[dict[str, str]], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        CollectorSettings.model_validate({"sources": sources})


def test_every_statement_of_every_sql_file_is_reached_by_its_name() -> None:
    for path in sorted(HERE.rglob("*.sql")):
        text = path.read_text()
        assert text.startswith("--"), f"{path.name} has no header"
        if "-- :" in text:
            found = queries(str(path.relative_to(HERE)))
            assert found
            assert all(statement.strip() for statement in found.values())


WORKER = """
import sys, json
from datetime import UTC, datetime
from pathlib import Path
from collector.run import collect
from collector.settings import CollectorSettings
from warehouse.engine import Layout
given = json.loads(Path(sys.argv[2]).read_text())
as_of = datetime(2026, 12, 1, tzinfo=UTC)
report = collect(Layout(Path(sys.argv[1])), CollectorSettings.model_validate(given), as_of=as_of)
sys.exit(0 if report.ok else 1)
"""


def evidence_in(folder: Path) -> dict[str, Any]:
    """A bill restated once, a gateway's folder of files small and big, one of them partly bad."""
    import json

    export = Export(folder / "cur2")
    export.deliver([bedrock(float(n), n % 24) for n in range(400)], "20261103T000000Z", files=2)
    export.deliver([bedrock(float(n) + 0.5, n % 24) for n in range(500)], "20261104T000000Z", files=2)
    for day in range(1, 6):
        made = [payload(day * 1000 + n, request_tags=[f"app:{n % 7}"]) for n in range(300)]
        lines(folder / "log" / f"2026-11-{day:02d}" / "a.jsonl.gz", [*made, "{broken"])
        for n in range(40):
            lines(folder / "log" / f"2026-11-{day:02d}" / f"{n}.json", [payload(day * 1000 + 500 + n)])
    settings = {
        "sources": [{"name": "bill", "kind": "bill", "location": str(folder / "cur2")}, gateway(folder / "log")],
        "prices": {"catalogue": "none", "contract": [{"provider": "aws.bedrock", "model": "nova-pro", "input": 1}]},
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return settings


@pytest.mark.slow
def test_killed_anywhere_and_run_again_the_evidence_is_the_same(build: Builder, tmp_path: Path) -> None:
    settings = evidence_in(tmp_path)
    whole = build()
    whole.settings = CollectorSettings.model_validate(settings)
    whole.collect(only={"models", "prices.contract", "bill", "gateway"})
    expected = whole.evidence()
    assert expected["usage_record"]
    assert expected["billing_line"]

    killed = 0
    for wait in (0.0, 0.15, 0.4, 0.8, 1.5):
        house = build()
        for pause in (wait, wait / 2):
            process = python(WORKER, str(house.data), str(tmp_path / "settings.json"))
            _wait_until_open(house, process)
            time.sleep(pause)
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                killed += 1
            process.wait()
        last = python(WORKER, str(house.data), str(tmp_path / "settings.json"))
        assert last.wait() == 0
        assert house.evidence() == expected, f"killed after {wait} s"
        assert not house.layout.spool.exists()
    assert killed >= 4, "the machine was too fast for this test: it killed nothing"


def _wait_until_open(house: House, process: Any) -> None:
    """Importing takes a second; the kill is meant for what comes after."""
    while process.poll() is None and not (house.data / "collect.lock").exists():
        time.sleep(0.005)


def test_two_collections_at_once_wait_for_each_other(build: Builder, tmp_path: Path) -> None:
    settings = evidence_in(tmp_path)
    house = build()
    processes = [python(WORKER, str(house.data), str(tmp_path / "settings.json")) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    alone = build()
    alone.settings = CollectorSettings.model_validate(settings)
    alone.collect(only={"models", "prices.contract", "bill", "gateway"})
    assert house.evidence() == alone.evidence()


CANARY = "CANARY-7f3a"


def test_no_prompt_or_answer_reaches_the_database_the_spool_or_a_message(house: House, tmp_path: Path) -> None:
    text = {"messages": [{"role": "user", "content": CANARY}], "response": {"choices": [{"message": CANARY}]}}
    good = payload(1, **text)
    refused = payload(2, **text, response_cost=-1.0)
    broken = f'{{"id": "x", "messages": "{CANARY}'
    wrong_type = f'{{"id": "x", "metadata": "{CANARY}", "status": "success"}}'
    error = payload(3, **text, status="failure", error_str=CANARY, error_information__error_message=CANARY)
    lines(tmp_path / "log" / "a.jsonl", [good, refused, broken, wrong_type, error])
    lines(tmp_path / "log" / "b.json", [broken])
    truncated = lines(tmp_path / "log" / "c.jsonl.gz", [payload(n, **text) for n in range(10, 90)])
    truncated.write_bytes(truncated.read_bytes()[:-20])

    csv = tmp_path / "csv" / "a.csv"
    csv.parent.mkdir()
    csv.write_text(f"id,at,text\n1,2026-11-02 10:00:00,{CANARY}\n2,not a time {CANARY},{CANARY}\n3,{CANARY}\n")
    jsonl = lines(tmp_path / "jsonl" / "a.jsonl", [{"id": "1", "at": "2026-11-02", "text": CANARY}, broken])
    columns = {"record_id": "id", "started_at": '"at"', "provider": "'x'", "model_raw": "'m'"}
    mapped = {"kind": "generic", "columns": columns}
    report = house.collect(
        gateway(tmp_path / "log"),
        {"name": "csv", "format": "csv", "location": str(csv.parent), **mapped},
        {"name": "jsonl", "format": "jsonl", "location": str(jsonl.parent), **mapped},
        {"name": "wrong", "format": "parquet", "location": str(jsonl), **mapped},
    )

    assert house.row("SELECT count(*) FROM usage_record") == (4,)
    assert len(house.refused()) >= 7
    assert CANARY.encode() not in house.bytes()
    assert CANARY not in str(report)
    assert not house.layout.spool.exists()


def test_an_as_of_in_another_zone_is_the_same_instant(house: House, tmp_path: Path) -> None:
    from zoneinfo import ZoneInfo

    lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    at = datetime(2026, 11, 2, 9, 50, tzinfo=UTC).astimezone(ZoneInfo("Asia/Tokyo"))
    house.collect(gateway(tmp_path / "log"), as_of=at)
    assert house.refused() == []
    house.collect(gateway(tmp_path / "log", "other"), as_of=datetime(2026, 11, 2, 9, 40, tzinfo=UTC))
    assert [row[2] for row in house.refused()] == ["future_clock"]


def test_a_collection_that_has_to_wait_too_long_says_for_what(house: House) -> None:
    with FileLock(house.data / "collect.lock"), pytest.raises(WarehouseBusy, match="another collection"):
        collect(house.layout, house.settings, engine=EngineSettings(lock_wait_seconds=0))


def test_a_new_format_is_one_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "acme.py").write_text(
        "from typing import Literal\n"
        "from collector.source import Kind, SourceSettings\n"
        "class AcmeSettings(SourceSettings):\n"
        "    kind: Literal['acme']\n"
        "KIND = Kind('acme', AcmeSettings, lambda settings: None)\n"
    )
    monkeypatch.setattr(collector.usage, "__path__", [*collector.usage.__path__, str(tmp_path)])
    kinds.cache_clear()
    try:
        assert {"acme", "bill", "generic", "litellm"} <= set(kinds())
    finally:
        kinds.cache_clear()


def stored(key: str, size: int, version: str = "1") -> StoredObject:
    return StoredObject(key, version, size, datetime(2026, 11, 2, tzinfo=UTC))


def test_batches_are_few_and_a_big_folder_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_BYTES", 100)
    monkeypatch.setattr(batches, "BATCH_OBJECTS", 4)
    found = [stored(f"day-{n // 3}/{n}", 20) for n in range(9)] + [stored("day-9/big", 90), stored("day-9/big2", 90)]
    made = batches.object_batches(found)
    assert [len(batch.objects) for batch in made] == [4, 4, 1, 1, 1]
    assert [each for batch in made for each in batch.objects] == found
    assert all(batch.size <= 100 or len(batch.objects) == 1 for batch in made)


def test_a_batchs_identity_is_its_objects_and_their_versions() -> None:
    def identity(*objects: StoredObject) -> str:
        (batch,) = batches.object_batches(list(objects))
        return batch.identity

    assert identity(stored("a", 1), stored("b", 1)) == identity(stored("a", 1), stored("b", 1))
    assert identity(stored("a", 1), stored("b", 1)) != identity(stored("a", 1), stored("b", 1, "2"))
    assert identity(stored("a", 1)) != identity(stored("b", 1))
