"""Agent tasks: coding agents with sub-agents, support agents with turns, and analysts questioning one long document.

The conversation model: each request sends the whole conversation so far; the prompt cache holds what the previous
request sent, for as long as its time to live; when the context window is full the agent compacts and goes on from a
summary.
"""

from dataclasses import dataclass

import numpy as np

from demo import shapes
from demo.calls import OUTCOMES, empty
from demo.clock import SECOND, Window
from demo.models import INDEX, OUTPUT, READ, UNCACHED, WRITE_1H, WRITE_5M
from demo.people import AGENT_INDEX, App, Kind
from demo.shapes import Quantiles
from demo.traffic import amount, arrivals, identify


@dataclass(frozen=True)
class Habit:
    """How one kind of conversation grows. Tokens and seconds; see shapes.py for sources."""

    requests: Quantiles
    first_input: Quantiles
    growth: Quantiles
    output: Quantiles
    first_token_s: Quantiles
    think_s: Quantiles
    prefix_tokens: int  # system prompt and tools: shared by all conversations of the application
    prefix_warm: float  # how often another conversation has kept that prefix in the cache
    ttl_s: int
    write_class: int
    compact_at: int = 176_000
    compact_to: int = 40_000
    wide_share: float = 0.0  # share of conversations that use the 1M-token window
    wide_compact_at: int = 640_000


CODING = Habit(
    requests=shapes.CODING_REQUESTS,
    first_input=shapes.CODING_FIRST_INPUT,
    growth=shapes.CODING_GROWTH,
    output=shapes.CODING_OUTPUT,
    first_token_s=shapes.CODING_FIRST_TOKEN_S,
    think_s=shapes.CODING_THINK_S,
    prefix_tokens=15_400,  # Claude Code tasks: tools 12.5-13k and system prompt 2.8k tokens
    prefix_warm=0.75,
    ttl_s=300,
    write_class=WRITE_5M,
    wide_share=0.02,
)
SUB_AGENT = Habit(
    requests=shapes.SUB_AGENT_REQUESTS,
    first_input=shapes.SUB_AGENT_FIRST_INPUT,
    growth=shapes.SUB_AGENT_GROWTH,
    output=shapes.CODING_OUTPUT,
    first_token_s=shapes.FIRST_TOKEN_S,
    think_s=shapes.SUB_AGENT_THINK_S,
    prefix_tokens=7_000,
    prefix_warm=0.5,
    ttl_s=300,
    write_class=WRITE_5M,
)
SUPPORT = Habit(
    requests=shapes.SUPPORT_TURNS,
    first_input=shapes.SUPPORT_FIRST_INPUT,
    growth=shapes.SUPPORT_GROWTH,
    output=shapes.SUPPORT_OUTPUT,
    first_token_s=shapes.FIRST_TOKEN_S,
    think_s=shapes.SUPPORT_THINK_S,
    prefix_tokens=8_800,
    prefix_warm=0.9,
    ttl_s=300,
    write_class=WRITE_5M,
)
FILINGS = Habit(
    requests=shapes.FILING_QUESTIONS,
    first_input=shapes.FILING_TOKENS,
    growth=shapes.FILING_GROWTH,
    output=shapes.FILING_OUTPUT,
    first_token_s=shapes.CODING_FIRST_TOKEN_S,
    think_s=shapes.FILING_THINK_S,
    prefix_tokens=2_100,
    prefix_warm=0.6,
    ttl_s=3600,
    write_class=WRITE_1H,
)

CODING_OUTCOMES = (("merged", 0.60), ("abandoned", 0.24), ("failed", 0.16))
SUPPORT_OUTCOMES = (("resolved", 0.72), ("abandoned", 0.18), ("failed", 0.10))


def running_total(values: np.ndarray, owner_start: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Inclusive cumulative sum that starts again at each owner's first row."""
    total = np.cumsum(values)
    before = total[owner_start] - values[owner_start]
    return total - before[owner]


def converse(
    rng: np.random.Generator, habit: Habit, starts_us: np.ndarray, lengths: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate one conversation per start. Returns the calls with times and tokens, and each call's conversation."""
    n = habit.requests.tokens(rng, len(starts_us)) if lengths is None else lengths
    owner_start = np.concatenate([[0], np.cumsum(n)[:-1]])
    owner = np.repeat(np.arange(len(n)), n)
    rows = len(owner)
    first = np.zeros(rows, dtype=bool)
    first[owner_start] = True

    opening = habit.first_input.tokens(rng, len(n))
    growth = habit.growth.tokens(rng, rows)
    growth[owner_start] = opening
    grown = running_total(growth, owner_start, owner)
    wide = (opening > habit.compact_at * 0.85) | (rng.random(len(n)) < habit.wide_share)
    limit = np.where(wide, habit.wide_compact_at, habit.compact_at)[owner]
    room = limit - habit.compact_to
    over = np.maximum(0, grown - limit)
    context = np.where(grown <= limit, grown, habit.compact_to + over % room)
    laps = np.where(grown <= limit, 0, 1 + over // room)
    compacted = ~first & (np.diff(laps, prepend=0) > 0)

    calls = empty(rows)
    output = habit.output.tokens(rng, rows)
    first_token_us = np.rint(habit.first_token_s.sample(rng, rows) * SECOND).astype(np.int64)
    took_us = first_token_us + np.rint(output / shapes.TOKENS_PER_SECOND * SECOND).astype(np.int64)
    think_us = np.rint(habit.think_s.sample(rng, rows) * SECOND).astype(np.int64)
    elapsed_us = running_total(took_us + think_us, owner_start, owner) - took_us - think_us
    calls["start_us"] = starts_us[owner] + elapsed_us
    calls["first_token_us"] = calls["start_us"] + first_token_us
    calls["end_us"] = calls["start_us"] + took_us

    tail = rng.integers(3, 13, rows)  # what follows the last cache breakpoint
    gap_us = np.diff(calls["start_us"], prepend=0)
    kept = ~first & ~compacted & (gap_us <= habit.ttl_s * SECOND)
    previously_cached = np.concatenate([[0], (context - tail)[:-1]])
    warm_prefix = np.where(rng.random(rows) < habit.prefix_warm, habit.prefix_tokens, 0)
    read = np.minimum(np.where(kept, previously_cached, warm_prefix), context - tail)
    calls["tokens"][:, READ] = read
    calls["tokens"][:, UNCACHED] = tail
    calls["tokens"][:, habit.write_class] = context - tail - read
    calls["tokens"][:, OUTPUT] = output
    calls["stream"] = True
    return calls, owner


def last_rows(calls: np.ndarray, owner: np.ndarray) -> np.ndarray:
    """Row number of the call that ends last in each conversation."""
    order = np.lexsort((calls["end_us"], owner))
    is_last = np.append(np.diff(owner[order]) > 0, True)
    return order[is_last]


def inherit(rng: np.random.Generator, calls: np.ndarray, owner: np.ndarray, app: App, n: int) -> None:
    """One caller, credential, feature and deployment per conversation, on all its calls."""
    per_task = empty(n)
    identify(rng, per_task, app)
    for name in ("app", "credential", "deployment", "asked_deployment", "user", "feature"):
        calls[name] = per_task[name][owner]
    calls["trace"] = owner


def generate(rng: np.random.Generator, app: App, window: Window, scale: float) -> np.ndarray:
    """All calls of one agent application, or of the document analysts."""
    n = amount(app.per_month, window, scale)
    habit = {Kind.CODING_AGENT: CODING, Kind.SUPPORT_AGENT: SUPPORT, Kind.DOCUMENT: FILINGS}[app.kind]
    calls, owner = converse(rng, habit, arrivals(rng, n, window, app.shape))
    inherit(rng, calls, owner, app, n)
    if app.agent is None:
        return calls
    calls["task"] = True
    calls["agent"] = AGENT_INDEX[app.agent]
    helped = with_sub_agents(rng, app, calls, owner, n)
    set_outcomes(rng, helped, app)
    return helped


def with_sub_agents(rng: np.random.Generator, app: App, calls: np.ndarray, owner: np.ndarray, n: int) -> np.ndarray:
    """Add sub-agents' calls to some of the tasks. The public traces have them in 2.5 % of tasks; here 15 % and 25 %."""
    share = 0.15 if app.kind is Kind.CODING_AGENT else 0.25
    parents = np.repeat(np.arange(n), np.where(rng.random(n) < share, rng.integers(1, 4, n), 0))
    if not len(parents):
        return calls
    # a sub-agent starts just after one of its parent's calls has ended
    of_parent = [np.flatnonzero(owner == parent) for parent in parents]
    starter = np.array([rows[int(u * len(rows))] for rows, u in zip(of_parent, rng.random(len(parents)), strict=True)])
    starts_us = calls["end_us"][starter] + rng.integers(100_000, 900_000, len(starter))
    lengths = None if app.kind is Kind.CODING_AGENT else rng.integers(1, 4, len(parents))
    added, sub_owner = converse(rng, SUB_AGENT, starts_us, lengths)
    for name in ("app", "credential", "user", "feature", "trace", "task"):
        added[name] = calls[name][starter][sub_owner]
    added["deployment"] = added["asked_deployment"] = INDEX[app.sub_agent_deployment or ""]
    names = np.array([AGENT_INDEX[name] for name in app.sub_agents])
    added["agent"] = names[rng.integers(0, len(names), len(parents))][sub_owner]
    added["parent_agent"] = AGENT_INDEX[app.agent or ""]
    return np.concatenate([calls, added])


def set_outcomes(rng: np.random.Generator, calls: np.ndarray, app: App) -> None:
    """Write each task's outcome on the call of its main agent that ends last."""
    outcomes = CODING_OUTCOMES if app.kind is Kind.CODING_AGENT else SUPPORT_OUTCOMES
    main = np.flatnonzero(calls["parent_agent"] < 0)
    last = main[last_rows(calls[main], calls["trace"][main])]
    numbers = np.array([OUTCOMES.index(name) for name, _ in outcomes])
    drawn = np.searchsorted(np.cumsum([weight for _, weight in outcomes]), rng.random(len(last)))
    calls["outcome"][last] = numbers[drawn.clip(max=len(numbers) - 1)]
