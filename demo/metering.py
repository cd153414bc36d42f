"""AWS's meter: how many tokens of which class were used where in which hour, and what each costs. All integers.

assumption: AWS meters a call in the hour in which its response ends, all token classes together.
"""

from dataclasses import dataclass

import numpy as np

from demo.calls import CallKind, is_billed, is_long_context
from demo.clock import HOUR
from demo.incidents import PRICE_CUT_MODEL, PRICE_CUT_PERCENT
from demo.models import DEPLOYMENTS, rates


@dataclass(frozen=True)
class Rerating:
    """AWS corrects the price of one model on one day: new rate = old rate x percent / 100, rounded down."""

    model: str
    start_us: int
    end_us: int
    percent: int


@dataclass(frozen=True)
class Tariff:
    """The prices in force: the base rates, a price cut from an instant on, and perhaps a re-rating."""

    price_cut_from_us: int | None = None
    rerating: Rerating | None = None

    def nano_per_token(
        self, deployment: np.ndarray, batch: np.ndarray, long_context: np.ndarray, hour_us: np.ndarray
    ) -> np.ndarray:
        """int64 [row, token class]."""
        rate = rates()[deployment, batch.astype(int), long_context.astype(int)]
        if self.price_cut_from_us is not None:
            cut = _of_model(PRICE_CUT_MODEL)[deployment] & (hour_us >= self.price_cut_from_us)
            rate = np.where(cut[:, None], rate * (100 - PRICE_CUT_PERCENT) // 100, rate)
        if self.rerating is not None:
            rerating = self.rerating
            hit = _of_model(rerating.model)[deployment]
            hit &= (hour_us >= rerating.start_us) & (hour_us < rerating.end_us)
            rate = np.where(hit[:, None], rate * rerating.percent // 100, rate)
        return rate


def _of_model(slug: str) -> np.ndarray:
    return np.array([deployment.model.slug == slug for deployment in DEPLOYMENTS])


def metered_hour_us(calls: np.ndarray) -> np.ndarray:
    return calls["end_us"] // HOUR * HOUR


def call_rates(calls: np.ndarray, tariff: Tariff) -> np.ndarray:
    """Nano-dollars per token of each call: int64 [call, token class]."""
    is_batch = calls["kind"] == CallKind.BATCH_JOB
    return tariff.nano_per_token(calls["deployment"], is_batch, is_long_context(calls), metered_hour_us(calls))


def call_costs(calls: np.ndarray, tariff: Tariff) -> np.ndarray:
    """Nano-dollars: int64 [call, token class]; zero where AWS does not bill."""
    return np.where(is_billed(calls)[:, None], calls["tokens"] * call_rates(calls, tariff), 0)


LINE = np.dtype(
    [
        ("deployment", "i4"),
        ("batch", "?"),
        ("long_context", "?"),
        ("token_class", "i4"),
        ("hour_us", "i8"),
        ("tokens", "i8"),
    ]
)


def meter(calls: np.ndarray) -> np.ndarray:
    """Metered tokens, one row (LINE) per deployment, tier, context, token class and hour; sorted in that order."""
    billed = calls[is_billed(calls)]
    is_batch = billed["kind"] == CallKind.BATCH_JOB
    place = (billed["deployment"].astype(np.int64) * 2 + is_batch) * 2 + is_long_context(billed)
    classes = billed["tokens"].shape[1]
    hour = metered_hour_us(billed) // HOUR
    key = ((place[:, None] * classes + np.arange(classes)) << 32) + hour[:, None]
    used = billed["tokens"] > 0
    keys, position = np.unique(key[used], return_inverse=True)
    tokens = np.zeros(len(keys), dtype=np.int64)
    np.add.at(tokens, position, billed["tokens"][used])
    lines = np.zeros(len(keys), dtype=LINE)
    hours, places = keys & 0xFFFFFFFF, keys >> 32
    lines["tokens"] = tokens
    lines["hour_us"] = hours * HOUR
    lines["token_class"] = places % classes
    lines["long_context"] = places // classes % 2 == 1
    lines["batch"] = places // classes // 2 % 2 == 1
    lines["deployment"] = places // classes // 4
    return lines


def line_rates(lines: np.ndarray, tariff: Tariff) -> np.ndarray:
    """Nano-dollars per token of each line: int64 [line]."""
    every = tariff.nano_per_token(lines["deployment"], lines["batch"], lines["long_context"], lines["hour_us"])
    return every[np.arange(len(lines)), lines["token_class"]]
