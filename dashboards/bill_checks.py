"""Of the page of reconciliation: the checks of the bill, and the bridge from billed to effective cost."""

from decimal import Decimal

import pandas as pd
import streamlit as st

from dashboards import parts, words
from dashboards.queries import Row, cached, frame, rows
from dashboards.tables import Column, table
from warehouse.snapshot import Snapshot

PARTS = {"fees": "billed fees leave", "unused": "the part that nobody used", "used": "the part that was used"}


@cached
def _checks(snapshot: Snapshot) -> pd.DataFrame:
    return frame(
        snapshot.sql(
            "SELECT billing_period, name, subject, currency, lhs, rhs, difference, tolerance, ok, explanation "
            "FROM bill_check ORDER BY ok, billing_period DESC, name, subject"
        )
    )


@cached
def _bridge(snapshot: Snapshot, billing_period: str, currency: str) -> list[Row]:
    return rows(
        snapshot.sql(
            "SELECT family, part, amount_usd FROM bill_bridge WHERE billing_period = ? AND currency = ? ORDER BY ALL",
            [billing_period, currency],
        )
    )


def checks(snapshot: Snapshot) -> None:
    """Every check of every bill, what does not hold first."""
    found = _checks(snapshot)
    parts.section(
        "Checks of the bill",
        "What a delivery says twice, what two exports say of one bill, and what the price book and the log say of it.",
    )
    if not found.empty:
        wrong = int((~found["ok"].astype(bool)).sum())
        if wrong:
            st.warning(f"{wrong} of {len(found)} do not hold; `inferledger doctor` says what to do.")
        else:
            st.caption(f"All {len(found)} hold.")
        for side in ("lhs", "rhs", "difference", "tolerance"):
            found[side] = found[side].map(_exact)
        found["billing_period"] = found["billing_period"].map(words.month)
        found["ok"] = found["ok"].map({True: "holds", False: "does not hold"})
    table(
        found,
        {
            "name": Column("Check", width="large"),
            "billing_period": Column("Bill"),
            "subject": Column("Of"),
            "currency": Column("In"),
            "lhs": Column("One side", right=True),
            "rhs": Column("Other side", right=True),
            "difference": Column("Difference", right=True),
            "tolerance": Column("None up to", right=True, help="the largest difference that is none"),
            "ok": Column("State"),
            "explanation": Column("About", str, absent=""),
        },
        empty="No bill is loaded.",
        key="bill-checks",
    )


def bridge(snapshot: Snapshot, period: str, currency: str, billed: Decimal, effective: Decimal) -> None:
    """From billed to effective cost of one bill, term by term; nothing where they are the same."""
    terms = _bridge(snapshot, period, currency)
    if not terms:
        return
    said = [("Billed", billed)]
    said += [(f"{row['family'].capitalize()}: {PARTS[row['part']]}", row["amount_usd"]) for row in terms]
    said += [("Effective", effective)]
    rest = effective - billed - sum((row["amount_usd"] for row in terms), Decimal(0))
    with st.expander(f"From billed to effective, {words.month(period)}"):
        table(
            pd.DataFrame({"name": name, "amount": words.exact(amount)} for name, amount in said),
            {"name": Column("Term", width="large"), "amount": Column(f"Amount, {currency}", right=True)},
            empty="",
            key="bill-bridge",
        )
        st.caption("The terms add up exactly." if not rest else f"{words.exact(rest)} is in no term.")


@cached
def _reporting(snapshot: Snapshot) -> list[Row]:
    return rows(
        snapshot.sql(
            "SELECT * FROM bill_reporting WHERE currency <> reporting_currency ORDER BY billing_period DESC, currency"
        )
    )


def other_currencies(snapshot: Snapshot) -> None:
    """Bills in another currency, beside themselves in the reporting currency."""
    for row in _reporting(snapshot):
        own, there = row["currency"], row["reporting_currency"]
        said = f"{words.month(row['billing_period'])}: {words.money(row['effective'], own)} effective"
        if row["effective_reporting"] is None:
            said += f"; no exchange rate to {there} is known (exchange_rates)"
        else:
            rates = f"{row['lowest_rate'].normalize():f}"
            if row["highest_rate"] != row["lowest_rate"]:
                rates += f" to {row['highest_rate'].normalize():f}"
            said += f" = {words.money(row['effective_reporting'], there)} at {rates} by the rate of each day"
            if row["days_without_rate"]:
                said += f", {row['days_without_rate']} of {row['days']} days without a rate left out"
        st.caption(words.plain(said))


def _exact(value: object) -> str:
    number = Decimal(str(value))
    return f"{number:,.9f}".rstrip("0").rstrip(".") if number else "0"
