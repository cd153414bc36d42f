"""When the fleet has which nodes and replicas, and what is planted: failures, a canary, gaps in the metrics."""

from dataclasses import dataclass

import numpy as np

from demo.clock import DAY, HOUR, MINUTE, SECOND, Window, iso
from demo.fleet import demand
from demo.fleet.catalogue import CLUSTERS, NEW_VERSION, POOLS, Pool
from demo.fleet.nodes import Machinery, Replica

CANARY_WEIGHT = 0.25
SCALE_EVERY = 5 * MINUTE
SCALE_DOWN_AFTER = 12  # intervals of five minutes with less load
BATCH_FROM, BATCH_UNTIL = -20 * MINUTE, 5 * HOUR + 40 * MINUTE
"""The night's spot nodes: from twenty to midnight until the queue is served."""

SECOND_DECODE = (6 * HOUR + 40 * MINUTE, 18 * HOUR + 50 * MINUTE)
"""The second decode replica is scheduled on working days, on a p5 of its own: half of whose GPUs nobody requests."""


@dataclass(frozen=True)
class Event:
    """Something planted in the fleet. `where`: cluster, and pool, pod or node if it is about one."""

    name: str
    start_us: int
    end_us: int | None
    where: dict[str, str]
    details: dict[str, object]

    def record(self) -> dict[str, object]:
        return {
            "name": self.name,
            "start": iso(self.start_us),
            "end": None if self.end_us is None else iso(self.end_us),
            **self.where,
            "details": self.details,
        }


@dataclass(frozen=True)
class Blackout:
    """Scrapes that are missing: of one pod, or (pod None) of all targets of a cluster."""

    cluster: str
    pod: str | None
    start_us: int
    end_us: int


@dataclass
class Plan:
    """All nodes and replicas, and what is planted."""

    machinery: Machinery
    events: list[Event]
    blackouts: list[Blackout]


def draw_up(rng: np.random.Generator, window: Window, requests: np.ndarray) -> Plan:
    """Lay out the fleet's life in a window of whole days."""
    plan = Plan(Machinery(rng), [], [])
    for cluster in CLUSTERS:
        for _ in range(2):
            plan.machinery.node(cluster, "m6i.large", "OnDemand", window.start_us)
    mixed(plan, window, requests)
    separated(plan, window, requests)
    nightly(plan, window, requests)
    dark_hours(plan, window)
    plan.events.sort(key=lambda event: (event.start_us, event.name))
    return plan


def working_day(window: Window, fraction: float) -> int:
    """A working day at about that fraction of the window, or any day if there is none later."""
    wanted = min(int(window.days * fraction), window.days - 1)
    later = [day for day in range(wanted, window.days) if window.weekday(day) < 5]
    return later[0] if later else wanted


def extra_replicas(pool: Pool, window: Window, requests: np.ndarray) -> list[tuple[int, int]]:
    """(start, end) of every replica beyond the least, as an autoscaler on running requests would have them."""
    cluster = demand.CLUSTER_NAMES.index(pool.cluster)
    mine = requests[(requests["cluster"] == cluster) & (requests["route"] == demand.ROUTE_NAMES.index(pool.route))]
    seconds = 0.8 + mine["output"] * 0.021 + mine["prompt"] * 0.0001
    concurrency = demand.load(mine, window, SCALE_EVERY, seconds)
    wanted = np.clip(np.ceil(concurrency / pool.concurrency), pool.least, pool.most).astype(int)
    # up at once, down only when the load has been lower for a while
    held = np.array([wanted[max(0, slot - SCALE_DOWN_AFTER) : slot + 1].max() for slot in range(len(wanted))])
    found = []
    for level in range(pool.least + 1, pool.most + 1):
        on = np.concatenate([[False], held >= level, [False]])
        for start, end in zip(np.flatnonzero(~on[:-1] & on[1:]), np.flatnonzero(on[:-1] & ~on[1:]), strict=True):
            # the autoscaler sees a load when it is there: it acts an interval later
            found.append((window.start_us + int(start + 1) * SCALE_EVERY, window.start_us + int(end + 1) * SCALE_EVERY))
    return sorted(found)


def busiest(requests: np.ndarray, pool: Pool, from_us: int, until_us: int) -> int:
    """An instant in [from, until) at which a pool has much to do: a failure then is felt."""
    mine = requests[requests["route"] == demand.ROUTE_NAMES.index(pool.route)]
    mine = mine[mine["cluster"] == demand.CLUSTER_NAMES.index(pool.cluster)]
    mine = mine[(mine["at_us"] >= from_us) & (mine["at_us"] < until_us - MINUTE)]
    if not len(mine):
        return from_us
    # the more tokens were asked for lately, the more are still being written
    recent = np.cumsum(mine["output"])
    before = np.searchsorted(mine["at_us"], mine["at_us"] - 6 * SECOND)
    lately = recent - np.where(before > 0, recent[before - 1], 0)
    return int(mine["at_us"][np.argmax(lately)]) + SECOND


def drain(replica: Replica, at_us: int) -> None:
    """No new requests from here on; the pod ends when it has served what it has."""
    replica.lives[-1].closed_us = max(at_us, replica.lives[-1].ready_us)


def scale(plan: Plan, pool: Pool, window: Window, requests: np.ndarray, promoted_us: int | None) -> None:
    """The replicas beyond the first come and go with the load."""
    for start_us, end_us in extra_replicas(pool, window, requests):
        version = NEW_VERSION if promoted_us is not None and start_us >= promoted_us else None
        replica = plan.machinery.launch(pool, start_us, version)
        if end_us < window.as_of_us:
            drain(replica, end_us)
        where = {"cluster": pool.cluster, "pool": pool.name, "pod": replica.pod, "node": replica.node.name}
        ready_us = replica.lives[0].ready_us
        details: dict[str, object] = {"ready": iso(ready_us), "cold_start_s": (ready_us - start_us) // SECOND}
        plan.events.append(Event("scale_up", start_us, ready_us, where, details))
        if end_us < window.as_of_us:
            plan.events.append(Event("scale_down", end_us, None, where, {}))


def mixed(plan: Plan, window: Window, requests: np.ndarray) -> None:
    """The chat route in both regions: a node failure, and a new engine version, first as a canary."""
    machinery = plan.machinery
    home, away = POOLS["llm-us-east-1/qwen3-32b"], POOLS["llm-eu-west-1/qwen3-32b"]
    first = machinery.launch(home, window.start_us)
    machinery.launch(away, window.start_us)
    promoted_us = None
    if window.days >= 3:
        morning_us = window.day_start_us(working_day(window, 0.3)) + 10 * HOUR
        failed_us = busiest(requests, home, morning_us, morning_us + HOUR)
        machinery.lose(first, failed_us)
        where = {"cluster": home.cluster, "pool": home.name, "pod": first.pod, "node": first.node.name}
        first = machinery.launch(home, failed_us + 50 * SECOND)
        details: dict[str, object] = {"fails_over_to": away.cluster, "replaced_by": first.node.name}
        plan.events.append(Event("node_loss", failed_us, first.lives[0].ready_us, where, details))
    if window.days >= 6:
        promoted_us = release(plan, window, home, first)
    scale(plan, home, window, requests, promoted_us)
    scale(plan, away, window, requests, None)


def release(plan: Plan, window: Window, pool: Pool, old: Replica) -> int:
    """A canary of the new version beside the old one for a day and a half, then a rollout; returns when that began."""
    machinery = plan.machinery
    begins_us = window.day_start_us(working_day(window, 0.55)) + 8 * HOUR + 30 * MINUTE
    promoted_us = begins_us + 36 * HOUR
    canary = machinery.launch(POOLS["llm-us-east-1/qwen3-32b-canary"], begins_us)
    canary.weight = CANARY_WEIGHT
    if promoted_us + HOUR < window.as_of_us:
        drain(canary, promoted_us)
        new = machinery.launch(pool, promoted_us, NEW_VERSION)
        drain(old, new.lives[0].ready_us + 20 * SECOND)
        where = {"cluster": pool.cluster, "pool": pool.name, "pod": new.pod, "node": new.node.name}
        plan.events.append(
            Event("rollout", promoted_us, new.lives[0].ready_us, where, {"from": pool.version, "to": NEW_VERSION})
        )
    where = {"cluster": pool.cluster, "pool": canary.pool.name, "pod": canary.pod, "node": canary.node.name}
    details: dict[str, object] = {"version": NEW_VERSION, "beside": pool.version, "weight": str(CANARY_WEIGHT)}
    plan.events.append(Event("canary", begins_us, min(promoted_us, window.as_of_us), where, details))
    return promoted_us


def separated(plan: Plan, window: Window, requests: np.ndarray) -> None:
    """The large model: prefill and decode share a p5; a second decode replica works in office hours; one crash."""
    machinery = plan.machinery
    prefill = POOLS["llm-us-east-1/gpt-oss-120b-prefill"]
    decode = POOLS["llm-us-east-1/gpt-oss-120b-decode"]
    node = machinery.node(prefill.cluster, prefill.instance_type, prefill.purchase, window.start_us)
    machinery.replica(prefill, node)
    base = machinery.replica(decode, node)
    for day in range(window.days):
        if window.weekday(day) < 5:
            start_us, end_us = (window.day_start_us(day) + at_us for at_us in SECOND_DECODE)
            second = machinery.launch(decode, start_us)
            drain(second, end_us)
            where = {"cluster": decode.cluster, "pool": decode.name, "pod": second.pod, "node": second.node.name}
            plan.events.append(Event("scale_up", start_us, second.lives[0].ready_us, where, {"schedule": "weekdays"}))
            plan.events.append(Event("scale_down", end_us, None, where, {"schedule": "weekdays"}))
    if window.days >= 2:
        afternoon_us = window.day_start_us(working_day(window, 0.4)) + 14 * HOUR
        crash_us = busiest(requests, decode, afternoon_us, afternoon_us + HOUR)
        machinery.restart(base, crash_us)
        where = {"cluster": decode.cluster, "pool": decode.name, "pod": base.pod, "node": node.name}
        plan.events.append(Event("engine_restart", crash_us, base.lives[-1].ready_us, where, {}))
    weekend = [day for day in range(window.days) if window.weekday(day) >= 5]
    if weekend:
        # the first whole or begun week-end of the window
        ends = next((day for day in weekend if day + 1 not in weekend), weekend[-1])
        start_us, end_us = window.day_start_us(weekend[0]), window.day_start_us(ends) + DAY
        plan.events.append(
            Event(
                "idle_weekend",
                start_us,
                end_us,
                {"cluster": decode.cluster, "node": node.name},
                {"days": ends + 1 - weekend[0]},
            )
        )


def nightly(plan: Plan, window: Window, requests: np.ndarray) -> None:
    """Spot nodes for the night's documents; one is taken back by AWS in the middle of its work."""
    interrupted = int(window.days * 0.6) if window.days >= 2 else -1
    for day in range(window.days):
        for key in ("llm-us-east-1/qwen3-14b-batch", "llm-eu-west-1/qwen3-14b-batch"):
            pool = POOLS[key]
            begins_us = max(window.start_us, window.day_start_us(day) + BATCH_FROM)
            replicas = [plan.machinery.launch(pool, begins_us + number * 7 * SECOND) for number in range(pool.most)]
            for number, replica in enumerate(replicas):
                if day == interrupted and number == 0 and pool.most > 1:
                    night_us = window.day_start_us(day) + HOUR
                    take_back(plan, replica, busiest(requests, pool, night_us, night_us + HOUR))
                else:
                    drain(replica, window.day_start_us(day) + BATCH_UNTIL)


def take_back(plan: Plan, replica: Replica, at_us: int) -> None:
    plan.machinery.lose(replica, at_us)
    where = {
        "cluster": replica.pool.cluster,
        "pool": replica.pool.name,
        "pod": replica.pod,
        "node": replica.node.name,
    }
    plan.events.append(Event("spot_interruption", at_us, None, where, {"fails_over_to": "llm-eu-west-1"}))


def dark_hours(plan: Plan, window: Window) -> None:
    """Scrapes that nobody made: 40 minutes of one Prometheus, some minutes of single targets."""
    if window.days < 2:
        return
    start_us = window.day_start_us(working_day(window, 0.7)) + 11 * HOUR + 4 * MINUTE
    plan.blackouts.append(Blackout("llm-eu-west-1", None, start_us, start_us + 40 * MINUTE))
    plan.events.append(Event("metrics_outage", start_us, start_us + 40 * MINUTE, {"cluster": "llm-eu-west-1"}, {}))
    for name, fraction, minutes in (("qwen3-32b", 0.2, 7), ("gpt-oss-120b-prefill", 0.5, 5), ("qwen3-32b", 0.8, 11)):
        start_us = window.day_start_us(working_day(window, fraction)) + 15 * HOUR + 33 * MINUTE
        cluster = "llm-us-east-1"
        there = [
            replica
            for replica in plan.machinery.replicas
            if (replica.pool.name, replica.pool.cluster) == (name, cluster)
            and replica.lives[0].ready_us < start_us - HOUR
            and replica.lives[-1].closed_us > start_us + HOUR
        ]
        if there:
            plan.blackouts.append(Blackout(cluster, there[0].pod, start_us, start_us + minutes * MINUTE))
            where = {"cluster": cluster, "pool": name, "pod": there[0].pod}
            plan.events.append(Event("scrape_gap", start_us, start_us + minutes * MINUTE, where, {}))
