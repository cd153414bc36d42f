"""Overview: what inference cost, what a million tokens cost, what moved, where the bill went, what needs attention."""

import pandas as pd
import streamlit as st

from dashboards import attention, parts, queries, theme, words
from dashboards.charts import days as day_charts
from dashboards.charts import parts as part_charts
from dashboards.filters import View
from dashboards.parts import Figure
from dashboards.queries import Scalar
from dashboards.tables import Column, named, table
from warehouse.snapshot import Snapshot

WHOLE = ("ownerless_cost_usd", "unattributed_cost_usd")
FLEET = ("self_hosted_cost_usd", "idle_cost_usd", "unmeasured_cost_usd", "under_used_cost_usd")
NOTES = (
    "usage_billed_cost_usd",
    "estimated_cost_usd",
    "unknown_cost_tokens",
    "cost_per_mtok_input_usd",
    "cost_per_mtok_output_usd",
    "unpriced_tokens",
    "input_tokens",
    "output_tokens",
    "operations",
    "cache_saving_usd",
    "unattributed_tokens",
    *WHOLE,
    *FLEET,
)
ESTIMATED = "Estimated"
DIMENSIONS = {"team": "By team", "model": "By model", "app": "By app"}


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    parts.heading(snapshot, view, "Overview")
    facts = queries.totals(snapshot, (*NOTES, "requests", "effective_cost_usd"), view.filters)
    empty = not facts["requests"] and not facts["effective_cost_usd"] and not facts["estimated_cost_usd"]
    if parts.nothing_if(
        empty,
        f"Neither a call nor a billing line between {words.day(view.first_day)} and "
        f"{words.day(view.last_day)} fits this choice. Take another period or fewer filters.",
    ):
        return
    parts.figures(snapshot, view, headline(snapshot, view, facts))
    st.caption(words.plain(parts.against(view)))
    _days(snapshot, view)
    attention.show(snapshot, view)
    left, right = st.columns([5, 6], gap="medium")
    with left:
        _kinds(snapshot, view)
    with right:
        _unit_cost(snapshot, view)
    _movers(snapshot, view)


def headline(snapshot: Snapshot, view: View, facts: dict[str, Scalar]) -> list[Figure]:
    """The headline figures with what is said below each."""
    money = lambda name: words.money(facts[name], snapshot.currency)  # noqa: E731
    unit = lambda name: words.unit_money(facts[name], snapshot.currency)  # noqa: E731
    unknown = facts["unknown_cost_tokens"]
    no_task = queries.splits("tasks", view.filters) and not queries.totals(snapshot, ("tasks",), view.filters)["tasks"]
    loaded = "with support, tax, credits"
    if facts["self_hosted_cost_usd"]:
        loaded += ", idle and under-used GPUs"
    if view.filters.model:
        loaded = "support, tax and credits belong to no model"
    wanted = [
        Figure(
            "inference_cost_usd",
            parts.joined(
                [
                    "all of it billed"
                    if facts["estimated_cost_usd"] == 0
                    else f"estimated: {money('estimated_cost_usd')}",
                    f"{words.tokens(unknown)} tokens of unknown cost" if unknown else "",
                ]
            ),
        ),
        Figure("fully_loaded_cost_usd", loaded),
        Figure(
            "cost_per_mtok_usd",
            f"input {unit('cost_per_mtok_input_usd')} · output {unit('cost_per_mtok_output_usd')}",
            title="Per million tokens",
        ),
        Figure("cost_per_request_usd", "usage cost / attempts", title="Per request"),
        Figure(
            "cost_per_task_usd",
            "no agent task" if no_task else "tasks active in the period",
            title="Per agent task",
            unsplit="a task has no single",
            is_absent=no_task,
        ),
        Figure(
            "total_tokens",
            f"in {words.tokens(facts['input_tokens'])} · out {words.tokens(facts['output_tokens'])}",
            more_is="neither",
        ),
        Figure("requests", f"attempts at {words.count(facts['operations'])} calls", more_is="neither"),
        Figure("cache_hit_ratio", "cache reads / input tokens", more_is="better"),
        Figure("cache_saving_usd", "at price-book prices", more_is="better"),
    ]
    if snapshot.scope.teams is None:
        wanted += [
            Figure("ownerless_share", f"{money('ownerless_cost_usd')} of inference cost", title="Without a team"),
            Figure("unattributed_share", f"{money('unattributed_cost_usd')}, in no log", title="Unattributed"),
        ]
    if snapshot.scope.teams is None and facts["self_hosted_cost_usd"]:
        wanted += [
            Figure("self_hosted_cost_usd", f"under-used: {money('under_used_cost_usd')}", more_is="neither"),
            Figure("idle_cost_usd", f"unmeasured: {money('unmeasured_cost_usd')}", title="Idle GPUs"),
        ]
    where = queries.managed(snapshot, view.filters)
    # What the own fleet serves waits for its bill, not for a price.
    waiting = queries.totals(snapshot, ("unknown_cost_tokens",), where)["unknown_cost_tokens"] if where else 0
    unpriced = f"cost unknown for {words.tokens(waiting)}" if waiting else "not in the price book, but billed"
    wanted.append(Figure("unpriced_tokens", unpriced if facts["unpriced_tokens"] else "every token has a price"))
    return wanted


def _days(snapshot: Snapshot, view: View) -> None:
    by = parts.section_by("Inference cost per day", "Stack by", {**DIMENSIONS, "kind": "By kind"}, "stack")
    parts.cost_chart(
        snapshot, view, by, "cost-per-day", "fully_loaded_cost_usd" if by == "kind" else "inference_cost_usd"
    )


def _kinds(snapshot: Snapshot, view: View) -> None:
    whole = snapshot.scope.teams is None and not view.filters.chosen()
    parts.section(
        "Where the bill went" if whole else "What the cost is made of",
        "billed, all kinds" + ("" if whole else " of this choice") + "; the estimate is not on the bill yet",
    )
    frame = queries.table(snapshot, ("effective_cost_usd", "estimated_cost_usd"), ("kind",), view.filters)
    billed = frame[frame["effective_cost_usd"].fillna(0) != 0].sort_values("effective_cost_usd", ascending=False)
    total = billed["effective_cost_usd"].sum()
    names = [theme.KIND_TITLES.get(kind, kind) for kind in billed["kind"]]
    values = billed["effective_cost_usd"].tolist()
    labels = [_part(value, total, snapshot.currency) for value in values]
    colours = [theme.KINDS.get(kind, theme.UNKNOWN) for kind in billed["kind"]]
    estimated = frame["estimated_cost_usd"].sum()
    if estimated:
        names, values, colours = [*names, ESTIMATED], [*values, estimated], [*colours, theme.PRIMARY]
        labels.append(words.money(estimated, snapshot.currency))
    if not names:
        st.caption("No cost in this choice.")
        return
    figure = part_charts.bars(names, values, colours, labels, [name == ESTIMATED for name in names])
    parts.chart(figure, "kinds", "Cost by kind")
    if whole:
        st.caption(words.plain(f"Together {words.money(total, snapshot.currency)} on the bill for these days"))


def _part(value: float, total: float, currency: str) -> str:
    return (
        f"{words.money(value, currency)}  {words.share(value / total)}" if total > 0 else words.money(value, currency)
    )


def _unit_cost(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Cost per million tokens", "usage cost, billed and estimated / tokens of logged calls; hollow: partly estimated"
    )
    names = ("cost_per_mtok_usd", "fully_loaded_cost_per_mtok_usd")
    frame = parts.days_of(queries.table(snapshot, names, ("day",), view.filters))
    frame = frame[frame["day"].between(view.first_day, view.last_day)].set_index("day")
    if frame["cost_per_mtok_usd"].isna().all():
        st.caption("No tokens of known cost.")
        return
    series = [
        ("usage", theme.PRIMARY, "solid", frame["cost_per_mtok_usd"]),
        ("fully loaded", theme.SERIES[1], "dot", frame["fully_loaded_cost_per_mtok_usd"]),
    ]
    figure = day_charts.lines_per_day(
        series, snapshot.currency, (view.first_day, view.last_day), parts.estimated_days(snapshot, view)
    )
    parts.chart(figure, "unit-cost", "Cost per million tokens per day")


def _movers(snapshot: Snapshot, view: View) -> None:
    by = parts.section_by("What changed most", "Compare by", DIMENSIONS, "movers")
    if view.before is None:
        st.caption(parts.against(view))
        return
    st.caption(
        words.plain(
            f"{parts.against(view)} Volume: more or fewer tokens at the old cost per token. "
            "Rate: another cost per token, for today's tokens (price, model, cache)."
        )
    )
    currency = snapshot.currency
    frame = movers(snapshot, view, by).head(10)
    amount = Column("", lambda value: words.money(value, currency))
    signed = lambda value: words.signed_money(value, currency)  # noqa: E731
    unit = lambda value: words.unit_money(value, currency)  # noqa: E731
    table(
        frame,
        {
            by: named(by.capitalize(), f"no {by}"),
            "cost_before": Column("Before", amount.format),
            "cost": Column("Now", amount.format),
            "change": Column("Change", signed, "usage cost, billed and estimated"),
            "relative": Column("in %", words.change, absent="new"),
            "volume": Column("by volume", signed, "(tokens now - tokens before) x cost per token before", absent="-"),
            "rate": Column("by rate", signed, "(cost per token now - before) x tokens now", absent="-"),
            "per_mtok_before": Column("per Mtok before", unit, absent="-"),
            "per_mtok": Column("per Mtok now", unit, absent="-"),
        },
        empty="Nothing changed.",
        key="movers-table",
    )


def movers(snapshot: Snapshot, view: View, by: str) -> pd.DataFrame:
    """Usage cost now and before by a dimension, the change split into volume and rate; the largest change first."""
    assert view.before is not None
    names = ("usage_cost_usd", "cost_per_mtok_usd")
    now = queries.table(snapshot, names, (by,), view.filters)
    before = queries.table(snapshot, names, (by,), view.before)
    frame = now.merge(before, how="outer", on=by, suffixes=("", "_before"))
    frame = frame.rename(
        columns={
            "usage_cost_usd": "cost",
            "usage_cost_usd_before": "cost_before",
            "cost_per_mtok_usd": "per_mtok",
            "cost_per_mtok_usd_before": "per_mtok_before",
        }
    )
    # A name that is in one period only cost nothing in the other; one whose cost is unknown stays unknown.
    frame.loc[~frame[by].isin(before[by]), "cost_before"] = 0.0
    frame.loc[~frame[by].isin(now[by]), "cost"] = 0.0
    frame["change"] = frame["cost"] - frame["cost_before"]
    frame["relative"] = (frame["change"] / frame["cost_before"]).where(frame["cost_before"] > 0)
    mtok, mtok_before = frame["cost"] / frame["per_mtok"], frame["cost_before"] / frame["per_mtok_before"]
    frame["volume"] = (mtok - mtok_before) * frame["per_mtok_before"]
    frame["rate"] = (frame["per_mtok"] - frame["per_mtok_before"]) * mtok
    gone = frame["cost"].eq(0) & frame["per_mtok"].isna()
    frame.loc[gone, "volume"] = frame.loc[gone, "change"]
    moved = frame[(frame["cost"].fillna(1) != 0) | (frame["cost_before"].fillna(1) != 0)]
    return moved.sort_values("change", key=lambda column: column.abs(), ascending=False, na_position="last")
