"""Run the fleet: route every request, simulate every engine, fail over, and close what is left at the end."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from demo.clock import HOUR, MINUTE, SECOND, Window
from demo.fleet import demand, plan, routing
from demo.fleet.attempts import TO_ENGINE_NS, Attempt, Leg, Outcome
from demo.fleet.catalogue import ADAPTERS, CLUSTERS, DAYS, ROUTES
from demo.fleet.engine import Engine
from demo.fleet.jobs import Job, State
from demo.fleet.nodes import FOREVER, Life, Node, Replica
from demo.fleet.scrapes import scrape_times
from demo.simulation import generator

KV_TRANSFER_NS, KV_TRANSFER_TOKEN_NS = 3_000_000, 1_300
"""From a prefill to a decode engine: set-up, and per token of context."""

DRAIN = 2 * HOUR
FAIL_OVER_US = 400_000

Rows = dict[str, list[int]]


@dataclass
class Fleet:
    """All that happened. `requests`: demand.REQUEST rows; `attempts` in order of start."""

    window: Window
    requests: np.ndarray
    attempts: list[Attempt]
    plan: plan.Plan

    @property
    def nodes(self) -> list[Node]:
        return self.plan.machinery.nodes

    @property
    def replicas(self) -> list[Replica]:
        return self.plan.machinery.replicas


def simulate(seed: int, window: Window, scale: float) -> Fleet:
    """The fleet's last days of the window; all of it if that is shorter."""
    days = demand.days_of(window, DAYS)
    requests = demand.generate(seed, days, scale)
    laid_out = plan.draw_up(generator(seed, "fleet plan"), days, requests)
    fleet = Fleet(days, requests, [], laid_out)
    _Operation(fleet).run()
    fleet.attempts.sort(key=lambda attempt: (attempt.start_us, attempt.request, attempt.number))
    return fleet


class _Operation:
    """One run. Regions fail over in one direction, so a region is complete before the next one begins."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self.rows: Rows = {name: fleet.requests[name].tolist() for name in fleet.requests.dtype.names or ()}
        self.until_us = fleet.window.as_of_us
        self.jobs = 0

    def run(self) -> None:
        waiting: dict[int, list[Attempt]] = {number: [] for number in range(len(ROUTES))}
        for cluster in range(len(CLUSTERS)):
            for route in range(len(ROUTES)):
                requests = self.fleet.requests
                mine = np.flatnonzero((requests["cluster"] == cluster) & (requests["route"] == route)).tolist()
                attempts = [self._attempt(row, 0, cluster, self.rows["at_us"][row]) for row in mine]
                attempts = sorted([*attempts, *waiting[route]], key=lambda one: (one.start_us, one.request))
                served = self._serve(route, cluster, attempts)
                waiting[route] = self._fail_over(route, cluster, attempts) if served else []
                self.fleet.attempts += attempts
        for replica in self.fleet.replicas:
            self._finish(replica)

    def _attempt(self, row: int, number: int, cluster: int, start_us: int) -> Attempt:
        time_out, cancel = self.rows["time_out_us"][row], self.rows["cancel_us"][row]
        cancels = 0 < cancel < time_out
        return Attempt(row, number, cluster, start_us, start_us + (cancel if cancels else time_out), cancels)

    def _fail_over(self, route: int, cluster: int, attempts: list[Attempt]) -> list[Attempt]:
        """What failed is tried in the next region, where the route is served there and the gateway knows of it."""
        if cluster + 1 >= len(CLUSTERS) or not self._replicas(route, cluster + 1):
            return []
        again = []
        for attempt in attempts:
            failed = attempt.outcome in (Outcome.TIMED_OUT, Outcome.LOST, Outcome.UNAVAILABLE)
            if failed and self.rows["credential"][attempt.request] >= 0:
                later_us = attempt.end_us + FAIL_OVER_US + attempt.request % 1000 * 100
                if later_us < self.until_us:
                    again.append(self._attempt(attempt.request, attempt.number + 1, cluster + 1, later_us))
        return again

    def _replicas(self, route: int, cluster: int, *roles: str) -> list[Replica]:
        name, place = demand.ROUTE_NAMES[route], demand.CLUSTER_NAMES[cluster]
        return [
            replica
            for replica in self.fleet.replicas
            if replica.pool.route == name
            and replica.pool.cluster == place
            and (not roles or replica.pool.role in roles)
        ]

    def _serve(self, route: int, cluster: int, attempts: list[Attempt]) -> bool:
        """Simulate a route on a cluster; False if it is not served there."""
        first = self._replicas(route, cluster, "mixed", "batch", "prefill")
        if not first:
            return False
        second = self._replicas(route, cluster, "decode")
        arrivals = [(attempt, attempt.start_us * 1000 + TO_ENGINE_NS) for attempt in attempts]
        self._stage(first, arrivals, self._prefill_job if second else self._whole_job)
        if second:
            handed = []
            for attempt in attempts:
                if attempt.legs and attempt.legs[-1].job.state == State.DONE:
                    job = attempt.legs[-1].job
                    handed.append((attempt, job.end_ns + KV_TRANSFER_NS + KV_TRANSFER_TOKEN_NS * job.prompt))
            handed = [(one, at_ns) for one, at_ns in handed if at_ns // 1000 < min(one.give_up_us, self.until_us)]
            self._stage(second, sorted(handed, key=lambda one: (one[1], one[0].request)), self._decode_job)
        for attempt in attempts:
            attempt.close()
            if second and attempt.outcome == Outcome.SUCCESS and len(attempt.legs) == 1:
                self._between(attempt)
        return True

    def _between(self, attempt: Attempt) -> None:
        """Prefilled, but never decoded: the caller gave up, or no decode engine was there, or time is up."""
        if attempt.give_up_us >= self.until_us:
            attempt.outcome = Outcome.RUNNING
        elif attempt.give_up_us <= attempt.legs[0].job.end_ns // 1000 + SECOND:
            attempt.outcome = Outcome.CANCELLED if attempt.cancels else Outcome.TIMED_OUT
            attempt.end_us = attempt.give_up_us
        else:
            attempt.outcome = Outcome.LOST

    def _stage(
        self,
        replicas: list[Replica],
        arrivals: list[tuple[Attempt, int]],
        make: Callable[[Attempt, int], Job],
    ) -> None:
        """Route the arrivals to the replicas' processes and simulate each of these."""
        found = routing.lives_of(replicas)
        at_us = np.array([at_ns // 1000 for _, at_ns in arrivals], dtype=np.int64)
        trace = np.array([self.rows["trace"][attempt.request] for attempt, _ in arrivals], dtype=np.int64)
        chosen = routing.choose(found, at_us, trace).tolist()
        queues: list[list[Job]] = [[] for _ in found]
        for (attempt, at_ns), number in zip(arrivals, chosen, strict=True):
            if number != routing.NOBODY:
                job = make(attempt, at_ns)
                queues[number].append(job)
                attempt.legs.append(Leg(job, *found[number]))
        for (replica, life), jobs in zip(found, queues, strict=True):
            self._run(replica, life, jobs)

    def _job(self, attempt: Attempt, at_ns: int, output: int) -> Job:
        row, get = attempt.request, self.rows
        self.jobs += 1
        caller, served = get["caller"][row], get["served"][row]
        return Job(
            number=self.jobs,
            arrive_ns=at_ns,
            prompt=get["prompt"][row],
            output=output,
            # an adapter's keys and values are its own: the served name is part of the hash
            system_chain=(caller, served),
            system_tokens=get["system_tokens"][row],
            chain=(get["trace"][row], get["lap"][row], caller, served),
            shared_tokens=get["shared"][row],
            adapter=get["adapter"][row],
            abort_ns=attempt.give_up_us * 1000 + TO_ENGINE_NS,
            ends_by_length=get["by_length"][row],
        )

    def _whole_job(self, attempt: Attempt, at_ns: int) -> Job:
        return self._job(attempt, at_ns, self.rows["output"][attempt.request])

    def _prefill_job(self, attempt: Attempt, at_ns: int) -> Job:
        """A prefill engine is asked for one token."""
        job = self._job(attempt, at_ns, 1)
        job.ends_by_length = True
        return job

    def _decode_job(self, attempt: Attempt, at_ns: int) -> Job:
        job = self._job(attempt, at_ns, self.rows["output"][attempt.request])
        job.transferred = True
        return job

    def _run(self, replica: Replica, life: Life, jobs: list[Job]) -> None:
        if life.started_us >= self.until_us:
            return
        stop_us = min(life.ended_us, life.closed_us + DRAIN, self.until_us)
        marks = sorted({*scrape_times(replica, life.ready_us, stop_us), *range_minutes(life.started_us, stop_us)})
        adapters = len(ADAPTERS) if replica.pool.route == "qwen3-32b" else 0
        engine = Engine(replica.spec, life.started_us * 1000, [at_us * 1000 for at_us in marks], adapters)
        engine.run(jobs, stop_us * 1000)
        engine.end(stop_us * 1000, life.dies)
        life.snapshots = engine.counters.table()
        life.left_over = engine.batch.left_over
        life.running_ns, life.stepping_ns = engine.counters.running_ns, engine.counters.stepping_ns
        if not life.dies and life.closed_us < self.until_us:
            last_us = max(life.closed_us + 30 * SECOND, engine.last_end_ns // 1000 + 5 * SECOND)
            life.ended_us = min(last_us, self.until_us)

    def _finish(self, replica: Replica) -> None:
        """A pod that has served its last request is gone, and its node soon after."""
        last = replica.lives[-1]
        if replica.ended_us == FOREVER and last.ended_us < self.until_us:
            replica.ended_us = last.ended_us
            others = [other for other in self.fleet.replicas if other.node is replica.node and other is not replica]
            if not others:
                replica.node.ended_us = replica.ended_us + 75 * SECOND
        for life in replica.lives:
            life.snapshots = life.snapshots[life.snapshots["at_ns"] <= life.ended_us * 1000]


def range_minutes(start_us: int, end_us: int) -> range:
    """Every full minute in [start, end), and the first after the end."""
    return range((start_us // MINUTE + 1) * MINUTE, end_us + MINUTE, MINUTE)
