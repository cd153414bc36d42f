"""The own GPU fleet in a summary: managed and self-hosted side by side, pools, and money that did nothing."""

from dataclasses import replace
from decimal import Decimal

from inferledger.figures import exact
from inferledger.rows import Facts
from inferledger.summary_tables import figures_row
from warehouse import measures
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

SELF_HOSTED = "self-hosted"
COST = (
    "fully_loaded_cost_usd",
    "usage_cost_usd",
    "under_used_cost_usd",
    "idle_cost_usd",
    "unmeasured_cost_usd",
    "shared_cost_usd",
    "unattributed_cost_usd",
    "estimated_cost_usd",
    "cost_per_mtok_usd",
    "fully_loaded_cost_per_mtok_usd",
)
USE = ("total_tokens", "requests")
UNKNOWN = "unknown_cost_tokens"
POOL = (
    "fleet_cost_usd",
    "fleet_productive_cost_usd",
    "fleet_under_used_cost_usd",
    "fleet_idle_cost_usd",
    "fleet_unmeasured_cost_usd",
    "fleet_shared_cost_usd",
    "fleet_no_log_cost_usd",
    "gpu_ms",
    "gpu_busy_share",
    "engine_cost_per_mtok_usd",
)


def fleet(snapshot: Snapshot, where: Filters) -> Facts | None:
    """None where there is no fleet. Over `managed`, `self_hosted` and `beside`, fully loaded cost adds up to the whole.

    `beside`: support, tax and credits, which are of the whole bill. Pools are None for readers of some teams.
    """
    by_provider = measures.table(snapshot, USE, ("provider",), where).to_pylist()
    providers = {row["provider"] for row in by_provider} | {
        row["provider"] for row in measures.table(snapshot, ["effective_cost_usd"], ("provider",), where).to_pylist()
    }
    if SELF_HOSTED not in providers:
        return None
    others = tuple(sorted((name for name in providers if name not in (SELF_HOSTED, None)), key=str))
    own = measures.table(snapshot, [*COST, *USE, UNKNOWN], where=replace(where, provider=(SELF_HOSTED,))).to_pylist()[0]
    managed = _managed(snapshot, replace(where, provider=others)) if others else dict.fromkeys((*COST, *USE))
    for name in USE:
        managed[name] = sum(row[name] or 0 for row in by_provider if row["provider"] != SELF_HOSTED)
    whole = measures.table(snapshot, ["fully_loaded_cost_usd"], where=where).to_pylist()[0]["fully_loaded_cost_usd"]
    parts = [row["fully_loaded_cost_usd"] or Decimal(0) for row in (own, managed)]
    return {
        "managed": figures_row(managed),
        "self_hosted": figures_row(own),
        "beside": {"fully_loaded_cost": exact((whole or Decimal(0)) - sum(parts))},
        "idle_by_cause": _by_reason(snapshot, where, "idle_cost_usd"),
        "pools": _pools(snapshot, where),
        "unknown_counters": _unknown_counters(snapshot, where),
    }


def _managed(snapshot: Snapshot, where: Filters) -> Facts:
    """What model APIs cost; the rest of those providers' bills is of another class."""
    found = measures.table(snapshot, COST, ("line_class",), where).to_pylist()
    nothing: Facts = dict.fromkeys(COST)
    return next(({name: row[name] for name in COST} for row in found if row["line_class"] == "model_api"), nothing)


def _by_reason(snapshot: Snapshot, where: Filters, measure: str) -> dict[str, str]:
    found = measures.table(snapshot, [measure], ("reason",), where, f"-{measure}").to_pylist()
    return {str(row["reason"]): str(exact(row[measure])) for row in found if row[measure]}


def _pools(snapshot: Snapshot, where: Filters) -> list[Facts] | None:
    """Pools, dearest first; pool None: nodes of a cluster, as far as no pool held them."""
    if snapshot.scope.teams is not None:
        return None
    found = measures.table(snapshot, POOL, ("cluster", "model", "pool"), where, "-fleet_cost_usd").to_pylist()
    return [_pool(row) for row in found if row["fleet_cost_usd"] or row["gpu_ms"]]


def _pool(row: Facts) -> Facts:
    hours = None if row["gpu_ms"] is None else exact(round(Decimal(row["gpu_ms"]) / 3_600_000, 6))
    figures = figures_row({name: value for name, value in row.items() if name != "gpu_ms"})
    return {**{name.removeprefix("fleet_"): value for name, value in figures.items()}, "gpu_hours": hours}


def _unknown_counters(snapshot: Snapshot, where: Filters) -> int | None:
    if snapshot.scope.teams is not None:
        return None
    found = measures.table(snapshot, ["unknown_counter_starts"], where=where).to_pylist()[0]
    return int(found["unknown_counter_starts"] or 0)
