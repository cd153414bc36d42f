"""Writes what real sources write, in their own formats: LiteLLM payloads, CUR 2.0 exports."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Json = dict[str, Any]

START = datetime(2026, 11, 2, 10, 0, tzinfo=UTC)

_PAYLOAD: Json = {
    "id": "chatcmpl-1",
    "litellm_call_id": "call-1",
    "trace_id": "trace-1",
    "session_id": "",
    "call_type": "acompletion",
    "cache_hit": None,
    "stream": None,
    "status": "success",
    "custom_llm_provider": "bedrock",
    "model": "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "model_id": "sonnet-us",
    "model_group": "claude-sonnet-4-5",
    "api_base": "https://bedrock-runtime.us-east-1.amazonaws.com",
    "startTime": START.timestamp(),
    "endTime": (START + timedelta(seconds=2)).timestamp(),
    "completionStartTime": (START + timedelta(seconds=2)).timestamp(),
    "metadata": {
        "user_api_key_alias": "search-prod",
        "user_api_key_team_id": "team-1",
        "user_api_key_team_alias": "search",
        "user_api_key_org_id": None,
        "user_api_key_user_id": "u-1",
        "user_api_key_auth_metadata": {"aws_account_id": "210000000012"},
        "spend_logs_metadata": None,
        "usage_object": {
            "prompt_tokens": 1200,
            "completion_tokens": 80,
            "total_tokens": 1280,
            "prompt_tokens_details": None,
            "completion_tokens_details": None,
        },
    },
    "response_cost": 0.0048,
    "prompt_tokens": 1200,
    "completion_tokens": 80,
    "total_tokens": 1280,
    "request_tags": ["app:web", "env:prod", "User-Agent: curl/8.5.0"],
    "end_user": None,
    "messages": [{"role": "user", "content": "a prompt"}],
    "response": {"choices": [{"message": {"content": "an answer"}}]},
    "model_parameters": {},
    "hidden_params": {"api_base": None, "batch_models": None},
    "error_information": {"error_code": "", "error_class": ""},
    "response_cost_failure_debug_info": None,
}


def payload(number: int = 1, **changes: Any) -> Json:
    """A payload of call `number`, `number - 1` minutes after START. `a__b=1` changes a part inside."""
    made = deepcopy(_PAYLOAD)
    made["id"], made["litellm_call_id"] = f"chatcmpl-{number}", f"call-{number}"
    for name in ("startTime", "endTime", "completionStartTime"):
        made[name] += (number - 1) * 60
    for path, value in changes.items():
        *parents, name = path.split("__")
        place = made
        for parent in parents:
            place[parent] = place.get(parent) or {}
            place = place[parent]
        place[name] = value
    return made


def usage(prompt: int | str | None, output: int | str | None, **details: Any) -> Json:
    """A usage object; `read`, `written`, `written_1h` and `reasoning` fill the details as LiteLLM does."""
    made: Json = {"prompt_tokens": prompt, "completion_tokens": output, "prompt_tokens_details": None}
    if isinstance(prompt, int) and isinstance(output, int):
        made["total_tokens"] = prompt + output
    if "read" in details or "written" in details:
        made["prompt_tokens_details"] = {
            "cached_tokens": details.get("read", 0),
            "cache_creation_tokens": details.get("written", 0),
        }
        made["cache_read_input_tokens"] = details.get("read", 0)
        made["cache_creation_input_tokens"] = details.get("written", 0)
    if "written_1h" in details:
        made["prompt_tokens_details"]["cache_creation_token_details"] = {
            "ephemeral_5m_input_tokens": details["written"] - details["written_1h"],
            "ephemeral_1h_input_tokens": details["written_1h"],
        }
    if "reasoning" in details:
        made["completion_tokens_details"] = {"reasoning_tokens": details["reasoning"]}
    return made


def failure(number: int = 1, error_class: str = "RateLimitError", **changes: Any) -> Json:
    """A failed attempt: LiteLLM gives it the call's id and zeros for counts that it does not know."""
    return payload(
        number,
        **{
            "id": f"call-{number}",
            "status": "failure",
            "metadata__usage_object": {},
            "prompt_tokens": 0,
            "completion_tokens": 0,
            "total_tokens": 0,
            "response_cost": 0.0,
            "error_information__error_class": error_class,
            **changes,
        },
    )


def lines(path: Path, payloads: Iterable[Json | str]) -> Path:
    """JSON Lines, gzip if the name says so; a string is written as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((each if isinstance(each, str) else json.dumps(each)) + "\n" for each in payloads)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


_MAP = pa.map_(pa.string(), pa.string())
_INSTANTS = (
    "bill_billing_period_start_date",
    "bill_billing_period_end_date",
    "line_item_usage_start_date",
    "line_item_usage_end_date",
)
_NUMBERS = ("cost", "amount", "fee", "commitment_to_date", "used_commitment", "for_billing_period")


def _type(column: str) -> pa.DataType:
    if column in _INSTANTS:
        return pa.timestamp("ms")
    if column in ("product", "resource_tags", "tags"):
        return _MAP
    return pa.float64() if column.endswith(_NUMBERS) else pa.string()


def bedrock(cost: float, hour: int = 0, **changes: Any) -> Json:
    """One hour of input tokens of Claude Sonnet 4.6 on 2 November, as AWS bills it."""
    start = datetime(2026, 11, 2, hour)
    return {
        "identity_line_item_id": f"line-{hour}-{cost}",
        "bill_billing_entity": "AWS",
        "bill_billing_period_start_date": datetime(2026, 11, 1),
        "bill_billing_period_end_date": datetime(2026, 12, 1),
        "bill_invoice_id": None,
        "bill_payer_account_id": "100000000001",
        "line_item_currency_code": "USD",
        "line_item_line_item_description": "$3.30 per 1M input tokens for Claude4.6Sonnet in US East (N. Virginia)",
        "line_item_line_item_type": "Usage",
        "line_item_net_unblended_cost": None,
        "line_item_operation": "InvokeModelInference",
        "line_item_product_code": "AmazonBedrockService",
        "line_item_resource_id": "arn:aws:bedrock:us-east-1:210000000012:inference-profile/"
        "us.anthropic.claude-sonnet-4-6-v1:0",
        "line_item_unblended_cost": cost,
        "line_item_usage_account_id": "210000000012",
        "line_item_usage_amount": 0.5,
        "line_item_usage_start_date": start,
        "line_item_usage_end_date": start + timedelta(hours=1),
        "line_item_usage_type": "USE1-Claude4.6Sonnet-input-tokens",
        "pricing_public_on_demand_cost": cost,
        "pricing_unit": "1M tokens",
        "product": {"product_name": "Amazon Bedrock Service"},
        "product_region_code": "us-east-1",
        "resource_tags": {"user_team": "search"},
        "reservation_effective_cost": None,
        "savings_plan_savings_plan_effective_cost": None,
        "split_line_item_parent_resource_id": None,
        **changes,
    }


def line(kind: str, cost: float, product_code: str, hour: int = 0, **changes: Any) -> Json:
    """A line that has nothing to do with Bedrock."""
    return bedrock(
        cost,
        hour,
        **{
            "line_item_line_item_type": kind,
            "line_item_product_code": product_code,
            "line_item_line_item_description": f"{kind} for {product_code}",
            "line_item_operation": None,
            "line_item_resource_id": None,
            "line_item_usage_type": None,
            "pricing_unit": None,
            "product": {"product_name": product_code},
            "product_region_code": None,
            **changes,
        },
    )


def monthly(kind: str, cost: float, product_code: str, **changes: Any) -> Json:
    """A line of the whole month: support, tax, a credit."""
    period = {
        "line_item_usage_start_date": datetime(2026, 11, 1),
        "line_item_usage_end_date": datetime(2026, 12, 1),
    }
    return line(kind, cost, product_code, **period, **changes)


class Export:
    """A CUR 2.0 export in a folder, in either layout."""

    def __init__(self, root: Path, name: str = "cur2") -> None:
        self.root = root
        self.name = name

    def deliver(
        self,
        rows: Sequence[Mapping[str, Any]],
        made: str = "20261103T040000Z",
        period: str = "2026-11",
        layout: str = "create-new",
        files: int = 1,
        without: Sequence[str] = (),
        execution: str | None = None,
    ) -> Path:
        """Write one delivery, manifests last; answers its (execution's) manifest."""
        execution = execution or f"execution-{made}"
        run = f"{made}-{execution}/" if layout == "create-new" else ""
        data = self.root / "data" / f"BILLING_PERIOD={period}" / run
        data.mkdir(parents=True, exist_ok=True)
        names = list(dict.fromkeys(name for row in rows for name in row if name not in without))
        schema = pa.schema([(name, _type(name)) for name in names])
        keys = []
        for number in range(files):
            part = [{name: row.get(name) for name in names} for row in rows[number::files]]
            path = data / f"{self.name}-{number + 1:05d}.snappy.parquet"
            pq.write_table(pa.Table.from_pylist(part, schema=schema), path)
            keys.append(f"s3://billing/exports/{self.name}/data/BILLING_PERIOD={period}/{run}{path.name}")
        manifest = {
            "executionId": execution,
            "exportArn": f"arn:aws:bcm-data-exports:us-east-1:100000000001:export/{self.name}-1",
            "dataFiles": keys,
        }
        metadata = self.root / "metadata" / f"BILLING_PERIOD={period}"
        places = [metadata / run, metadata] if run else [metadata]
        for place in places:
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{self.name}-Manifest.json").write_text(json.dumps(manifest))
        return places[0] / f"{self.name}-Manifest.json"
