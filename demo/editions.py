"""The two editions of the bill, and which metered tokens each holds."""

from dataclasses import dataclass

import numpy as np

from demo.calls import CallKind, is_billed, is_long_context
from demo.metering import Tariff, metered_hour_us
from demo.models import TOKEN_CLASSES
from demo.simulation import Simulation


@dataclass(frozen=True)
class Edition:
    """One version of the bill: its tariff, and the metered line it does not hold yet (None when it is complete)."""

    name: str
    tariff: Tariff
    missing: np.void | None


def in_bill(simulation: Simulation, calls: np.ndarray, edition: Edition) -> np.ndarray:
    """bool [call, token class]: the metered line of these tokens is in this edition of the bill."""
    due = (metered_hour_us(calls) < simulation.window.billed_until_us) & is_billed(calls)
    found = np.repeat(due[:, None], len(TOKEN_CLASSES), axis=1)
    if edition.missing is not None:
        line = edition.missing
        same = (calls["deployment"] == line["deployment"]) & (metered_hour_us(calls) == line["hour_us"])
        same &= is_long_context(calls) == line["long_context"]
        same &= (calls["kind"] == CallKind.BATCH_JOB) == line["batch"]
        found[same, line["token_class"]] = False
    return found
