"""One delivery of the bill for one month: Bedrock, everything else, credits, support and tax."""

from collections.abc import Callable

import numpy as np

from demo import cloud
from demo.clock import HOUR, Period
from demo.ledger import ROW, Ledger, code, digits, usd
from demo.metering import Tariff, line_rates
from demo.models import ACCOUNTS, DEPLOYMENTS, PAYER, REGIONS, TOKEN_CLASSES, BillName, Deployment, bill_name
from demo.simulation import Simulation, generator

TAX_PER_10_000 = 625
SUPPORT_TIERS = ((10_000 * 10**9, 10), (70_000 * 10**9, 7), (170_000 * 10**9, 5), (None, 3))
"""AWS Business Support: percent of the month's AWS charges (Marketplace excluded), by slices; at least $100."""

CREDITS = (("AmazonBedrockService", 900, 6), ("AmazonBedrock", 60, 10), ("AmazonEC2", 120, 15))
"""(product code, at most so many dollars, at most so many percent of the month's charges)."""


def draw_up(
    simulation: Simulation,
    period: Period,
    metered: np.ndarray,
    tariff: Tariff,
    fleet: Callable[[Ledger], None] | None = None,
) -> Ledger:
    """The bill of a month. `metered`: the metered lines that have reached billing by this delivery.

    `fleet` adds the lines of the company's GPU fleet.
    """
    window = simulation.window
    ledger = Ledger(period)
    mine = metered[(metered["hour_us"] >= period.start_us) & (metered["hour_us"] < period.end_us)]
    add_bedrock(ledger, mine, tariff)
    from_us, until_us = max(period.start_us, window.start_us), min(period.end_us, window.billed_until_us)
    cloud.add_services(generator(simulation.seed, f"cloud {period.label}"), ledger, from_us, until_us)
    if fleet is not None:
        fleet(ledger)
    add_credits(ledger)
    add_support(ledger)
    add_tax(ledger)
    return ledger


def add_bedrock(ledger: Ledger, metered: np.ndarray, tariff: Tariff) -> None:
    """One usage line per account, region, usage type, resource and hour."""
    rate = line_rates(metered, tariff)
    described = np.stack(
        [metered["deployment"], metered["batch"], metered["long_context"], metered["token_class"], rate], axis=1
    ).astype(np.int64)
    kinds, kind_of = np.unique(described, axis=0, return_inverse=True)
    numbers, units, marketplace = [], [], []
    for number, batch, long_context, token_class, nano in kinds.tolist():
        deployment = DEPLOYMENTS[number]
        name = bill_name(deployment, token_class, bool(batch), bool(long_context))
        numbers.append(describe(ledger, deployment, name, TOKEN_CLASSES[token_class], nano, bool(batch)))
        units.append(name.tokens_per_unit)
        marketplace.append(deployment.model.family.startswith("C"))
    kind_of = kind_of.reshape(-1)
    rows = np.zeros(len(metered), dtype=ROW)
    rows["kind"] = np.array(numbers, dtype=np.int64)[kind_of]
    rows["start_us"] = metered["hour_us"]
    rows["end_us"] = metered["hour_us"] + HOUR
    rows["usage"] = metered["tokens"] / np.array(units)[kind_of]
    rows["cost_nano"] = metered["tokens"] * rate
    rows["public_nano"] = np.where(np.array(marketplace)[kind_of], 0, rows["cost_nano"])
    ledger.add(rows)


def describe(
    ledger: Ledger, deployment: Deployment, name: BillName, token_class: str, nano_per_token: int, batch: bool
) -> int:
    """Register the kind of line of one token class of one deployment at one rate."""
    model, account = deployment.model, ACCOUNTS[deployment.account]
    marketplace = model.family.startswith("C")
    rate = usd(nano_per_token * name.tokens_per_unit)
    sku = code("sku", model.product_code, name.usage_type)
    _, location, _ = REGIONS[deployment.region]
    described: dict[str, str | dict[str, str] | None] = {
        "line_item_blended_rate": rate,
        "line_item_iam_principal": f"arn:aws:sts::{account.id}:assumed-role/litellm-gateway/{deployment.region}",
        "line_item_line_item_description": name.description if marketplace else f"${rate} {name.description}",
        "line_item_operation": name.operation,
        "line_item_product_code": model.product_code,
        # assumption: batch jobs are billed without the resource they ran on
        "line_item_resource_id": "" if batch else deployment.resource_id,
        "line_item_unblended_rate": rate,
        "line_item_usage_type": name.usage_type,
        "pricing_currency": "USD",
        "pricing_public_on_demand_rate": "0.0000000000" if marketplace else rate,
        "pricing_rate_code": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "pricing_rate_id": digits("rate", sku),
        "pricing_term": "OnDemand",
        "pricing_unit": name.unit,
        "product": {"product_name": model.product_name, "region": deployment.region},
        "product_location": location,
        "product_location_type": "AWS Region",
        "product_operation": name.operation,
        "product_pricing_unit": name.unit,
        "product_product_family": "" if marketplace else "Amazon Bedrock",
        "product_region_code": deployment.region,
        "product_servicecode": model.product_code,
        "product_sku": sku,
        "product_usagetype": name.usage_type,
        "tags": {"accountTag/environment": account.environment, "iamPrincipal/app": "llm-gateway"},
    }
    return ledger.kind(account, "AWS Marketplace" if marketplace else "AWS", "Usage", **described)


def charges(ledger: Ledger) -> dict[tuple[str, str, str], int]:
    """Exact nano-dollars so far per (billing entity, product code, usage account name)."""
    rows = ledger.all_rows()
    per_kind = np.zeros(len(ledger.kinds), dtype=np.int64)
    np.add.at(per_kind, rows["kind"], rows["cost_nano"])
    totals: dict[tuple[str, str, str], int] = {}
    for kind, nano in zip(ledger.kinds, per_kind.tolist(), strict=True):
        entity, product_code, account = (
            str(kind[name])
            for name in ("bill_billing_entity", "line_item_product_code", "line_item_usage_account_name")
        )
        key = entity, product_code, account
        totals[key] = totals.get(key, 0) + nano
    return totals


def product_name(ledger: Ledger, product_code: str) -> str:
    """The product name that the month's usage lines give for a product code."""
    for kind in ledger.kinds:
        product = kind.get("product")
        if kind.get("line_item_product_code") == product_code and isinstance(product, dict):
            return product["product_name"]
    raise LookupError(f"no usage line of {product_code} in {ledger.period.label}")


def add_credits(ledger: Ledger) -> None:
    """A credit line per credited product, in the account that spent most on it."""
    spent = charges(ledger)
    for product_code, at_most_usd, at_most_percent in CREDITS:
        of_product = {key: nano for key, nano in spent.items() if key[1] == product_code}
        if not of_product:
            continue
        _, _, account = max(of_product, key=lambda key: (of_product[key], key))
        nano = -min(at_most_usd * 10**9, sum(of_product.values()) * at_most_percent // 100)
        kind = ledger.kind(
            ACCOUNTS[account],
            "AWS",
            "Credit",
            line_item_line_item_description=f"AWS Promotional Credits for {product_code}",
            line_item_product_code=product_code,
            line_item_usage_type="Credit",
            product={"product_name": product_name(ledger, product_code)},
        )
        ledger.add_one(kind, nano, 0.0, ledger.period.start_us, ledger.period.end_us)


def add_support(ledger: Ledger) -> None:
    """The month's support fee to date, on the payer account."""
    base = sum(nano for (entity, _, _), nano in charges(ledger).items() if entity == "AWS")
    fee, rest = 0, max(0, base)
    for slice_nano, percent in SUPPORT_TIERS:
        part = rest if slice_nano is None else min(rest, slice_nano)
        fee, rest = fee + part * percent // 100, rest - part
    kind = ledger.kind(
        PAYER,
        "AWS",
        "Fee",
        line_item_line_item_description="AWS Support (Business)",
        line_item_product_code="AWSSupportBusiness",
        line_item_usage_type="Dollar",
        product={"product_name": "AWS Support (Business)"},
        product_product_family="AWS Support",
    )
    ledger.add_one(kind, max(fee, 100 * 10**9), 1.0, ledger.period.start_us, ledger.period.end_us)


def add_tax(ledger: Ledger) -> None:
    """One tax line per product code and account, on its charges net of credits."""
    accounts = ACCOUNTS | {PAYER.name: PAYER}
    for (entity, product_code, account), nano in sorted(charges(ledger).items()):
        tax = nano * TAX_PER_10_000 // 10_000
        if tax <= 0:
            continue
        kind = ledger.kind(
            accounts[account],
            entity,
            "Tax",
            line_item_line_item_description=f"Tax for product code {product_code}",
            line_item_product_code=product_code,
            line_item_tax_type="USSalesTax",
            product={"product_name": product_name(ledger, product_code)},
        )
        ledger.add_one(kind, tax, 1.0, ledger.period.start_us, ledger.period.end_us)
