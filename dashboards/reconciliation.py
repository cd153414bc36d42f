"""Reconciliation: the books balance, the bill meets the log, and what was restated, refused or late is named."""

from datetime import timedelta
from decimal import Decimal

import pandas as pd
import streamlit as st

from dashboards import bill_checks, bill_queries, flow, parts, theme, words
from dashboards.charts import parts as part_charts
from dashboards.filters import View
from dashboards.queries import Row
from dashboards.tables import Column, bar, named, table
from warehouse.snapshot import Snapshot

SENTENCES = 12
KIND_ORDER = ("usage", "under_used", "idle", "unmeasured", "unattributed", "shared", "out_of_scope", "future", "credit")


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    parts.heading(snapshot, view, "Reconciliation")
    if parts.nothing_if(
        snapshot.scope.teams is not None,
        "The bill as a whole is shown to those who may see the whole "
        "organisation: from its totals other teams' cost could be worked out.",
    ):
        return
    identities = bill_queries.identities(snapshot)
    _identities(snapshot, identities)
    if identities:
        _period(snapshot, identities)
    _matches(snapshot, view)
    _restatements(snapshot)
    bill_checks.checks(snapshot)
    _controls(snapshot)
    _sources(snapshot)


def _identities(snapshot: Snapshot, identities: list[Row]) -> None:
    parts.section(
        "The books balance",
        "Per billing period and cost basis, to the last decimal: bill = sum over kinds + rounding = "
        "sum over owners + rounding. Estimates are not part of it.",
    )
    if not identities:
        st.caption(
            "No bill is loaded yet, so there is nothing to balance: all cost shown is estimated from the price book."
        )
        return
    off = [row for row in identities if row["kind_difference"] or row["owner_difference"]]
    if off:
        st.error(f"{len(off)} of {len(identities)} do not balance.", icon=":material/error:")
    else:
        st.success(
            "Every cent of every bill is in the ledger once, by kind and by owner. All differences are exactly 0.",
            icon=":material/check_circle:",
        )
    frame = pd.DataFrame(
        {
            "period": words.month(row["billing_period"]),
            "basis": f"{row['cost_basis']}, {row['currency']}",
            "status": row["status"],
            "bill": words.exact(row["bill"]),
            "kinds": words.exact(row["by_kind"], 9),
            "owners": words.exact(row["by_owner"], 9),
            "rounding": words.exact(row["rounding"]),
            "difference": words.exact(max(row["kind_difference"], row["owner_difference"], key=abs)),
        }
        for row in identities
    )
    table(
        frame,
        {
            "period": Column("Billing period"),
            "basis": Column(
                "Cost basis", help="billed: as invoiced; effective: amortised and net, what attribution uses"
            ),
            "status": Column("Bill", help="final: every line has an invoice"),
            "bill": Column("Bill as loaded", right=True),
            "kinds": Column("Sum over kinds", right=True),
            "owners": Column("Sum over owners", right=True, help="what belongs to nobody included"),
            "rounding": Column("Below a nano", right=True, help="what lies below a billionth, one posting per load"),
            "difference": Column("Difference", right=True, help="bill - rounding - sum, the larger of the two"),
        },
        empty="No bill.",
        key="identities",
    )
    bill_checks.other_currencies(snapshot)


def _period(snapshot: Snapshot, identities: list[Row]) -> None:
    periods = list(dict.fromkeys(row["billing_period"] for row in identities))
    period = parts.section_by(
        "From kinds to the bill", "Billing period", {name: words.month(name) for name in periods[:6]}, "bill"
    )
    currencies = sorted(
        {row["currency"] for row in identities if row["billing_period"] == period},
        key=lambda name: (name != snapshot.currency, name),
    )
    currency = currencies[0]
    here = next(
        row
        for row in identities
        if (row["billing_period"], row["currency"], row["cost_basis"]) == (period, currency, "effective")
    )
    state = "not final yet" if here["status"] == "open" else "final"
    st.caption(
        words.plain(
            f"Effective cost on the bill of {words.month(period)} ({state}), whatever period is chosen on the left. "
            f"{_prepaid(identities, period, currency)}"
        )
    )
    bases = {
        row["cost_basis"]: row["bill"]
        for row in identities
        if (row["billing_period"], row["currency"]) == (period, currency)
    }
    bill_checks.bridge(snapshot, period, currency, bases["billed"], bases["effective"])
    kinds = bill_queries.parts(snapshot, period, currency, "kind")
    kinds = kinds.assign(
        order=kinds["name"].map(lambda kind: KIND_ORDER.index(kind) if kind in KIND_ORDER else 99)
    ).sort_values("order")
    names = [theme.KIND_TITLES.get(kind, kind) for kind in kinds["name"]]
    colours = [theme.KINDS.get(kind, theme.UNKNOWN) for kind in kinds["name"]]
    figure = part_charts.waterfall(names, kinds["effective"].tolist(), colours, "Bill", currency)
    parts.chart(figure, "bill-waterfall", f"Waterfall from kinds to the bill of {words.month(period)}")
    flow.show(snapshot, period, currency, here["bill"], here["rounding"])
    left, right = st.columns(2, gap="medium")
    amount = Column("Effective cost", lambda value: words.money(value, currency))
    with left:
        parts.section(
            "By owner", "the same bill by team; nobody has what is idle, unattributed, not inference or to come"
        )
        owners = bill_queries.parts(snapshot, period, currency, "team")
        owners["share"] = (owners["effective"] / owners["effective"].sum()).clip(0, 1)
        table(
            owners,
            {
                "name": named("Team", "nobody"),
                "effective": amount,
                "share": bar("Share", "of this bill"),
            },
            empty="No owner.",
            key="bill-owners",
        )
    with right:
        parts.section("Not inference", "out of scope, by service; on the books, in no unit cost")
        services = bill_queries.out_of_scope(snapshot, period, currency)
        services["share"] = (services["effective"] / float(here["bill"] or 1)).clip(0, 1)
        table(
            services,
            {
                "service": named("Service"),
                "effective": amount,
                "share": bar("Share of bill", "of the whole bill"),
            },
            empty="Nothing: the whole bill is inference.",
            key="bill-services",
            rows=14,
        )


def _prepaid(identities: list[Row], period: str, currency: str) -> str:
    amounts: dict[str, Decimal] = {
        row["cost_basis"]: row["bill"]
        for row in identities
        if (row["billing_period"], row["currency"]) == (period, currency)
    }
    if len(amounts) < 2 or amounts["billed"] == amounts["effective"]:
        return "Billed and effective cost are the same."
    gap = amounts["billed"] - amounts["effective"]
    direction = "prepaid for other periods" if gap > 0 else "prepaid earlier and amortised here"
    return f"Billed is {words.money(abs(gap), currency)} {'higher' if gap > 0 else 'lower'}: {direction}."


def _matches(snapshot: Snapshot, view: View) -> None:
    by = parts.section_by("Bill against log", "Rows", {"model": "By model", "class": "By model and class"}, "match")
    ignored = [name for name in view.filters.chosen() if name not in ("model", "provider")]
    st.caption(
        f"{view.period}. Billed + not billed yet + never billed = logged + billed without a log, token by token."
        + (f" The bill does not know {', '.join(ignored)}: not filtered." if ignored else "")
    )
    frame = bill_queries.matches(snapshot, view.filters, by == "class")
    currency = snapshot.currency
    if "token_class" in frame:
        frame["token_class"] = frame["token_class"].map(lambda name: theme.CLASS_TITLES.get(name, name))
    money = lambda value: words.money(value, currency)  # noqa: E731
    table(
        frame,
        {
            "model": named("Model"),
            **({"token_class": Column("Class")} if by == "class" else {}),
            "bill_tokens": Column("Bill tokens", words.tokens, "what the provider billed"),
            "event_tokens": Column("Logged", words.tokens, "what the logs hold"),
            "unexplained_tokens": Column("No log", words.tokens, "billed, in no log: unattributed"),
            "unexplained_share": Column("% of bill", words.share, "billed without a log / bill tokens"),
            "missing_tokens": Column(
                "Not billed yet", words.tokens, "logged, the bill has not come that far: estimated"
            ),
            "variance_tokens": Column(
                "Never billed", words.tokens, "logged, and the bill has settled without them: no cost"
            ),
            "effective": Column("On the bill", money, "effective cost"),
            "unattributed": Column("Unattributed", money, "cost of the tokens that no log explains"),
            "estimated": Column("Estimated", money, "price book x tokens not billed yet"),
            "settled_share": Column(
                "Settled", words.share, "logged tokens of days on which the bill has settled / logged tokens"
            ),
        },
        empty="Neither the bill nor the log holds tokens in this choice.",
        key="matches",
    )


def _restatements(snapshot: Snapshot) -> None:
    parts.section("Restatements", "What a later delivery of a bill changed in days that an earlier one had closed.")
    found = bill_queries.restatements(snapshot, snapshot.currency)
    if not found:
        st.caption("None: no later delivery changed a day that had been delivered whole.")
    else:
        st.markdown("\n".join(f"- {words.plain(sentence(row, snapshot.currency))}" for row in found[:SENTENCES]))
    if len(found) > SENTENCES:
        st.caption(f"and {len(found) - SENTENCES} smaller ones")
    changed = bill_queries.revisions(snapshot)
    if not changed.empty:
        with st.expander(f"Published figures that changed ({len(changed)}{' largest' if len(changed) >= 50 else ''})"):
            signed = lambda value: words.signed_money(value, snapshot.currency)  # noqa: E731
            money = lambda value: words.money(value, snapshot.currency)  # noqa: E731
            table(
                parts.days_of(changed),
                {
                    "day": Column("Day", words.day),
                    "team": named("Team", "no team"),
                    "model": named("Model", "-"),
                    "kind": Column("Kind", lambda value: theme.KIND_TITLES.get(value, value)),
                    "basis": Column("Basis"),
                    "before": Column("Before", money, absent="-"),
                    "after": Column("After", money, absent="-"),
                    "change": Column("Change", signed),
                },
                empty="None.",
                key="revisions",
                rows=15,
            )


def sentence(row: Row, currency: str) -> str:
    """One restatement as people say it."""
    amount = row["effective_change"] or row["billed_change"]
    which = "" if row["effective_change"] else " as billed"
    day = row["charge_day"]
    moved = f"{'rose' if amount > 0 else 'fell'} by **{words.money(abs(amount), currency)}**{which}"
    return (
        f"Charges of {day.day} {day:%B} for {words.name(row['service_name'])} {moved} in delivery {row['delivery']} of "
        f"the bill of {words.month(row['billing_period'])} ({words.name(row['export_name'])})."
    )


def _controls(snapshot: Snapshot) -> None:
    frame = bill_queries.controls(snapshot)
    failed = int((~frame["ok"].astype(bool)).sum()) if not frame.empty else 0
    parts.section(
        "Controls",
        "Amount in = amount out, after every step; a failing control stops publication. Nano-dollars, tokens or rows.",
    )
    for side in ("lhs", "rhs", "difference"):
        frame[side] = frame[side].map(
            lambda value: f"{Decimal(value):,f}" if not words.is_unknown(value) else words.UNKNOWN
        )
    frame["ok"] = frame["ok"].map({True: "holds", False: "does not hold"})
    table(
        frame,
        {
            "name": Column("Control"),
            "subject": Column("Of"),
            "lhs": Column("In", right=True),
            "rhs": Column("Out", right=True),
            "difference": Column("Difference", right=True),
            "ok": Column("State"),
            "explanation": Column("What was compared", width="large"),
        },
        empty="No control has run yet.",
        key="controls",
    )
    if failed:
        st.error(f"{failed} controls do not hold.", icon=":material/error:")


def _sources(snapshot: Snapshot) -> None:
    parts.section(
        "Sources", "What each source gave and how far it reaches, in UTC. A bill may hold fees of days ahead."
    )
    frame = bill_queries.sources(snapshot)
    as_of = snapshot.as_of.replace(tzinfo=None)
    if not frame.empty:
        frame["behind_hours"] = (pd.Timestamp(as_of) - pd.to_datetime(frame["last_at"])).dt.total_seconds() / 3600
    table(
        frame,
        {
            "source": named("Source"),
            "kind": Column("Evidence"),
            "first_at": Column("From", words.instant, absent="-"),
            "last_at": Column("Until", words.instant, absent="-"),
            "behind_hours": Column("Behind as-of", _behind, "as-of - last instant of the source", absent="-"),
            "loaded_at": Column("Last loaded", words.instant, absent="-"),
            "batches": Column("Batches", words.count),
            "rows_read": Column("Rows read", words.count),
            "rows_loaded": Column("Loaded", words.count),
            "rows_filtered": Column("Left out", words.count, "by the source's own `where`"),
            "rows_rejected": Column("Refused", words.count),
        },
        empty="Nothing has been loaded.",
        key="sources",
    )
    reached = bill_queries.watermarks(snapshot)
    if reached:
        first = reached[0]
        st.caption(
            f"Billed tokens reach until {words.instant(first['billed_until'])} in account {first['account_id']}"
            + (", the one furthest behind" if len(reached) > 1 else "")
            + f": {_behind((as_of - first['billed_until']).total_seconds() / 3600)} before the snapshot's as-of. "
            "What was used later is estimated."
        )
    parts.section("Refused rows", "Never dropped in silence: what was refused, why, and one example.")
    refused = bill_queries.rejected(snapshot)
    table(
        refused,
        {
            "source": named("Source"),
            "reason": Column("Reason", lambda value: str(value).replace("_", " ")),
            "rows": Column("Rows", words.count),
            "detail": Column("Detail", str, absent=""),
            "example_location": Column("Example"),
            "example_line": Column("Line", words.count, absent="-"),
        },
        empty="None.",
        key="rejected",
    )


def _behind(hours: float) -> str:
    return "ahead" if hours < 0 else words.age(timedelta(hours=hours))
