"""What became of a replica's time, minute by minute, and the exact GPU time of each piece of work."""

import numpy as np

from demo.clock import MINUTE
from demo.fleet.attempts import Attempt, Leg
from demo.fleet.jobs import SHARE_BITS
from demo.fleet.nodes import Life, Replica

MINUTE_ROW = np.dtype(
    [
        ("minute_us", "i8"),
        ("held_us", "i8"),  # the pod holds its GPUs
        ("ready_us", "i8"),  # the engine serves, or could
        ("running_us", "i8"),  # at least one request runs
        ("step_us", "i8"),  # the engine steps: the GPUs work
        ("computed", "i8"),  # prompt tokens
        ("generated", "i8"),
    ]
)


def overlap(minutes_us: np.ndarray, start_us: int, end_us: int) -> np.ndarray:
    """Microseconds of each minute that lie within [start, end)."""
    return (np.minimum(minutes_us + MINUTE, end_us) - np.maximum(minutes_us, start_us)).clip(0)


def minutes(replica: Replica, until_us: int) -> np.ndarray:
    """The replica's minutes (MINUTE_ROW) up to `until_us`, from the one in which its pod was bound."""
    end_us = min(replica.ended_us, until_us)
    if replica.bound_us >= end_us:
        return np.zeros(0, dtype=MINUTE_ROW)
    first = replica.bound_us // MINUTE
    rows = np.zeros((end_us - 1) // MINUTE - first + 1, dtype=MINUTE_ROW)
    rows["minute_us"] = (first + np.arange(len(rows))) * MINUTE
    rows["held_us"] = overlap(rows["minute_us"], replica.bound_us, end_us)
    for life in replica.lives:
        life_end_us = min(life.ended_us, end_us)
        if life.started_us < life_end_us:
            rows["ready_us"] += overlap(rows["minute_us"], life.ready_us, life_end_us)
            _add_work(rows, first, life, life_end_us)
    return rows


def _add_work(rows: np.ndarray, first: int, life: Life, end_us: int) -> None:
    """Differences of the life's cumulative times between full minutes, each rounded down so that they add up."""
    marks = life.snapshots[life.snapshots["at_ns"] % (MINUTE * 1000) == 0]
    slot = np.append(marks["at_ns"] // (MINUTE * 1000) - 1, (end_us - 1) // MINUTE) - first
    totals = {
        "running_us": np.append(marks["running_ns"], life.running_ns) // 1000,
        "step_us": np.append(marks["stepping_ns"], life.stepping_ns) // 1000,
        "computed": np.append(marks["computed"], marks["computed"][-1:]),
        "generated": np.append(marks["generation"], marks["generation"][-1:]),
    }
    for name, total in totals.items():
        if len(total) == len(slot):
            np.add.at(rows[name], slot, np.diff(total, prepend=0))


def legs_by_life(attempts: list[Attempt]) -> dict[int, list[Leg]]:
    """All work, by the process that did it (`id` of the life), in order of the jobs."""
    found: dict[int, list[Leg]] = {}
    for attempt in attempts:
        for leg in attempt.legs:
            found.setdefault(id(leg.life), []).append(leg)
    for legs in found.values():
        legs.sort(key=lambda leg: leg.job.number)
    return found


def measure(attempts: list[Attempt]) -> None:
    """Give every leg its GPU-microseconds: whole numbers that add up to each process's stepping time x GPUs.

    Running totals are rounded down, not the parts; what equal shares leave over is far below a microsecond.
    """
    for legs in legs_by_life(attempts).values():
        unit = 1000 << SHARE_BITS
        gpus, total = legs[0].replica.spec.gpus, legs[0].life.left_over
        edge = 0
        for leg in legs:
            parts = []
            for share in leg.job.used_shares:
                total += share
                reached = total * gpus // unit
                parts.append(reached - edge)
                edge = reached
            leg.gpu_us = (parts[0], parts[1], parts[2])
