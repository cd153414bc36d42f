"""The truth about the fleet: every piece of work, every replica's minutes, every node's hours. Whole numbers only."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from demo.clock import HOUR
from demo.fleet.attempts import Attempt, Leg
from demo.fleet.callers import CALLERS
from demo.fleet.catalogue import CLUSTERS
from demo.fleet.costs import NodeHour
from demo.fleet.demand import CLUSTER_NAMES, ROUTE_NAMES, SERVED
from demo.fleet.gateway import FleetNames
from demo.fleet.nodes import Replica
from demo.fleet.operate import Fleet
from demo.people import CREDENTIALS

Prices = dict[tuple[str, int], tuple[int, int]]
"""(instance id, hour) -> (cost in nano-dollars, GPU-microseconds billed)."""

Minutes = list[tuple[Replica, np.ndarray]]


def prices(hours: list[NodeHour]) -> Prices:
    """Effective price of every GPU node and hour."""
    return {
        (hour.node.instance_id, hour.hour_us): (
            hour.effective_nano,
            hour.seconds * 1_000_000 * hour.node.instance_type.gpus,
        )
        for hour in hours
        if hour.node.instance_type.gpus
    }


def price_legs(fleet: Fleet, priced: Prices) -> None:
    """The cost of each leg: its GPU time at its node's price in the hour in which it ended."""
    for attempt in fleet.attempts:
        for leg in attempt.legs:
            last_us = min(leg.job.end_ns // 1000, fleet.window.as_of_us - 1, leg.replica.node.ended_us - 1)
            cost, gpu_us = priced[leg.replica.node.instance_id, last_us // HOUR * HOUR]
            leg.cost_nano = sum(leg.gpu_us) * cost // gpu_us


def _times(at_us: Sequence[int | None] | np.ndarray) -> pa.Array:
    return pa.array(at_us, type=pa.int64()).cast(pa.timestamp("us", tz="UTC"))


def requests(fleet: Fleet, names: FleetNames) -> pa.Table:
    """One row per attempt and engine that worked on it; one without an engine where none was ready."""
    rows: list[tuple[int, Attempt, Leg | None]] = []
    for number, attempt in enumerate(fleet.attempts):
        legs: Sequence[Leg | None] = attempt.legs or [None]
        rows += [(number, attempt, leg) for leg in legs]
    get = {column: fleet.requests[column].tolist() for column in fleet.requests.dtype.names or ()}
    of = [attempt.request for _, attempt, _ in rows]
    callers = [CALLERS[get["caller"][row]] for row in of]
    keys = [get["credential"][row] for row in of]
    processed = [tokens_of(leg) for _, _, leg in rows]
    gpu = [leg.gpu_us if leg else (0, 0, 0) for _, _, leg in rows]
    clusters = [CLUSTER_NAMES[attempt.cluster] for _, attempt, _ in rows]
    until_us = fleet.window.as_of_us
    ended = [attempt.end_us if attempt.end_us < until_us else None for _, attempt, _ in rows]
    return pa.table(
        {
            "id": pa.array([names.record[number] for number, _, _ in rows], type=pa.string()),
            "request": pa.array(of, type=pa.int64()),
            "attempt": pa.array([attempt.number for _, attempt, _ in rows], type=pa.int64()),
            "litellm_call_id": pa.array([names.operation[row] for row in of]),
            "trace_id": pa.array([names.trace[row] for row in of]),
            "task": pa.array([names.trace[row] if get["task"][row] else None for row in of], type=pa.string()),
            "team": pa.array([caller.team for caller in callers]),
            "app": pa.array([caller.app for caller in callers]),
            "environment": pa.array(
                [CREDENTIALS[key].environment if key >= 0 else None for key in keys], type=pa.string()
            ),
            "bypassed": pa.array([not caller.logged for caller in callers]),
            "status": pa.array([attempt.outcome.name.lower() for _, attempt, _ in rows]),
            "route": pa.array([ROUTE_NAMES[get["route"][row]] for row in of]),
            "model": pa.array([SERVED[get["served"][row]] for row in of]),
            "cluster": pa.array(clusters),
            "region": pa.array([CLUSTERS[cluster].region for cluster in clusters]),
            "pool": pa.array([leg.replica.pool.name if leg else None for _, _, leg in rows], type=pa.string()),
            "role": pa.array([leg.replica.pool.role if leg else None for _, _, leg in rows], type=pa.string()),
            "pod": pa.array([leg.replica.pod if leg else None for _, _, leg in rows], type=pa.string()),
            "node": pa.array([leg.replica.node.name if leg else None for _, _, leg in rows], type=pa.string()),
            "started_at": _times([attempt.start_us for _, attempt, _ in rows]),
            "first_token_at": _times([_first_token(leg) for _, _, leg in rows]),
            "ended_at": _times(ended),
            "prompt_tokens": pa.array([get["prompt"][row] for row in of], type=pa.int64()),
            "uncached_input_tokens": pa.array([tokens[0] for tokens in processed], type=pa.int64()),
            "cache_read_tokens": pa.array([tokens[1] for tokens in processed], type=pa.int64()),
            "output_tokens": pa.array([tokens[2] for tokens in processed], type=pa.int64()),
            "preemptions": pa.array([leg.job.preemptions if leg else 0 for _, _, leg in rows], type=pa.int64()),
            "gpu_us_prefill": pa.array([parts[0] for parts in gpu], type=pa.int64()),
            "gpu_us_cached": pa.array([parts[1] for parts in gpu], type=pa.int64()),
            "gpu_us_decode": pa.array([parts[2] for parts in gpu], type=pa.int64()),
            "cost_nano": pa.array([leg.cost_nano if leg else 0 for _, _, leg in rows], type=pa.int64()),
        }
    )


def _first_token(leg: Leg | None) -> int | None:
    """When the engine had the first token of its own."""
    return leg.job.first_token_ns // 1000 if leg and leg.job.first_token_ns else None


def tokens_of(leg: Leg | None) -> tuple[int, int, int]:
    """Uncached input, cache read and output that an engine really processed.

    A prefill engine's one token is not the caller's, and a decode engine computes of the prompt only its last token.
    """
    if leg is None:
        return 0, 0, 0
    job, role = leg.job, leg.replica.pool.role
    if role == "decode":
        return 0, 0, job.generated
    computed = job.prompt - job.cached if job.counted else max(0, job.computed - job.cached)
    return computed, job.cached, 0 if role == "prefill" else job.generated


def replica_minutes(minutes: Minutes, priced: Prices) -> pa.Table:
    """One row per replica and minute in which its pod holds GPUs; its cost: those GPUs at the node's price."""
    parts = []
    for replica, rows in minutes:
        if not len(rows):
            continue
        node = replica.node
        cost = []
        for minute_us, held_us in zip(rows["minute_us"].tolist(), rows["held_us"].tolist(), strict=True):
            of_hour, gpu_us = priced[node.instance_id, minute_us // HOUR * HOUR]
            cost.append(held_us * replica.spec.gpus * of_hour // gpu_us)
        n = len(rows)
        parts.append(
            pa.table(
                {
                    "cluster": pa.array([node.cluster.name] * n),
                    "node": pa.array([node.name] * n),
                    "instance_id": pa.array([node.instance_id] * n),
                    "pod": pa.array([replica.pod] * n),
                    "route": pa.array([replica.pool.route] * n),
                    "pool": pa.array([replica.pool.name] * n),
                    "role": pa.array([replica.pool.role] * n),
                    "version": pa.array([replica.version] * n),
                    "gpus": pa.array([replica.spec.gpus] * n, type=pa.int64()),
                    "minute": _times(rows["minute_us"]),
                    **{name: pa.array(rows[name]) for name in ("held_us", "ready_us", "running_us", "step_us")},
                    "cost_nano": pa.array(cost, type=pa.int64()),
                }
            )
        )
    return pa.concat_tables(parts)


def requested(minutes: Minutes) -> Counter[tuple[str, int]]:
    """GPU-microseconds that pods requested, per instance and hour."""
    found: Counter[tuple[str, int]] = Counter()
    for replica, rows in minutes:
        hours, position = np.unique(rows["minute_us"] // HOUR * HOUR, return_inverse=True)
        held = np.zeros(len(hours), dtype=np.int64)
        np.add.at(held, position, rows["held_us"] * replica.spec.gpus)
        for hour_us, held_us in zip(hours.tolist(), held.tolist(), strict=True):
            found[replica.node.instance_id, hour_us] += held_us
    return found


def node_hours(hours: list[NodeHour], minutes: Minutes, billed_until_us: int) -> pa.Table:
    """One row per node and hour: what it costs (instance lines only), and how much of its GPUs pods requested."""
    held = requested(minutes)
    return pa.table(
        {
            "cluster": pa.array([hour.node.cluster.name for hour in hours]),
            "node": pa.array([hour.node.name for hour in hours]),
            "instance_id": pa.array([hour.node.instance_id for hour in hours]),
            "instance_type": pa.array([hour.node.instance_type.name for hour in hours]),
            "class": pa.array(["gpu" if hour.node.instance_type.gpus else "system" for hour in hours]),
            "purchase": pa.array([hour.node.purchase for hour in hours]),
            "hour": _times([hour.hour_us for hour in hours]),
            "seconds_billed": pa.array([hour.seconds for hour in hours], type=pa.int64()),
            "covered_seconds": pa.array([hour.covered_s for hour in hours], type=pa.int64()),
            "gpus": pa.array([hour.node.instance_type.gpus for hour in hours], type=pa.int64()),
            "gpu_us_requested": pa.array(
                [held[hour.node.instance_id, hour.hour_us] for hour in hours], type=pa.int64()
            ),
            "cost_nano": pa.array([hour.effective_nano for hour in hours], type=pa.int64()),
            "in_bill": pa.array([hour.hour_us < billed_until_us for hour in hours]),
        }
    )
