"""Charges that are no use of anything: credits, refunds, tax, support, subscriptions, Marketplace (billing.md 4.1)."""

from decimal import Decimal

from demo.billing.line import Columns, Month
from demo.billing.shape import Shape


def credits(month: Month) -> Shape:
    """A promotional credit of 50 on Bedrock, for the whole month."""
    line = month.line(
        "Credit", "AmazonBedrock", -50, month.at(1), month.hours,
        line_item_line_item_description="AWS Promotional Credits for AmazonBedrock",
        line_item_usage_amount=Decimal(0),
        line_item_usage_type="Credit",
    )  # fmt: skip
    return Shape("credit", (line,), Decimal(-50), Decimal(-50))


def refunds(month: Month) -> Shape:
    """A refund of 12.34 for use of machines."""
    line = month.line(
        "Refund", "AmazonEC2", "-12.34", month.at(15), 1,
        bill_bill_type="Refund",
        line_item_line_item_description="Concession for BoxUsage:trn1.32xlarge",
        line_item_usage_type="BoxUsage:trn1.32xlarge",
    )  # fmt: skip
    return Shape("refund", (line,), Decimal("-12.34"), Decimal("-12.34"))


def taxes(month: Month) -> Shape:
    """Tax on two products, 6.25 and 3.75, for the whole month."""
    lines = [
        month.line(
            "Tax", product_code, amount, month.at(1), month.hours,
            line_item_line_item_description=f"Tax for product code {product_code}",
            line_item_tax_type="USSalesTax",
        )
        for product_code, amount in (("AmazonEC2", "6.25"), ("AmazonBedrock", "3.75"))
    ]  # fmt: skip
    return Shape("tax", tuple(lines), Decimal(10), Decimal(10))


def support(month: Month) -> Shape:
    """Support of 100 for the month."""
    line = month.line(
        "Fee", "AWSSupportEnterprise", 100, month.at(1), month.hours,
        account=month.payer,
        discounts={},  # assumption: support is computed after the agreement, which takes nothing more off
        line_item_line_item_description="AWS Support (Enterprise)",
        line_item_usage_type="Dollar",
    )  # fmt: skip
    return Shape("support", (line,), Decimal(100), Decimal(100))


def subscription(month: Month) -> Shape:
    """A flat-rate subscription of 19."""
    line = month.line(
        "FlatRateSubscription", "AmazonQ", 19, month.at(1), month.hours,
        line_item_line_item_description="Amazon Q Developer Pro, per user",
        line_item_usage_type="USE1-QDeveloper-Pro-User",
        line_item_usage_amount=Decimal(1),
        pricing_public_on_demand_cost=Decimal(19),
        pricing_unit="User-Month",
    )  # fmt: skip
    # billing.md 4.2 lists a public cost for use only, and counts a subscription as a charge
    return Shape("subscription", (line,), Decimal(19), Decimal(19), Decimal(19), Decimal("1.9"))


def marketplace(month: Month) -> Shape:
    """A contract of 240 bought in the Marketplace, and use of 36 under another one."""
    told: Columns = {
        "product": {"product_name": "Observability Pro"},
        "line_item_legal_entity": "Observability Pro, Inc.",
    }
    contract = month.line(
        "Fee", "6uqxm3xy9b5v8t0k2c1d4e7f", 240, month.at(11),
        entity="AWS Marketplace",
        line_item_line_item_description="AWS Marketplace contract for Observability Pro",
        line_item_usage_type="Contract",
        **told,
    )  # fmt: skip
    use = month.usage(
        "6uqxm3xy9b5v8t0k2c1d4e7f", "USE1-MP:hosts-Units", 36, month.at(11, 1),
        entity="AWS Marketplace",
        line_item_line_item_description="AWS Marketplace software usage|us-east-1|Hosts",
        line_item_operation="Usage",
        line_item_usage_amount=Decimal(12),
        pricing_public_on_demand_cost=Decimal(0),
        pricing_unit="Units",
        **told,
    )  # fmt: skip
    return Shape("marketplace", (contract, use), Decimal(276), Decimal(276))
