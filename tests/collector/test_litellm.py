"""LiteLLM's StandardLoggingPayload: what becomes of each field, and what is refused."""

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.writing import START, failure, lines, payload, usage


def gateway(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "gateway", "kind": "litellm", "location": str(folder), **more}


TOKENS = "uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens"


@pytest.mark.samples
def test_payloads_that_litellm_itself_wrote(house: House) -> None:
    """Seven payloads of LiteLLM 1.110.2: OpenAI without and with cache, Claude with cache read and write, a Bedrock
    profile, a stream, a rate-limit failure, a model without a price."""
    house.collect(gateway(needs.samples("usage", "litellm", "standard_logging_payload_1.110.2.jsonl")))

    assert house.rows(
        f"SELECT provider, model, scope, status, stream, {TOKENS}, provider_cost_usd, semantics, task_id "
        "FROM usage_record ORDER BY started_at"
    ) == [
        ("openai", "gpt-4o", None, "success", False, 1200, 0, 0, 0, 80,
         Decimal("0.0038"), "litellm:inclusive", "task-0"),
        ("openai", "gpt-4o", None, "success", False, 904, 4096, 0, 0, 300,
         Decimal("0.01038"), "litellm:inclusive", "task-0"),
        ("anthropic", "claude-sonnet-4-5", None, "success", False, 500, 48000, 3500, 0, 700,
         Decimal("0.039525000000000005"), "litellm:inclusive+5m_assumed", "task-1"),
        ("aws.bedrock", "claude-sonnet-4-5", "geo", "success", False, 3000, 0, 0, 0, 200,
         Decimal("0.013200000000000002"), "litellm:inclusive", "task-2"),
        ("openai", "gpt-4o", None, "success", True, 9, 0, 0, 0, 6, Decimal("0.0000825"), "litellm:inclusive", "task-9"),
        ("openai", "gpt-4o", None, "failure", False, None, None, None, None, None, None, "litellm:unknown", "task-7"),
        ("openai", "my-unknown-model", None, "success", False, 10, 0, 0, 0, 20, None, "litellm:inclusive", "task-8"),
    ]  # fmt: skip
    assert house.refused() == []


def test_a_call_in_full(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(stream=True, metadata__attempted_retries=1)])
    house.collect(gateway(tmp_path / "log", claims={"tags": ["app"]}))

    assert house.row(
        "SELECT source, source_trust, record_id, event_key, provider_response_id, operation_id, attempt, "
        "user_id, started_at, "
        "first_token_at, ended_at, model_raw, account_id, region_id, route, service_tier, error_kind FROM usage_record"
    ) == (
        "gateway", 10, "chatcmpl-1", "r:aws.bedrock:chatcmpl-1", "chatcmpl-1", "call-1", 1, "u-1",
        datetime(2026, 11, 2, 10), datetime(2026, 11, 2, 10, 0, 2), datetime(2026, 11, 2, 10, 0, 2),
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "210000000012", "us-east-1", "claude-sonnet-4-5",
        "standard", None,
    )  # fmt: skip
    assert house.row("SELECT raw_counts FROM usage_record") == (
        {"prompt_tokens": "1200", "completion_tokens": "80", "total_tokens": "1280"},
    )
    assert house.rows("SELECT * FROM touched_hour") == [(datetime(2026, 11, 2, 10), "usage")]
    assert house.row("SELECT rows_read, rows_loaded, rows_rejected, rows_filtered, "
    "sums['output_tokens'] FROM load") == (
        1, 1, 0, 0, "80",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "expected", "semantics"),
    [
        (usage(1000, 50), (1000, 0, 0, 0, 50), "litellm:inclusive"),
        (usage(0, 0), (0, 0, 0, 0, 0), "litellm:inclusive"),
        (usage(1000, 50, read=900), (100, 900, 0, 0, 50), "litellm:inclusive"),
        (usage(1000, 50, read=900, written=60), (40, 900, 60, 0, 50), "litellm:inclusive+5m_assumed"),
        (usage(1000, 50, read=900, written=60, written_1h=20), (40, 900, 40, 20, 50), "litellm:inclusive"),
        ({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 27,
          "completion_tokens_details": {"reasoning_tokens": 12}}, (10, 0, 0, 0, 17),
         "litellm:inclusive+reasoning_added"),
    ],
)  # fmt: skip
def test_token_classes_are_disjoint(
    house: House, tmp_path: Path, counts: dict[str, Any], expected: tuple[int, ...], semantics: str
) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(metadata__usage_object=counts)])
    house.collect(gateway(tmp_path / "log"))
    assert house.row(f"SELECT {TOKENS} FROM usage_record") == expected
    assert house.row("SELECT semantics FROM usage_record") == (semantics,)


def test_reasoning_is_a_part_of_the_output(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(metadata__usage_object=usage(10, 50, reasoning=30))])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT output_tokens, reasoning_tokens FROM usage_record") == (50, 30)


def test_absent_counts_of_a_success_are_unknown_and_a_stated_zero_is_zero(house: House, tmp_path: Path) -> None:
    absent = payload(1, metadata__usage_object={}, prompt_tokens=0, completion_tokens=0, total_tokens=0)
    stated = payload(2, metadata__usage_object=usage(0, 0), prompt_tokens=0, completion_tokens=0)
    lines(tmp_path / "log" / "a.jsonl", [absent, stated])
    house.collect(gateway(tmp_path / "log"))
    assert house.rows(
        "SELECT uncached_input_tokens, output_tokens, semantics FROM usage_record ORDER BY record_id"
    ) == [
        (None, None, "litellm:unknown"),
        (0, 0, "litellm:inclusive"),
    ]


def test_attempts_that_share_an_id_are_records_of_their_own(house: House, tmp_path: Path) -> None:
    """Failures carry the call's id as their own, once an attempt; the success that follows has the provider's."""
    first = failure(1)
    second = failure(1, "Timeout", startTime=START.timestamp() + 5, endTime=START.timestamp() + 65)
    third = payload(1, startTime=START.timestamp() + 70, endTime=START.timestamp() + 72)
    lines(tmp_path / "log" / "a.jsonl", [first, second, third])
    house.collect(gateway(tmp_path / "log"))
    assert house.rows(
        "SELECT operation_id, status, error_kind, left(event_key, 10), "
        "output_tokens FROM usage_record ORDER BY started_at"
    ) == [
        ("call-1", "failure", "RateLimitError", "s:gateway:", None),
        ("call-1", "timeout", "Timeout", "s:gateway:", None),
        ("call-1", "success", None, "r:aws.bedr", 80),
    ]


@pytest.mark.parametrize(
    ("changes", "cost"),
    [
        ({}, Decimal("0.0048")),
        ({"response_cost": 2.25e-05}, Decimal("0.0000225")),
        ({"response_cost": 0.0}, None),
        ({"response_cost": None}, None),
        ({"response_cost": 0.5, "response_cost_failure_debug_info": {"custom_llm_provider": "openai"}}, None),
        ({"response_cost": 0.0, "metadata__usage_object": usage(0, 0), "total_tokens": 0}, Decimal(0)),
    ],
)
def test_an_unknown_cost_is_not_zero(
    house: House, tmp_path: Path, changes: dict[str, Any], cost: Decimal | None
) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(**changes)])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT provider_cost_usd FROM usage_record") == (cost,)


def test_an_answer_from_the_gateways_own_cache_used_no_provider(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(cache_hit=True, id="chatcmpl-1_cache_hit1796.5")])
    house.collect(gateway(tmp_path / "log"))
    assert house.row(f"SELECT {TOKENS}, semantics, raw_counts['prompt_tokens'], left(event_key, "
    "10) FROM usage_record") == (
        0, 0, 0, 0, 0, "litellm:answered_from_cache", "1200", "s:gateway:",
    )  # fmt: skip


def test_a_batch_is_counted_once_by_its_cost_record(house: House, tmp_path: Path) -> None:
    """Asking for a batch's state is no call; LiteLLM logs the usage of the whole batch when it has ended."""
    asked = payload(1, call_type="aretrieve_batch")
    ended = payload(2, call_type="aretrieve_batch", hidden_params__batch_models=["amazon.nova-pro-v1:0"])
    fetched = payload(3, call_type="aget_responses")
    lines(tmp_path / "log" / "a.jsonl", [asked, ended, fetched])
    report = house.collect(gateway(tmp_path / "log"))
    assert house.rows("SELECT record_id, service_tier FROM usage_record") == [("chatcmpl-2", "batch")]
    assert (report.total("rows_filtered"), report.total("rows_loaded")) == (2, 1)


@pytest.mark.parametrize(
    ("model", "provider", "scope"),
    [
        ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", "geo"),
        ("bedrock/jp.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", "geo"),
        ("bedrock/global.anthropic.claude-sonnet-4-6-v1:0", "bedrock_converse", "global"),
        ("bedrock/amazon.nova-pro-v1:0", "bedrock", "regional"),
        ("gpt-4o", "openai", None),
    ],
)
def test_scope_comes_from_the_inference_profile(
    house: House, tmp_path: Path, model: str, provider: str, scope: str | None
) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(model=model, custom_llm_provider=provider)])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT scope FROM usage_record") == (scope,)


def test_a_provider_without_an_otel_name_keeps_its_own(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(custom_llm_provider="somebody_new")])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT provider FROM usage_record") == ("somebody_new",)


def test_account_and_region_of_a_call_that_does_not_say(house: House, tmp_path: Path) -> None:
    silent = {"api_base": "", "metadata__user_api_key_auth_metadata": None}
    lines(tmp_path / "log" / "a.jsonl", [payload(1, **silent), payload(2, **silent, model_id="elsewhere")])
    house.collect(
        gateway(
            tmp_path / "log",
            account="111122223333",
            call_region="eu-west-1",
            deployments={"sonnet-us": {"account": "210000000099", "region": "us-west-2"}},
        )
    )
    assert house.rows("SELECT account_id, region_id FROM usage_record ORDER BY record_id") == [
        ("210000000099", "us-west-2"),
        ("111122223333", "eu-west-1"),
    ]


def test_the_task_the_agent_and_the_outcome(house: House, tmp_path: Path) -> None:
    sent = {"agent": "coder", "parent_agent": "planner", "agent_task": "task-9", "task_outcome": "merged"}
    with_task = payload(1, metadata__spend_logs_metadata=sent)
    agent_only = payload(2, metadata__spend_logs_metadata={"agent": "coder"})
    chat = payload(3)
    lines(tmp_path / "log" / "a.jsonl", [with_task, agent_only, chat])
    house.collect(gateway(tmp_path / "log"))
    assert house.rows("SELECT task_id, agent, parent_agent, task_outcome FROM usage_record ORDER BY record_id") == [
        ("task-9", "coder", "planner", "merged"),
        ("trace-1", "coder", None, None),  # an agent's call without a task: the trace is its task
        (None, None, None, None),
    ]


def test_the_place_of_the_task_is_configuration(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(metadata__requester_metadata={"job.id": "job-7"}, session_id="s-1")])
    house.collect(gateway(tmp_path / "log", task="metadata.job.id", agent="session_id"))
    assert house.row("SELECT task_id, agent, session_id FROM usage_record") == ("job-7", "s-1", "s-1")


def test_claims_are_the_credential_and_what_was_allowed_of_the_payload(house: House, tmp_path: Path) -> None:
    made = payload(
        metadata__user_api_key_org_id="org-1",
        metadata__user_api_key_project_alias="project-x",
        metadata__spend_logs_metadata={"agent": "coder", "request": "unique-1"},
        request_tags=["app:web", "app:other", "canary", "User-Agent: curl/8.5.0", "env:"],
    )
    lines(tmp_path / "log" / "a.jsonl", [made])
    house.collect(gateway(tmp_path / "log", claims={"tags": ["app", "env", "canary"], "metadata": ["agent"]}))
    assert house.row("SELECT claims FROM claim_set") == (
        {
            "key_alias": "search-prod",
            "metadata.agent": "coder",
            "organization": "org-1",
            "project": "project-x",
            "tag.app": "web",
            "tag.canary": "true",
            "team_alias": "search",
            "team_id": "team-1",
        },
    )


def test_a_tag_that_differs_with_every_call_makes_no_claim_sets(house: House, tmp_path: Path) -> None:
    made = [payload(n, request_tags=["app:web", f"User-Agent: agent/{n}", f"request:{n}"]) for n in range(1, 51)]
    lines(tmp_path / "log" / "a.jsonl", made)
    house.collect(gateway(tmp_path / "log", claims={"tags": ["app"]}))
    assert house.row("SELECT count(*), count(DISTINCT claim_set_id) FROM usage_record") == (50, 1)
    assert house.row("SELECT count(*) FROM claim_set") == (1,)


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("negative_tokens", {"metadata__usage_object": usage(-1, 5)}),
    ("negative_tokens", {"metadata__usage_object": usage(10, 5, read=-3)}),
    ("absurd_tokens", {"metadata__usage_object": usage(1_000_000_001, 5)}),
    ("not_a_whole_number", {"metadata__usage_object": {"prompt_tokens": 1.5, "completion_tokens": 1}}),
    ("not_a_whole_number", {"metadata__usage_object": {"prompt_tokens": "many", "completion_tokens": 1}}),
    ("subset_exceeds_total", {"metadata__usage_object": usage(100, 5, read=90, written=20)}),
    ("subset_exceeds_total", {"metadata__usage_object": usage(100, 5, reasoning=6)}),
    ("missing_id", {"id": ""}),
    ("missing_time", {"startTime": None}),
    ("missing_time", {"endTime": "soon"}),
    ("missing_model", {"model": ""}),
    ("missing_provider", {"custom_llm_provider": None}),
    ("unknown_status", {"status": "perhaps"}),
    ("unknown_status", {"status": None}),
    ("unknown_service_tier", {"model_parameters": {"service_tier": "gold"}}),
    ("ended_before_started", {"endTime": START.timestamp() - 1}),
    ("implausible_time", {"startTime": 12.0, "endTime": 13.0}),
    ("negative_cost", {"response_cost": -0.01}),
    ("absurd_cost", {"response_cost": 1e7}),
    ("wrong_type", {"metadata": "a string"}),
    ("wrong_type", {"request_tags": "app:web"}),
]


@pytest.mark.parametrize(("reason", "changes"), REFUSED)
def test_a_call_that_cannot_be_true_is_refused_with_its_reason_and_its_neighbours_are_kept(
    house: House, tmp_path: Path, reason: str, changes: dict[str, Any]
) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1), payload(2, **changes), payload(3)])
    report = house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 2, reason)]
    assert house.rows("SELECT record_id FROM usage_record ORDER BY 1") == [("chatcmpl-1",), ("chatcmpl-3",)]
    assert (report.total("rows_read"), report.total("rows_loaded"), report.total("rows_rejected")) == (3, 2, 1)
    assert report.ok


def test_a_clock_in_the_future_is_refused_beyond_the_tolerance(house: House, tmp_path: Path) -> None:
    within = payload(1, endTime=(START + timedelta(minutes=14)).timestamp())
    beyond = payload(2, startTime=START.timestamp(), endTime=(START + timedelta(minutes=16)).timestamp())
    lines(tmp_path / "log" / "a.jsonl", [within, beyond])
    house.collect(gateway(tmp_path / "log"), as_of=START)
    assert house.refused() == [("a.jsonl", 2, "future_clock")]
    assert "clock" in house.row("SELECT detail FROM rejected_row")[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"id": "x", "messages": "cut off', "malformed_json"),
        ("[1, 2]", "not_an_object"),
        ('"text"', "not_an_object"),
        ('{"id": 1} {"id": 2}', "malformed_json"),
    ],
)
def test_a_line_that_is_no_payload_is_refused(house: House, tmp_path: Path, text: str, reason: str) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1), text, payload(2)])
    house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 2, reason)]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_bytes_that_are_no_text_are_refused(house: House, tmp_path: Path) -> None:
    path = lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    path.write_bytes(path.read_bytes() + b'{"id": "\xff\xfe"}\n')
    house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 2, "invalid_utf8")]
    assert house.row("SELECT count(*) FROM usage_record") == (1,)


def test_text_beyond_ascii_survives_the_tolerant_pass(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1, metadata__user_api_key_alias="équipe ✓"), "{broken"])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT claims['key_alias'] FROM claim_set") == ("équipe ✓",)


def test_a_truncated_gzip_file_is_refused_whole_and_the_others_are_loaded(house: House, tmp_path: Path) -> None:
    whole = lines(tmp_path / "log" / "b.jsonl.gz", [payload(n) for n in range(1, 200)])
    lines(tmp_path / "log" / "a.jsonl.gz", [payload(1000)])
    whole.write_bytes(whole.read_bytes()[:-12])
    report = house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("b.jsonl.gz", None, "truncated_gzip")]
    assert house.rows("SELECT record_id FROM usage_record") == [("chatcmpl-1000",)]
    assert "deliver it anew" in report.notes[0]


def test_a_gzip_file_of_several_members_is_read_to_its_end(house: House, tmp_path: Path) -> None:
    first = lines(tmp_path / "a.gz", [payload(1)]).read_bytes()
    second = lines(tmp_path / "b.gz", [payload(2)]).read_bytes()
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "ab.jsonl.gz").write_bytes(first + second)
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_one_object_files_are_read_compact_or_pretty_printed_and_named_when_refused(
    house: House, tmp_path: Path
) -> None:
    folder = tmp_path / "log" / "2026-11-02"
    folder.mkdir(parents=True)
    (folder / "a.json").write_text(json.dumps(payload(1)))
    (folder / "b.json").write_text(json.dumps(payload(2), indent=4))
    (folder / "c.json").write_text(json.dumps(payload(3, metadata__usage_object=usage(-1, 1)), indent=1))
    (folder / "d.json").write_text('{"id": "half')
    (folder / "e.json").write_text("")
    (folder / "note.txt").write_text("not a log")
    house.collect(gateway(tmp_path / "log"))
    assert house.rows("SELECT record_id FROM usage_record ORDER BY 1") == [("chatcmpl-1",), ("chatcmpl-2",)]
    assert house.refused() == [
        ("2026-11-02/c.json", 1, "negative_tokens"),
        ("2026-11-02/d.json", 1, "malformed_json"),
    ]


def test_many_small_objects_are_one_load_and_late_ones_are_found(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "log" / "2026-11-02"
    folder.mkdir(parents=True)
    for n in range(1, 301):
        (folder / f"{n:04d}.json").write_text(json.dumps(payload(n)))
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT count(*) FROM load WHERE source = 'gateway'") == (1,)
    (folder / "0000.json").write_text(json.dumps(payload(301)))
    report = house.collect(gateway(tmp_path / "log"))
    assert report.total("rows_read") == 1
    assert house.row("SELECT count(*) FROM usage_record") == (301,)
    assert house.row("SELECT count(*) FROM loaded_object") == (301,)


def test_a_file_that_grows_is_read_again_and_nothing_counts_twice(house: House, tmp_path: Path) -> None:
    path = lines(tmp_path / "log" / "a.jsonl", [payload(1), payload(2)])
    house.collect(gateway(tmp_path / "log"))
    lines(path, [payload(1), payload(2), payload(3)])
    report = house.collect(gateway(tmp_path / "log"))
    assert (report.total("rows_read"), report.total("rows_loaded")) == (3, 1)
    assert house.row("SELECT count(*) FROM usage_record") == (3,)


def test_a_line_that_was_half_written_is_no_longer_refused_when_its_file_is_whole(house: House, tmp_path: Path) -> None:
    path = lines(tmp_path / "log" / "a.jsonl", [payload(1), json.dumps(payload(2))[:50]])
    lines(tmp_path / "log" / "b.jsonl", ["{broken"])
    house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 2, "malformed_json"), ("b.jsonl", 1, "malformed_json")]
    lines(path, [payload(1), payload(2)])
    house.collect(gateway(tmp_path / "log"))
    assert house.refused() == [("b.jsonl", 1, "malformed_json")]
    assert house.row("SELECT count(*) FROM usage_record") == (2,)


def test_the_same_call_in_two_objects_is_one_record(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1), payload(1)])
    lines(tmp_path / "log" / "b" / "b.jsonl", [payload(1)])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT count(*) FROM usage_record") == (1,)


def test_two_gateways_may_use_the_same_ids(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "one" / "a.jsonl", [payload(1)])
    lines(tmp_path / "two" / "a.jsonl", [payload(1)])
    house.collect(gateway(tmp_path / "one"), gateway(tmp_path / "two", name="other"))
    assert house.rows("SELECT source, event_key FROM usage_record ORDER BY source") == [
        ("gateway", "r:aws.bedrock:chatcmpl-1"),
        ("other", "r:aws.bedrock:chatcmpl-1"),
    ]


def test_an_unknown_model_is_kept_under_its_own_name(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(model="bedrock/us.new.model-x-v3:0")])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT model_raw, model FROM usage_record") == ("bedrock/us.new.model-x-v3:0", "new.model-x")


def test_what_litellm_adds_later_does_not_disturb(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1, something_new={"deep": [1, {"x": None}]}, metadata__new="x")])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT count(*) FROM usage_record") == (1,)


def test_times_may_be_iso_text(house: House, tmp_path: Path) -> None:
    made = payload(startTime="2026-11-02T12:00:00.123456+02:00", endTime="2026-11-02 10:00:01")
    lines(tmp_path / "log" / "a.jsonl", [made])
    house.collect(gateway(tmp_path / "log"))
    assert house.row("SELECT started_at, ended_at FROM usage_record") == (
        datetime(2026, 11, 2, 10, 0, 0, 123456),
        datetime(2026, 11, 2, 10, 0, 1),
    )


def test_epoch_seconds_are_exact_to_the_microsecond(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(startTime=1793613600.123457, endTime=1793613600.999999)])
    house.collect(gateway(tmp_path / "log"))
    started, ended = house.row("SELECT started_at, ended_at FROM usage_record")
    assert started == datetime.fromtimestamp(1793613600, UTC).replace(tzinfo=None) + timedelta(microseconds=123457)
    assert ended.microsecond == 999999


def test_a_flood_of_claim_sets_is_remarked(house: House, tmp_path: Path) -> None:
    made = [payload(n, request_tags=[f"request:{n}"]) for n in range(1, 5102)]
    lines(tmp_path / "log" / "a.jsonl", made)
    report = house.collect(gateway(tmp_path / "log", claims={"tags": ["request"]}))
    assert "unique to a call" in report.notes[0]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"claims": {"tags": ["a'b"]}}, "a claim name has letters"),
        ({"task": "messages.0"}, "write trace_id, session_id or metadata.<key>"),
        ({"claim": {}}, "Extra inputs are not permitted"),
    ],
)
def test_a_wrong_setting_says_what_is_right(house: House, tmp_path: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        house.configure(gateway(tmp_path, **given))
