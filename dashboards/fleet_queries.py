"""What the page of the own fleet asks beside the measures: its pools, hours on the local clock, weeks of reference."""

from datetime import date

import pandas as pd

from dashboards.queries import cached, frame, table
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

# Measures of idle money by cause, and what each is called in a sentence.
IDLE = {
    "fleet_no_traffic_cost_usd": "replicas without traffic",
    "fleet_not_requested_cost_usd": "GPUs that no pod requested",
    "fleet_starting_cost_usd": "engines that were starting",
    "fleet_stopping_cost_usd": "engines that were stopping",
    "fleet_not_in_cluster_cost_usd": "machines outside the cluster",
}
# Beyond this many days a chart over time has a point a day, else a point an hour.
HOURLY_DAYS = 3


@cached
def exists(snapshot: Snapshot) -> bool:
    """Whether the reader's part of the ledger, or a metric, knows GPUs of the own fleet, in any period."""
    found = snapshot.sql(
        "SELECT EXISTS (FROM cost_day WHERE cluster IS NOT NULL OR provider = 'self-hosted') OR EXISTS (FROM pool_hour)"
    )
    return bool(found.column(0)[0].as_py())


@cached
def choices(snapshot: Snapshot) -> dict[str, tuple[str | None, ...]]:
    """Clusters and pools of the whole snapshot; None is what belongs to nodes and not to a pool."""
    return {
        name: tuple(
            snapshot.sql(f"SELECT DISTINCT {name} AS value FROM pool_hour ORDER BY 1 NULLS LAST").column(0).to_pylist()
        )
        for name in ("cluster", "pool")
    }


def over_time(snapshot: Snapshot, names: tuple[str, ...], where: Filters, by: tuple[str, ...] = ()) -> pd.DataFrame:
    """Measures by `at`: days, or hours in the reporting zone where the period is short."""
    assert where.first_day is not None
    assert where.last_day is not None
    if (where.last_day - where.first_day).days + 1 > HOURLY_DAYS:
        found = table(snapshot, names, ("day", *by), where)
        return found.assign(at=pd.to_datetime(found["day"])).drop(columns="day")
    return local_hours(snapshot, table(snapshot, names, ("hour", *by), where)).drop(columns="hour")


def local_hours(snapshot: Snapshot, found: pd.DataFrame) -> pd.DataFrame:
    """The frame with `at`: its UTC hours on the clocks of the reporting zone."""
    at = pd.to_datetime(found["hour"]).dt.tz_localize("UTC").dt.tz_convert(snapshot.zone).dt.tz_localize(None)
    return found.assign(at=at)


@cached
def references(snapshot: Snapshot, first: date, last: date) -> pd.DataFrame:
    """Per pool and week (from Monday, UTC) with busy time: whether any of it was found under-used."""
    return frame(
        snapshot.sql(
            """
            SELECT cluster, pool, CAST(date_trunc('week', hour) AS DATE) AS week,
                coalesce(sum(under_used_nano), 0) > 0 AS has_under_used
            FROM pool_hour
            WHERE pool IS NOT NULL AND day BETWEEN ? AND ? AND busy_gpu_ms > 0 AND effective_nano IS NOT NULL
            GROUP BY ALL ORDER BY week, cluster, pool
            """,
            [first, last],
        )
    )
