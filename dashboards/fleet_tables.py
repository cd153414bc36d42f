"""Tables of the own fleet: pools, causes of idle money, what the weights of tokens leave open."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboards import parts, queries, words
from dashboards.comparison import BY_RATIO, WEIGHED
from dashboards.filters import View
from dashboards.tables import Column, measured, named, table
from warehouse.snapshot import Snapshot

MONEY = ("productive", "under_used", "idle", "unmeasured", "shared")
POOLS = (
    "fleet_cost_usd",
    *(f"fleet_{state}_cost_usd" for state in MONEY),
    "gpu_ms",
    "gpu_busy_share",
    "input_tokens_per_gpu_second",
    "computed_input_tokens_per_gpu_second",
    "output_tokens_per_gpu_second",
    "output_tokens_per_busy_gpu_second",
    "engine_cost_per_mtok_usd",
    "cost_per_gpu_hour_usd",
    "gpu_engine_active_share",
    "gpu_memory_used_share",
    "unknown_counter_starts",
)
NO_POOL = "no pool"


def pools(snapshot: Snapshot, view: View) -> pd.DataFrame:
    """One row per cluster, model, pool and role, the dearest first; `name` tells them apart."""
    frame = queries.table(snapshot, POOLS, ("cluster", "model", "pool", "role"), view.filters)
    frame = _named(frame.sort_values("fleet_cost_usd", ascending=False, na_position="last"))
    # A pool of two roles or routes has a row for each.
    again = frame["name"].duplicated(keep=False)
    frame.loc[again, "name"] += ", " + frame.loc[again, "model"].fillna("") + " " + frame.loc[again, "role"].fillna("")
    return frame


def _named(frame: pd.DataFrame) -> pd.DataFrame:
    """With `name`: the pool, and its cluster where there are several."""
    name = frame["pool"].fillna(NO_POOL)
    many = frame["cluster"].nunique() > 1
    return frame.assign(name=frame["cluster"].fillna("") + " / " + name if many else name)


def show_pools(snapshot: Snapshot, frame: pd.DataFrame) -> None:
    """Money by state, then time and tokens."""
    currency = snapshot.currency
    money = {
        name: measured(name, currency) for name in ("fleet_cost_usd", *(f"fleet_{state}_cost_usd" for state in MONEY))
    }
    table(
        frame,
        {
            "name": named("Pool", pinned=True),
            "model": named("Model", "-"),
            "role": named("Role", "-"),
            **money,
            "cost_per_gpu_hour_usd": measured("cost_per_gpu_hour_usd", currency, "per GPU-hour", absent="-"),
            "engine_cost_per_mtok_usd": measured("engine_cost_per_mtok_usd", currency, "loaded per Mtok", absent="-"),
        },
        empty="No pool.",
        key="pools-cost",
    )
    rate = lambda name, title: measured(name, currency, title, absent="-")  # noqa: E731
    table(
        frame,
        {
            "name": named("Pool", pinned=True),
            "gpu_ms": measured("gpu_ms", currency),
            "gpu_busy_share": measured("gpu_busy_share", currency),
            "input_tokens_per_gpu_second": rate("input_tokens_per_gpu_second", "in per GPU-s"),
            "computed_input_tokens_per_gpu_second": rate("computed_input_tokens_per_gpu_second", "computed in"),
            "output_tokens_per_gpu_second": rate("output_tokens_per_gpu_second", "out per GPU-s"),
            "output_tokens_per_busy_gpu_second": rate("output_tokens_per_busy_gpu_second", "out, busy only"),
            "gpu_engine_active_share": rate("gpu_engine_active_share", "DCGM active"),
            "gpu_memory_used_share": rate("gpu_memory_used_share", "DCGM memory"),
            "unknown_counter_starts": measured("unknown_counter_starts", currency, "Unknown starts"),
        },
        empty="No pool.",
        key="pools-use",
    )


def causes(snapshot: Snapshot, view: View, titles: Mapping[str, str]) -> None:
    """Idle money by pool and cause."""
    names = ("fleet_idle_cost_usd", *titles)
    frame = _named(queries.table(snapshot, names, ("cluster", "pool"), view.filters, "-fleet_idle_cost_usd"))
    currency = snapshot.currency
    table(
        frame[frame["fleet_idle_cost_usd"].fillna(0) != 0],
        {
            "name": named("Pool", pinned=True),
            "fleet_idle_cost_usd": measured("fleet_idle_cost_usd", currency),
            **{name: measured(name, currency) for name in titles},
        },
        empty="No idle money.",
        key="idle-causes",
    )


def interval(snapshot: Snapshot, view: View) -> None:
    """Who used the fleet, with the interval that the configured weights leave open."""
    parts.section(
        "Who used it, and what the weights leave open",
        "Productive and under-used cost by team. Exact where pools have roles (prefill, decode) or the engine tells "
        "its GPU-seconds. Else a configured ratio weighs an output token against an input token: low to high is the "
        "cost at either end of the configured range. A ratio wrong by two moves a class's share by 13 to 17 points.",
    )
    shown = view.without("provider")
    if not queries.knows("ratio_day", shown.filters):
        st.caption("Not known by this choice.")
        return
    frame = queries.table(snapshot, WEIGHED, ("team",), shown.filters)
    by_ratio = queries.table(
        snapshot, ("weighed_cost_usd",), ("team",), queries.only(shown.filters, method=(BY_RATIO,))
    ).rename(columns={"weighed_cost_usd": "by_ratio"})
    frame = frame.merge(by_ratio, how="left", on="team").sort_values("weighed_cost_usd", ascending=False)
    ends = frame[["weighed_low_cost_usd", "weighed_high_cost_usd"]]
    currency = snapshot.currency
    frame = frame.assign(
        low=ends.min(axis=1),
        high=ends.max(axis=1),
        open=(ends.max(axis=1) - ends.min(axis=1)) / frame["weighed_cost_usd"],
        by_ratio=frame["by_ratio"].fillna(0) / frame["weighed_cost_usd"],
    )
    money = lambda value: words.money(value, currency)  # noqa: E731
    table(
        frame,
        {
            "team": named("Team", "nobody (no log)"),
            "weighed_cost_usd": measured("weighed_cost_usd", currency),
            "low": Column("Low", money, "the lower of the two ends, after adding up"),
            "high": Column("High", money, "the higher of the two ends, after adding up"),
            "open": Column("Left open", words.share, "(high - low) / cost"),
            "by_ratio": Column("By ratio", words.share, "part of the cost that a configured ratio divided"),
        },
        empty="Nobody used the own fleet in this choice.",
        key="fleet-interval",
    )
