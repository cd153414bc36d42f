"""What every source must do, whatever its format: the same five promises, tested the same way."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.registry import kinds
from tests.collector.conftest import Builder
from tests.collector.spans import CHAT, span, write_spans
from tests.collector.test_bedrock import invocation
from tests.collector.test_envoy_ai_gateway import line as envoy_line
from tests.collector.test_helicone import request
from tests.collector.test_langfuse import observation
from tests.collector.test_transcripts import answer, token_count
from tests.collector.test_usage_body import body
from tests.collector.writing import START, Export, bedrock, lines, payload

Row = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """How one source's input is written for these tests.

    write      puts the nth delivery of some rows into a folder
    row        makes row n
    bad        a row that must not be believed
    drifted    a row as a later version of the format might write it, with more in it
    table      where its rows arrive
    """

    name: str
    source: Callable[[Path], dict[str, Any]]
    write: Callable[[Path, int, list[Row]], None]
    row: Callable[[int], Row]
    bad: Callable[[int], Row]
    drifted: Callable[[int], Row]
    table: str
    refuses_whole: bool = False
    is_cumulative: bool = False


def litellm() -> Format:
    return Format(
        "litellm",
        lambda folder: {"name": "s", "kind": "litellm", "location": str(folder), "claims": {"tags": ["app"]}},
        lambda folder, n, rows: lines(folder / f"2026-11-{n:02d}" / "log.jsonl.gz", rows) and None,
        lambda n: payload(n),
        lambda n: payload(n, response_cost=-1.0),
        lambda n: payload(n, new_field={"a": [1]}, metadata__new=1),
        "usage_record",
    )


def generic(kind: str) -> Format:
    columns = {
        "record_id": "id", "started_at": "started", "provider": "'openai'", "model_raw": "model",
        "uncached_input_tokens": "fresh", "output_tokens": "out",
    }  # fmt: skip

    def row(n: int) -> Row:
        return {
            "id": f"call-{n}",
            "started": f"2026-11-02T10:{n % 60:02d}:00Z",
            "model": "gpt-4o",
            "fresh": n,
            "out": 5,
        }

    def write(folder: Path, n: int, rows: list[Row]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{n}.{kind}"
        if kind == "parquet":
            pq.write_table(pa.Table.from_pylist(rows), path)
        elif kind == "jsonl":
            path.write_text("".join(json.dumps(each) + "\n" for each in rows))
        else:
            names = list(dict.fromkeys(name for each in rows for name in each))
            text = [",".join(names), *(",".join(str(each.get(name, "")) for name in names) for each in rows)]
            path.write_text("\n".join(text) + "\n")

    return Format(
        f"generic-{kind}",
        lambda folder: {"name": "s", "kind": "generic", "format": kind, "location": str(folder), "columns": columns,
                        "claims": {"model": "model"}},
        write,
        row,
        lambda n: row(n) | {"out": -1},
        lambda n: row(n) | {"new_field": "x"},
        "usage_record",
    )  # fmt: skip


def cur2() -> Format:
    return Format(
        "cur2",
        lambda folder: {"name": "s", "kind": "bill", "location": str(folder)},
        lambda folder, n, rows: Export(folder).deliver(rows, f"202611{n + 2:02d}T000000Z") and None,
        lambda n: bedrock(float(n), n % 24),
        lambda n: bedrock(float(n), n % 24, line_item_unblended_cost=None),
        lambda n: bedrock(float(n), n % 24, new_column="x"),
        "billing_line",
        refuses_whole=True,
        is_cumulative=True,
    )


def otlp() -> Format:
    def write(folder: Path, n: int, rows: list[Row]) -> None:
        for each in rows:
            write_spans(folder / f"{n}.jsonl", each)

    return Format(
        "otlp",
        lambda folder: {"name": "s", "kind": "otlp", "location": str(folder)},
        write,
        lambda n: span(n, start=60 * n),
        lambda n: span(n, CHAT | {"gen_ai.usage.output_tokens": -1}, start=60 * n),
        lambda n: span(n, CHAT | {"gen_ai.new": "x"}, start=60 * n, flags=257, links=[]),
        "usage_record",
    )


def log_lines(kind: str, row: Callable[..., Row], bad: Row) -> Format:
    """A log of JSON Lines that needs no settings."""

    def write(folder: Path, n: int, rows: list[Row]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))

    return Format(
        kind,
        lambda folder: {"name": "s", "kind": kind, "location": str(folder)},
        write,
        row,
        lambda n: row(n, **bad),
        lambda n: row(n, new_field={"a": [1]}),
        "usage_record",
    )


def openmetrics() -> Format:
    def row(n: int, value: str = "5", rest: str = "") -> Row:
        return {"text": f'vllm:prompt_tokens_total{{pod="p"}} {value} {START.timestamp() + 60 * n:.3f}{rest}'}

    def write(folder: Path, n: int, rows: list[Row]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{n}.om").write_text("".join(f"{each['text']}\n" for each in rows) + "# EOF\n")

    return Format(
        "openmetrics",
        lambda folder: {"name": "s", "kind": "openmetrics", "location": str(folder), "cluster": "east"},
        write,
        row,
        lambda n: row(n, "NaN"),
        lambda n: row(n, rest=' # {trace_id="x"} 1.0'),
        "serving_minute",
    )


def pool_table() -> Format:
    def row(n: int, **changes: object) -> Row:
        return {
            "resource_id": f"i-{n:017x}", "cluster": "east", "region": "us-east-1", "route": "qwen3-32b",
            "pool": "east-mixed", "role": "mixed", "gpus": 4, "gpu_type": "L40S", "valid_from": "2026-11-01",
            "valid_to": "", **changes,
        }  # fmt: skip

    def write(folder: Path, n: int, rows: list[Row]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        names = list(dict.fromkeys(name for each in rows for name in each))
        text = [",".join(names), *(",".join(str(each.get(name, "")) for name in names) for each in rows)]
        (folder / f"{n}.csv").write_text("\n".join(text) + "\n")

    return Format(
        "pool_table",
        lambda folder: {"name": "s", "kind": "pool_table", "location": str(folder)},
        write,
        row,
        lambda n: row(n, gpus=-1),
        lambda n: row(n, note="x"),
        "pool_member",
    )


def numbered(write: Callable[..., Row], key: str) -> Callable[..., Row]:
    """Row n of a log whose rows are told apart by an id and a minute."""

    def row(n: int, **more: Any) -> Row:
        at = f"2026-11-02T10:{n % 60:02d}:00Z"
        told: Row = {"created": at} if key == "id" else {"timestamp": at}
        return write(**{key: f"call-{n}", **told, **more})

    return row


def claude_row(n: int, **more: Any) -> Row:
    return answer(n + 1, f"2026-11-02T10:{n % 60:02d}:00Z", requestId=f"req-{n}", **more)


def codex_row(n: int, **more: Any) -> Row:
    meta = more.pop("last", n + 10)
    row = token_count(f"2026-11-02T10:{n % 60:02d}:00Z", meta, 1_000 * (n + 1), **more)
    row["payload"]["info"]["model"] = "gpt-5.2-codex"
    return row


NEGATIVE = {"usage": {"prompt_tokens": 1, "completion_tokens": -1}}
FORMATS = [
    litellm(),
    generic("csv"),
    generic("jsonl"),
    generic("parquet"),
    otlp(),
    log_lines("langfuse", observation, {"usage_details": {"input": -1}}),
    log_lines("helicone", request, {"completion_tokens": -1}),
    log_lines("envoy_ai_gateway", envoy_line, {"genai_tokens_output": -1}),
    log_lines("usage_body", numbered(partial(body, provider="openai", usage={"prompt_tokens": 5}), "id"), NEGATIVE),
    log_lines("bedrock", numbered(invocation, "requestId"), {"output": {"outputTokenCount": -1}}),
    log_lines("claude_code", claude_row, {"message": {"usage": {"input_tokens": 1, "output_tokens": -1}}}),
    log_lines("codex", codex_row, {"last": -100}),
    cur2(),
    openmetrics(),
    pool_table(),
]
ASKED = {"prometheus"}
"""Kinds that ask a server and read no deliveries; what they must do is in a file of their own."""
each_format = pytest.mark.parametrize("form", FORMATS, ids=[form.name for form in FORMATS])


def test_every_kind_that_the_registry_finds_is_tested_here(tmp_path: Path) -> None:
    assert {form.source(tmp_path)["kind"] for form in FORMATS} | ASKED == set(kinds())


def rows(form: Format, numbers: range) -> list[Row]:
    return [form.row(n) for n in numbers]


@each_format
def test_the_same_input_again_changes_nothing(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    form.write(tmp_path / "in", 1, rows(form, range(1, 6)))
    house.collect(form.source(tmp_path / "in"))
    before, loads = house.evidence(), house.rows("SELECT * FROM load ORDER BY load_id")
    assert before[form.table]
    report = house.collect(form.source(tmp_path / "in"))
    assert (report.loaded, report.findings) == ((), ())
    assert house.evidence() == before
    assert house.rows("SELECT * FROM load ORDER BY load_id") == loads


@each_format
def test_another_order_gives_the_same_evidence(form: Format, build: Builder, tmp_path: Path) -> None:
    deliveries = {1: range(1, 4), 2: range(1, 9) if form.is_cumulative else range(3, 9), 3: range(2, 12)}
    found = []
    for number, order in enumerate([(1, 2, 3), (3, 1, 2), (2, 3, 1)]):
        house, folder = build(), tmp_path / f"in-{number}"
        for n in order:
            form.write(folder, n, rows(form, deliveries[n]))
            assert house.collect(form.source(folder)).ok
        found.append({**house.evidence(), "touched_hour": []})
    assert found[0][form.table]
    assert found[1] == found[0]
    assert found[2] == found[0]


@each_format
def test_a_renamed_or_copied_file_adds_nothing(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    form.write(tmp_path / "in", 1, rows(form, range(1, 6)))
    house.collect(form.source(tmp_path / "in"))
    before = house.evidence()[form.table]
    form.write(tmp_path / "in", 2, rows(form, range(1, 6)))
    house.collect(form.source(tmp_path / "in"))
    assert house.evidence()[form.table] == before


@each_format
def test_an_empty_input_is_no_error_and_no_evidence(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    (tmp_path / "in").mkdir()
    report = house.collect(form.source(tmp_path / "in"))
    assert house.rows(f"SELECT * FROM {form.table}") == []
    # An export always has a manifest; its absence means that the location is wrong.
    assert report.ok or form.name == "cur2"


@each_format
def test_a_bad_row_is_refused_and_named_and_what_was_loaded_stays(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    form.write(tmp_path / "in", 1, rows(form, range(1, 4)))
    house.collect(form.source(tmp_path / "in"))
    before = house.row(f"SELECT count(*) FROM {form.table}")[0]
    form.write(tmp_path / "in", 2, [form.row(11), form.bad(12), form.row(13)])
    report = house.collect(form.source(tmp_path / "in"))
    after = house.row(f"SELECT count(*) FROM {form.table}")[0]
    if form.refuses_whole:
        assert len(report.findings) == 1
        assert after == before
    else:
        assert len(house.refused()) == 1
        assert after == before + 2
        assert house.row("SELECT sum(rows_rejected) FROM load WHERE source = 's'") == (1,)


@each_format
def test_columns_that_appear_and_go_do_not_disturb(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    form.write(tmp_path / "in", 1, [form.drifted(n) for n in range(1, 4)])
    form.write(tmp_path / "in", 2, [*(form.drifted(n) for n in range(1, 4)), *rows(form, range(4, 7))])
    form.write(tmp_path / "in", 3, [*(form.row(n) for n in range(1, 10))])
    assert house.collect(form.source(tmp_path / "in")).ok
    assert house.row(f"SELECT count(*) FROM {form.table}") == (9,)


@each_format
def test_a_load_accounts_for_every_row(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    form.write(tmp_path / "in", 1, rows(form, range(1, 8)))
    report = house.collect(form.source(tmp_path / "in"))
    read, kept, refused, filtered = house.row(
        "SELECT rows_read, rows_loaded, rows_rejected, rows_filtered FROM load WHERE source = 's'"
    )
    assert (read, kept + refused + filtered) == (7, 7)
    assert report.total("rows_read") == 7


@each_format
def test_nothing_stays_in_the_spool(form: Format, build: Builder, tmp_path: Path) -> None:
    house = build()
    house.layout.spool.mkdir()
    (house.layout.spool / "left-by-a-killed-run.jsonl").write_text("text of a prompt")
    form.write(tmp_path / "in", 1, rows(form, range(1, 8)))
    house.collect(form.source(tmp_path / "in"))
    assert not house.layout.spool.exists()
