"""The figures of `inferledger summary`: what was billed, for what, for whom, and what a million tokens cost.

One dictionary with stable keys; the table that people see is made from it. Money and ratios are decimal text, counts
whole numbers; null is unknown. Over kinds and over teams the amounts add up to the bill, exactly.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from inferledger import summary_fleet, summary_tables
from inferledger.figures import exact
from inferledger.notes import notes
from inferledger.rows import Facts, rows
from inferledger.summary_tables import figures_row
from warehouse import measures
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

NO_TEAM = "(no team)"
ROUNDING = "rounding"

TOTALS = (
    "usage_cost_usd",
    "fully_loaded_cost_usd",
    "estimated_cost_usd",
    "unattributed_cost_usd",
    "ownerless_cost_usd",
    "cost_per_mtok_usd",
    "cost_per_mtok_input_usd",
    "cost_per_mtok_output_usd",
    "fully_loaded_cost_per_mtok_usd",
    "cost_per_request_usd",
    "cost_per_task_usd",
    "total_tokens",
    "input_tokens",
    "uncached_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "requests",
    "operations",
    "failed_requests",
    "tasks",
    "cache_hit_ratio",
    "error_ratio",
    "retry_ratio",
    "unattributed_share",
    "estimated_share",
    "unknown_cost_tokens",
)
PRICE_BOOK = (
    "list_cost_usd",
    "list_base_cost_usd",
    "uncached_cost_usd",
    "cache_saving_usd",
    "long_context_premium_usd",
    "unpriced_tokens",
)


def summary(snapshot: Snapshot, where: Filters | None = None, by: Sequence[str] = ()) -> Facts:
    """Every figure of the summary, for the whole ledger or a range of days."""
    where = where or Filters()
    whole = where.first_day is None and where.last_day is None
    balances = _balances(snapshot)
    mine = [row for row in balances if row["currency"] == snapshot.currency]
    rounding = {basis: _sum(mine, basis, "rounding") if whole else Decimal(0) for basis in ("effective", "billed")}
    kinds = _amounts(snapshot, "kind", where)
    teams = _amounts(snapshot, "team", where)
    facts: Facts = {
        "currency": snapshot.currency,
        "period": {
            "first_day": (where.first_day or snapshot.first_day).isoformat(),
            "last_day": (where.last_day or snapshot.last_day).isoformat(),
            "whole_ledger": whole,
        },
        "zone": snapshot.zone,
        "as_of": snapshot.as_of.isoformat(),
        "manifest": snapshot.manifest_id,
        "published_at": snapshot.published_at.isoformat(),
        "status": _status(mine),
    }
    for basis in ("billed", "effective"):
        ledger = sum((amounts[basis] for amounts in kinds.values()), Decimal(0))
        bill = _sum(mine, basis, "bill") if whole else ledger
        facts[basis] = exact(bill)
        facts["difference" if basis == "effective" else "difference_billed"] = exact(
            bill - ledger - rounding[basis] if whole else _sum(mine, basis, "difference")
        )
    totals = figures_row(measures.table(snapshot, TOTALS, where=where).to_pylist()[0])
    facts |= {
        "estimated": totals["estimated_cost"],
        "by_kind": _named(kinds, "effective", rounding),
        "by_team": _named(teams, "effective", rounding, is_team=True),
        "by_kind_billed": _named(kinds, "billed", rounding),
        "by_team_billed": _named(teams, "billed", rounding, is_team=True),
        "totals": totals,
        "price_book": figures_row(measures.table(snapshot, PRICE_BOOK, where=where).to_pylist()[0]),
        "models": summary_tables.models(snapshot, where),
        "teams": summary_tables.teams(snapshot, where),
        "tasks": summary_tables.tasks(snapshot, where),
        "unattributed": summary_tables.unattributed(snapshot, where),
        "fleet": summary_fleet.fleet(snapshot, where),
        "balances": [
            {key: exact(value) if isinstance(value, Decimal) else value for key, value in row.items()}
            for row in balances
        ],
        "other_currencies": _other_currencies(snapshot, balances),
    }
    if by:
        facts["breakdown"] = {"by": list(by), "rows": summary_tables.breakdown(snapshot, where, by)}
    facts["notes"] = notes(snapshot, facts)
    return facts


def _amounts(snapshot: Snapshot, by: str, where: Filters) -> dict[str | None, dict[str, Decimal]]:
    """Bill postings in the reporting currency per basis, by kind or by team. Exact."""
    found = measures.table(
        snapshot, ["effective_cost_usd", "billed_cost_usd"], (by, "basis"), replace(where, basis=("billed",))
    ).to_pylist()
    zero = Decimal(0)
    return {
        row[by]: {
            basis: zero if row[f"{basis}_cost_usd"] is None else row[f"{basis}_cost_usd"]
            for basis in ("effective", "billed")
        }
        for row in found
    }


def _named(
    amounts: dict[str | None, dict[str, Decimal]], basis: str, rounding: dict[str, Decimal], is_team: bool = False
) -> dict[str, str | None]:
    """Amounts by name, largest first, rounding included: they add up to the bill."""
    found: dict[str, Decimal] = {}
    for name, amount in amounts.items():
        key = name if name is not None else NO_TEAM
        found[key] = found.get(key, Decimal(0)) + amount[basis]
    if is_team:
        if rounding[basis] or found:
            found[NO_TEAM] = found.get(NO_TEAM, Decimal(0)) + rounding[basis]
    elif found:
        found[ROUNDING] = rounding[basis]
    return {name: exact(amount) for name, amount in sorted(found.items(), key=lambda item: (-item[1], item[0]))}


def _balances(snapshot: Snapshot) -> list[Facts]:
    return rows(
        snapshot,
        """
        SELECT billing_period, currency, cost_basis, status, bill_usd AS bill, ledger_usd AS ledger,
            rounding_usd AS rounding, difference_usd AS difference
        FROM balance ORDER BY billing_period, currency, cost_basis
        """,
    )


def _sum(balances: Sequence[Facts], basis: str, column: str) -> Decimal:
    return sum((row[column] for row in balances if row["cost_basis"] == basis), Decimal(0))


def _status(balances: Sequence[Facts]) -> str:
    states = {row["status"] for row in balances}
    return "no bill" if not states else "final" if states == {"final"} else "open"


def _other_currencies(snapshot: Snapshot, balances: Sequence[Facts]) -> list[Facts]:
    found = []
    for currency in sorted({row["currency"] for row in balances} - {snapshot.currency}):
        own = [row for row in balances if row["currency"] == currency]
        found.append(
            {
                "currency": currency,
                "billed": exact(_sum(own, "billed", "bill")),
                "effective": exact(_sum(own, "effective", "bill")),
                "difference": exact(_sum(own, "effective", "difference")),
                "difference_billed": exact(_sum(own, "billed", "difference")),
                "status": _status(own),
            }
        )
    return found
