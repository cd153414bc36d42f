"""Own fleet against managed API, model by model: usage only and fully loaded, with what is in it."""

import pandas as pd
import streamlit as st

from dashboards import fleet_queries, parts, queries, theme, words
from dashboards.charts import parts as part_charts
from dashboards.filters import OWNERS, View
from dashboards.tables import Column, measured, named, table
from warehouse.snapshot import Snapshot

# What the fully loaded cost of a model consists of.
KINDS = ("usage", "under_used", "idle", "unmeasured", "unattributed", "shared")
LOADED = (
    *(f"{kind}_cost_usd" for kind in KINDS),
    "fully_loaded_cost_usd",
    "known_cost_tokens",
    "unknown_cost_tokens",
    "cost_per_mtok_usd",
    "fully_loaded_cost_per_mtok_usd",
)
OF_NODES = ("fleet_not_requested_cost_usd", "fleet_not_in_cluster_cost_usd")
WEIGHED = ("weighed_cost_usd", "weighed_low_cost_usd", "weighed_high_cost_usd")
BY_RATIO = "configured_ratio"
OWN = "own fleet"


def show(snapshot: Snapshot, view: View) -> None:
    """The section; nothing where the own fleet serves no model in this choice."""
    frame = rows(snapshot, view)
    if frame.empty:
        return
    whole = snapshot.scope.teams is None
    parts.section(
        "Own fleet and managed APIs",
        "Models that the own fleet serves, beside the same name bought elsewhere. Per million tokens of logged calls "
        "whose cost is known. "
        + (
            "Build or buy compares fully loaded."
            if whole
            else "Usage only: idle and shared cost is of the whole fleet."
        ),
    )
    currency = snapshot.currency
    read = lambda value: words.unit_money(value, currency)  # noqa: E731
    kinds = KINDS if whole else ("usage", "under_used")
    known = frame[frame["known_cost_tokens"] > 0]
    if not known.empty:
        per_token = known.assign(
            name=known["model"] + ", " + known["served_by"],
            **{kind: known[f"{kind}_cost_usd"] / known["known_cost_tokens"] * 1e6 for kind in kinds},
        )
        figure = part_charts.stacked(per_token, "name", kinds, theme.KINDS, theme.KIND_TITLES, read)
        parts.chart(figure, "build-or-buy", "Cost per million tokens by kind, own fleet beside managed API")
    money = lambda name, title: measured(name, currency, title)  # noqa: E731
    inside = {
        "under_used_cost_usd": money("under_used_cost_usd", "Under-used"),
        "idle_cost_usd": money("idle_cost_usd", "Idle"),
        "unmeasured_cost_usd": money("unmeasured_cost_usd", "Unmeasured"),
        "unattributed_cost_usd": money("unattributed_cost_usd", "In no log"),
        "shared_cost_usd": money("shared_cost_usd", "Shared"),
        "fully_loaded_cost_usd": money("fully_loaded_cost_usd", "Fully loaded"),
    }
    per_mtok = {
        "fully_loaded_cost_per_mtok_usd": measured("fully_loaded_cost_per_mtok_usd", currency, "loaded per Mtok"),
        "engine_cost_per_mtok_usd": measured(
            "engine_cost_per_mtok_usd",
            currency,
            "per engine Mtok",
            "fully loaded / tokens that the engines counted, those of no logged call too",
            absent="-",
        ),
    }
    keys = {"model": named("Model"), "served_by": Column("Served by")}
    table(
        frame,
        {
            **keys,
            "known_cost_tokens": measured("known_cost_tokens", currency, "Tokens"),
            "usage_cost_usd": measured("usage_cost_usd", currency, "Usage"),
            "cost_per_mtok_usd": measured("cost_per_mtok_usd", currency, "usage per Mtok"),
            "interval": Column(
                "low to high",
                help="usage per Mtok with an output token at either end of its configured weight; "
                "exact where pools have roles or the engine tells its seconds",
            ),
            **(per_mtok if whole else {}),
        },
        empty="None.",
        key="models-own",
    )
    table(
        frame,
        {
            **keys,
            "usage_cost_usd": money("usage_cost_usd", "Usage"),
            **{name: column for name, column in inside.items() if whole or name == "under_used_cost_usd"},
        },
        empty="None.",
        key="models-own-parts",
    )
    st.caption(words.plain(" ".join(notes(snapshot, view, frame))))


def rows(snapshot: Snapshot, view: View) -> pd.DataFrame:
    """Models of the own fleet, and the same names elsewhere: LOADED, `served_by`, `interval`."""
    found = queries.table(snapshot, LOADED, ("model", "provider"), view.filters)
    own = set(found.loc[(found["provider"] == queries.SELF_HOSTED) & found["model"].notna(), "model"])
    found = found[found["model"].isin(own)].copy()
    is_own = found["provider"] == queries.SELF_HOSTED
    found["served_by"] = found["provider"].mask(is_own, OWN).fillna(words.UNKNOWN)
    engine = _per_engine_token(snapshot, view)
    found["engine_cost_per_mtok_usd"] = found["model"].map(engine).where(is_own).astype(float)
    intervals = _intervals(snapshot, view)
    found["interval"] = [
        _interval(intervals.get(row.model), row.known_cost_tokens, snapshot.currency) if row.served_by == OWN else "-"
        for row in found.itertuples()
    ]
    return found.assign(is_own=~is_own).sort_values(["model", "is_own", "provider"]).drop(columns="is_own")


def _per_engine_token(snapshot: Snapshot, view: View) -> dict[str, float]:
    where = view.without("provider").filters
    if not queries.knows("pool_hour", where):
        return {}
    frame = queries.table(snapshot, ("engine_cost_per_mtok_usd",), ("model",), where)
    return dict(zip(frame["model"], frame["engine_cost_per_mtok_usd"], strict=True))


def _intervals(snapshot: Snapshot, view: View) -> dict[str, tuple[float, float]]:
    """Usage cost of models at either end of the weights; only those of which a part rests on a configured ratio."""
    where = view.without("provider").filters
    if not queries.knows("ratio_day", where):
        return {}
    found = queries.table(snapshot, WEIGHED, ("model", "method"), queries.only(where, kind=("usage",)))
    by_ratio = set(found.loc[found["method"] == BY_RATIO, "model"])
    sums = found[found["model"].isin(by_ratio)].groupby("model")[list(WEIGHED)].sum()
    return {
        str(model): (min(row["weighed_low_cost_usd"], row["weighed_high_cost_usd"]),
                     max(row["weighed_low_cost_usd"], row["weighed_high_cost_usd"]))
        for model, row in sums.iterrows()
    }  # fmt: skip


def _interval(ends: tuple[float, float] | None, tokens: float, currency: str) -> str:
    if ends is None:
        return "exact"
    if not tokens > 0:
        return words.UNKNOWN
    low, high = (words.unit_money(end / tokens * 1e6, currency) for end in ends)
    return f"{low} to {high}"


def notes(snapshot: Snapshot, view: View, frame: pd.DataFrame) -> list[str]:
    """What the comparison leaves out, with amounts."""
    found = []
    unknown = frame.loc[frame["served_by"] == OWN, "unknown_cost_tokens"].sum()
    if unknown:
        found.append(f"{words.tokens(unknown)} tokens of the own fleet are not billed yet and in no unit cost.")
    if set(frame["served_by"]) == {OWN}:
        found.append("No managed API serves a model of one of these names in this choice.")
    fleet = view.without(*OWNERS, "provider", "model").filters
    if snapshot.scope.teams is None and queries.knows("pool_hour", fleet):
        row = queries.totals(snapshot, OF_NODES, fleet)
        amount = sum(value for value in row.values() if value)
        if amount:
            found.append(
                f"{words.money(amount, snapshot.currency)} of GPUs that no pod requested and of machines outside the "
                "cluster belong to no model: not in these figures."
            )
        if any(view.filters.chosen().get(name) for name in OWNERS):
            found.append("Idle, unmeasured and unlogged cost has no owner: with an owner chosen it is not counted.")
    if snapshot.scope.teams is None and fleet_queries.exists(snapshot):
        found.append("Support, tax and credits of the whole bill belong to no model either.")
    return found
