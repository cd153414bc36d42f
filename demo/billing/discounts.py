"""The same discounts told in columns, in lines of their own, or in both (billing.md 4.4)."""

from collections.abc import Sequence
from decimal import Decimal
from enum import Enum

from demo.billing.line import Line, Value


class Discounts(Enum):
    """How a bill tells its discounts. NONE: it has none, and its net columns are empty."""

    NONE = "none"
    COLUMNS = "columns"
    LINES = "lines"
    BOTH = "both"


LINE_TYPES = {"edp": "EdpDiscount", "private_rate": "PrivateRateDiscount", "bundled": "BundledDiscount"}

_UPFRONT = (
    "reservation_amortized_upfront_cost_for_usage",
    "reservation_amortized_upfront_fee_for_billing_period",
    "reservation_unused_amortized_upfront_fee_for_billing_period",
    "reservation_upfront_value",
    "savings_plan_amortized_upfront_commitment_for_billing_period",
)
_RECURRING = (
    "reservation_recurring_fee_for_usage",
    "reservation_unused_recurring_fee",
    "savings_plan_recurring_commitment_for_billing_period",
)
_EFFECTIVE = ("reservation_effective_cost", "savings_plan_savings_plan_effective_cost")


def tell(lines: Sequence[Line], how: Discounts) -> list[Line]:
    """The lines with their discounts told that way."""
    if how is Discounts.NONE:
        return list(lines)
    told = [in_columns(line) for line in lines] if how in (Discounts.COLUMNS, Discounts.BOTH) else list(lines)
    # assumption: where both are told, the net cost of a discount's own line is 0
    net = Decimal(0) if how is Discounts.BOTH else None
    return told + (discount_lines(lines, net) if how in (Discounts.LINES, Discounts.BOTH) else [])


def in_columns(line: Line) -> Line:
    """The line with its net columns and `discount_*`."""
    part = sum(line.discounts.values(), Decimal(0))
    columns: dict[str, Value] = dict(line.columns)

    def net_of(names: Sequence[str], taken: Decimal) -> None:
        for name in names:
            if name in columns:
                group = "reservation_" if name.startswith("reservation_") else "savings_plan_"
                columns[name.replace(group, f"{group}net_", 1)] = line.amount(name) * (1 - taken)

    columns["line_item_net_unblended_cost"] = line.cost * (1 - part)
    # assumption: an agreement takes its part of what is paid as one goes, not of an up-front fee
    net_of(_UPFRONT, Decimal(0))
    net_of(_RECURRING, part)
    net_of(_EFFECTIVE, part * line.recurring)
    if line.discounts and line.cost:
        # assumption: names of the keys, and the sign: what is taken off is negative
        taken = {f"{kind}_discount": -line.cost * share for kind, share in line.discounts.items()}
        columns["discount"] = taken
        columns["discount_total_discount"] = sum(taken.values(), Decimal(0))
        columns["discount_bundled_discount"] = taken.get("bundled_discount", Decimal(0))
    return Line(columns, line.discounts, line.recurring)


def discount_lines(lines: Sequence[Line], net: Decimal | None) -> list[Line]:
    """A line of the month per discount, account, product and usage type."""
    taken: dict[tuple[str, Value, Value, Value], Decimal] = {}
    first: dict[tuple[str, Value, Value, Value], Line] = {}
    for line in lines:
        for kind, share in line.discounts.items():
            named = ("line_item_usage_account_id", "line_item_product_code", "line_item_usage_type")
            account, product, usage_type = (line.columns.get(name) for name in named)
            key = kind, account, product, usage_type
            taken[key] = taken.get(key, Decimal(0)) + line.cost * share
            first.setdefault(key, line)
    # what a Savings Plan covers and its negation cancel out: no discount is left
    return [_discount_line(key[0], first[key], amount, net) for key, amount in taken.items() if amount]


_COPIED = """
bill_bill_type bill_billing_entity bill_billing_period_start_date bill_billing_period_end_date bill_invoice_id
bill_invoicing_entity bill_payer_account_id bill_payer_account_name line_item_currency_code line_item_legal_entity
line_item_product_code line_item_usage_account_id line_item_usage_account_name line_item_usage_type pricing_currency
product product_servicecode cost_category tags
"""


def _discount_line(kind: str, like: Line, amount: Decimal, net: Decimal | None) -> Line:
    columns: dict[str, Value] = {name: like.columns.get(name) for name in _COPIED.split()}
    columns |= {
        "line_item_line_item_type": LINE_TYPES[kind],
        "line_item_line_item_description": f"{LINE_TYPES[kind]} on {like.columns['line_item_product_code']}",
        "line_item_unblended_cost": -amount,
        "line_item_net_unblended_cost": net,
        "line_item_usage_start_date": like.columns["bill_billing_period_start_date"],
        "line_item_usage_end_date": like.columns["bill_billing_period_end_date"],
        # billing.md 4.2: the blended cost of a discount is blank, and it counts as no usage
        "line_item_usage_amount": Decimal(0),
    }
    return Line(columns)
