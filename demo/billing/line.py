"""A line of a bill by its CUR 2.0 columns, and lines as a table. Amounts are exact until the file is written."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from demo.clock import HOUR, Period, iso
from demo.cur_schema import DOUBLE, MAP, NUMBER_MAP, SCHEMA, TIME
from demo.ledger import code, digits
from demo.models import ACCOUNTS, Account

Value = str | int | Decimal | dict[str, str] | dict[str, Decimal] | None
"""Text, an instant in microseconds (time columns), an amount, or a map."""

EDP = {"edp": Decimal("0.1")}
"""What the enterprise agreement takes off a line: a tenth."""

TEAM = ACCOUNTS["ai-prod"]

PRODUCTS = {
    "AmazonBedrock": "Amazon Bedrock",
    "AmazonBedrockAgentCore": "Amazon Bedrock AgentCore",
    "AmazonBedrockService": "Amazon Bedrock Service",
    "AmazonCloudWatch": "AmazonCloudWatch",
    "AmazonEC2": "Amazon Elastic Compute Cloud",
    "AmazonECS": "Amazon Elastic Container Service",
    "AmazonEKS": "Amazon Elastic Container Service for Kubernetes",
    "AmazonQ": "Amazon Q",
    "AmazonS3": "Amazon Simple Storage Service",
    "AmazonSageMaker": "Amazon SageMaker",
    "AmazonVPC": "Amazon Virtual Private Cloud",
    "AWSDataTransfer": "AWS Data Transfer",
    "AWSSupportEnterprise": "AWS Support (Enterprise)",
    "ComputeSavingsPlans": "Savings Plans for AWS Compute usage",
    "MachineLearningSavingsPlans": "Savings Plans for AWS Machine Learning",
}

Columns = dict[str, Any]
"""Columns of CUR 2.0 by name, each a `Value`, to be handed on as arguments."""


@dataclass(frozen=True)
class Line:
    """One line. `columns`: what it says without any discount.

    `discounts`: kind of discount -> the part of its cost that it takes. `recurring`: the part of the effective cost
    that is paid as it goes and so can be discounted; the rest was paid up front.
    """

    columns: dict[str, Value]
    discounts: Mapping[str, Decimal] = field(default_factory=dict)
    recurring: Decimal = Decimal(1)

    def amount(self, column: str) -> Decimal:
        """An amount; 0 where the column is empty."""
        value = self.columns.get(column)
        return value if isinstance(value, Decimal) else Decimal(0)

    @property
    def kind(self) -> str:
        return str(self.columns["line_item_line_item_type"])

    @property
    def usage_type(self) -> str:
        return str(self.columns["line_item_usage_type"])

    @property
    def cost(self) -> Decimal:
        return self.amount("line_item_unblended_cost")


@dataclass(frozen=True)
class Month:
    """One month of one payer; makes its lines."""

    period: Period
    payer: Account
    currency: str = "USD"

    def at(self, day: int, hour: int = 0) -> int:
        """An instant of the month in microseconds; day 1 is the first."""
        return self.period.start_us + (24 * (day - 1) + hour) * HOUR

    @property
    def hours(self) -> int:
        return (self.period.end_us - self.period.start_us) // HOUR

    def line(
        self,
        kind: str,
        product_code: str,
        cost: Decimal | int | str,
        start_us: int,
        hours: int = 1,
        *,
        account: Account = TEAM,
        entity: str = "AWS",
        discounts: Mapping[str, Decimal] | None = None,
        recurring: Decimal | int | str = 1,
        **columns: Any,
    ) -> Line:
        """A line of `hours` hours. AWS's own lines carry the enterprise discount unless told otherwise."""
        marketplace = entity == "AWS Marketplace"
        group = "marketplace" if marketplace else "tax" if kind == "Tax" else "aws"
        number = digits("invoice", self.payer.id, self.period.label, group, length=10) if self.period.final else ""
        amount = Decimal(cost)
        said: dict[str, Value] = {
            "bill_bill_type": "Anniversary",
            "bill_billing_entity": entity,
            "bill_billing_period_start_date": self.period.start_us,
            "bill_billing_period_end_date": self.period.end_us,
            "bill_invoice_id": number,
            "bill_invoicing_entity": "Amazon Web Services, Inc.",
            "bill_payer_account_id": self.payer.id,
            "bill_payer_account_name": self.payer.name,
            "line_item_blended_cost": amount,
            "line_item_currency_code": self.currency,
            "line_item_legal_entity": "Amazon Web Services, Inc.",
            "line_item_line_item_description": f"{kind} of {product_code}",
            "line_item_line_item_type": kind,
            "line_item_product_code": product_code,
            "line_item_unblended_cost": amount,
            "line_item_usage_account_id": account.id,
            "line_item_usage_account_name": account.name,
            "line_item_usage_amount": Decimal(hours),
            "line_item_usage_start_date": start_us,
            "line_item_usage_end_date": start_us + hours * HOUR,
            "identity_time_interval": f"{iso(start_us)}/{iso(start_us + hours * HOUR)}",
            "pricing_currency": self.currency,
            "product": {"product_name": PRODUCTS.get(product_code, product_code)},
            "product_servicecode": product_code,
            "resource_tags": {},
            "cost_category": {"environment": account.environment},
            "tags": {"accountTag/environment": account.environment},
        }
        own = columns | {name: said[name] | columns[name] for name in ("product",) if name in columns}
        usual = {} if marketplace or kind in ("Tax", "Credit", "Refund") else EDP
        return Line(said | own, usual if discounts is None else discounts, Decimal(recurring))

    def usage(
        self,
        product_code: str,
        usage_type: str,
        cost: Decimal | int | str,
        start_us: int,
        hours: int = 1,
        **more: Value,
    ) -> Line:
        """On-demand usage in us-east-1, listed at its cost unless told otherwise."""
        sku = code("sku", product_code, usage_type)
        said: Columns = {
            "line_item_line_item_description": f"{usage_type} of {PRODUCTS.get(product_code, product_code)}",
            "line_item_usage_type": usage_type,
            "pricing_public_on_demand_cost": Decimal(cost),
            "pricing_rate_code": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
            "pricing_rate_id": digits("rate", sku),
            "pricing_term": "OnDemand",
            "product_location": "US East (N. Virginia)",
            "product_region_code": "us-east-1",
            "product_sku": sku,
            "product_usagetype": usage_type,
        }
        kind = str(more.pop("kind", "Usage"))
        return self.line(kind, product_code, cost, start_us, hours, **(said | more))


def table(lines: Sequence[Line], delivery: str = "1") -> pa.Table:
    """The lines as CUR 2.0, with line ids that are unique within a delivery and differ between deliveries."""
    ids = [hashlib.blake2b(f"{delivery} {number}".encode(), digest_size=26).hexdigest() for number in range(len(lines))]
    columns = {}
    for described in SCHEMA:
        values = [line.columns.get(described.name) for line in lines]
        if described.name == "identity_line_item_id":
            columns[described.name] = pa.array(ids)
        else:
            columns[described.name] = pa.array([_stored(value, described.type) for value in values], described.type)
    unknown = {name for line in lines for name in line.columns} - set(SCHEMA.names)
    if unknown:
        raise KeyError(f"no columns of CUR 2.0: {sorted(unknown)}")
    return pa.table(columns, schema=SCHEMA)


def _stored(value: Value, kind: pa.DataType) -> object:
    if value is None:
        return None
    if kind == TIME and isinstance(value, int):
        return value // 1000
    if kind == DOUBLE and isinstance(value, Decimal):
        return as_double(value)
    if kind == NUMBER_MAP and isinstance(value, dict):
        return [(key, as_double(Decimal(str(amount)))) for key, amount in sorted(value.items())]
    if kind == MAP and isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, Decimal | int):
        return f"{value:f}"
    return value


def as_double(value: Decimal) -> float:
    """The double that AWS's files hold, whose shortest form is the decimal again; refused where it is not."""
    double = float(value)
    if Decimal(repr(double)) != value:
        raise ValueError(f"{value} has too many digits to survive a double")
    return double
