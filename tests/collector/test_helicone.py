"""Helicone's requests, from its API's export and from its table."""

import csv
import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.collector.conftest import House
from tests.collector.test_langfuse import array, jsonl, table
from tests.collector.test_otlp import COUNTED, TOKENS
from tests.collector.writing import START

Row = dict[str, Any]


def helicone(folder: Path, **more: Any) -> Row:
    return {"name": "gateway", "kind": "helicone", "location": str(folder), **more}


def request(number: int = 1, **changes: Any) -> Row:
    """As `npx @helicone/export` writes it."""
    begun = START + timedelta(minutes=number)
    return {
        "request_id": f"r-{number}",
        "response_id": f"a-{number}",
        "request_created_at": f"{begun:%Y-%m-%dT%H:%M:%S}.250Z",
        "response_created_at": f"{begun + timedelta(seconds=2):%Y-%m-%dT%H:%M:%S}.250Z",
        "response_status": 200,
        "delay_ms": 2000,
        "time_to_first_token": 400,
        "request_model": "claude-sonnet-4-5",
        "response_model": "claude-sonnet-4-5-20250929",
        "model": "claude-sonnet-4-5-20250929",
        "provider": "ANTHROPIC",
        "target_url": "https://api.anthropic.com/v1/messages",
        "prompt_tokens": 40,
        "prompt_cache_read_tokens": 900,
        "prompt_cache_write_tokens": 60,
        "completion_tokens": 20,
        "total_tokens": 60,
        "costUSD": 0.0005,
        "cache_reference_id": "00000000-0000-0000-0000-000000000000",
        "request_user_id": "u-1",
        "properties": {"app": "web", "Helicone-Session-Id": "s-1", "Agent": "planner"},
        "request_body": {"messages": [{"content": "a prompt"}]},
        "response_body": {"content": "an answer"},
    } | changes


def row(number: int = 1, **changes: Any) -> Row:
    """A row of `request_response_rmt`, as ClickHouse writes it."""
    return {
        "request_id": f"r-{number}", "request_created_at": f"2026-11-02 10:{number:02d}:00.250", "status": 200,
        "response_created_at": f"2026-11-02 10:{number:02d}:02.250", "latency": 2000, "time_to_first_token": 0,
        "model": "gpt-4o-2024-08-06", "provider": "OPENAI", "prompt_tokens": 40, "completion_tokens": 20,
        "prompt_cache_read_tokens": 0, "prompt_cache_write_tokens": 0, "cost": 305500, "organization_id": "org-1",
        "proxy_key_id": "key-1", "user_id": "u-1", "properties": {}, "request_body": "a prompt",
    } | changes  # fmt: skip


@pytest.mark.parametrize("write", [jsonl, array, table])
def test_a_request_in_full_whatever_the_file_type(house: House, tmp_path: Path, write: Any) -> None:
    name = {jsonl: "a.jsonl", array: "a.json", table: "a.csv"}[write]
    write(tmp_path / "in" / name, [request()])
    house.collect(helicone(tmp_path / "in", properties=["app"]))
    assert house.row(
        f"SELECT source_trust, record_id, session_id, task_id, agent, user_id, started_at, first_token_at, ended_at, "
        f"provider, model, route, status, {TOKENS}, provider_cost_usd, semantics, claims "
        "FROM usage_record JOIN claim_set USING (claim_set_id)"
    ) == (
        10, "r-1", "s-1", "s-1", "planner", "u-1", datetime(2026, 11, 2, 10, 1, 0, 250000),
        datetime(2026, 11, 2, 10, 1, 0, 650000), datetime(2026, 11, 2, 10, 1, 2, 250000), "anthropic",
        "claude-sonnet-4-5", "claude-sonnet-4-5", "success", 40, 900, 60, 0, 20, Decimal("0.0005"),
        "helicone:disjoint+5m_assumed", {"property.app": "web"},
    )  # fmt: skip
    assert b"an answer" not in house.bytes()


def test_a_row_of_the_table_has_its_cost_in_nano_dollars_and_its_credentials(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", [row(1), row(2, cost=0)])
    house.collect(helicone(tmp_path / "in"))
    assert house.rows("SELECT provider_cost_usd FROM usage_record ORDER BY record_id") == [
        (Decimal("0.0003055"),), (None,),
    ]  # fmt: skip
    assert house.rows("SELECT claims FROM claim_set") == [({"key_hash": "key-1", "organization": "org-1"},)]


@pytest.mark.parametrize(
    ("changes", "tokens", "semantics"),
    [
        ({}, (40, 0, 20), "helicone:disjoint"),
        ({"prompt_tokens": 0, "completion_tokens": 0}, (None, None, None), "helicone:unknown"),
        ({"prompt_tokens": 5, "completion_tokens": 0}, (5, 0, 0), "helicone:disjoint"),
        ({"prompt_tokens": 0, "completion_tokens": 0, "cache_reference_id": "1b2c0000-0000-4000-8000-000000000000"},
         (0, 0, 0), "helicone:answered_from_cache"),
    ],
)  # fmt: skip
def test_nothing_counted_is_unknown_and_an_answer_from_the_cache_is_zero(
    house: House, tmp_path: Path, changes: Row, tokens: tuple[Any, ...], semantics: str
) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", [row(**changes)])
    house.collect(helicone(tmp_path / "in"))
    assert house.row("SELECT uncached_input_tokens, cache_read_tokens, output_tokens, semantics FROM usage_record") == (
        *tokens,
        semantics,
    )


CODES = [(200, "success"), (201, "success"), (429, "failure"), (500, "failure"), (504, "timeout"), (-1, "timeout"),
     (-3, "cancelled"), (499, "cancelled"), (-4, "failure")]  # fmt: skip


def test_status_codes_of_http_and_its_own(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", [row(number, status=code) for number, (code, _) in enumerate(CODES, start=1)])
    house.collect(helicone(tmp_path / "in"))
    assert house.rows("SELECT status FROM usage_record ORDER BY record_id") == [(status,) for _, status in CODES]


def test_a_request_that_still_runs_is_left_to_a_later_export(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.jsonl", [row(1, status=-2)])
    house.collect(helicone(tmp_path / "in"))
    assert house.rows(COUNTED) == [(1, 0, 0, 1)]


def test_of_one_request_exported_again_the_latest_counts(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "b.jsonl", [row(completion_tokens=99, updated_at="2026-11-02 12:00:00")])
    house.collect(helicone(tmp_path / "in"))
    jsonl(tmp_path / "in" / "a.jsonl", [row(completion_tokens=1, updated_at="2026-11-02 11:00:00")])
    house.collect(helicone(tmp_path / "in"))
    assert house.rows("SELECT output_tokens FROM usage_record") == [(99,)]


def test_counts_that_hold_the_cache_are_said_in_the_configuration(house: House, tmp_path: Path) -> None:
    jsonl(
        tmp_path / "in" / "a.jsonl",
        [row(prompt_tokens=1000, prompt_cache_read_tokens=900), row(2, prompt_tokens=1, prompt_cache_read_tokens=9)],
    )
    house.collect(helicone(tmp_path / "in", semantics="inclusive"))
    assert house.row("SELECT uncached_input_tokens, cache_read_tokens FROM usage_record") == (100, 900)
    assert house.refused() == [("a.jsonl", 2, "subset_exceeds_total")]


def test_rows_of_another_export_are_refused(house: House, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    with (tmp_path / "in" / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["id", "name"], ["1", "x"]])
    (tmp_path / "in" / "b.json").write_text(json.dumps({"a": 1}))
    house.collect(helicone(tmp_path / "in"))
    assert house.refused() == [("a.csv", 2, "not_a_request"), ("b.json", 1, "not_a_request")]
