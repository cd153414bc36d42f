"""The published snapshot: how fresh, how complete, whether its books balance, and what it does not know."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from inferledger.checks.check import Check, Checks
from inferledger.figures import count, money, mtok, percent
from inferledger.rows import rows
from warehouse import measures
from warehouse.snapshot import Snapshot

STALE = {"billing": timedelta(days=2), "usage": timedelta(days=1), "metrics": timedelta(days=1)}
ROWS = {"metrics": "samples"}
STALE_SNAPSHOT = timedelta(days=1)
NOTABLE_SHARE = 0.05


def published(snapshot: Snapshot, now: datetime) -> Checks:
    """Whether the snapshot is new, and whether a newer one is held back."""
    about = f"{snapshot.manifest_id[:8]} as of {snapshot.as_of:%Y-%m-%d %H:%M} UTC"
    if snapshot.held:
        yield Check(
            "snapshot",
            "published",
            "fail",
            f"{about}; a newer state is held back: {'; '.join(snapshot.held[:5])}",
            "report this as a defect; the published snapshot is the last good one",
        )
    elif now - snapshot.as_of > STALE_SNAPSHOT:
        yield Check(
            "snapshot",
            "published",
            "warn",
            f"{about}, {_age(now - snapshot.as_of)} ago",
            "leave `inferledger run` running, or run collect, attribute and publish by a timer",
        )
    else:
        yield Check("snapshot", "published", "ok", about)


def freshness(snapshot: Snapshot, now: datetime) -> Checks:
    """How far each source reaches."""
    for row in rows(snapshot, "SELECT source, kind, last_at, rows_loaded FROM source_state ORDER BY kind, source"):
        if row["kind"] not in STALE or row["last_at"] is None:
            continue
        last = row["last_at"].replace(tzinfo=UTC)
        about = f"{count(row['rows_loaded'])} {ROWS.get(row['kind'], 'rows')}, the latest of {last:%Y-%m-%d %H:%M} UTC"
        if last > now + timedelta(hours=1) and row["kind"] in ("usage", "metrics"):
            yield Check(
                "freshness",
                row["source"],
                "warn",
                f"{about}, which is still to come",
                "set the clock of whoever writes them",
            )
        elif now - last > STALE[row["kind"]]:
            yield Check(
                "freshness",
                row["source"],
                "warn",
                f"{about}, {_age(now - last)} ago",
                "see whether its files still arrive (or its server still answers), and run `inferledger collect`"
                if row["kind"] == "metrics"
                else "see whether its files still arrive, and run `inferledger collect`",
            )
        else:
            yield Check("freshness", row["source"], "ok", about)


def rejected(snapshot: Snapshot) -> Checks:
    """Rows that were refused, and why."""
    refused = rows(
        snapshot,
        """
        SELECT r.source, r.reason, r.rows, r.detail, r.example_location, r.example_line, s.loaded
        FROM rejected AS r
        LEFT JOIN (SELECT source, sum(rows_loaded) AS loaded FROM source_state GROUP BY ALL) AS s ON s.source = r.source
        ORDER BY ALL
        """,
    )
    if not refused:
        yield Check("rows", "rejected", "ok", "none was refused")
    for row in refused:
        where = row["example_location"] + (f" line {row['example_line']}" if row["example_line"] is not None else "")
        about = f" ({row['detail']})" if row["detail"] else ""
        if row["reason"] == "repeats_children":  # counted once, as it should be: nothing to mend
            yield Check("rows", row["source"], "ok", f"{count(row['rows'])} refused as repeats_children{about}")
            continue
        yield Check(
            "rows",
            row["source"],
            "warn" if row["loaded"] else "fail",
            f"{count(row['rows'])} refused as {row['reason']}{about}, e.g. {where}",
            "mend what writes them and deliver the file anew; the others are loaded",
        )


def controls(snapshot: Snapshot) -> Checks:
    """Whether amount in is amount out, and the ledger is the bill."""
    wrong = rows(snapshot, "SELECT name, subject, lhs, rhs, difference FROM control WHERE NOT ok ORDER BY ALL")
    for row in wrong:
        yield Check(
            "controls",
            row["name"],
            "fail",
            f"{row['subject']}: {row['lhs']} is not {row['rhs']}",
            "report this as a defect",
        )
    balances = rows(snapshot, "SELECT billing_period, currency, cost_basis, difference_usd FROM balance ORDER BY ALL")
    for row in balances:
        if row["difference_usd"]:
            yield Check(
                "controls",
                f"bill of {row['billing_period']}",
                "fail",
                f"{row['cost_basis']} in {row['currency']}: {row['difference_usd']} is missing from the ledger",
                "report this as a defect",
            )
    if not wrong and not any(row["difference_usd"] for row in balances):
        held = rows(snapshot, "SELECT count(*) AS controls FROM control")[0]["controls"]
        yield Check(
            "controls", "books", "ok", f"{count(held)} controls hold; {count(len(balances))} balance(s) are exact"
        )


def unknown(snapshot: Snapshot) -> Checks:
    """Models without a price, cost without a log, cost without a team."""
    by_model = measures.table(snapshot, ["unpriced_tokens", "unknown_cost_tokens"], ("provider", "model")).to_pylist()
    # the own fleet has a cost and no price: what the bill has not reached is told by the checks of the fleet
    unpriced = [
        row
        for row in by_model
        if row["provider"] != "self-hosted" and (row["unpriced_tokens"] or row["unknown_cost_tokens"])
    ]
    for row in unpriced:
        yield Check(
            "prices",
            row["model"] or "(unknown model)",
            "warn",
            f"{mtok(row['unpriced_tokens'])} tokens have no price; "
            f"the cost of {mtok(row['unknown_cost_tokens'])} is unknown",
            "add the model under prices.contract, or an alias under models.aliases",
        )
    if not unpriced:
        yield Check("prices", "models", "ok", "every logged model has a price")
    figures = measures.table(
        snapshot, ["unattributed_share", "unattributed_cost_usd", "ownerless_share", "ownerless_cost_usd"]
    )
    row = figures.to_pylist()[0]
    yield _share(
        "unattributed",
        row["unattributed_share"],
        row["unattributed_cost_usd"],
        snapshot.currency,
        "see the page Reconciliation: which account, model or region has no usage log",
    )
    yield _share(
        "without a team",
        row["ownerless_share"],
        row["ownerless_cost_usd"],
        snapshot.currency,
        "see the page Teams and apps for claims that no rule knows, and add rules under `owners`",
    )


def _share(what: str, share: float | None, cost: Decimal | None, currency: str, remedy: str) -> Check:
    shown = None if share is None else Decimal(repr(share))
    detail = f"{money(cost, currency)}, {percent(shown)} of inference cost"
    if share is not None and share > NOTABLE_SHARE:
        return Check("attribution", what, "warn", detail, remedy)
    return Check("attribution", what, "ok", detail)


def _age(span: timedelta) -> str:
    hours = span.total_seconds() / 3600
    return f"{hours / 24:.0f} days" if hours >= 48 else f"{hours:.0f} hours"
