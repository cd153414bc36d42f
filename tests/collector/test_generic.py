"""The generic source: any log in CSV, JSON Lines or Parquet, mapped by expressions in the configuration."""

import gzip
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from pydantic import ValidationError

from collector.expressions import check
from collector.settings import CollectorSettings
from tests import needs
from tests.collector.conftest import ROOT, House

ROWS: list[dict[str, Any]] = [
    {"call": "a", "at": "2026-11-02T10:00:00Z", "model": "gpt-4o", "fresh": 100, "cached": 40, "out": 7, "key": "web"},
    {"call": "b", "at": "2026-11-02T11:00:00Z", "model": "gpt-4o", "fresh": 200, "cached": 0, "out": 9, "key": "app"},
]
COLUMNS = {
    "record_id": "call",
    "started_at": '"at"',
    "provider": "'openai'",
    "model_raw": "model",
    "uncached_input_tokens": "fresh",
    "cache_read_tokens": "cached",
    "output_tokens": "out",
}


def source(location: Path, kind: str, **more: Any) -> dict[str, Any]:
    given = {"columns": COLUMNS, "claims": {"key_alias": '"key"'}, **more}
    return {"name": "log", "kind": "generic", "format": kind, "location": str(location), **given}


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".csv":
        names = list(rows[0])
        path.write_text("\n".join([",".join(names), *(",".join(str(row[n]) for n in names) for row in rows)]) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


FORMATS = ["csv", "jsonl", "parquet"]


@pytest.mark.parametrize("kind", FORMATS)
def test_the_same_rows_in_every_format(house: House, tmp_path: Path, kind: str) -> None:
    write(tmp_path / "log" / f"a.{kind}", ROWS)
    report = house.collect(source(tmp_path / "log", kind))
    assert report.ok, report.findings
    assert house.rows(
        "SELECT record_id, event_key, started_at, ended_at, provider, model, status, service_tier, "
        "uncached_input_tokens, "
        "cache_read_tokens, cache_write_5m_tokens, output_tokens, semantics, source_trust FROM usage_record ORDER BY 1"
    ) == [
        ("a", "s:log:a", datetime(2026, 11, 2, 10), datetime(2026, 11, 2, 10), "openai", "gpt-4o", "success",
         "standard",
         100, 40, 0, 7, "generic:disjoint", 20),
        ("b", "s:log:b", datetime(2026, 11, 2, 11), datetime(2026, 11, 2, 11), "openai", "gpt-4o", "success",
         "standard",
         200, 0, 0, 9, "generic:disjoint", 20),
    ]  # fmt: skip
    assert house.rows("SELECT claims FROM claim_set ORDER BY 1") == [({"key_alias": "app"},), ({"key_alias": "web"},)]


def test_a_compressed_csv_file(house: House, tmp_path: Path) -> None:
    plain = write(tmp_path / "plain.csv", ROWS)
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "a.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    house.collect(source(tmp_path / "log", "csv"))
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_one_file_may_have_any_name(house: House, tmp_path: Path) -> None:
    path = write(tmp_path / "export.parquet", ROWS).rename(tmp_path / "export.2026")
    house.collect(source(path, "parquet"))
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_inclusive_counts_are_taken_apart(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS)
    columns = {**COLUMNS, "input_tokens": "fresh", "cache_write_1h_tokens": "10"}
    del columns["uncached_input_tokens"]
    house.collect(source(tmp_path / "log", "parquet", columns=columns, semantics="inclusive"))
    assert house.rows(
        "SELECT uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, "
        "cache_write_1h_tokens FROM usage_record "
        "ORDER BY record_id"
    ) == [(50, 40, 0, 10), (190, 0, 0, 10)]


def test_where_leaves_rows_out_and_counts_them(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.csv", ROWS)
    report = house.collect(source(tmp_path / "log", "csv", where="key <> 'app'"))
    assert house.rows("SELECT record_id FROM usage_record") == [("a",)]
    assert (report.total("rows_read"), report.total("rows_loaded"), report.total("rows_filtered")) == (2, 1, 1)


def test_every_column_can_be_mapped(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS[:1])
    columns = {
        **COLUMNS,
        "provider_response_id": "'resp-1'", "operation_id": "'op'", "attempt": "1", "parent_id": "'p'",
        "session_id": "'s'",
        "task_id": "'t'", "agent": "'coder'", "parent_agent": "'planner'", "task_outcome": "'merged'", "user_id": "'u'",
        "ended_at": "TIMESTAMP '2026-11-02 10:00:09'", "first_token_at": "TIMESTAMPTZ '2026-11-02 12:00:01+02:00'",
        "account_id": "'1'", "region_id": "'eu-west-1'", "scope": "'global'", "route": "'r'", "service_tier": "'Batch'",
        "stream": "true", "status": "'failure'", "error_kind": "'429'", "finish_reason": "'stop'",
        "provider_cost_usd": "0.25", "reasoning_tokens": "3",
    }  # fmt: skip
    house.collect(source(tmp_path / "log", "parquet", columns=columns))
    assert house.row(
        "SELECT event_key, operation_id, attempt, parent_id, session_id, task_id, agent, parent_agent, "
        "task_outcome, user_id, "
        "ended_at, first_token_at, account_id, region_id, scope, route, service_tier, stream, status, error_kind, "
        "finish_reason, provider_cost_usd, output_tokens FROM usage_record"
    ) == (
        "r:openai:resp-1", "op", 1, "p", "s", "t", "coder", "planner", "merged", "u", datetime(2026, 11, 2, 10, 0, 9),
        datetime(2026, 11, 2, 10, 0, 1), "1", "eu-west-1", "global", "r", "batch", True, "failure", "429", "stop",
        Decimal("0.25"), None,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"uncached_input_tokens": "fresh - 1000"}, "negative_tokens"),
        ({"output_tokens": "out * 1000000000"}, "absurd_tokens"),
        ({"output_tokens": "out / 2"}, "not_a_whole_number"),
        ({"reasoning_tokens": "out + 1"}, "subset_exceeds_total"),
        ({"record_id": "nullif(call, call)"}, "missing_id"),
        ({"started_at": "'yesterday'"}, "missing_time"),
        ({"ended_at": "TIMESTAMP '2026-11-02 00:00:00'"}, "ended_before_started"),
        ({"status": "'odd'"}, "unknown_status"),
        ({"service_tier": "'gold'"}, "unknown_service_tier"),
        ({"provider": "''"}, "missing_provider"),
        ({"model_raw": "''"}, "missing_model"),
        ({"started_at": "CAST('x' || call AS TIMESTAMP)"}, "missing_time"),
    ],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_a_row_that_cannot_be_true_is_refused(
    house: House, tmp_path: Path, kind: str, columns: dict[str, str], reason: str
) -> None:
    write(tmp_path / "log" / f"a.{kind}", ROWS[:1])
    mapped = {name: _as_numbers(expression, kind) for name, expression in {**COLUMNS, **columns}.items()}
    house.collect(source(tmp_path / "log", kind, columns=mapped))
    assert [row[2] for row in house.refused()] == [reason]
    assert house.row("SELECT count(*) FROM usage_record") == (0,)


def _as_numbers(expression: str, kind: str) -> str:
    """In CSV every value is text; arithmetic needs a cast."""
    if kind != "csv":
        return expression
    return expression.replace("out ", "CAST(out AS BIGINT) ").replace("fresh ", "CAST(fresh AS BIGINT) ")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_refused_row_is_named_by_its_line(house: House, tmp_path: Path, kind: str) -> None:
    bad = {**ROWS[1], "call": "c", "fresh": -5}
    write(tmp_path / "log" / f"a.{kind}", [ROWS[0], bad, ROWS[1]])
    house.collect(source(tmp_path / "log", kind))
    line = {"csv": 3, "jsonl": 2, "parquet": 2}[kind]  # a CSV file's header is its first line
    assert house.refused() == [(f"a.{kind}", line, "negative_tokens")]
    assert house.rows("SELECT record_id FROM usage_record ORDER BY 1") == [("a",), ("b",)]


def test_a_csv_row_without_the_headers_columns_is_refused(house: House, tmp_path: Path) -> None:
    path = write(tmp_path / "log" / "a.csv", ROWS)
    path.write_text(path.read_text() + "only,two\n")
    house.collect(source(tmp_path / "log", "csv"))
    assert house.refused() == [("a.csv", 4, "malformed_csv")]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


@pytest.mark.parametrize("fields", [{}, {"call": "VARCHAR", "at": "VARCHAR", "model": "VARCHAR", "fresh": "BIGINT",
                                         "cached": "BIGINT", "out": "BIGINT", "key": "VARCHAR"}])  # fmt: skip
def test_a_json_line_that_is_broken_is_refused(house: House, tmp_path: Path, fields: dict[str, str]) -> None:
    path = write(tmp_path / "log" / "a.jsonl", ROWS)
    path.write_text('{"call": "half\n' + path.read_text() + "[1]\n")
    house.collect(source(tmp_path / "log", "jsonl", fields=fields))
    assert house.refused() == [("a.jsonl", 1, "malformed_json"), ("a.jsonl", 4, "not_an_object")]
    assert house.rows("SELECT record_id FROM usage_record ORDER BY 1") == [("a",), ("b",)]


def test_a_truncated_parquet_file_is_refused_whole_and_the_others_are_loaded(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS)
    path = write(tmp_path / "log" / "b.parquet", ROWS)
    path.write_bytes(path.read_bytes()[:100])
    report = house.collect(source(tmp_path / "log", "parquet"))
    assert report.ok
    assert house.refused() == [("b.parquet", None, "unreadable_parquet")]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_a_truncated_gzip_file_is_refused_whole(house: House, tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    packed = gzip.compress(b"".join(json.dumps({**ROWS[0], "call": str(n)}).encode() + b"\n" for n in range(500)))
    (tmp_path / "log" / "a.jsonl.gz").write_bytes(packed[:-9])
    house.collect(source(tmp_path / "log", "jsonl"))
    assert house.refused() == [("a.jsonl.gz", None, "truncated_gzip")]


def test_an_expression_that_does_not_fit_the_file_names_its_place_and_the_files_columns(
    house: House, tmp_path: Path
) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS)
    report = house.collect(source(tmp_path / "log", "parquet", columns={**COLUMNS, "output_tokens": "outt"}))
    assert "columns.output_tokens: `outt` does not fit the file" in report.findings[0].what
    assert "call, at, model, fresh, cached, out, key" in report.findings[0].remedy
    assert house.row("SELECT count(*) FROM load WHERE source = 'log'") == (0,)


def test_where_must_be_a_condition(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS)
    report = house.collect(source(tmp_path / "log", "parquet", where="fresh + 1"))
    assert "where: is no condition" in report.findings[0].what


def test_an_expression_does_not_see_the_other_columns_it_fills(house: House, tmp_path: Path) -> None:
    write(tmp_path / "log" / "a.parquet", ROWS)
    report = house.collect(source(tmp_path / "log", "parquet", columns={**COLUMNS, "task_id": "record_id"}))
    assert "columns.task_id: `record_id` does not fit the file" in report.findings[0].what


@pytest.mark.parametrize(
    "expression",
    [
        "trace_id || ':' || request_index",
        "TIMESTAMP '2026-01-01' + to_microseconds(CAST(t_s * 1000000 AS BIGINT))",
        "coalesce(nullif(a, ''), b)",
        "CASE WHEN a > 1 THEN 'x' END",
        "x IN (1, 2)",
        "regexp_extract(a, '^[a-z]+')",
        "usage['input'] + usage.output",
        "list_transform(l, lambda x: x + 1)",
        "extract(hour FROM a)",
        "split_part(key, '/', 1)",
        "a::DATE",
        "try_cast(a AS DOUBLE)",
        "duplicate_of IS NULL",
        "json_extract_string(meta, '$.team')",
    ],
)
def test_a_scalar_expression_is_accepted(expression: str) -> None:
    assert check(expression) == expression


@pytest.mark.parametrize(
    "expression",
    [
        "(SELECT 1)",
        "x IN (SELECT y FROM z)",
        "EXISTS (SELECT 1)",
        "a; DROP TABLE usage_record",
        "1) FROM read_csv('/etc/passwd') --",
        "1 AS x FROM read_text('/etc/passwd')",
        "read_text('/etc/passwd')",
        "a.read_csv('x')",
        "getenv('HOME')",
        "current_setting('memory_limit')",
        "getvariable('source')",
        "now()",
        "current_timestamp",
        "current_date",
        "random()",
        "uuid()",
        "nextval('s')",
        "sum(a)",
        "count(*)",
        "row_number() OVER ()",
        "a, b",
        "a AS b",
        "*",
        "COLUMNS(*)",
        "$1",
        "?",
        "a UNION SELECT 1",
        "x) , (y",
        "write_log('x')",
        "",
        "(",
        "DELETE FROM usage_record",
    ],
)
def test_anything_but_one_rows_scalar_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="`"):
        check(expression)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"columns": {**COLUMNS, "tokens": "1"}}, "`tokens` is no column of a usage record; there are account_id"),
        ({"columns": {"record_id": "call"}}, "needs started_at, provider, model_raw too"),
        ({"columns": {**COLUMNS, "agent": "now()"}}, "columns.agent: `now()` uses now()"),
        ({"claims": {"team": "(SELECT 1)"}}, "claims.team:"),
        ({"where": "a;b"}, "where:"),
        ({"columns": {**COLUMNS, "input_tokens": "1"}}, "does not go with `semantics: disjoint`"),
        ({"semantics": "inclusive"}, "does not go with `semantics: inclusive`"),
        ({"fields": {"a": "NUMBERS"}}, "`a: NUMBERS` is no DuckDB type"),
    ],
)
def test_a_wrong_mapping_is_refused_when_the_configuration_is_read(
    house: House, tmp_path: Path, change: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        house.configure(source(tmp_path, "jsonl", **change))
    assert says in str(caught.value)


@pytest.mark.samples
def test_the_claude_code_example_meets_the_samples_known_numbers(house: House) -> None:
    """46,218 requests of 692 tasks; $3,714.70 with the ideal cache, $4,272.68 with the long-context tier."""
    path = ROOT / "examples" / "claude-code" / "inferledger.yaml"
    needs.samples("traces", "claude_code_agentic", "agentic_requests.parquet")
    given = {k: v for k, v in yaml.safe_load(path.read_text()).items() if k in CollectorSettings.model_fields}
    house.settings = CollectorSettings.model_validate(given, context={"base": path.parent})
    report = house.collect(only={"claude-code", "prices.contract"})

    assert report.ok, report.findings
    assert house.row("SELECT count(*), count(DISTINCT task_id) FROM usage_record") == (46_218, 692)
    assert house.row(
        "SELECT sum(uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens), "
        "sum(output_tokens) FROM usage_record"
    ) == (5_467_403_989, 20_339_420)
    assert house.row("SELECT rows_read, rows_filtered, rows_rejected FROM load WHERE source = 'claude-code'") == (
        49_334, 3_116, 0,
    )  # fmt: skip
    priced = """
        SELECT round(sum(tokens * per_mtok) / 1000000, 2) FROM (
            SELECT model, uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens AS prompt,
                unnest(['uncached_input', 'cache_read', 'cache_write_5m', 'output']) AS token_class,
                unnest([uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, output_tokens]) AS tokens
            FROM usage_record) AS used
        JOIN price USING (model, token_class)
        WHERE from_input_tokens = (
            SELECT max(from_input_tokens) FROM price AS tier WHERE tier.model = used.model
                AND tier.token_class = used.token_class AND (from_input_tokens = 0 OR {tier}))
    """
    assert house.row(priced.format(tier="FALSE")) == (3714.70,)
    assert house.row(priced.format(tier="prompt > from_input_tokens")) == (4272.68,)
