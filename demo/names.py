"""The opaque ids that calls carry in the logs. Derived from the seed, so the same run has the same ids."""

from dataclasses import dataclass

import numpy as np

from demo.calls import CallKind, Status
from demo.simulation import Simulation, generator

MASTER_KEY_HASH = "88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b"


def uuids(rng: np.random.Generator, n: int) -> list[str]:
    """n random ids in the form of UUIDs."""
    text = rng.bytes(16 * n).hex()
    found = (text[32 * number : 32 * (number + 1)] for number in range(n))
    return [f"{one[:8]}-{one[8:12]}-4{one[13:16]}-a{one[17:20]}-{one[20:]}" for one in found]


@dataclass(frozen=True)
class Names:
    """Per call, in the order of `Simulation.calls`.

    `record`: id of the gateway's record (None where there is none); `operation`: litellm_call_id; `trace`: trace_id;
    `canary`: hexadecimal text that marks the call's prompt and answer.
    """

    record: list[str | None]
    operation: list[str]
    trace: list[str]
    canary: list[str]


def name_calls(simulation: Simulation) -> Names:
    """Give every call its ids."""
    calls = simulation.calls
    rng = generator(simulation.seed, "ids")
    traces = uuids(rng, int(calls["trace"].max(initial=-1)) + 1)
    operations = uuids(rng, int(calls["operation"].max(initial=-1)) + 1)
    answers = uuids(rng, len(calls))
    trace = [
        f"task-{traces[number][:13]}" if task else traces[number]
        for number, task in zip(calls["trace"].tolist(), calls["task"].tolist(), strict=True)
    ]
    operation = [operations[number] for number in calls["operation"].tolist()]
    record: list[str | None] = []
    for status, kind, answer, own in zip(
        calls["status"].tolist(), calls["kind"].tolist(), answers, operation, strict=True
    ):
        if status == Status.CUT_OFF:
            record.append(None)
        elif status != Status.SUCCESS:
            record.append(own)
        elif kind == CallKind.BATCH_JOB:
            record.append(f"batch_{answer.replace('-', '')}_batch_cost")
        else:
            record.append(f"chatcmpl-{answer}")
    return Names(record, operation, trace, [answer[:8] + answer[24:] for answer in answers])


def user_name(staff: bool, number: int) -> str:
    return f"u-{number:03d}" if staff else f"customer-{number:05d}"
