"""The table of model calls: one row per attempt at a model, as a numpy structured array."""

from enum import IntEnum, IntFlag

import numpy as np

from demo.models import LONG_CONTEXT_THRESHOLD, READ, UNCACHED, WRITE_1H, WRITE_5M, has_long_context

CALL = np.dtype(
    [
        ("start_us", "i8"),
        ("first_token_us", "i8"),
        ("end_us", "i8"),
        ("app", "i4"),  # index of people.APPS
        ("credential", "i4"),  # index of people.CREDENTIALS; -1 = the gateway's master key
        ("deployment", "i4"),  # index of models.DEPLOYMENTS
        ("asked_deployment", "i4"),  # the one the caller asked for; differs after a fallback
        ("user", "i4"),  # employee or customer number; -1 = none
        ("feature", "i4"),  # index of App.features
        ("trace", "i8"),  # number of the conversation, task or chain
        ("operation", "i8"),  # what the caller asked for once; its attempts share it
        ("task", "?"),  # the trace is an agent task
        ("agent", "i4"),  # index of people.AGENTS; -1 = none
        ("parent_agent", "i4"),
        ("outcome", "i4"),  # index of OUTCOMES, on the last call of a task; -1 elsewhere
        ("kind", "i4"),  # CallKind
        ("stream", "?"),
        ("documents", "i4"),  # requests inside a batch job
        ("tokens", "i8", (5,)),  # models.TOKEN_CLASSES; what AWS meters
        ("status", "i4"),  # Status
        ("retries", "i4"),  # failed attempts before this one
        ("incident", "i4"),  # Planted flags
        ("lost_read", "i8"),  # tokens that the cache would have served, but for the cache incident
    ]
)

OUTCOMES = ("merged", "resolved", "abandoned", "failed")


class CallKind(IntEnum):
    CHAT = 0
    EMBEDDING = 1
    BATCH_JOB = 2


class Status(IntEnum):
    """What became of an attempt, seen from outside both the gateway and AWS."""

    SUCCESS = 0
    THROTTLED = 1  # 429: logged by the gateway as a failure, not billed
    TIMED_OUT = 2  # logged by the gateway as a failure without tokens; AWS bills the input
    CUT_OFF = 3  # stream left by the caller: no gateway record at all; AWS bills what was generated
    REJECTED = 4  # 400: logged by the gateway as a failure, not billed


class Planted(IntFlag):
    """Which planted incident a call belongs to."""

    NONE = 0
    CACHE_COLLAPSE = 1
    RUNAWAY = 2
    RETRY_STORM = 4
    UNPRICED = 8
    UNTAGGED = 16
    ASKED_AGAIN = 32  # the first answer of a pair of the retry storm: the one that would have been enough


def empty(n: int) -> np.ndarray:
    """n calls with nothing known: -1 for absent references, zero elsewhere."""
    calls = np.zeros(n, dtype=CALL)
    for name in ("credential", "user", "agent", "parent_agent", "outcome"):
        calls[name] = -1
    return calls


def prompt_tokens(calls: np.ndarray) -> np.ndarray:
    """The whole prompt: uncached, read and written."""
    tokens = calls["tokens"]
    return tokens[:, UNCACHED] + tokens[:, READ] + tokens[:, WRITE_5M] + tokens[:, WRITE_1H]


def is_long_context(calls: np.ndarray) -> np.ndarray:
    """True where the long-context rate applies: the model has one and the prompt exceeds the threshold."""
    single = calls["kind"] != CallKind.BATCH_JOB
    return has_long_context()[calls["deployment"]] & (prompt_tokens(calls) > LONG_CONTEXT_THRESHOLD) & single


def is_billed(calls: np.ndarray) -> np.ndarray:
    """True where AWS meters tokens."""
    return np.isin(calls["status"], (Status.SUCCESS, Status.TIMED_OUT, Status.CUT_OFF))


def is_logged(calls: np.ndarray) -> np.ndarray:
    """True where the gateway writes a record."""
    return calls["status"] != Status.CUT_OFF


def join(parts: list[np.ndarray]) -> np.ndarray:
    """Concatenate generators' calls, renumbering traces so that they do not collide."""
    renumbered, offset = [], 0
    for part in parts:
        part = part.copy()
        part["trace"] += offset
        offset = int(part["trace"].max(initial=offset - 1)) + 1
        renumbered.append(part)
    return np.concatenate(renumbered)
