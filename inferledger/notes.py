"""What a summary says about itself: what is estimated, unknown, not inference or held back, and what to do about it."""

from decimal import Decimal
from typing import Any

from inferledger.figures import count, money, mtok, percent
from warehouse.snapshot import Snapshot

REASONS = {
    "no_log": "tokens, billed or counted by engines, that no logged call explains",
    "no_tokens_on_bill": "bill lines of a model without any token",
    "unit_unknown": "bill lines whose unit is not known to be tokens",
    "not_metered_in_tokens": "model charges that are not metered in tokens",
    "no_key": "other charges in scope that no key shares out",
    "no_tokens": "busy GPUs of a pool without any token, counted or logged",
}
CAUSES = {
    "no_traffic": "replicas that were up and had no call",
    "not_requested": "GPUs of nodes that no pod requested",
    "starting": "pods before their engine first answered",
    "stopping": "pods after their engine's last sample",
    "not_in_cluster": "instances that were billed while they were no node of a cluster",
}


def notes(snapshot: Snapshot, facts: dict[str, Any]) -> list[str]:
    """Sentences, most important first."""
    return [
        *_books(snapshot, facts),
        *_estimates(facts),
        *_unknown(facts),
        *_unattributed(facts),
        *_fleet(facts),
        *_rest(snapshot, facts),
    ]


def _books(snapshot: Snapshot, facts: dict[str, Any]) -> list[str]:
    found = []
    if snapshot.held:
        found.append(
            f"A newer state is held back, for {len(snapshot.held)} control(s) do not hold: run `inferledger doctor`."
        )
    wrong = [row for row in facts["balances"] if Decimal(row["difference"])]
    for row in wrong:
        found.append(
            f"The books of {row['billing_period']} ({row['currency']}, {row['cost_basis']}) do not balance: "
            f"{row['difference']} is missing. Run `inferledger doctor`."
        )
    if not facts["balances"]:
        found.append(
            "No bill has been loaded: every cost is an estimate, the price book times logged tokens. "
            "Add the bill under `sources` to reconcile."
        )
    for other in facts["other_currencies"]:
        found.append(
            f"Beside this, the bill has {money(other['effective'], other['currency'])} in {other['currency']}; "
            "currencies are never added up."
        )
    return found


def _estimates(facts: dict[str, Any]) -> list[str]:
    if not facts["balances"] or not Decimal(facts["estimated"] or 0):
        return []
    return [
        f"{money(facts['estimated'], facts['currency'])} is estimated from the price book for calls that the bill "
        "does not show yet. It is in unit costs and usage cost, never in the bill's figures."
    ]


def _unknown(facts: dict[str, Any]) -> list[str]:
    found = []
    tokens = facts["totals"]["unknown_cost_tokens"]
    routes = {str(pool["model"]) for pool in (facts["fleet"] or {}).get("pools") or ()}
    names = sorted({str(row["model"]) for row in facts["models"] if row["unknown_cost_tokens"]} - routes)
    own = (facts["fleet"]["self_hosted"]["unknown_cost_tokens"] or 0) if facts["fleet"] else 0
    if own:
        found.append(
            f"The cost of {mtok(own)} tokens of the own fleet is unknown: the bill has not reached their hours, "
            "or no metric or pool table knows who answered them."
        )
    if tokens and tokens > own:
        found.append(
            f"The cost of {mtok(tokens - own)} tokens is unknown: not billed yet and without a price "
            f"({', '.join(names)}). Add it under prices.contract."
        )
    unpriced = sorted({str(row["model"]) for row in facts["models"] if row["unpriced_tokens"]} - set(names))
    if unpriced:
        found.append(
            f"The price book does not know {', '.join(unpriced)}; the bill does, but estimates and price-book figures "
            "leave it out. Add it under prices.contract."
        )
    return found


def _unattributed(facts: dict[str, Any]) -> list[str]:
    return [
        f"{money(row['unattributed_cost'], facts['currency'])} is unattributed: "
        f"{REASONS.get(row['reason'], row['reason'])}"
        + (f" ({mtok(row['unattributed_tokens'])} tokens)." if row["unattributed_tokens"] else ".")
        for row in facts["unattributed"]
    ]


def _fleet(facts: dict[str, Any]) -> list[str]:
    if facts["fleet"] is None:
        return []
    own, currency = facts["fleet"]["self_hosted"], facts["currency"]
    found = []
    if facts["fleet"]["idle_by_cause"]:
        causes = "; ".join(
            f"{money(amount, currency)} {CAUSES.get(cause, cause)}"
            for cause, amount in facts["fleet"]["idle_by_cause"].items()
        )
        found.append(f"{money(own['idle_cost'], currency)} of GPU money did nothing: {causes}.")
    if Decimal(own["under_used_cost"] or 0):
        found.append(
            f"{money(own['under_used_cost'], currency)} is under-used: GPUs that were busy below the 95th percentile "
            "of the week before, or ran steps of small batches. It is in fully loaded cost, not in usage."
        )
    if Decimal(own["unmeasured_cost"] or 0):
        found.append(
            f"{money(own['unmeasured_cost'], currency)} is unmeasured: no metric tells what those GPUs did, which is "
            "not idle. `inferledger doctor` names the pods."
        )
    if facts["fleet"]["unknown_counters"]:
        found.append(
            f"{count(facts['fleet']['unknown_counters'])} counter(s) of the engines began at an unknown value; what "
            "they had counted by then is not booked."
        )
    return found


def _rest(snapshot: Snapshot, facts: dict[str, Any]) -> list[str]:
    found = []
    ownerless = facts["totals"]["ownerless_cost"]
    if Decimal(ownerless or 0):
        found.append(
            f"{money(ownerless, facts['currency'])} of usage and unattributed cost has no team. "
            "Claims that no rule knows are on the page Teams and apps; rules are under `owners`."
        )
    future = Decimal(facts["by_kind"].get("future") or 0)
    if future:
        found.append(f"{money(future, facts['currency'])} is charged already for hours after as-of.")
    rejected = snapshot.sql(
        "SELECT source, CAST(sum(rows) AS BIGINT) AS rows FROM rejected "
        "WHERE reason <> 'repeats_children' GROUP BY ALL ORDER BY ALL"
    ).to_pylist()
    for row in rejected:
        found.append(
            f"{count(row['rows'])} row(s) of `{row['source']}` were refused: run `inferledger doctor` for the reasons."
        )
    found += _other_currencies(snapshot)
    failed = facts["totals"]["error_ratio"]
    if failed is not None and Decimal(failed) > Decimal("0.05"):
        found.append(f"{percent(failed)} of all attempts failed.")
    return found


def _other_currencies(snapshot: Snapshot) -> list[str]:
    """Bills in other currencies are in no sum here; what they are in this one is told beside."""
    found = []
    for row in snapshot.sql(
        "SELECT * FROM bill_reporting WHERE currency <> reporting_currency ORDER BY billing_period, currency"
    ).to_pylist():
        said = f"The bill of {row['billing_period']} also holds {money(row['effective'], row['currency'])}"
        if row["effective_reporting"] is None:
            said += ", without an exchange rate (exchange_rates)"
        else:
            said += f", {money(row['effective_reporting'], row['reporting_currency'])} by the rate of each day"
            if row["days_without_rate"]:
                said += f"; {row['days_without_rate']} of {row['days']} days have none and are left out"
        found.append(f"{said}. Currencies are never added up.")
    return found
