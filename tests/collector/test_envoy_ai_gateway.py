"""Envoy AI Gateway's access log: the keys of its documentation, of `aigw run`, and an operator's own."""

import gzip
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from collector.usage.envoy_ai_gateway import EnvoyAIGatewaySettings
from tests.collector.conftest import House
from tests.collector.test_langfuse import jsonl
from tests.collector.test_otlp import COUNTED, TOKENS
from tests.collector.writing import START

Row = dict[str, Any]


def gateway(folder: Path, **more: Any) -> Row:
    return {"name": "gateway", "kind": "envoy_ai_gateway", "location": str(folder), **more}


def line(number: int = 1, **changes: Any) -> Row:
    """A line as the documentation of the gateway shows it."""
    begun = START + timedelta(minutes=number)
    return {
        ":authority": "ai.example.com", "bytes_received": 105, "bytes_sent": 432, "duration": 1526,
        "genai_backend_name": "default/openai/route/chat/rule/0/ref/0", "genai_model_name": "gpt-4o-mini",
        "genai_model_name_override": None, "genai_tokens_input": 15, "genai_tokens_output": 7, "genai_tokens_total": 22,
        "method": "POST", "response_code": 200, "response_code_details": "via_upstream", "response_flags": "-",
        "route_name": "httproute/default/chat", "start_time": f"{begun:%Y-%m-%dT%H:%M:%S}.894Z",
        "x-envoy-origin-path": "/v1/chat/completions", "x-request-id": f"q-{number}", "user-agent": "curl/8.7.1",
    } | changes  # fmt: skip


def test_a_line_of_the_documentation_in_full(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.log", [line()])
    house.collect(gateway(tmp_path / "in", account="111122223333"))
    assert house.row(
        f"SELECT source_trust, record_id, operation_id, started_at, ended_at, provider, model, route, status, "
        f"{TOKENS}, account_id, semantics FROM usage_record"
    ) == (
        10, "q-1:2026-11-02T10:01:00.894Z", "q-1", datetime(2026, 11, 2, 10, 1, 0, 894000),
        datetime(2026, 11, 2, 10, 1, 2, 420000), "openai", "gpt-4o-mini", "gpt-4o-mini", "success", 15, 0, 0, 0, 7,
        "111122223333", "envoy_ai_gateway:inclusive",
    )  # fmt: skip


def test_the_names_of_aigw_run_and_of_the_metadata(house: House, tmp_path: Path) -> None:
    common = {"start_time": "2026-11-02T10:00:00Z", "duration": "12", "response_code": "200"}
    jsonl(tmp_path / "in" / "a.jsonl", [
        common | {"x-request-id": "a", "gen_ai.request.model": "m", "gen_ai.response.model": "m-1", "session.id": "s",
                  "gen_ai.provider.name": "anthropic", "gen_ai.usage.input_tokens": "100",
                  "gen_ai.usage.output_tokens": "9", "gen_ai.usage.cache_read.input_tokens": "80"},
        common | {"x-request-id": "b", "x-ai-eg-model": "m", "backend_name": "anthropic", "llm_input_token": "100",
                  "llm_output_token": "9", "llm_cached_input_token": "80", "llm_cache_creation_input_token": "10"},
    ])  # fmt: skip
    house.collect(gateway(tmp_path / "in"))
    assert house.rows(f"SELECT operation_id, model_raw, session_id, {TOKENS} FROM usage_record ORDER BY ALL") == [
        ("a", "m-1", "s", 20, 80, 0, 0, 9), ("b", "m", None, 10, 80, 10, 0, 9),
    ]  # fmt: skip


def test_own_keys_and_verified_claims_are_named_in_the_configuration(house: House, tmp_path: Path) -> None:
    own = {"when": "2026-11-02T10:00:00Z", "took": 5, "status": 200, "x-request-id": "a", "service": "qwen3-32b",
           "tokens.in": 4, "tokens.out": 2, "caller": "search-prod", "job": "task-7",
           "genai_model_name": "-"}  # fmt: skip
    jsonl(tmp_path / "in" / "a.log", [own])
    house.collect(gateway(
        tmp_path / "in", provider="self-hosted", claims={"key_alias": "caller"},
        keys={"start": "when", "duration": "took", "request_model": "service", "input": "tokens.in",
              "output": "tokens.out", "task": "job"},
    ))  # fmt: skip
    assert house.row(
        "SELECT provider, route, uncached_input_tokens, output_tokens, task_id, claims "
        "FROM usage_record JOIN claim_set USING (claim_set_id)"
    ) == ("self-hosted", "qwen3-32b", 4, 2, "task-7", {"key_alias": "search-prod"})


ENDS = [
    ({"response_flags": "DC", "response_code": 0}, "cancelled", "DC"),
    ({"response_flags": "DC"}, "cancelled", "DC"),
    ({"response_flags": "UT", "response_code": 504}, "timeout", "UT"),
    ({"response_code": 429}, "failure", "429"),
    ({"response_code": 400, "llm_error_type": "invalid_request_error"}, "failure", "invalid_request_error"),
    ({"response_code": 503, "response_flags": "UF,URX"}, "failure", "503"),
]


def test_errors_and_streams_that_were_left_keep_their_counts_apart(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.log", [line(number, **changes) for number, (changes, _, _) in enumerate(ENDS, start=1)])
    house.collect(gateway(tmp_path / "in"))
    assert house.rows(
        "SELECT status, error_kind, output_tokens, raw_counts['output'] FROM usage_record ORDER BY started_at"
    ) == [(status, kind, None, "7") for _, status, kind in ENDS]


def test_no_token_metadata_is_unknown_and_zero_is_zero(house: House, tmp_path: Path) -> None:
    absent = {"genai_tokens_input": None, "genai_tokens_output": "-", "genai_tokens_total": ""}
    jsonl(tmp_path / "in" / "a.log", [line(1, **absent), line(2, genai_tokens_input=0, genai_tokens_output=0)])
    house.collect(gateway(tmp_path / "in"))
    assert house.rows("SELECT uncached_input_tokens, output_tokens, semantics FROM usage_record ORDER BY 3 DESC") == [
        (None, None, "envoy_ai_gateway:unknown"), (0, 0, "envoy_ai_gateway:inclusive"),
    ]  # fmt: skip


def test_a_total_beside_the_counts_is_never_added(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.log", [line(genai_tokens_total=9999)])
    house.collect(gateway(tmp_path / "in"))
    assert house.row("SELECT uncached_input_tokens + output_tokens FROM usage_record") == (22,)


def test_lines_that_are_no_model_calls_are_left_out_and_noise_is_refused(house: House, tmp_path: Path) -> None:
    mcp = line(2, genai_model_name=None, genai_tokens_input=None, genai_tokens_output=None, mcp_method="tools/call")
    jsonl(tmp_path / "in" / "a.log", [line(1), mcp, line(3, genai_backend_name="default/pool-7/x")])
    with (tmp_path / "in" / "a.log").open("a") as file:
        file.write("[2026-11-02 10:00:00] [info] loading listener\n")
    house.collect(gateway(tmp_path / "in"))
    assert house.rows(COUNTED) == [(4, 1, 2, 1)]
    assert house.refused() == [("a.log", 3, "missing_provider"), ("a.log", 4, "malformed_json")]


def test_a_caller_that_sends_one_request_id_twice_made_two_requests(house: House, tmp_path: Path) -> None:
    again = line(2) | {"x-request-id": "q-1"}
    (tmp_path / "in").mkdir()
    jsonl(tmp_path / "in" / "a.log", [line(1), again])
    (tmp_path / "in" / "copy.log.gz").write_bytes(gzip.compress((tmp_path / "in" / "a.log").read_bytes()))
    house.collect(gateway(tmp_path / "in"))
    assert house.row("SELECT count(*), count(DISTINCT operation_id) FROM usage_record") == (2, 1)


def test_a_field_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ValidationError, match="`inputt` is no field; there are request_id, start"):
        EnvoyAIGatewaySettings.model_validate(
            {"name": "a", "kind": "envoy_ai_gateway", "location": "x", "keys": {"inputt": "x"}}
        )


def test_an_own_key_may_be_one_of_the_known_in_another_case(house: House, tmp_path: Path) -> None:
    jsonl(tmp_path / "in" / "a.log", [line() | {"X-Request-ID": "own"}])
    assert house.collect(gateway(tmp_path / "in", keys={"request_id": "X-Request-ID"})).findings == ()
    assert house.row("SELECT operation_id FROM usage_record") == ("own",)
