"""OTLP/JSON spans: what becomes of each attribute, what is no call, what is refused."""

import gzip
import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from collector.usage.otlp import OtlpSettings
from tests import needs
from tests.collector.conftest import House
from tests.collector.spans import CHAT, TRACE, attribute, document, span, write_spans
from tests.collector.writing import START, lines, payload, usage

TOKENS = "uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens"
COUNTED = "SELECT rows_read, rows_loaded, rows_rejected, rows_filtered FROM load ORDER BY loaded_at, load_id"


def traces(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "traces", "kind": "otlp", "location": str(folder), **more}


@pytest.mark.samples
def test_every_recorded_sample_is_read_and_every_document_accounted_for(house: House) -> None:
    house.collect(traces(needs.samples("usage", "otel_genai")))
    assert house.rows(COUNTED) == [(16, 2, 11, 3)]
    assert house.rows(
        f"SELECT provider, model, started_at, {TOKENS}, semantics FROM usage_record ORDER BY provider"
    ) == [
        ("anthropic", "claude-sonnet-4.6", datetime(2024, 5, 8, 13, 40), 187, 0, 0, 0, 53, "otlp:inclusive"),
        ("openai", "gpt-5.4", datetime(2024, 5, 8, 13, 40), 412, 0, 0, 0, 118, "otlp:inclusive"),
    ]
    # Envoy's six are test goldens without ids and times; four are bare attributes, one of them no list; one is metrics.
    assert house.rows("SELECT reason, count(*) FROM rejected_row GROUP BY ALL ORDER BY ALL") == [
        ("metrics_not_spans", 1), ("missing_time", 6), ("no_spans", 3), ("wrong_type", 1),
    ]  # fmt: skip
    assert house.row("SELECT location, detail FROM rejected_row WHERE reason = 'metrics_not_spans'") == (
        "opentelemetry-proto__metrics.json",
        "the document holds OTLP metrics; this source reads spans (resourceSpans)",
    )


ATTRIBUTES = {
    "envoy-ai-gateway__chat-basic.json": (8, 377, 320),
    "envoy-ai-gateway__chat-detailed-usage.json": (12, 100, 100),
    "envoy-ai-gateway__chat-reasoning.json": (27, 267, 192),
    "envoy-ai-gateway__chat-streaming-detailed-usage.json": (12, 100, 100),
    "envoy-ai-gateway__chat-web-search.json": (26, 22, 0),
    "envoy-ai-gateway__completion-streaming-usage.json": (31, 25, None),
    "openinference__openinference_client_span_input_output_only.json": (97, 52, None),
    "openinference__otel_genai_client_span_tool_calls.json": (97, 52, None),
    "openinference__otel_genai_deprecated_client_span_tool_calls.json": (97, 52, None),
}


@pytest.mark.samples
def test_recorded_attributes_on_whole_spans_give_their_counts(house: House, tmp_path: Path) -> None:
    for number, name in enumerate(ATTRIBUTES, start=1):
        said = json.loads(needs.samples("usage", "otel_genai", name).read_text())
        given = said.get("attributes") or [attribute(key, value) for key, value in said.items()]
        write_spans(tmp_path / "in" / "a.jsonl", span(number) | {"attributes": given})
    house.collect(traces(tmp_path / "in"))
    assert house.rows(
        "SELECT uncached_input_tokens, output_tokens, reasoning_tokens, provider FROM usage_record ORDER BY record_id"
    ) == [(*counts, "openai") for counts in ATTRIBUTES.values()]


@pytest.mark.samples
def test_a_payload_that_claims_another_team_moves_no_cost(house: House, tmp_path: Path) -> None:
    """The forged resource of LangWatch's sample around a call that the gateway logged under its caller's key."""
    forged = json.loads(needs.samples("usage", "otel_genai", "langwatch__otlp__forge-attribution.json").read_text())
    forged["resourceSpans"][0]["scopeSpans"][0]["spans"] = [span(1, CHAT | {"gen_ai.response.id": "chatcmpl-1"})]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(json.dumps(forged, indent=1))
    lines(
        tmp_path / "log" / "a.jsonl", [payload(1, custom_llm_provider="openai", metadata__usage_object=usage(100, 20))]
    )
    house.collect(
        traces(tmp_path / "in", claims={"resource": ["langwatch.team.id"]}),
        {"name": "gateway", "kind": "litellm", "location": str(tmp_path / "log")},
    )
    assert house.rows(
        "SELECT source_trust, event_key, claims FROM usage_record JOIN claim_set USING (claim_set_id) ORDER BY ALL"
    ) == [
        (10, "r:openai:chatcmpl-1", {"key_alias": "search-prod", "team_alias": "search", "team_id": "team-1"}),
        (20, "r:openai:chatcmpl-1", {"resource.langwatch.team.id": "FORGE_team_other"}),
    ]


def test_a_call_in_full(house: House, tmp_path: Path) -> None:
    said = CHAT | {
        "gen_ai.response.model": "gpt-4o-2024-08-06", "gen_ai.response.id": "chatcmpl-9", "gen_ai.request.stream": True,
        "gen_ai.response.time_to_first_chunk": 0.25, "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.conversation.id": "c-1", "user.id": "ünal", "gen_ai.agent.name": "planner",
        "openai.response.service_tier": "flex", "server.address": "api.openai.com", "gen_ai.usage.cost": 0.00125,
        "app.feature": "search",
    }  # fmt: skip
    write_spans(tmp_path / "in" / "a.jsonl", span(1, said, parent=7, start=0.5))
    house.collect(traces(tmp_path / "in", account="111122223333", claims={"attributes": ["app.feature"]}))
    assert house.row(
        "SELECT source_trust, record_id, event_key, parent_id, session_id, task_id, agent, user_id, started_at, "
        "first_token_at, ended_at, provider, model_raw, account_id, route, service_tier, stream, status, "
        "finish_reason, provider_cost_usd FROM usage_record"
    ) == (
        20, f"{TRACE}:0000000000000001", "r:openai:chatcmpl-9", f"{TRACE}:0000000000000007", "c-1", TRACE, "planner",
        "ünal", datetime(2026, 11, 2, 10, 0, 0, 500000), datetime(2026, 11, 2, 10, 0, 0, 750000),
        datetime(2026, 11, 2, 10, 0, 2, 500000), "openai", "gpt-4o-2024-08-06", "111122223333", "gpt-4o", "flex", True,
        "success", "stop", Decimal("0.00125"),
    )  # fmt: skip
    assert house.row("SELECT claims FROM claim_set") == (
        {"attribute.app.feature": "search", "resource.service.name": "shop"},
    )


SPELLINGS = [
    ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 50, "gen_ai.usage.cache_read.input_tokens": 900,
      "gen_ai.usage.cache_creation.input_tokens": 60, "gen_ai.usage.reasoning.output_tokens": 30},
     (40, 900, 60, 0, 50, 30, "otlp:inclusive+5m_assumed")),
    ({"gen_ai.usage.prompt_tokens": 1000, "gen_ai.usage.completion_tokens": 50,
      "gen_ai.usage.cache_read_input_tokens": 900, "gen_ai.usage.cache_creation_input_tokens": 60},
     (40, 900, 60, 0, 50, None, "otlp:inclusive+5m_assumed")),
    ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 50,
      "gen_ai.usage.details.cache_read_tokens": 900, "gen_ai.usage.details.reasoning_tokens": 7},
     (100, 900, 0, 0, 50, 7, "otlp:inclusive")),
    ({"llm.token_count.prompt": 1000, "llm.token_count.completion": 50,
      "llm.token_count.prompt_details.cache_read": 900, "llm.token_count.prompt_details.cache_write": 60,
      "llm.token_count.completion_details.reasoning": 30},
     (40, 900, 60, 0, 50, 30, "otlp:inclusive+5m_assumed")),
    ({"ai.usage.promptTokens": 1000, "ai.usage.completionTokens": 50, "ai.usage.cachedInputTokens": 900,
      "ai.usage.reasoningTokens": 30}, (100, 900, 0, 0, 50, 30, "otlp:inclusive")),
    ({"gen_ai.usage.input_tokens": 1000, "gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.output_tokens": 50},
     (1000, 0, 0, 0, 50, None, "otlp:inclusive")),
    # thoughts beside the output: the total says so
    ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.reasoning_tokens": 12,
      "gen_ai.usage.total_tokens": 27}, (10, 0, 0, 0, 17, 12, "otlp:inclusive+reasoning_added")),
    # cached tokens beside the input: again the total says so
    ({"gen_ai.usage.input_tokens": 10, "gen_ai.usage.output_tokens": 5, "gen_ai.usage.cache_read_input_tokens": 900,
      "gen_ai.usage.total_tokens": 915}, (10, 900, 0, 0, 5, None, "otlp:disjoint")),
    ({"gen_ai.usage.input_tokens": 0, "gen_ai.usage.output_tokens": 0}, (0, 0, 0, 0, 0, None, "otlp:inclusive")),
    ({}, (None, None, None, None, None, None, "otlp:unknown")),
]  # fmt: skip


def test_every_spelling_gives_disjoint_classes(house: House, tmp_path: Path) -> None:
    bare = {name: value for name, value in CHAT.items() if "usage" not in name}
    spans = [span(number, bare | counts) for number, (counts, _) in enumerate(SPELLINGS, start=1)]
    write_spans(tmp_path / "in" / "a.jsonl", *spans)
    house.collect(traces(tmp_path / "in"))
    found = house.rows(f"SELECT {TOKENS}, reasoning_tokens, semantics FROM usage_record ORDER BY record_id")
    assert found == [expected for _, expected in SPELLINGS]


def test_an_instrumentation_that_leaves_the_cache_out_is_named_in_the_configuration(
    house: House, tmp_path: Path
) -> None:
    said = CHAT | {"gen_ai.usage.cache_read.input_tokens": 900}
    write_spans(tmp_path / "in" / "a.jsonl", span(1, said), scope="old.anthropic")
    write_spans(tmp_path / "in" / "a.jsonl", span(2, said), scope="another")
    house.collect(traces(tmp_path / "in", exclusive_scopes=["old.anthropic"]))
    assert house.row(f"SELECT {TOKENS} FROM usage_record") == (100, 900, 0, 0, 20)
    assert house.refused() == [("a.jsonl", 2, "subset_exceeds_total")]


PROVIDERS = [
    ({"gen_ai.provider.name": "aws.bedrock", "gen_ai.system": "anthropic"}, "aws.bedrock"),
    ({"gen_ai.provider.name": "", "gen_ai.system": "az.ai.openai"}, "azure.ai.openai"),
    ({"gen_ai.provider.name": "openai", "server.address": "api.deepseek.com"}, "deepseek"),
    ({"gen_ai.provider.name": "openai", "server.address": "shop.openai.azure.com"}, "azure.ai.openai"),
    ({"gen_ai.provider.name": "openai", "server.address": "evil.example/api.openai.com.example"}, "openai"),
    ({"gen_ai.provider.name": "openai", "server.address": "LLM.internal"}, "self-hosted"),
    ({"gen_ai.provider.name": "openai", "server.address": "unknown.internal"}, "openai"),
    ({"gen_ai.provider.name": "mistralai"}, "mistral_ai"),
    ({"gen_ai.provider.name": "", "llm.provider": "azure", "llm.system": "openai"}, "azure.ai.openai"),
]


def test_the_address_knows_better_than_the_library_who_answers(house: House, tmp_path: Path) -> None:
    spans = [span(number, CHAT | said) for number, (said, _) in enumerate(PROVIDERS, start=1)]
    write_spans(tmp_path / "in" / "a.jsonl", *spans)
    house.collect(traces(tmp_path / "in", servers={"llm.internal": {"provider": "self-hosted"}}))
    found = house.rows("SELECT provider FROM usage_record ORDER BY record_id")
    assert found == [(provider,) for _, provider in PROVIDERS]


def test_a_call_of_bedrock_takes_region_and_scope_from_address_and_profile(house: House, tmp_path: Path) -> None:
    said = CHAT | {
        "gen_ai.provider.name": "aws.bedrock", "server.address": "bedrock-runtime.eu-west-1.amazonaws.com",
        "gen_ai.request.model": "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
    }  # fmt: skip
    write_spans(tmp_path / "in" / "a.jsonl", span(1, said))
    house.collect(traces(tmp_path / "in", call_region="us-east-1"))
    assert house.row("SELECT region_id, scope, model FROM usage_record") == ("eu-west-1", "geo", "claude-sonnet-4-5")


COSTS = [(0.0125, Decimal("0.0125")), (0.0, None), (120.0, None), (100, None), (7.5, Decimal("7.5"))]


def test_a_cost_of_zero_or_one_that_is_a_token_count_is_unknown(house: House, tmp_path: Path) -> None:
    spans = [
        span(number, CHAT | {"llm.cost.total": cost, "gen_ai.usage.total_tokens": 120})
        for number, (cost, _) in enumerate(COSTS, start=1)
    ]
    write_spans(tmp_path / "in" / "a.jsonl", *spans)
    house.collect(traces(tmp_path / "in"))
    found = house.rows("SELECT provider_cost_usd FROM usage_record ORDER BY record_id")
    assert found == [(expected,) for _, expected in COSTS]


ERRORS = [
    ({"error.type": "RateLimitError"}, "failure"),
    ({"error.type": "openai.APITimeoutError"}, "timeout"),
    ({"error.type": "asyncio.CancelledError"}, "cancelled"),
    ({"error.type": "x", "http.response.status_code": 499}, "cancelled"),
    ({}, "failure"),
]


def test_errors_by_kind(house: House, tmp_path: Path) -> None:
    failed = {"code": 2, "message": "secret words"}
    spans = [span(number, CHAT | said, status=failed) for number, (said, _) in enumerate(ERRORS, start=1)]
    write_spans(tmp_path / "in" / "a.jsonl", *spans)
    house.collect(traces(tmp_path / "in"))
    assert house.rows("SELECT status, error_kind, output_tokens FROM usage_record ORDER BY record_id") == [
        (status, said.get("error.type"), None) for said, status in ERRORS
    ]


def test_an_embedding_has_no_output_and_that_is_known(house: House, tmp_path: Path) -> None:
    said = CHAT | {"gen_ai.operation.name": "embeddings"}
    del said["gen_ai.usage.output_tokens"]
    write_spans(tmp_path / "in" / "a.jsonl", span(1, said))
    house.collect(traces(tmp_path / "in"))
    assert house.row("SELECT uncached_input_tokens, output_tokens FROM usage_record") == (100, 0)


def test_spans_that_are_no_model_calls_are_counted_and_left_out(house: House, tmp_path: Path) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
    write_spans(
        tmp_path / "in" / "a.jsonl", span(1), span(2, tool), span(3, {"http.request.method": "POST"}),
        span(4, {"openinference.span.kind": "RETRIEVER"}), span(5, {"gen_ai.operation.name": "invoke_agent"}),
    )  # fmt: skip
    house.collect(traces(tmp_path / "in"))
    assert house.rows(COUNTED) == [(5, 1, 0, 4)]


def test_spans_without_valid_ids_are_told_apart_by_what_they_say(house: House, tmp_path: Path) -> None:
    zeros = {"traceId": "0" * 32, "spanId": "0" * 16}
    write_spans(tmp_path / "in" / "a.jsonl", span(1) | zeros, span(2, start=1) | zeros, span(2, start=1) | zeros)
    house.collect(traces(tmp_path / "in"))
    assert house.row("SELECT count(*), count(DISTINCT event_key) FROM usage_record") == (2, 2)


def test_ids_in_base64_are_ids_and_their_case_counts(house: House, tmp_path: Path) -> None:
    """Protobuf's own JSON writes bytes so; OTLP wants hex."""
    given = {"traceId": "W47/95gDgQPSabYzgTxgDA==", "spanId": "7uGbfsPBsXQ="}
    zeros = {"traceId": "AAAAAAAAAAAAAAAAAAAAAA==", "spanId": "AAAAAAAAAAA="}
    write_spans(tmp_path / "in" / "a.jsonl", span(1) | given, span(2, start=1) | zeros)
    house.collect(traces(tmp_path / "in"))
    assert [row[0][:36] for row in house.rows("SELECT record_id FROM usage_record ORDER BY started_at")] == [
        "W47/95gDgQPSabYzgTxgDA==:7uGbfsPBsXQ="[:36], house.rows("SELECT max(record_id) FROM usage_record")[0][0][:36],
    ]  # fmt: skip
    assert house.row("SELECT count(*) FROM usage_record WHERE starts_with(record_id, 'span-')") == (1,)


def test_huge_values_and_unknown_shapes_are_refused_or_left_out_not_raised(house: House, tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.jsonl"
    write_spans(path, span(1, CHAT | {"gen_ai.usage.input_tokens": 10**15}))
    write_spans(path, span(2, CHAT | {"gen_ai.usage.input_tokens": "9" * 60}))
    write_spans(path, span(3, CHAT | {"gen_ai.usage.input_tokens": 12.0}))
    write_spans(path, span(4, CHAT | {"openai.response.service_tier": "warp"}))
    with path.open("a") as file:
        file.write('{"resourceSpans": null}\n{"resourceSpans": [null]}\n{"resourceSpans": [{"scopeSpans": null}]}\n')
        file.write('{"resourceSpans": "x"}\n[1]\n{"resourceSpans": [{"scopeSpans": [{"spans": [null]}]}]}\n')
    report = house.collect(traces(tmp_path / "in"))
    assert report.findings == ()
    assert house.rows("SELECT uncached_input_tokens FROM usage_record") == [(12,)]
    assert house.refused() == [
        ("a.jsonl", 1, "absurd_tokens"), ("a.jsonl", 2, "not_a_whole_number"), ("a.jsonl", 4, "unknown_service_tier"),
        ("a.jsonl", 5, "no_spans"), ("a.jsonl", 8, "wrong_type"), ("a.jsonl", 9, "not_an_object"),
    ]  # fmt: skip


def test_no_text_of_a_prompt_or_answer_is_kept_anywhere(house: House, tmp_path: Path) -> None:
    secret = "the secret words of a prompt"
    said = CHAT | {
        "gen_ai.input.messages": secret, "gen_ai.prompt": secret, "llm.input_messages.0.message.content": secret,
        "input.value": secret, "ai.prompt.messages": secret, "error.type": secret, "app.note": secret * 20,
        "gen_ai.response.finish_reasons": [secret], "gen_ai.usage.reasoning_tokens": secret,
    }  # fmt: skip
    path = tmp_path / "in" / "a.jsonl"
    write_spans(path, span(1, said), span(2, said, status={"code": 2, "message": secret}))
    path.write_text(path.read_text() + '{"resourceSpans": [{"x": "' + secret + '"\n' + json.dumps({"a": secret}) + "\n")
    report = house.collect(traces(tmp_path / "in", claims={"attributes": ["app.note"]}))
    assert [reason for _, _, reason in house.refused()] == ["not_a_whole_number", "malformed_json", "no_spans"]
    assert secret.encode() not in house.bytes()
    assert secret not in repr(report)


@pytest.mark.parametrize("name", ["gen_ai.prompt", "gen_ai.input.messages", "input.value", "llm.prompts.0.x", "a b"])
def test_an_attribute_that_holds_text_cannot_become_a_claim(name: str) -> None:
    with pytest.raises(ValidationError, match="attribute"):
        OtlpSettings.model_validate({"name": "a", "kind": "otlp", "location": "x", "claims": {"attributes": [name]}})


def test_files_may_be_pretty_printed_lines_or_gzip_and_empty_exports_are_nothing(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    write_spans(folder / "a.jsonl", span(1))
    write_spans(folder / "a.jsonl", span(2))
    (folder / "b.json").write_text(json.dumps(document([span(3)]), indent=2))
    (folder / "c.json.gz").write_bytes(gzip.compress(json.dumps(document([span(4)])).encode()))
    (folder / "d.json").write_text('{"resourceSpans":[]}')
    (folder / "e.json").write_text("")
    (folder / "f.json.gz").write_bytes(gzip.compress(json.dumps(document([span(5)])).encode())[:-20])
    house.collect(traces(folder))
    assert house.row("SELECT count(*) FROM usage_record") == (4,)
    assert house.refused() == [("f.json.gz", None, "truncated_gzip")]


def test_a_growing_file_adds_what_is_new(house: House, tmp_path: Path) -> None:
    path = tmp_path / "in" / "a.jsonl"
    write_spans(path, span(1))
    whole = path.read_text()
    path.write_text(whole + whole[:40])
    house.collect(traces(tmp_path / "in"))
    assert house.refused() == [("a.jsonl", 2, "malformed_json")]
    path.write_text(whole)
    write_spans(path, span(2))
    house.collect(traces(tmp_path / "in"))
    assert house.row("SELECT count(*) FROM usage_record") == (2,)
    assert house.refused() == []


REFUSED = [
    ({"startTimeUnixNano": "0"}, "missing_time"),
    ({"endTimeUnixNano": None}, "missing_time"),
    ({"startTimeUnixNano": "99999999999999999999999"}, "missing_time"),
    ({"endTimeUnixNano": str(int(START.timestamp() - 1) * 10**9)}, "ended_before_started"),
    ({"endTimeUnixNano": str(int(START.timestamp() + 10**8) * 10**9)}, "future_clock"),
    ({"attributes": {"a": 1}}, "wrong_type"),
]


def test_what_cannot_be_believed_is_refused_and_the_rest_kept(house: House, tmp_path: Path) -> None:
    for number, (changes, _) in enumerate(REFUSED, start=1):
        write_spans(tmp_path / "in" / "a.jsonl", span(number) | changes)
    write_spans(tmp_path / "in" / "a.jsonl", span(99))
    house.collect(traces(tmp_path / "in"))
    assert house.refused() == [("a.jsonl", number, reason) for number, (_, reason) in enumerate(REFUSED, start=1)]
    assert house.row("SELECT count(*) FROM usage_record") == (1,)
