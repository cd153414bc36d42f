"""The incidents planted in the demonstration: when they happen and what they change in the calls."""

import math
from dataclasses import dataclass

import numpy as np

from demo import agents, shapes, traffic
from demo.calls import CallKind, Planted, empty
from demo.clock import DAY, HOUR, MINUTE, SECOND, Window
from demo.models import DEPLOYMENTS, INDEX, READ, WRITE_5M
from demo.people import AGENT_INDEX, APP_INDEX, APPS, CREDENTIAL_INDEX

PRICE_CUT_MODEL = "nova-pro"
PRICE_CUT_PERCENT = 20
NEW_MODEL = "nova-ultra-2"


@dataclass(frozen=True)
class Span:
    """When an incident lasts: [start_us, end_us)."""

    start_us: int
    end_us: int

    def holds(self, at_us: np.ndarray) -> np.ndarray:
        return (at_us >= self.start_us) & (at_us < self.end_us)


@dataclass(frozen=True)
class Plan:
    """When everything happens, derived from the window alone. Short windows get short incidents; None: does not fit."""

    cache_collapse: Span | None
    runaway: Span | None
    retry_storm: Span | None
    untagged: Span | None
    new_model_from_us: int | None
    price_cut_from_us: int | None


def plan(window: Window) -> Plan:
    """Place the incidents: at fixed fractions of the window, on working days where they need people at work."""

    def day(fraction: float) -> int:
        return min(int(window.days * fraction), window.days - 1)

    def working_day(fraction: float) -> int:
        wanted = day(fraction)
        later = [number for number in range(wanted, window.days) if window.weekday(number) < 5]
        return later[0] if later else wanted

    def span(first_day: int, days: float, from_hour: int = 0) -> Span:
        start_us = window.day_start_us(first_day) + from_hour * HOUR
        return Span(start_us, min(start_us + int(days * DAY), window.as_of_us))

    if window.days < 2:
        return Plan(None, None, None, None, None, None)
    shrink = min(1.0, window.days / 30)
    return Plan(
        cache_collapse=span(working_day(0.62), max(1.4, 1.8 * shrink), 9),
        runaway=span(max(0, working_day(0.42) - 1), 9.5 / 24, 21),
        retry_storm=span(working_day(0.24), max(1.0, 4 * shrink)),
        untagged=span(working_day(0.76), max(1.0, 4 * shrink)),
        new_model_from_us=window.day_start_us(day(0.57)),
        price_cut_from_us=window.day_start_us(day(0.5)),
    )


def collapse_cache(calls: np.ndarray, plan: Plan) -> None:
    """code-review's new prompt starts with the current time: no prefix ever matches, what was read is written anew."""
    if plan.cache_collapse is None:
        return
    hit = (calls["app"] == APP_INDEX["code-review"]) & plan.cache_collapse.holds(calls["start_us"])
    hit &= calls["tokens"][:, READ] > 0
    calls["lost_read"][hit] = calls["tokens"][hit, READ]
    calls["tokens"][hit, WRITE_5M] += calls["tokens"][hit, READ]
    calls["tokens"][hit, READ] = 0
    calls["incident"][hit] |= Planted.CACHE_COLLAPSE


RUNAWAY = agents.Habit(
    requests=shapes.CODING_REQUESTS,
    first_input=shapes.Quantiles((0.0, 1.0), (22_000, 24_000)),
    growth=shapes.Quantiles((0.0, 0.5, 0.9, 1.0), (150, 500, 1500, 6000)),
    output=shapes.Quantiles((0.0, 0.5, 0.9, 1.0), (60, 130, 420, 1500)),
    first_token_s=shapes.Quantiles((0.0, 0.5, 1.0), (1.2, 2.2, 9.0)),
    think_s=shapes.Quantiles((0.0, 0.5, 0.9, 1.0), (3.0, 9.0, 24.0, 60.0)),
    prefix_tokens=15_400,
    prefix_warm=0.9,
    ttl_s=300,
    write_class=WRITE_5M,
    wide_share=1.0,
)


def run_away(rng: np.random.Generator, window: Window, scale: float, plan: Plan) -> np.ndarray:
    """One task of migration-agent that repeats a failing build all night: 1,800 calls at scale 1."""
    if plan.runaway is None:
        return empty(0)
    length = max(60, math.ceil(1800 * math.sqrt(min(1.0, scale))))
    calls, _ = agents.converse(rng, RUNAWAY, np.array([plan.runaway.start_us + 23 * MINUTE]), np.array([length]))
    # as many calls as fit: the developer stops it in the morning
    calls = calls[calls["end_us"] < plan.runaway.end_us]
    app = APPS[APP_INDEX["migration-agent"]]
    calls["app"] = APP_INDEX[app.name]
    calls["credential"] = CREDENTIAL_INDEX[app.name, "dev"]
    calls["deployment"] = calls["asked_deployment"] = INDEX[app.deployments[0][0]]
    calls["user"] = 20
    calls["task"] = True
    calls["agent"] = AGENT_INDEX["migrator"]
    calls["incident"] = Planted.RUNAWAY
    if len(calls):
        calls["outcome"][-1] = 2  # abandoned
    return calls


def storm(rng: np.random.Generator, calls: np.ndarray, plan: Plan) -> np.ndarray:
    """product-search's client gives up after 2 s and asks again; both answers complete and are billed.

    The second request comes from the same chain (same trace) but is a new call to the gateway.
    """
    if plan.retry_storm is None:
        return empty(0)
    slow = calls["end_us"] - calls["start_us"] > 2 * SECOND
    hit = (calls["app"] == APP_INDEX["product-search"]) & (calls["kind"] == CallKind.CHAT) & slow
    hit &= plan.retry_storm.holds(calls["start_us"]) & (rng.random(len(calls)) < 0.6)
    again = calls[hit].copy()
    later_us = 2 * SECOND + rng.integers(20_000, 90_000, len(again))
    for name in ("start_us", "first_token_us", "end_us"):
        again[name] += later_us
    again["incident"] |= Planted.RETRY_STORM
    calls["incident"][hit] |= Planted.ASKED_AGAIN
    return again


def adopt_new_model(rng: np.random.Generator, calls: np.ndarray, plan: Plan) -> None:
    """copy-studio moves half of its drafts to a model that no price list knows yet."""
    if plan.new_model_from_us is None:
        return
    moved = (calls["app"] == APP_INDEX["copy-studio"]) & (calls["start_us"] >= plan.new_model_from_us)
    moved &= rng.random(len(calls)) < 0.5
    calls["deployment"][moved] = INDEX["nova-ultra-2-us-east-1-ai-prod"]
    calls["asked_deployment"][moved] = calls["deployment"][moved]
    tokens = calls["tokens"][moved]
    tokens[:, 0] += tokens[:, READ] + tokens[:, WRITE_5M]
    tokens[:, READ] = tokens[:, WRITE_5M] = 0
    calls["tokens"][moved] = tokens
    calls["incident"][moved] |= Planted.UNPRICED


def call_untagged(rng: np.random.Generator, window: Window, scale: float, plan: Plan) -> np.ndarray:
    """A back-fill script of data-platform uses the gateway's master key: no alias, no team, no user, no tags."""
    if plan.untagged is None:
        return empty(0)
    n = traffic.amount(13_000, window, scale)
    app = APPS[APP_INDEX["backfill-script"]]
    calls = empty(n)
    calls["tokens"][:, 0] = shapes.RETRIEVAL_INPUT.tokens(rng, n)
    calls["tokens"][:, 4] = shapes.RETRIEVAL_OUTPUT.tokens(rng, n)
    calls["trace"] = np.arange(n)
    traffic.identify(rng, calls, app)
    length_us = plan.untagged.end_us - plan.untagged.start_us
    start_us = np.sort(plan.untagged.start_us + rng.integers(0, length_us, n))
    traffic.set_times(calls, start_us, shapes.FIRST_TOKEN_S.sample(rng, n), 75.0)
    calls["incident"] = Planted.UNTAGGED
    return calls


def model_of(calls: np.ndarray, slug: str) -> np.ndarray:
    """True where the call was served by the model."""
    of_model = np.array([deployment.model.slug == slug for deployment in DEPLOYMENTS])
    return of_model[calls["deployment"]]
