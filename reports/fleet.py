"""What the own GPU fleet cost on a day: by state, by pool, and what did nothing, with its cause."""

from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

from reports.figures import Fleet, Idle, Pool
from reports.series import Series
from warehouse.measures import Filters, table
from warehouse.snapshot import Snapshot

IDLE = "idle_cost_usd"
STATES = ("fleet_cost_usd", "fleet_idle_cost_usd", "fleet_under_used_cost_usd", "fleet_unmeasured_cost_usd")
WANTED = (*STATES, "gpu_ms", "gpu_unbilled_ms", "gpu_busy_share", "engine_cost_per_mtok_usd")
NAMES = ("cluster", "model", "pool")


def gather(snapshot: Snapshot, series: Series, top: int, day: date) -> Fleet | None:
    """None where there is no fleet on that day, and for a report of some teams: idle money is nobody's."""
    if snapshot.scope.teams is not None:
        return None
    on = Filters(first_day=day, last_day=day)
    rows = table(snapshot, WANTED, NAMES, on, order="-fleet_cost_usd").to_pylist()
    if not any(row["fleet_cost_usd"] or row["gpu_ms"] for row in rows):
        return None
    [whole] = table(snapshot, WANTED, where=on).to_pylist()
    causes = table(snapshot, [IDLE], ("cluster", "model", "pool", "reason"), on, order=f"-{IDLE}").to_pylist()
    idle = [Idle(_names(row), str(row["reason"]), row[IDLE]) for row in causes if row[IDLE]]
    pools = [_pool(row) for row in rows if row["pool"] is not None]
    priced = [pool for pool in pools if pool.per_mtok is not None]
    cost, compared = whole["fleet_cost_usd"], series.compare(day, IDLE)
    return Fleet(
        cost=cost,
        # no idle money on a bill that has not come yet is not the same as none
        idle=compared if cost is not None else replace(compared, now=None),
        unbilled_gpu_hours=Decimal(whole["gpu_unbilled_ms"] or 0) / 3_600_000,
        under_used=whole["fleet_under_used_cost_usd"],
        unmeasured=whole["fleet_unmeasured_cost_usd"],
        busy_share=whole["gpu_busy_share"],
        causes=tuple(idle[:top]),
        other_causes=len(idle[top:]),
        other_causes_cost=sum((each.cost for each in idle[top:]), Decimal(0)),
        pools=tuple(pools[:top]),
        other_pools=len(pools[top:]),
        dearest=max(priced, key=lambda pool: (pool.per_mtok or 0, pool.names[2] or ""), default=None),
    )


def _names(row: dict[str, Any]) -> tuple[str | None, str | None, str | None]:
    return row["cluster"], row["model"], row["pool"]


def _pool(row: dict[str, Any]) -> Pool:
    return Pool(
        names=_names(row),
        cost=row["fleet_cost_usd"],
        idle=row["fleet_idle_cost_usd"],
        under_used=row["fleet_under_used_cost_usd"],
        unmeasured=row["fleet_unmeasured_cost_usd"],
        busy_share=row["gpu_busy_share"],
        per_mtok=row["engine_cost_per_mtok_usd"],
    )
