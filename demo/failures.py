"""What goes wrong in ordinary weeks: throttling with retries and fallbacks, time-outs, rejected calls, streams cut off.

Each attempt at a model becomes a row of its own; the attempts of one operation share its number.
"""

import numpy as np

from demo.calls import CallKind, Planted, Status, empty
from demo.clock import MINUTE, SECOND
from demo.models import DEPLOYMENTS, OUTPUT, READ, WRITE_1H, WRITE_5M, fallback_of

THROTTLED_SHARE = 0.004
THROTTLED_PER_BUSY_CALL = 0.0015
"""A call is throttled more often the more calls its deployment got in that minute: a quota is a rate."""

FAILED_ATTEMPTS = (0.70, 0.20, 0.10)
"""Share of throttled operations with 1, 2 and 3 failed attempts; after 3 the gateway falls back or gives up."""

TIMED_OUT_SHARE = 0.0009
TIME_OUT_S = 60
CUT_OFF_SHARE = 0.0036
REJECTED_SHARE = 0.0005


def plant(rng: np.random.Generator, calls: np.ndarray) -> np.ndarray:
    """Calls with their failed attempts. Calls of planted incidents stay as they are: an incident has one cause."""
    calls = calls.copy()
    calls["operation"] = np.arange(len(calls))
    ordinary = (calls["kind"] == CallKind.CHAT) & (calls["incident"] == Planted.NONE)
    lot = rng.random(len(calls))
    cut_off = ordinary & calls["stream"] & (calls["outcome"] < 0) & (lot < CUT_OFF_SHARE)
    lot -= CUT_OFF_SHARE
    timed_out = ordinary & (lot >= 0) & (lot < TIMED_OUT_SHARE)
    lot -= TIMED_OUT_SHARE
    rejected = ordinary & (lot >= 0) & (lot < REJECTED_SHARE)
    lot -= REJECTED_SHARE
    throttled = ordinary & (lot >= 0) & (lot < THROTTLED_SHARE + THROTTLED_PER_BUSY_CALL * busyness(calls))

    added = [
        time_out(rng, calls, np.flatnonzero(timed_out)),
        reject(rng, calls, np.flatnonzero(rejected)),
        throttle(rng, calls, np.flatnonzero(throttled)),
    ]
    cut(rng, calls, np.flatnonzero(cut_off))
    return np.concatenate([calls, *added])


def busyness(calls: np.ndarray) -> np.ndarray:
    """How many calls the same deployment got in the same minute."""
    slot = calls["deployment"].astype(np.int64) * 10**9 + calls["start_us"] // MINUTE
    _, position, count = np.unique(slot, return_inverse=True, return_counts=True)
    return count[position]


def failed(calls: np.ndarray, rows: np.ndarray, status: Status) -> np.ndarray:
    """Attempts that failed before the given calls: same operation and caller, no tokens."""
    attempts = calls[rows].copy()
    attempts["status"] = status
    attempts["tokens"] = 0
    attempts["outcome"] = -1
    return attempts


def delay(calls: np.ndarray, rows: np.ndarray, by_us: np.ndarray) -> None:
    """Move calls later."""
    for name in ("start_us", "first_token_us", "end_us"):
        calls[name][rows] += by_us


def time_out(rng: np.random.Generator, calls: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The gateway waits `TIME_OUT_S`, logs a failure and tries again; AWS has read the input, and bills it.

    assumption: AWS meters the abandoned attempt in the hour in which the gateway gave up, and no output.
    """
    attempts = failed(calls, rows, Status.TIMED_OUT)
    attempts["tokens"] = calls["tokens"][rows]
    attempts["tokens"][:, OUTPUT] = 0
    attempts["end_us"] = attempts["first_token_us"] = attempts["start_us"] + TIME_OUT_S * SECOND
    delay(calls, rows, TIME_OUT_S * SECOND + rng.integers(SECOND // 2, 2 * SECOND, len(rows)))
    calls["retries"][rows] = 1
    # what the first attempt wrote to the cache, the second one reads
    tokens = calls["tokens"][rows]
    tokens[:, READ] += tokens[:, WRITE_5M] + tokens[:, WRITE_1H]
    tokens[:, WRITE_5M] = tokens[:, WRITE_1H] = 0
    calls["tokens"][rows] = tokens
    return attempts


def reject(rng: np.random.Generator, calls: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A malformed request: refused at once with 400; the caller mends it and calls again as a new operation."""
    attempts = failed(calls, rows, Status.REJECTED)
    took_us = rng.integers(30_000, 150_000, len(rows))
    attempts["end_us"] = attempts["first_token_us"] = attempts["start_us"] + took_us
    attempts["operation"] = calls["operation"].max(initial=-1) + 1 + np.arange(len(rows))
    delay(calls, rows, took_us + rng.integers(SECOND, 4 * SECOND, len(rows)))
    return attempts


def throttle(rng: np.random.Generator, calls: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """429s, each attempt logged on its own; the gateway backs off and retries, then falls back to another model."""
    if not len(rows):
        return empty(0)
    failures = 1 + np.searchsorted(np.cumsum(FAILED_ATTEMPTS)[:-1], rng.random(len(rows)), side="right")
    attempts = []
    for number in range(len(FAILED_ATTEMPTS)):
        still = rows[failures > number]
        attempt = failed(calls, still, Status.THROTTLED)
        attempt["retries"] = number
        took_us = rng.integers(40_000, 350_000, len(still))
        attempt["end_us"] = attempt["first_token_us"] = attempt["start_us"] + took_us
        attempts.append(attempt)
        delay(calls, still, took_us + (SECOND << number) // 2 + rng.integers(0, SECOND, len(still)))
    calls["retries"][rows] = failures
    fall_back(calls, rows[failures == len(FAILED_ATTEMPTS)])
    return np.concatenate(attempts)


def fall_back(calls: np.ndarray, rows: np.ndarray) -> None:
    """Serve exhausted operations by the fallback model, where there is one: its cache is cold, all is written anew."""
    fallbacks = np.array([fallback_of(number) for number in range(len(DEPLOYMENTS))])
    rows = rows[fallbacks[calls["deployment"][rows]] >= 0]
    calls["deployment"][rows] = fallbacks[calls["deployment"][rows]]
    tokens = calls["tokens"][rows]
    had_cache = tokens[:, READ] + tokens[:, WRITE_5M] + tokens[:, WRITE_1H] > 0
    tokens[:, WRITE_5M] += np.where(had_cache & (tokens[:, WRITE_1H] == 0), tokens[:, READ], 0)
    tokens[:, WRITE_1H] += np.where(tokens[:, WRITE_1H] > 0, tokens[:, READ], 0)
    tokens[:, READ] = 0
    calls["tokens"][rows] = tokens


def cut(rng: np.random.Generator, calls: np.ndarray, rows: np.ndarray) -> None:
    """The caller leaves a stream: the gateway logs nothing (seen in LiteLLM 1.110.2), AWS bills what was generated."""
    share = rng.uniform(0.05, 0.9, len(rows))
    tokens = calls["tokens"][rows]
    tokens[:, OUTPUT] = np.maximum(1, np.rint(tokens[:, OUTPUT] * share))
    calls["tokens"][rows] = tokens
    writing_us = calls["end_us"][rows] - calls["first_token_us"][rows]
    calls["end_us"][rows] = calls["first_token_us"][rows] + np.rint(writing_us * share).astype(np.int64)
    calls["status"][rows] = Status.CUT_OFF
