"""What the gateway logged of the fleet's traffic: LiteLLM payloads of provider `hosted_vllm` (see gateway_log.py)."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from demo import gateway_log
from demo.calls import OUTCOMES
from demo.clock import DAY, HOUR
from demo.fleet.attempts import Attempt, Outcome
from demo.fleet.callers import CALLERS, Caller
from demo.fleet.catalogue import ACCOUNT, CLUSTERS, deployment_name
from demo.fleet.demand import CLUSTER_NAMES, ROUTE_NAMES, SERVED
from demo.fleet.operate import Fleet
from demo.gateway_log import NO_ERROR, Json, key_metadata
from demo.names import user_name, uuids
from demo.people import AGENTS, CREDENTIALS, Users
from demo.simulation import generator

PROVIDER = "hosted_vllm"
SUFFIX = "-hosted"
LOGGED = (Outcome.SUCCESS, Outcome.TIMED_OUT, Outcome.LOST, Outcome.UNAVAILABLE)

ERRORS = {
    Outcome.TIMED_OUT: ("408", "Timeout", "408_TIMEOUT", "litellm.Timeout: Connection timed out."),
    Outcome.LOST: (
        "500",
        "InternalServerError",
        "500_INTERNAL_SERVER_ERROR",
        "litellm.InternalServerError: Hosted_vllmException - Server disconnected without sending a response.",
    ),
    Outcome.UNAVAILABLE: (
        "503",
        "ServiceUnavailableError",
        "503_SERVICE_UNAVAILABLE",
        "litellm.ServiceUnavailableError: Hosted_vllmException - no healthy upstream",
    ),
}
"""Outcome: code, class, normalized name, message."""


@dataclass(frozen=True)
class FleetNames:
    """Ids: per attempt the record's (None where nothing is logged), per request the operation's and the trace's."""

    record: list[str | None]
    operation: list[str]
    trace: list[str]
    canary: list[str]


def is_logged(fleet: Fleet, attempt: Attempt) -> bool:
    """The gateway has written a record by the end of the window."""
    caller = CALLERS[int(fleet.requests["caller"][attempt.request])]
    return caller.logged and attempt.outcome in LOGGED and attempt.end_us < fleet.window.as_of_us


def name(seed: int, fleet: Fleet) -> FleetNames:
    """Give every request and attempt its ids."""
    rng = generator(seed, "fleet ids")
    requests = fleet.requests
    traces = uuids(rng, int(requests["trace"].max(initial=-1)) + 1)
    operation = uuids(rng, len(requests))
    answers = uuids(rng, len(fleet.attempts))
    trace = [
        f"task-{traces[number][:13]}" if task else traces[number]
        for number, task in zip(requests["trace"].tolist(), requests["task"].tolist(), strict=True)
    ]
    record = [
        (f"chatcmpl-{answer}" if attempt.outcome == Outcome.SUCCESS else operation[attempt.request])
        if is_logged(fleet, attempt)
        else None
        for attempt, answer in zip(fleet.attempts, answers, strict=True)
    ]
    return FleetNames(record, operation, trace, [answer[:8] + answer[24:] for answer in answers])


class PayloadWriter:
    """Turns attempts into payloads, by their number."""

    def __init__(self, fleet: Fleet, names: FleetNames) -> None:
        self.fleet, self.names = fleet, names
        self.rows = {"start_us": [attempt.start_us for attempt in fleet.attempts]}
        self.requests = {column: fleet.requests[column].tolist() for column in fleet.requests.dtype.names or ()}
        self.keys = {number: key_metadata(key, ACCOUNT.id) for number, key in enumerate(CREDENTIALS)}

    def record(self, row: int) -> str | None:
        return self.names.record[row]

    def payload(self, row: int) -> bytes:
        """One StandardLoggingPayload as compact JSON."""
        attempt, get = self.fleet.attempts[row], self.requests
        request = attempt.request
        caller = CALLERS[get["caller"][request]]
        place = self.place(attempt)
        succeeded = attempt.outcome == Outcome.SUCCESS
        stream = get["stream"][request]
        start, end = attempt.start_us / 1e6, attempt.end_us / 1e6
        first = attempt.first_us / 1e6 if succeeded and stream else end
        prompt = get["prompt"][request] if succeeded else 0
        output = attempt.legs[-1].job.generated if succeeded else 0
        usage = self.usage(attempt) if succeeded else {}
        error, information = (None, NO_ERROR) if succeeded else error_of(attempt, str(place["model"]))
        metadata, end_user = self.metadata(attempt, caller, usage, succeeded)
        feature = caller.features[get["feature"][request]]
        canary = self.names.canary[row]
        answer: Json = {}
        if succeeded:
            message = {"role": "assistant", "content": f"On CANARY-{canary}: done."}
            reason = "length" if get["by_length"][request] else "stop"
            answer = {"choices": [{"finish_reason": reason, "index": 0, "message": message}]}
        parameters: Json = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
        environment = CREDENTIALS[get["credential"][request]].environment
        payload = {
            "id": self.names.record[row],
            "litellm_call_id": self.names.operation[request],
            "trace_id": self.names.trace[request],
            "session_id": "",
            "call_type": "acompletion",
            "cache_hit": None if succeeded and not stream else False,
            "stream": True if stream else None,
            "status": "success" if succeeded else "failure",
            "status_fields": {"llm_api_status": "success" if succeeded else "failure", "guardrail_status": "not_run"},
            "startTime": start,
            "endTime": end,
            "completionStartTime": first,
            "response_time": first - start,
            **place,
            "model_group": SERVED[get["served"][request]],
            "metadata": metadata,
            # LiteLLM writes 0.0 for a model that is not in its price list, and says so below
            "response_cost": 0.0,
            "total_tokens": prompt + output,
            "prompt_tokens": prompt,
            "completion_tokens": output,
            "request_tags": [f"app:{caller.app}", f"env:{environment}", f"feature:{feature}"],
            "end_user": end_user,
            "messages": [{"role": "user", "content": f"Note CANARY-{canary}: help with {feature}."}],
            "response": answer,
            "model_parameters": parameters,
            "hidden_params": {"model_id": place["model_id"], "api_base": place["api_base"], "response_cost": None},
            "error_str": error,
            "error_information": information,
            "response_cost_failure_debug_info": unknown_price(str(place["model"])) if succeeded else None,
        }
        return orjson.dumps(payload)

    def place(self, attempt: Attempt) -> Json:
        """The deployment that was called."""
        route = ROUTE_NAMES[self.requests["route"][attempt.request]]
        cluster = CLUSTER_NAMES[attempt.cluster]
        return {
            "custom_llm_provider": PROVIDER,
            "model": f"{PROVIDER}/{SERVED[self.requests['served'][attempt.request]]}",
            "model_id": deployment_name(route, cluster),
            "api_base": f"http://{route}.{CLUSTERS[cluster].region}.llm.acme.internal/v1",
        }

    def usage(self, attempt: Attempt) -> Json:
        """vLLM's usage object: the prompt count includes what came from the prefix cache."""
        first, last = attempt.legs[0].job, attempt.legs[-1].job
        return {
            "completion_tokens": last.generated,
            "prompt_tokens": first.prompt,
            "total_tokens": first.prompt + last.generated,
            "completion_tokens_details": None,
            "prompt_tokens_details": {"audio_tokens": None, "cached_tokens": first.cached},
        }

    def metadata(self, attempt: Attempt, caller: Caller, usage: Json, succeeded: bool) -> tuple[Json, str | None]:
        """What the gateway knows about the caller, and the end user's name."""
        get, request = self.requests, attempt.request
        metadata = dict(self.keys[get["credential"][request]])
        end_user = None
        app = caller.organisation_app
        if app is not None and get["user"][request] >= 0:
            staff = app.users is Users.STAFF
            user = user_name(staff, get["user"][request])
            if staff:
                metadata["user_api_key_user_id"] = user
            else:
                metadata["user_api_key_end_user_id"] = end_user = user
        sent: Json | None = None
        if get["task"][request]:
            sent = {
                "agent": AGENTS[get["agent"][request]],
                "parent_agent": None,
                "agent_task": self.names.trace[request],
            }
            if get["outcome"][request] >= 0:
                sent["task_outcome"] = OUTCOMES[get["outcome"][request]]
        metadata["spend_logs_metadata"] = sent
        metadata["usage_object"] = usage
        if attempt.number or not succeeded:
            metadata["attempted_retries"] = attempt.number
        return metadata, end_user


def error_of(attempt: Attempt, model: str) -> tuple[str, Json]:
    """error_str and error_information of a failed attempt."""
    code, kind, normalized, message = ERRORS[attempt.outcome]
    if attempt.outcome == Outcome.TIMED_OUT:
        took = (attempt.end_us - attempt.start_us) / 1e6
        message = f"{message} Timeout passed={took:.1f}, time taken={took:.1f} seconds, model={model}"
    information: Json = {
        "error_code": code,
        "error_class": kind,
        "llm_provider": PROVIDER,
        "error_message": message,
        "normalized_error": normalized,
    }
    return message, information


def unknown_price(model: str) -> Json:
    """The gateway cannot price what the company serves itself."""
    return {
        "error_str": f"This model isn't mapped yet. model={model}, custom_llm_provider={PROVIDER}.",
        "model": model,
        "cache_hit": False,
        "custom_llm_provider": PROVIDER,
        "base_model": None,
        "call_type": "acompletion",
        "custom_pricing": False,
    }


def write(out: Path, fleet: Fleet, names: FleetNames) -> tuple[list[Path], int]:
    """Write every logged attempt beside the other records; returns the files and the number of records."""
    writer = PayloadWriter(fleet, names)
    start_us = np.array(writer.rows["start_us"], dtype=np.int64)
    logged = np.flatnonzero([record is not None for record in names.record])
    ended = np.array([attempt.end_us for attempt in fleet.attempts], dtype=np.int64)
    logged = logged[np.lexsort((logged, ended[logged], start_us[logged] // HOUR))]
    raw = start_us[logged] >= fleet.window.as_of_us - DAY
    folder = out / gateway_log.FOLDER
    files = [
        *gateway_log.write_compacted(folder, writer, logged[~raw], SUFFIX),
        *gateway_log.write_raw(folder, writer, logged[raw]),
    ]
    return files, len(logged)
