"""All that happened in the company: every attempt at a model, and what AWS metered."""

import zlib
from dataclasses import dataclass

import numpy as np

from demo import agents, failures, incidents, traffic
from demo.calls import join
from demo.clock import Window
from demo.people import APPS, Kind


@dataclass(frozen=True)
class Simulation:
    """The attempts, in order of end, and the settings they came from."""

    seed: int
    scale: float
    window: Window
    plan: incidents.Plan
    calls: np.ndarray


def generator(seed: int, purpose: str) -> np.random.Generator:
    """Random numbers for one purpose: changing one part of the simulation leaves the others as they are."""
    return np.random.default_rng([seed, zlib.crc32(purpose.encode())])


def simulate(seed: int, window: Window, scale: float) -> Simulation:
    """Make every call of the window."""
    plan = incidents.plan(window)
    parts = []
    for app in APPS:
        if app.per_month == 0:
            continue
        converses = app.kind in (Kind.CODING_AGENT, Kind.SUPPORT_AGENT, Kind.DOCUMENT)
        make = agents.generate if converses else traffic.generate
        parts.append(make(generator(seed, app.name), app, window, scale))
    parts.append(incidents.run_away(generator(seed, "runaway"), window, scale, plan))
    parts.append(incidents.call_untagged(generator(seed, "untagged"), window, scale, plan))
    calls = join(parts)
    incidents.collapse_cache(calls, plan)
    incidents.adopt_new_model(generator(seed, "new model"), calls, plan)
    calls = np.concatenate([calls, incidents.storm(generator(seed, "storm"), calls, plan)])
    calls = failures.plant(generator(seed, "failures"), calls)
    seen = (calls["end_us"] < window.as_of_us) & (calls["start_us"] >= window.start_us)
    calls = calls[seen]
    order = np.lexsort((calls["retries"], calls["operation"], calls["start_us"], calls["end_us"]))
    return Simulation(seed, scale, window, plan, calls[order])
