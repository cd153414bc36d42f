"""The gateway's log: LiteLLM's payloads in form, and equal to the truth in what they saw."""

import json
from collections import Counter
from typing import Any

import pytest

from tests import needs
from tests.demo.conftest import Company

Record = dict[str, Any]

# Keys that LiteLLM adds only to retried or fallen-back calls, and maps whose keys the callers choose.
ADDED = {"metadata.attempted_retries", "metadata.attempted_fallbacks", "metadata.original_model_group"}
CHOSEN = ("metadata.spend_logs_metadata", "metadata.user_api_key_auth_metadata", "metadata.usage_object", "response")


def paths(value: object, prefix: str = "") -> set[str]:
    """Every key path of nested objects, but not inside maps whose keys are chosen by callers."""
    if not isinstance(value, dict) or prefix in CHOSEN:
        return set()
    found = set()
    for key, inner in value.items():
        path = f"{prefix}.{key}" if prefix else key
        found |= {path} | paths(inner, path)
    return found


@pytest.mark.samples
def test_keys_and_types_are_those_of_real_payloads(records: list[Record]) -> None:
    file = needs.samples() / "usage/litellm/standard_logging_payload_1.110.2.jsonl"
    real = [json.loads(line) for line in file.read_text().splitlines()]
    known = set().union(*(paths(one) for one in real))
    ours = set().union(*(paths(one) for one in records))
    assert ours - known <= ADDED
    types: dict[str, set[type]] = {}
    for one in real:
        for key, value in one.items():
            types.setdefault(key, set()).add(type(value))
    odd = {
        (key, type(value).__name__)
        for one in records
        for key, value in one.items()
        if value is not None and type(None) not in types[key] and type(value) not in types[key]
    }
    assert odd == set()


@pytest.mark.samples
def test_usage_object_is_that_of_a_real_claude_call(records: list[Record]) -> None:
    file = needs.samples() / "usage/litellm/standard_logging_payload_1.110.2.jsonl"
    real = json.loads(file.read_text().splitlines()[2])["metadata"]["usage_object"]
    ours = next(one["metadata"]["usage_object"] for one in records if one["model_group"] == "claude-sonnet-4-5")
    assert list(ours) == list(real)
    assert list(ours["prompt_tokens_details"]) == list(real["prompt_tokens_details"])


def test_prompt_tokens_include_cache_reads_and_writes(records: list[Record]) -> None:
    for one in records:
        usage = one["metadata"]["usage_object"]
        if not usage:
            continue
        cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
        assert one["prompt_tokens"] == usage["prompt_tokens"] >= cached
        assert one["total_tokens"] == one["prompt_tokens"] + one["completion_tokens"] == usage["total_tokens"]
        details = (usage["prompt_tokens_details"] or {}).get("cache_creation_token_details")
        if details:
            assert sum(details.values()) == usage["cache_creation_input_tokens"]


def test_tokens_equal_the_truth(company: Company, records: list[Record]) -> None:
    """Token classes as a reader derives them from each successful record, summed by deployment."""
    seen: dict[str, Counter[str]] = {}
    for one in records:
        if one["status"] != "success":
            continue
        usage = one["metadata"]["usage_object"]
        read, written = usage.get("cache_read_input_tokens", 0), usage.get("cache_creation_input_tokens", 0)
        hour = (usage["prompt_tokens_details"] or {}).get("cache_creation_token_details", {})
        of_hour = hour.get("ephemeral_1h_input_tokens", 0)
        sums = seen.setdefault(one["model_id"], Counter())
        sums.update(
            uncached_input=usage["prompt_tokens"] - read - written,
            cache_read=read,
            cache_write_5m=written - of_hour,
            cache_write_1h=of_hour,
            output=usage["completion_tokens"],
        )
    true: dict[str, Counter[str]] = {}
    for deployment, token_class, tokens in company.sql(
        """
        SELECT deployment, token_class, sum(tokens)::BIGINT FROM by_hour
        WHERE cause IS NULL OR cause = 'untagged' GROUP BY ALL
        """
    ):
        true.setdefault(deployment, Counter())[token_class] = tokens
    assert {name: +sums for name, sums in seen.items()} == {name: +sums for name, sums in true.items()}


def test_records_are_the_attempts_of_the_truth(company: Company, records: list[Record]) -> None:
    true = company.sql("SELECT id, litellm_call_id, trace_id FROM by_call WHERE id IS NOT NULL")
    assert Counter((one["id"], one["litellm_call_id"], one["trace_id"]) for one in records) == Counter(true)


def test_failed_attempts_share_the_call_and_have_no_tokens(records: list[Record]) -> None:
    failures = [one for one in records if one["status"] == "failure"]
    assert Counter(one["error_information"]["error_class"] for one in failures).keys() >= {"RateLimitError", "Timeout"}
    answered = {one["litellm_call_id"]: one for one in records if one["status"] == "success"}
    retried = 0
    for one in failures:
        assert one["id"] == one["litellm_call_id"]
        assert one["total_tokens"] == one["response_cost"] == 0
        assert one["metadata"]["usage_object"] == one["response"] == {}
        if one["error_information"]["error_class"] in ("RateLimitError", "Timeout"):
            answer = answered[one["litellm_call_id"]]
            assert answer["id"] != one["id"]
            assert answer["startTime"] > one["endTime"]
            assert answer["metadata"]["attempted_retries"] > one["metadata"]["attempted_retries"]
            retried += 1
    assert retried


def test_attempted_retries_count_the_failures_before(records: list[Record]) -> None:
    failures = Counter(one["litellm_call_id"] for one in records if one["status"] == "failure")
    for one in records:
        if one["status"] == "success":
            assert one["metadata"].get("attempted_retries", 0) == failures[one["litellm_call_id"]]


def test_layout_compacted_days_and_a_raw_last_day(company: Company) -> None:
    folders = sorted((company.out / "gateway").iterdir())
    assert [folder.name for folder in folders] == [f"2026-11-{day:02d}" for day in range(5, 15)]
    for folder in folders[:-1]:
        assert all(file.name.startswith(f"litellm-{folder.name}-") for file in folder.iterdir())
    for file in folders[-1].iterdir():
        payload = json.loads(file.read_bytes())
        assert file.name.startswith("time-")
        assert file.stem.endswith(f"_{payload['id']}")
        assert not file.read_bytes().endswith(b"\n")


def test_no_call_ends_after_the_end(company: Company, records: list[Record]) -> None:
    assert max(one["endTime"] for one in records) < company.organisation.as_of.timestamp()


def test_texts_carry_a_canary_of_their_own(records: list[Record]) -> None:
    prompts = [one["messages"][0]["content"] for one in records if one["messages"]]
    assert all("CANARY-" in prompt for prompt in prompts)
    assert len(set(prompts)) == len(prompts)


def test_credentials_name_team_app_and_environment(records: list[Record]) -> None:
    for one in records:
        metadata = one["metadata"]
        if metadata["user_api_key_alias"] is None:
            assert not one["request_tags"]
            assert metadata["user_api_key_auth_metadata"] is None
            continue
        team, app, environment = metadata["user_api_key_alias"].split("/")
        assert metadata["user_api_key_team_alias"] == team
        assert one["request_tags"][:2] == [f"app:{app}", f"env:{environment}"]
        assert one["model_id"].endswith(
            {"210000000012": "ai-prod", "210000000023": "ai-dev", "210000000034": "data-platform"}[
                metadata["user_api_key_auth_metadata"]["aws_account_id"]
            ]
        )
        assert one["api_base"] == one["hidden_params"]["api_base"]
        assert one["api_base"].split(".")[1] in one["model_id"]


def test_tasks_have_agents_sub_agents_and_one_outcome(company: Company, records: list[Record]) -> None:
    outcomes: dict[str, list[str]] = {}
    sub_agents = set()
    for one in records:
        sent = one["metadata"]["spend_logs_metadata"]
        if sent is None:
            continue
        assert sent["agent_task"] == one["trace_id"]
        outcomes.setdefault(one["trace_id"], [])
        if "task_outcome" in sent:
            outcomes[one["trace_id"]].append(sent["task_outcome"])
        if sent["parent_agent"]:
            sub_agents.add((sent["parent_agent"], sent["agent"]))
    assert sub_agents >= {("coder", "explore"), ("support-agent", "refund-checker")}
    true = dict(company.sql("SELECT task, outcome FROM by_task"))
    assert {task: (found or [None])[0] for task, found in outcomes.items()} == true
    assert max(map(len, outcomes.values())) == 1


def test_batch_jobs_are_one_record_of_many_documents(records: list[Record]) -> None:
    jobs = [one for one in records if one["call_type"] == "aretrieve_batch"]
    assert jobs
    for one in jobs:
        assert one["id"].endswith("_batch_cost")
        assert one["hidden_params"]["batch_successful_requests"] >= 100
        assert one["model_id"].endswith("data-platform")
