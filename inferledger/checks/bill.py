"""The bill: every check of it with both sides, one line where it holds everywhere, one for each place where not."""

from decimal import Decimal

from inferledger.checks.check import Check, Checks
from inferledger.figures import count
from inferledger.rows import Facts, rows
from warehouse.snapshot import Snapshot

DEFECT = "report this as a defect"
REMEDIES = {
    "billed cost stored = as read": DEFECT,
    "effective cost stored = as read": DEFECT,
    "savings plans: covered + negated = 0": (
        "wait for the next delivery; if it stays, ask AWS support about these hours"
    ),
    "effective = billed - fees paid ahead + their part of the month": (
        "see docs/aws-billing.md, from billed to effective; a plan bought or returned within the month shows here"
    ),
    "split costs = cost of the instance": (
        "AWS splits instances that lived less than an hour short; the instance's own line counts, its split is evidence"
    ),
    "discounts in columns = discounts in lines": (
        "the lines were used; see INCLUDE_MANUAL_DISCOUNT_COMPATIBILITY in docs/aws-billing.md"
    ),
    "record = cross-check, billed": (
        "compare both exports (WHERE, accounts, when they were delivered); the record counts, and `role` chooses it"
    ),
    "record = cross-check, effective": "net and amortised columns differ between formats; the record is what counts",
    "days long past are as they were": "the ledger followed; the Reconciliation page names the days and services",
    "unit prices within 0.2 and 5 times the price book": (
        "see whether the unit or the model's alias is wrong (models.aliases), or a contract price is missing "
        "(prices.contract)"
    ),
    "tokens in the log = tokens on the bill": (
        "calls without a log are unattributed, calls without a bill estimated: see whether every caller goes through "
        "the gateway"
    ),
    "units of token charges are known": "tell us the unit; until then these lines have cost and no tokens",
    "models of token charges are known": "name the model under models.aliases",
}


def bill(snapshot: Snapshot) -> Checks:
    """Every check of every bill that is published; nothing where there is no bill."""
    found = rows(
        snapshot,
        "SELECT name, billing_period, subject, currency, lhs, rhs, difference, tolerance, ok, explanation "
        "FROM bill_check ORDER BY name, billing_period DESC, subject, currency",
    )
    for name in dict.fromkeys(row["name"] for row in found):
        own = [row for row in found if row["name"] == name]
        wrong = [row for row in own if not row["ok"]]
        for row in wrong:
            remedy = REMEDIES.get(name, "see the Reconciliation page")
            yield Check("bill", name, "fail" if remedy == DEFECT else "warn", _sides(row), remedy)
        if not wrong:
            more = f" and {count(len(own) - 1)} more" if len(own) > 1 else ""
            yield Check("bill", name, "ok", f"{_sides(own[0])}{more}")


def _sides(row: Facts) -> str:
    sides = f"{_number(row['lhs'])} and {_number(row['rhs'])}"
    if row["difference"]:
        sides += f", difference {_number(row['difference'])}"
    if row["tolerance"]:
        sides += f" (up to {_number(round(row['tolerance'], 2) or row['tolerance'])} is none)"
    about = f"; {row['explanation']}" if row["explanation"] else ""
    return f"{row['billing_period']}, {row['subject']}, {row['currency']}: {sides}{about}"


def _number(value: Decimal) -> str:
    text = f"{value:,.18f}".rstrip("0").rstrip(".")
    return text if value else "0"
