"""Langfuse exports: every file type, both spellings, versions of one observation, parents that repeat."""

import csv
import gzip
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.test_otlp import COUNTED, TOKENS

Row = dict[str, Any]


def langfuse(folder: Path | str, **more: Any) -> Row:
    return {"name": "traces", "kind": "langfuse", "location": str(folder), **more}


def observation(number: int = 1, **changes: Any) -> Row:
    """A row of `observations_v2/` as JSON Lines have it."""
    return {
        "id": f"o-{number}",
        "trace_id": "t-1",
        "project_id": "p-1",
        "environment": "production",
        "type": "GENERATION",
        "parent_observation_id": "",
        "start_time": f"2026-11-02 10:{number:02d}:00.500000",
        "end_time": f"2026-11-02 10:{number:02d}:02.500000",
        "metadata": {"attributes": json.dumps({"gen_ai.provider.name": "openai"}), "agent_task": "task-1"},
        "level": "DEFAULT",
        "status_message": "",
        "input": "a prompt\nwith two lines",
        "output": "an answer",
        "provided_model_name": "gpt-4o",
        "model_parameters": '{"temperature":0.7}',
        "usage_details": {"input": 40, "output": 20, "total": 60},
        "completion_start_time": None,
        "total_cost": 0.0003,
        "updated_at": "2026-11-02 11:00:00.000000",
        "user_id": "ünal",
        "session_id": "s-1",
        "tags": ["app:web", "beta"],
    } | changes


def jsonl(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def array(path: Path, rows: list[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("[" + ",\n".join(map(json.dumps, rows)) + "]")


def table(path: Path, rows: list[Row]) -> None:
    """CSV: objects and lists are JSON-encoded, null is empty."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row in rows:
            writer.writerow({k: json.dumps(v) if isinstance(v, dict | list) else v for k, v in row.items()})


def parquet(path: Path, rows: list[Row]) -> None:
    """Parquet: maps are maps, times are instants."""
    path.parent.mkdir(parents=True, exist_ok=True)
    times = ("start_time", "end_time", "updated_at")
    made = [
        row
        | {name: datetime.fromisoformat(row[name]) for name in times if row[name]}
        | {"usage_details": list(row["usage_details"].items()), "metadata": list(row["metadata"].items())}
        for row in rows
    ]
    types = {"usage_details": pa.map_(pa.string(), pa.int64()), "metadata": pa.map_(pa.string(), pa.string())}
    schema = pa.schema([
        (name, types.get(name) or (pa.timestamp("us", "UTC") if name in times else pa.array([row[name]]).type))
        for row in rows[:1] for name in row
    ])  # fmt: skip
    pq.write_table(pa.Table.from_pylist(made, schema), path)


@pytest.mark.samples
def test_every_recorded_trace_is_read_and_every_observation_accounted_for(house: House) -> None:
    house.collect(langfuse(needs.samples("usage", "langfuse"), provider="openai"))
    assert house.rows(COUNTED) == [(88, 22, 4, 62)]
    assert house.rows(
        "SELECT count(*), CAST(sum(uncached_input_tokens) AS BIGINT), CAST(sum(output_tokens) AS BIGINT), "
        "count(*) FILTER (WHERE output_tokens IS NULL), count(*) FILTER (WHERE uncached_input_tokens IS NULL) "
        "FROM usage_record"
    ) == [(22, 8709, 1105, 5, 2)]
    assert house.rows("SELECT DISTINCT session_id, user_id FROM usage_record ORDER BY ALL NULLS LAST") == [
        ("35cc6c90-b657-4819-b66c-c931c03ad569", None), ("demo-session", "demo-user"), ("session_abc", "user_123"),
        (None, None),
    ]  # fmt: skip
    agno = "080130871f53145aecf7c29d5dfb6e4c"
    # agno's two wrappers, Microsoft's agent, Vercel's generateText
    assert house.refused() == [
        (f"span {agno}:b38a82eaa62b551e in {agno}:1cffdfa6fe3412e6", None, "repeats_children"),
        (f"span {agno}:ca136de468e156c9 in {agno}:1cffdfa6fe3412e6", None, "repeats_children"),
        ("span 8e419d3288419b5d944270505640e183:4cd6caa32861956a", None, "repeats_children"),
        ("span df41e597d0a85e0d7a6ae8ebfaa70aa0:1dc6768109615657", None, "repeats_children"),
    ]


@pytest.mark.samples
def test_a_call_whose_provider_nobody_names_is_refused_not_guessed(house: House) -> None:
    house.collect(langfuse(needs.samples("usage", "langfuse")))
    assert house.rows("SELECT location, reason, count(*) FROM rejected_row GROUP BY ALL ORDER BY ALL")[:2] == [
        ("agno-2025-06-11.trace.json", "missing_provider", 2), ("crewai-2025-07-11.trace.json", "missing_provider", 1),
    ]  # fmt: skip


@pytest.mark.parametrize("write", [jsonl, array, table, parquet])
def test_every_file_type_gives_the_same_record(house: House, tmp_path: Path, write: Any) -> None:
    name = {jsonl: "a.jsonl", array: "a.json", table: "a.csv", parquet: "a.parquet"}[write]
    write(tmp_path / "in" / "p-1" / "observations_v2" / name, [observation(), observation(2, usage_details={})])
    house.collect(langfuse(tmp_path / "in", claims={"tags": ["app"], "metadata": ["agent_task"]}))
    assert house.rows(
        f"SELECT record_id, parent_id, session_id, task_id, user_id, started_at, ended_at, provider, model, {TOKENS}, "
        "provider_cost_usd, semantics, claims FROM usage_record JOIN claim_set USING (claim_set_id) ORDER BY record_id"
    ) == [
        ("t-1:o-1", None, "s-1", "task-1", "ünal", datetime(2026, 11, 2, 10, 1, 0, 500000),
         datetime(2026, 11, 2, 10, 1, 2, 500000), "openai", "gpt-4o", 40, 0, 0, 0, 20, Decimal("0.0003"),
         "langfuse:disjoint",
         {"environment": "production", "metadata.agent_task": "task-1", "project": "p-1", "tag.app": "web"}),
        ("t-1:o-2", None, "s-1", "task-1", "ünal", datetime(2026, 11, 2, 10, 2, 0, 500000),
         datetime(2026, 11, 2, 10, 2, 2, 500000), "openai", "gpt-4o", None, None, None, None, None, Decimal("0.0003"),
         "langfuse:unknown",
         {"environment": "production", "metadata.agent_task": "task-1", "project": "p-1", "tag.app": "web"}),
    ]  # fmt: skip
    assert house.refused() == []


COUNTS = [
        ({"input": 40, "input_cached_tokens": 900, "input_cache_creation": 60, "output": 20,
          "output_reasoning_tokens": 30}, (40, 900, 60, 0, 50, 30, "langfuse:disjoint+5m_assumed")),
        ({"input": 40, "input_cache_read": 900, "input_cache_creation_5m": 50, "input_cache_creation_1h": 10,
          "output": 20, "total": 1020}, (40, 900, 50, 10, 20, None, "langfuse:disjoint")),
        # real exports of its README: reasoning beside the output, and within it
        ({"input": 179, "output": 35, "output_reasoning": 64, "total": 278},
         (179, 0, 0, 0, 99, 64, "langfuse:disjoint")),
        ({"input": 100, "output": 2055, "output_reasoning": 1104, "total": 2155},
         (100, 0, 0, 0, 2055, 1104, "langfuse:inclusive")),
        ({"input": 5, "output": 845, "total": 2023}, (5, 0, 0, 0, 845, None, "langfuse:disjoint+total_differs")),
        ({"input": 1000, "input_cache_read": 900, "output": 20, "total": 1020},
         (100, 900, 0, 0, 20, None, "langfuse:inclusive")),
        ({"input": 10, "input_audio": 5, "output": 20, "output_audio": 7, "total": 42},
         (15, 0, 0, 0, 27, None, "langfuse:disjoint")),
        ({"input": 0, "output": 0, "total": 0}, (0, 0, 0, 0, 0, None, "langfuse:disjoint")),
        ({"input": 10, "total": 10}, (10, 0, 0, 0, None, None, "langfuse:disjoint")),
    ]  # fmt: skip


def test_token_classes_are_disjoint_and_the_total_decides(house: House, tmp_path: Path) -> None:
    rows = [observation(number, usage_details=counts) for number, (counts, _) in enumerate(COUNTS, start=1)]
    jsonl(tmp_path / "in" / "a.jsonl", rows)
    house.collect(langfuse(tmp_path / "in"))
    found = house.rows(f"SELECT {TOKENS}, reasoning_tokens, semantics FROM usage_record ORDER BY record_id")
    assert found == [expected for _, expected in COUNTS]
    raw = [row[0] for row in house.rows("SELECT raw_counts FROM usage_record ORDER BY record_id")]
    assert [{name: int(value) for name, value in each.items() if name != "updated_at"} for each in raw] == [
        counts for counts, _ in COUNTS
    ]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 2, 1), (2, 3, 1)])
def test_of_one_observation_exported_again_the_latest_counts_in_any_order(
    house: House, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """The first version has no end, the second too many tokens, the third is right."""
    versions = {
        1: observation(end_time=None, usage_details={}, updated_at="2026-11-02 10:01:01.000000"),
        2: observation(usage_details={"input": 40, "output": 9999}, updated_at="2026-11-02 10:01:03.000000"),
        3: observation(updated_at="2026-11-02 10:01:03.500000"),
    }
    for number in order:
        jsonl(tmp_path / "in" / f"{number}.jsonl", [versions[number]])
        house.collect(langfuse(tmp_path / "in"))
    assert house.rows("SELECT output_tokens, raw_counts['updated_at'] FROM usage_record") == [
        (20, "2026-11-02 10:01:03.5"),
    ]  # fmt: skip


def test_two_versions_in_one_file_are_one_call(house: House, tmp_path: Path) -> None:
    older = observation(usage_details={"input": 1, "output": 1}, updated_at="2026-11-02 10:30:00")
    jsonl(tmp_path / "in" / "a.jsonl", [observation(), older])
    house.collect(langfuse(tmp_path / "in"))
    assert house.rows("SELECT output_tokens FROM usage_record") == [(20,)]
    assert house.rows(COUNTED) == [(2, 1, 0, 1)]


def test_the_api_spells_names_its_own_way(house: House, tmp_path: Path) -> None:
    def camel(name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(map(str.capitalize, rest))

    row = {camel(name): value for name, value in observation(3).items()}
    jsonl(tmp_path / "in" / "page.jsonl", [{"data": [row], "meta": {}}, {"data": []}])
    house.collect(langfuse(tmp_path / "in"))
    assert house.rows("SELECT record_id, output_tokens FROM usage_record") == [("t-1:o-3", 20)]


def test_an_agent_that_repeats_its_generations_counts_once(house: House, tmp_path: Path) -> None:
    agent = observation(1, type="AGENT", end_time="2026-11-02 10:30:00")
    between = observation(2, type="SPAN", usage_details={}, parent_observation_id="o-1")
    leaf = observation(3, parent_observation_id="o-2")
    for number, rows in enumerate([[agent], [leaf], [between]]):
        jsonl(tmp_path / "in" / f"{number}.jsonl", rows)
        house.collect(langfuse(tmp_path / "in"))
    assert house.rows("SELECT record_id FROM usage_record") == [("t-1:o-3",)]
    assert house.refused() == [("span t-1:o-1", None, "repeats_children")]


@pytest.mark.parametrize(
    ("message", "status"),
    [("Request timed out.", "timeout"), ("operation was cancelled", "cancelled"), ("Rate limit: secret", "failure")],
)
def test_errors_by_kind_without_their_words(house: House, tmp_path: Path, message: str, status: str) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", [observation(level="ERROR", status_message=message)])
    house.collect(langfuse(tmp_path / "in"))
    assert house.row("SELECT status, error_kind, output_tokens FROM usage_record") == (status, "ERROR", None)
    assert message.encode() not in house.bytes()


def test_scores_traces_and_manifests_of_an_export_are_left_alone(house: House, tmp_path: Path) -> None:
    for other in ("scores", "traces", "manifests"):
        jsonl(tmp_path / "in" / "p-1" / other / "a.jsonl", [{"id": "x", "name": "quality", "value": 1}])
    jsonl(tmp_path / "in" / "p-1" / "observations" / "a.jsonl", [observation()])
    report = house.collect(langfuse(tmp_path / "in"))
    assert report.total("rows_read") == 1


@pytest.mark.parametrize("write", [jsonl, array, table, parquet])
def test_a_bad_row_is_refused_with_its_number_whatever_the_file_type(house: House, tmp_path: Path, write: Any) -> None:
    name = {jsonl: "a.jsonl", array: "a.json", table: "a.csv", parquet: "a.parquet"}[write]
    bad = observation(2, usage_details={"input": -4, "output": 1})
    write(tmp_path / "in" / name, [observation(1), bad, observation(3)])
    house.collect(langfuse(tmp_path / "in"))
    assert house.refused() == [(name, 3 if write is table else 2, "negative_tokens")]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_broken_files_are_refused_and_the_others_kept(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    jsonl(folder / "a.jsonl", [observation(1)])
    (folder / "a.jsonl").open("a").write('{"id": "o-9", "input": "secret wo')
    array(folder / "b.json", [observation(2)])
    (folder / "b.json").write_text((folder / "b.json").read_text()[:-30])
    parquet(folder / "c.parquet", [observation(3)])
    (folder / "c.parquet").write_bytes((folder / "c.parquet").read_bytes()[:-30])
    table(folder / "d.csv", [observation(4)])
    (folder / "d.csv").open("a", newline="").write("o-8,only,three\r\n")
    (folder / "d2.csv").write_bytes((folder / "d.csv").read_bytes() + b"o-7,mixed,line breaks\n")
    (folder / "e.jsonl").write_text("")
    (folder / "f.csv.gz").write_bytes(gzip.compress((folder / "d.csv").read_bytes())[:-9])
    jsonl(folder / "g.jsonl", [{"id": "x", "value": 3}])
    assert house.collect(langfuse(folder)).findings == ()
    assert house.refused() == [
        ("a.jsonl", 2, "malformed_json"),
        ("b.json", None, "unreadable_json"),
        ("c.parquet", None, "unreadable_parquet"),
        ("d.csv", 3, "malformed_csv"),
        ("d2.csv", None, "unreadable_csv"),
        ("f.csv.gz", None, "truncated_gzip"),
        ("g.jsonl", 1, "not_observations"),
    ]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)
    assert b"secret wo" not in house.bytes()
    assert b"an answer" not in house.bytes()


def test_odd_values_are_refused_or_unknown_and_never_raised(house: House, tmp_path: Path) -> None:
    rows = [
        observation(1, usage_details="not json"),
        observation(2, usage_details=[1]),
        observation(3, usage_details={"input": 10**15, "output": 1}),
        observation(4, usage_details={"input": "9" * 50, "output": 1}),
        observation(5, metadata="{bad", tags="x", model_parameters="{"),
        observation(6, end_time="2026-11-02T10:06:01+02:00"),
        observation(7, usage_details={"input": 1, "output": 1, "secret words": 3}),
    ]
    jsonl(tmp_path / "in" / "a.jsonl", rows)
    jsonl(tmp_path / "in" / "b.json", [{"id": "t-1", "userId": "u", "observations": ["o-1", "o-2"]}])
    (tmp_path / "in" / "c.json").write_text("[]")
    assert house.collect(langfuse(tmp_path / "in", provider="openai")).findings == ()
    assert house.refused() == [
        ("a.jsonl", 1, "wrong_type"), ("a.jsonl", 2, "wrong_type"), ("a.jsonl", 3, "absurd_tokens"),
        ("a.jsonl", 4, "not_a_whole_number"), ("a.jsonl", 6, "ended_before_started"), ("b.json", 1, "not_observations"),
        ("b.json", 1, "not_observations"),
    ]  # fmt: skip
    assert house.rows("SELECT record_id FROM usage_record ORDER BY ALL") == [("t-1:o-5",), ("t-1:o-7",)]
    assert b"secret words" not in house.bytes()


def test_exports_in_a_bucket_are_told_apart_by_their_names(house: House, tmp_path: Path, s3: str) -> None:
    client = boto3.client("s3", endpoint_url=s3, region_name="us-east-1")
    client.create_bucket(Bucket="exports")
    for write, name in ((table, "a.csv"), (parquet, "b.parquet"), (array, "c.json")):
        write(tmp_path / name, [observation({"a": 1, "b": 2, "c": 3}[name[0]])])
    client.put_object(Bucket="exports", Key="lf/p/a.csv.gz", Body=gzip.compress((tmp_path / "a.csv").read_bytes()))
    for name in ("b.parquet", "c.json"):
        client.put_object(Bucket="exports", Key=f"lf/p/{name}", Body=(tmp_path / name).read_bytes())
    report = house.collect(langfuse("s3://exports/lf", endpoint_url=s3, region="us-east-1"))
    assert report.findings == ()
    assert house.rows("SELECT record_id, output_tokens FROM usage_record ORDER BY ALL") == [
        ("t-1:o-1", 20), ("t-1:o-2", 20), ("t-1:o-3", 20),
    ]  # fmt: skip
