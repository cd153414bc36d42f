"""The bill as a flow: from services over line classes and kinds to teams. What has no width is said, not hidden."""

from dataclasses import dataclass
from decimal import Decimal

import pandas as pd
import streamlit as st

from dashboards import bill_queries, parts, queries, theme, words
from dashboards.charts import flow as flow_charts
from warehouse.snapshot import Snapshot

LEVELS = ("bill", "service", "line_class", "kind", "team")
SERVICES = 8
TEAMS = 8
NOBODY = "nobody"
ABOVE_ZERO = "Above zero"
NANO = Decimal("0.000000001")


@dataclass(frozen=True)
class Flow:
    """Rows of positive amounts with a name at each level, and what has no width in a picture; all exact."""

    rows: pd.DataFrame
    shown: Decimal
    left_out: Decimal
    left_out_rows: int

    @property
    def total(self) -> Decimal:
        """The ledger's sum: what is shown and what is left out."""
        return self.shown + self.left_out


def flow(found: pd.DataFrame) -> Flow:
    """Columns `service`, `line_class`, `kind`, `team`, `nano`. Smaller services and teams are one each."""
    positive = found[found["nano"] > 0]
    negative = found[found["nano"] < 0]
    rows = positive.assign(
        # What is shown is more than the bill where credits have no width.
        bill="Bill" if negative.empty else ABOVE_ZERO,
        service=_largest(positive, "service", SERVICES, "services"),
        line_class=positive["line_class"].map(lambda name: theme.LINE_CLASS_TITLES.get(name, name)),
        kind=positive["kind"].map(lambda name: theme.KIND_TITLES.get(name, name)),
        team=_largest(positive.assign(team=positive["team"].fillna(NOBODY)), "team", TEAMS, "teams"),
        amount=positive["nano"] / 1e9,
    )
    return Flow(
        rows[[*LEVELS, "amount"]],
        Decimal(int(positive["nano"].sum())) * NANO,
        Decimal(int(negative["nano"].sum())) * NANO,
        len(negative),
    )


def _largest(frame: pd.DataFrame, column: str, number: int, noun: str) -> pd.Series:
    sums = frame.groupby(column)["nano"].sum().sort_values(ascending=False)
    rest = set(sums.index[number:]) - {NOBODY}
    if len(rest) < 2:
        return frame[column]
    return frame[column].map(lambda name: f"{len(rest)} other {noun}" if name in rest else name)


def show(snapshot: Snapshot, billing_period: str, currency: str, bill: Decimal, rounding: Decimal) -> None:
    """The flow of one bill, both of its ends, and what is not in the picture."""
    parts.section(
        "From services to teams",
        "The same bill by service, line class, kind and team; each level is the whole. Nobody has what is idle, "
        "unmeasured, unattributed or not inference.",
    )
    found = flow(bill_queries.flows(snapshot, billing_period, currency))
    if found.rows.empty:
        st.caption("Nothing above zero is on this bill.")
        return
    kinds = {theme.KIND_TITLES[kind]: colour for kind, colour in theme.KINDS.items()}
    known = theme.colours(queries.choices(snapshot)["team"])
    teams = {name: colour for name, colour in known.items() if name is not None}
    colours = [
        dict.fromkeys(found.rows["bill"], theme.TEXT),
        dict.fromkeys(found.rows["service"], theme.MUTED),
        dict.fromkeys(found.rows["line_class"], theme.FAINT),
        kinds,
        {**teams, NOBODY: theme.UNKNOWN},
    ]
    nodes = sum(found.rows[level].nunique() for level in LEVELS)
    tallest = max(found.rows[level].nunique() for level in LEVELS)
    figure = flow_charts.sankey(found.rows, LEVELS, colours, currency, 340 + 26 * tallest)
    parts.chart(figure, "bill-flow", f"Flow of the bill from services to teams, {nodes} nodes")
    st.caption(words.plain(said(found, bill, rounding, currency)))


def said(found: Flow, bill: Decimal, rounding: Decimal, currency: str) -> str:
    """Both totals, and what has no width."""
    left = (
        f"Left out, as an amount below zero has no width: {words.money(found.left_out, currency)} in "
        f"{found.left_out_rows} groups (credits, refunds, negative charges)."
        if found.left_out_rows
        else "Nothing is left out."
    )
    below = f" and {rounding:.18f} below a nano" if rounding else ""
    return (
        f"At either end {words.money(found.shown, currency)}. {left} Together "
        f"{words.money(found.total, currency)}{below}: the bill of {words.money(bill, currency)}."
    )
