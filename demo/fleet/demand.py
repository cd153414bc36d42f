"""What the fleet is asked for: every request with its prompt's length, its conversation and its answer's length."""

import numpy as np

from demo import agents, traffic
from demo.agents import CODING_OUTCOMES, SUPPORT_OUTCOMES
from demo.calls import OUTCOMES, prompt_tokens
from demo.clock import DAY, MINUTE, SECOND, Window
from demo.fleet.callers import CALLERS, Caller
from demo.fleet.catalogue import ADAPTERS, CLUSTERS, ROUTES
from demo.models import OUTPUT
from demo.people import AGENT_INDEX, pick, pick_credentials, pick_users
from demo.simulation import generator

ROUTE_NAMES = tuple(ROUTES)
CLUSTER_NAMES = tuple(CLUSTERS)
SERVED = tuple(name for names in ROUTES.values() for name in names)

QUIET_START = 35 * MINUTE
"""The first requests come when the first replicas are ready."""

CANCELLED_SHARE = 0.006
IMPATIENT_SHARE = 0.002
"""Callers who set a time-out of a few seconds."""

LENGTH_SHARE = 0.05
"""Answers that end because they reached the length that was allowed."""

REQUEST = np.dtype(
    [
        ("at_us", "i8"),
        ("caller", "i4"),  # index of callers.CALLERS
        ("credential", "i4"),
        ("user", "i4"),
        ("feature", "i4"),
        ("served", "i4"),  # index of SERVED: the name that was asked for
        ("route", "i4"),
        ("adapter", "i4"),
        ("cluster", "i4"),  # where the gateway sends it first
        ("trace", "i8"),  # conversation, task or chain
        ("lap", "i4"),  # how often the conversation was compacted
        ("prompt", "i8"),
        ("output", "i8"),
        ("shared", "i8"),  # first tokens of the prompt that the previous turn had, too
        ("system_tokens", "i8"),
        ("cancel_us", "i8"),  # after so long the client leaves; 0 = it stays
        ("time_out_us", "i8"),
        ("by_length", "?"),
        ("stream", "?"),
        ("task", "?"),
        ("agent", "i4"),
        ("outcome", "i4"),
    ]
)


def generate(seed: int, window: Window, scale: float) -> np.ndarray:
    """All requests (REQUEST) of the window in order of time; `trace` counts from 0."""
    parts, traces = [], 0
    for number, caller in enumerate(CALLERS):
        rng = generator(seed, f"fleet {caller.app} {caller.served}")
        make = conversations if caller.habit else single_requests
        found = make(rng, caller, window, traffic.amount(caller.per_month, window, scale))
        found["caller"] = number
        found["trace"] += traces
        traces = int(found["trace"].max(initial=traces - 1)) + 1
        identify(rng, found, caller)
        impatience(rng, found, caller)
        parts.append(found)
    requests = np.concatenate(parts)
    inside = (requests["at_us"] >= window.start_us + QUIET_START) & (requests["at_us"] < window.as_of_us - SECOND)
    requests = requests[inside]
    return requests[np.lexsort((requests["trace"], requests["caller"], requests["at_us"]))]


def blank(n: int) -> np.ndarray:
    requests = np.zeros(n, dtype=REQUEST)
    for name in ("credential", "user", "adapter", "agent", "outcome"):
        requests[name] = -1
    return requests


def single_requests(rng: np.random.Generator, caller: Caller, window: Window, n: int) -> np.ndarray:
    """Requests that stand alone; they share the system prompt of the application."""
    if caller.inputs is None or caller.outputs is None:
        raise ValueError(f"{caller.app} needs the lengths of its requests")
    requests = blank(n)
    requests["at_us"] = traffic.arrivals(rng, n, window, caller.shape)
    requests["prompt"] = caller.inputs.tokens(rng, n) + caller.system_tokens
    requests["output"] = caller.outputs.tokens(rng, n)
    requests["system_tokens"] = requests["shared"] = caller.system_tokens
    requests["trace"] = np.arange(n)
    return requests


def conversations(rng: np.random.Generator, caller: Caller, window: Window, n: int) -> np.ndarray:
    """Turns of conversations, or steps of agent tasks: each sends the whole conversation so far."""
    habit = caller.habit
    if habit is None:
        raise ValueError(f"{caller.app} needs a habit")
    calls, owner = agents.converse(rng, habit, traffic.arrivals(rng, n, window, caller.shape))
    requests = blank(len(calls))
    requests["at_us"] = calls["start_us"]
    requests["prompt"] = prompt = prompt_tokens(calls)
    requests["output"] = output = calls["tokens"][:, OUTPUT]
    requests["trace"] = owner
    first = np.diff(owner, prepend=-1) > 0
    before, answer = np.roll(prompt, 1), np.roll(output, 1)
    anew = ~first & (prompt < before)  # compacted: only the system prompt is as it was
    laps = np.cumsum(anew)
    requests["lap"] = laps - laps[first][owner]
    # a turn brings the last answer and something new; where it is shorter than the answer, that was left out
    kept = before + np.where(prompt - before > answer, answer, 0)
    requests["shared"] = np.where(first | anew, habit.prefix_tokens, kept)
    requests["system_tokens"] = habit.prefix_tokens
    if caller.agent is not None:
        requests["task"] = True
        requests["agent"] = AGENT_INDEX[caller.agent]
        outcomes = SUPPORT_OUTCOMES if caller.agent == "support-agent" else CODING_OUTCOMES
        drawn = np.searchsorted(np.cumsum([weight for _, weight in outcomes]), rng.random(n)).clip(
            max=len(outcomes) - 1
        )
        last = np.append(first[1:], True)
        requests["outcome"][last] = np.array([OUTCOMES.index(name) for name, _ in outcomes])[drawn]
    return requests


def identify(rng: np.random.Generator, requests: np.ndarray, caller: Caller) -> None:
    """Who asks and where: the same for all turns of a conversation."""
    traces, of_trace = np.unique(requests["trace"], return_inverse=True)
    n = len(traces)
    requests["cluster"] = pick(rng, n, [(CLUSTER_NAMES.index(name), weight) for name, weight in caller.home])[of_trace]
    requests["feature"] = rng.integers(0, len(caller.features), n)[of_trace]
    if caller.organisation_app is not None:
        requests["credential"] = pick_credentials(rng, caller.organisation_app, n)[of_trace]
        requests["user"] = pick_users(rng, caller.organisation_app, n)[of_trace]
    requests["served"] = SERVED.index(caller.served)
    requests["route"] = next(number for number, names in enumerate(ROUTES.values()) if caller.served in names)
    if caller.served in ADAPTERS:
        requests["adapter"] = ADAPTERS.index(caller.served)
    requests["stream"] = caller.stream


def impatience(rng: np.random.Generator, requests: np.ndarray, caller: Caller) -> None:
    """When callers give up: at their time-out, and a few on a whim, in the middle of a stream."""
    n = len(requests)
    requests["by_length"] = rng.random(n) < LENGTH_SHARE
    requests["time_out_us"] = caller.time_out_s * SECOND
    hasty = rng.random(n) < IMPATIENT_SHARE
    requests["time_out_us"][hasty] = rng.integers(2 * SECOND, 5 * SECOND, int(hasty.sum()))
    leaves = (rng.random(n) < CANCELLED_SHARE) & requests["stream"] & (requests["outcome"] < 0)
    requests["cancel_us"][leaves] = rng.integers(SECOND // 2, 8 * SECOND, int(leaves.sum()))


def days_of(window: Window, days: int) -> Window:
    """The last `days` days of a window, or all of it."""
    return Window(min(days, window.days), window.end)


def load(requests: np.ndarray, window: Window, every_us: int, seconds_each: np.ndarray) -> np.ndarray:
    """Mean number of requests in service per interval, if each took `seconds_each`."""
    intervals = window.days * DAY // every_us
    slot = ((requests["at_us"] - window.start_us) // every_us).clip(0, intervals - 1)
    return np.bincount(slot, weights=seconds_each, minlength=intervals) * SECOND / every_us
