"""Write what the gateway logged: LiteLLM StandardLoggingPayload objects, as its S3 callback does.

Keys and null-ness follow payloads recorded from LiteLLM 1.110.2 (samples/usage/litellm). Days before the last are
compacted into one gzip file of JSON lines an hour, as a log pipeline does; the last day is still one object a request.
Objects are filed under the start of the call, and lines in a file are in the order of their end.
"""

import gzip
import hashlib
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Protocol

import numpy as np
import orjson

from demo.calls import OUTCOMES, CallKind, Status, is_logged, is_long_context, prompt_tokens
from demo.clock import DAY, instant
from demo.models import ACCOUNTS, DEPLOYMENTS, OUTPUT, READ, WRITE_1H, WRITE_5M, Deployment, rates
from demo.names import MASTER_KEY_HASH, Names, user_name
from demo.people import AGENTS, APPS, CREDENTIALS, ORGANISATION_ID, TEAMS, Credential, Users
from demo.simulation import Simulation

NO_ERROR = {"error_code": "", "error_class": "", "llm_provider": "", "error_message": ""}
FOLDER = "gateway"
COMPRESSION_LEVEL = 3

Json = dict[str, object]


def error_of(status: int, deployment: Deployment) -> tuple[str, Json]:
    """error_str and error_information of a failed attempt."""
    model = f"bedrock/{deployment.inference_id}"
    code, kind, normalized, message = {
        Status.THROTTLED: (
            "429",
            "RateLimitError",
            "429_RATE_LIMIT_EXCEEDED",
            'litellm.RateLimitError: BedrockException - {"message":"Too many tokens, please wait and try again."}',
        ),
        Status.TIMED_OUT: (
            "408",
            "Timeout",
            "408_TIMEOUT",
            f"litellm.Timeout: Connection timed out. Timeout passed=60.0, time taken=60.0 seconds, model={model}",
        ),
        Status.REJECTED: (
            "400",
            "BadRequestError",
            "400_BAD_REQUEST",
            'litellm.BadRequestError: BedrockException - {"message":"messages: text content blocks must be non-empty"}',
        ),
    }[Status(status)]
    information: Json = {
        "error_code": code,
        "error_class": kind,
        "llm_provider": "bedrock",
        "error_message": message,
        "normalized_error": normalized,
    }
    return message, information


def key_metadata(credential: Credential | None, account_id: str) -> Json:
    """What the gateway says about the key. The master key has a hash and nothing else."""
    if credential is None:
        return {
            "user_api_key_hash": MASTER_KEY_HASH,
            "user_api_key_alias": None,
            "user_api_key_team_id": None,
            "user_api_key_team_alias": None,
            "user_api_key_org_id": None,
            "user_api_key_user_id": None,
            "user_api_key_end_user_id": None,
            "user_api_key_auth_metadata": None,
        }
    app = credential.app
    return {
        "user_api_key_hash": hashlib.sha256(credential.alias.encode()).hexdigest(),
        "user_api_key_alias": credential.alias,
        "user_api_key_team_id": TEAMS[app.team],
        "user_api_key_team_alias": app.team,
        "user_api_key_org_id": ORGANISATION_ID,
        "user_api_key_user_id": f"svc-{app.name}",
        "user_api_key_end_user_id": None,
        "user_api_key_auth_metadata": {"aws_account_id": account_id, "environment": credential.environment},
    }


class Writer(Protocol):
    """Calls by row: when they start (`rows["start_us"]`), the id of their record, and the record itself."""

    rows: dict[str, list[int]]

    def record(self, row: int) -> str | None: ...

    def payload(self, row: int) -> bytes: ...


class PayloadWriter:
    """Turns rows of `Simulation.calls` into payloads."""

    def __init__(self, simulation: Simulation, names: Names) -> None:
        calls = simulation.calls
        self.names = names
        self.rows = {name: calls[name].tolist() for name in calls.dtype.names or () if name != "tokens"}
        self.tokens = calls["tokens"].tolist()
        self.prompts = prompt_tokens(calls).tolist()
        # what the gateway believes a call costs: its own price list, which knows neither price cuts nor new models
        is_batch = (calls["kind"] == CallKind.BATCH_JOB).astype(int)
        believed = rates()[calls["deployment"], is_batch, is_long_context(calls).astype(int)] * calls["tokens"]
        self.input_nano = believed[:, :OUTPUT].sum(axis=1).tolist()
        self.output_nano = believed[:, OUTPUT].tolist()
        self.keys: dict[tuple[int, int], Json] = {
            (number, place): key_metadata(None if number < 0 else CREDENTIALS[number], ACCOUNTS[deployment.account].id)
            for number in range(-1, len(CREDENTIALS))
            for place, deployment in enumerate(DEPLOYMENTS)
        }
        self.places: list[Json] = [
            {
                "custom_llm_provider": "bedrock",
                "model": f"bedrock/{deployment.inference_id}",
                "model_id": deployment.name,
                "api_base": deployment.api_base,
            }
            for deployment in DEPLOYMENTS
        ]

    def record(self, row: int) -> str | None:
        return self.names.record[row]

    def payload(self, row: int) -> bytes:
        """One StandardLoggingPayload as compact JSON."""
        get = self.rows
        status, kind, place = get["status"][row], get["kind"][row], get["deployment"][row]
        succeeded = status == Status.SUCCESS
        deployment = DEPLOYMENTS[place]
        app, credential = APPS[get["app"][row]], get["credential"][row]
        stream = get["stream"][row]
        start, end = get["start_us"][row] / 1e6, get["end_us"][row] / 1e6
        first = get["first_token_us"][row] / 1e6 if succeeded and stream else end
        known = deployment.model.known_to_gateway
        cost = (self.input_nano[row] + self.output_nano[row]) / 1e9 if succeeded and known else 0.0
        usage = self.usage(row) if succeeded else {}
        total = self.prompts[row] + self.tokens[row][OUTPUT] if succeeded else 0
        error, information = (None, NO_ERROR) if succeeded else error_of(status, deployment)
        record, canary = self.names.record[row], self.names.canary[row]
        feature = app.features[get["feature"][row]]

        metadata = dict(self.keys[credential, place])
        end_user = None
        if credential >= 0 and get["user"][row] >= 0:
            name = user_name(app.users is Users.STAFF, get["user"][row])
            if app.users is Users.STAFF:
                metadata["user_api_key_user_id"] = name
            else:
                metadata["user_api_key_end_user_id"] = end_user = name
        metadata["spend_logs_metadata"] = self.spend_metadata(row)
        metadata["usage_object"] = usage
        if get["retries"][row] or not succeeded:
            metadata["attempted_retries"] = get["retries"][row]
        if get["asked_deployment"][row] != place:
            metadata["attempted_fallbacks"] = 1
            metadata["original_model_group"] = DEPLOYMENTS[get["asked_deployment"][row]].model.group

        answer: Json = {}
        if succeeded and kind == CallKind.CHAT:
            message = {"role": "assistant", "content": f"On CANARY-{canary}: done."}
            answer = {"choices": [{"finish_reason": "stop", "index": 0, "message": message}]}
        prompt = f"Note CANARY-{canary}: help with {feature}."
        parameters: Json = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        call_type = ("acompletion", "aembedding", "aretrieve_batch")[kind]
        hidden: Json = {
            "model_id": deployment.name,
            "api_base": deployment.api_base,
            "response_cost": cost if known else None,
        }
        if kind == CallKind.BATCH_JOB:
            hidden["batch_models"] = [deployment.model.model_id]
            hidden["batch_successful_requests"] = get["documents"][row]
            hidden["batch_failed_requests"] = 0
        unknown = unknown_price(deployment, call_type) if succeeded and not known else None
        payload = {
            "id": record,
            "litellm_call_id": self.names.operation[row],
            "trace_id": self.names.trace[row],
            "session_id": "",
            "call_type": call_type,
            "cache_hit": None if succeeded and not stream else False,
            "stream": True if stream else None,
            "status": "success" if succeeded else "failure",
            "status_fields": {"llm_api_status": "success" if succeeded else "failure", "guardrail_status": "not_run"},
            "startTime": start,
            "endTime": end,
            "completionStartTime": first,
            "response_time": first - start,
            **self.places[place],
            "model_group": deployment.model.group,
            "metadata": metadata,
            "response_cost": cost,
            "total_tokens": total,
            "prompt_tokens": self.prompts[row] if succeeded else 0,
            "completion_tokens": self.tokens[row][OUTPUT] if succeeded else 0,
            "request_tags": []
            if credential < 0
            else [f"app:{app.name}", f"env:{CREDENTIALS[credential].environment}", f"feature:{feature}"],
            "end_user": end_user,
            "messages": [{"role": "user", "content": prompt}] if kind != CallKind.BATCH_JOB else [],
            "response": answer,
            "model_parameters": parameters,
            "hidden_params": hidden,
            "error_str": error,
            "error_information": information,
            "response_cost_failure_debug_info": unknown,
        }
        return orjson.dumps(payload)

    def usage(self, row: int) -> Json:
        """LiteLLM's usage object: the prompt count includes cache reads and writes."""
        tokens = self.tokens[row]
        usage: Json = {
            "completion_tokens": tokens[OUTPUT],
            "prompt_tokens": self.prompts[row],
            "total_tokens": self.prompts[row] + tokens[OUTPUT],
            "completion_tokens_details": None,
            "prompt_tokens_details": None,
        }
        written = tokens[WRITE_5M] + tokens[WRITE_1H]
        if written or tokens[READ]:
            details: Json = {
                "cached_tokens": tokens[READ],
                "cache_write_tokens": written,
                "cache_creation_tokens": written,
            }
            if tokens[WRITE_1H]:
                details["cache_creation_token_details"] = {
                    "ephemeral_5m_input_tokens": tokens[WRITE_5M],
                    "ephemeral_1h_input_tokens": tokens[WRITE_1H],
                }
            usage["prompt_tokens_details"] = details
            usage["cache_creation_input_tokens"] = written
            usage["cache_read_input_tokens"] = tokens[READ]
        return usage

    def spend_metadata(self, row: int) -> Json | None:
        """What the agent framework sends along: which agent, whose sub-agent, which task, and at last how it ended."""
        get = self.rows
        if not get["task"][row]:
            return None
        parent, outcome = get["parent_agent"][row], get["outcome"][row]
        sent: Json = {
            "agent": AGENTS[get["agent"][row]],
            "parent_agent": AGENTS[parent] if parent >= 0 else None,
            "agent_task": self.names.trace[row],
        }
        if outcome >= 0:
            sent["task_outcome"] = OUTCOMES[outcome]
        return sent


def unknown_price(deployment: Deployment, call_type: str) -> Json:
    """Present when the gateway could not price a call: its cost is then unknown, not zero."""
    model = f"bedrock/{deployment.inference_id}"
    return {
        "error_str": f"This model isn't mapped yet. model={model}, custom_llm_provider=bedrock.",
        "model": model,
        "cache_hit": False,
        "custom_llm_provider": "bedrock",
        "base_model": None,
        "call_type": call_type,
        "custom_pricing": False,
    }


def write(out: Path, simulation: Simulation, names: Names) -> list[Path]:
    """Write every logged call under `out/gateway`; returns the files."""
    calls = simulation.calls
    rows = np.flatnonzero(is_logged(calls))
    hour = calls["start_us"][rows] // (DAY // 24)
    rows = rows[np.argsort(hour, kind="stable")]
    raw_from_us = simulation.window.as_of_us - DAY
    compacted = rows[calls["start_us"][rows] < raw_from_us]
    raw = rows[calls["start_us"][rows] >= raw_from_us]
    writer = PayloadWriter(simulation, names)
    folder = out / FOLDER
    return [*write_compacted(folder, writer, compacted), *write_raw(folder, writer, raw)]


def write_compacted(folder: Path, writer: Writer, rows: np.ndarray, suffix: str = "") -> Iterator[Path]:
    """One gzip file of JSON lines per hour of start."""
    start_us = writer.rows["start_us"]
    for hour, found in groupby(rows.tolist(), key=lambda row: start_us[row] // (DAY // 24)):
        at = instant(hour * (DAY // 24))
        file = folder / f"{at:%Y-%m-%d}" / f"litellm-{at:%Y-%m-%d-%H}{suffix}.jsonl.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        text = b"\n".join([writer.payload(row) for row in found]) + b"\n"
        file.write_bytes(gzip.compress(text, COMPRESSION_LEVEL, mtime=0))
        yield file


def write_raw(folder: Path, writer: Writer, rows: np.ndarray) -> Iterator[Path]:
    """One object per request, named as LiteLLM's S3 callback names it."""
    for row in rows.tolist():
        at = instant(writer.rows["start_us"][row])
        file = folder / f"{at:%Y-%m-%d}" / f"time-{at:%H-%M-%S}-{at.microsecond:06d}_{writer.record(row)}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(writer.payload(row))
        yield file
