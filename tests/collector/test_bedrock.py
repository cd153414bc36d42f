"""Bedrock's model invocation logs: tokens, who called, through which profile; never what was said."""

from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.writing import lines

PROFILE = "arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc123"


def source(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "bedrock", "kind": "bedrock", "location": str(folder), **more}


def invocation(**more: Any) -> dict[str, Any]:
    return {
        "schemaType": "ModelInvocationLog",
        "schemaVersion": "1.0",
        "timestamp": "2026-10-11T00:38:02Z",
        "accountId": "111122223333",
        "identity": {"arn": "arn:aws:sts::111122223333:assumed-role/gateway/ada@example.com"},
        "region": "us-east-1",
        "requestId": "req-1",
        "operation": "ConverseStream",
        "modelId": "us.anthropic.claude-sonnet-4-6-v1:0",
        "input": {"inputTokenCount": 10, "cacheReadInputTokenCount": 300, "inputBodyJson": {"messages": "SECRET"}},
        "output": {"outputTokenCount": 20, "outputBodyJson": {"output": "SECRET"}},
        **more,
    }


def test_an_invocation_in_full(house: House, tmp_path: Path) -> None:
    told = {"agent_task": "t-1", "agent": "coder", "team": "search"}
    lines(tmp_path / "log" / "a.json.gz", [invocation(requestMetadata=told)])
    assert house.collect(source(tmp_path / "log", claims=["team"])).ok
    assert house.row(
        "SELECT provider, provider_response_id, model, scope, account_id, region_id, user_id, task_id, agent, stream, "
        "status, uncached_input_tokens, cache_read_tokens, output_tokens, reasoning_tokens FROM usage_record"
    ) == (
        "aws.bedrock", "req-1", "claude-sonnet-4-6", "geo", "111122223333", "us-east-1", "ada@example.com", "t-1",
        "coder", True, "success", 10, 300, 20, None,
    )  # fmt: skip
    assert house.row("SELECT claims FROM claim_set") == (
        {"metadata.team": "search", "principal": "arn:aws:sts::111122223333:assumed-role/gateway"},
    )
    assert b"SECRET" not in house.bytes()


def test_an_application_profile_is_a_claim_and_its_model_comes_from_the_aliases(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.json", [invocation(modelId=PROFILE)])
    house.configure(source(tmp_path / "log"), models={"aliases": {"abc123": "nova-pro"}})
    house.collect(only={"bedrock", "models"})
    assert house.row("SELECT model FROM usage_record") == ("abc123",)
    assert house.row("SELECT model FROM model_alias WHERE alias = 'abc123'") == ("nova-pro",)
    assert house.row("SELECT claims['inference_profile'] FROM claim_set") == (PROFILE,)


@pytest.mark.parametrize(
    ("error", "status"), [("ThrottlingException", "failure"), ("ModelTimeoutException", "timeout")]
)
def test_a_call_that_failed_has_its_error_and_no_tokens(house: House, tmp_path: Path, error: str, status: str) -> None:
    lines(tmp_path / "log" / "a.json", [invocation(errorCode=error, output=None)])
    house.collect(source(tmp_path / "log"))
    assert house.row("SELECT status, error_kind, output_tokens FROM usage_record") == (status, error, None)


def test_bodies_kept_apart_and_permission_checks_are_not_read(house: House, tmp_path: Path) -> None:
    log = tmp_path / "AWSLogs" / "111122223333" / "BedrockModelInvocationLogs"
    lines(log / "us-east-1" / "2026" / "10" / "11" / "00" / "a.json.gz", [invocation()])
    lines(log / "us-east-1" / "2026" / "10" / "11" / "00" / "data" / "b_input.json.gz", ['"SECRET"'])
    lines(log / "amazon-bedrock-logs-permission-check.json", [])
    report = house.collect(source(tmp_path))
    assert (report.ok, report.total("rows_read")) == (True, 1)


def test_what_is_no_log_line_is_refused_and_the_rest_kept(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.json", [invocation(input=[1]), "{broken SECRET", invocation(requestId="req-2")])
    house.collect(source(tmp_path / "log"))
    assert house.refused() == [("a.json", 1, "wrong_type"), ("a.json", 2, "malformed_json")]
    assert house.row("SELECT record_id FROM usage_record") == ("req-2",)
    assert b"SECRET" not in house.bytes()


@pytest.mark.samples
def test_the_recorded_log_gives_its_counts(house: House) -> None:
    house.collect(source(needs.samples("usage", "bedrock")))
    assert house.rows("SELECT model, uncached_input_tokens, output_tokens, stream FROM usage_record") == [
        ("nova-lite", 4, 38, True)
    ]
