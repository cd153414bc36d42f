"""The rest of the cloud bill: web servers, databases, storage and so on, which have nothing to do with models.

The services are rows of `services.csv`: what is billed each hour for each of a number of resources. Prices are AWS list
prices for us-east-1, near enough to be plausible, in nano-dollars per unit.
"""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from demo.clock import HOUR
from demo.ledger import ROW, Ledger, code, digits, usd
from demo.models import ACCOUNTS

DAYTIME = range(7, 21)
"""Hours of UTC in which services with hours = daytime run."""


@dataclass(frozen=True)
class Service:
    """One row of services.csv. `noise`: relative spread of the hourly amount."""

    product_code: str
    product_name: str
    account: str
    usage_type: str
    operation: str
    unit: str
    rate_nano: int
    per_hour: float
    resources: tuple[str, ...]
    family: str
    instance_type: str | None
    tags: dict[str, str]
    noise: float
    daytime_only: bool


def services() -> list[Service]:
    """The rows of services.csv."""
    with Path(__file__).with_name("services.csv").open(newline="") as file:
        return [_service(row) for row in csv.DictReader(file)]


def _service(row: dict[str, str]) -> Service:
    names = [
        row["resource"] + code("resource", row["resource"], str(number), length=17).lower()
        for number in range(int(row["resources"]))
    ]
    return Service(
        product_code=row["product_code"],
        product_name=row["product_name"],
        account=row["account"],
        usage_type=row["usage_type"],
        operation=row["operation"],
        unit=row["unit"],
        rate_nano=int(row["rate_nano_usd"]),
        per_hour=float(row["per_hour"]),
        resources=tuple(names),
        family=row["family"],
        instance_type=row["instance_type"] or None,
        tags={f"user_{name}": row[name] for name in ("app", "team") if row[name]},
        noise=float(row["noise"]),
        daytime_only=row["hours"] == "daytime",
    )


def add_services(rng: np.random.Generator, ledger: Ledger, from_us: int, until_us: int) -> None:
    """Hourly usage lines of every service for the hours in [from_us, until_us)."""
    hours = np.arange(from_us, until_us, HOUR, dtype=np.int64)
    daytime = hours[np.isin(hours // HOUR % 24, DAYTIME)]
    for service in services():
        for resource in service.resources:
            add_hours(rng, ledger, service, resource, daytime if service.daytime_only else hours)


def add_hours(rng: np.random.Generator, ledger: Ledger, service: Service, resource: str, hours: np.ndarray) -> None:
    """One line per hour of one resource."""
    amount = np.full(len(hours), service.per_hour) * (1 + service.noise * rng.uniform(-1, 1, len(hours)))
    micro = np.rint(amount * 1e6).astype(np.int64)
    rows = np.zeros(len(hours), dtype=ROW)
    rows["kind"] = describe(ledger, service, resource)
    rows["start_us"] = hours
    rows["end_us"] = hours + HOUR
    rows["usage"] = micro / 1e6
    rows["cost_nano"] = rows["public_nano"] = (micro * service.rate_nano + 500_000) // 1_000_000
    ledger.add(rows)


def describe(ledger: Ledger, service: Service, resource: str) -> int:
    """Register the kind of line of one resource."""
    account = ACCOUNTS[service.account]
    rate = usd(service.rate_nano)
    sku = code("sku", service.product_code, service.usage_type)
    return ledger.kind(
        account,
        "AWS",
        "Usage",
        line_item_line_item_description=f"${rate.rstrip('0')} per {service.unit} - {service.product_name}",
        line_item_operation=service.operation,
        line_item_product_code=service.product_code,
        line_item_resource_id=resource,
        line_item_unblended_rate=rate,
        line_item_blended_rate=rate,
        line_item_usage_type=service.usage_type,
        pricing_currency="USD",
        pricing_public_on_demand_rate=rate,
        pricing_rate_code=f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        pricing_rate_id=digits("rate", sku),
        pricing_term="OnDemand",
        pricing_unit=service.unit,
        product={"product_name": service.product_name, "region": "us-east-1"},
        product_instance_type=service.instance_type,
        product_location="US East (N. Virginia)",
        product_location_type="AWS Region",
        product_operation=service.operation,
        product_pricing_unit=service.unit,
        product_product_family=service.family,
        product_region_code="us-east-1",
        product_servicecode=service.product_code,
        product_sku=sku,
        product_usagetype=service.usage_type,
        resource_tags=service.tags,
        tags={"accountTag/environment": account.environment}
        | {f"resourceTag/{name}": value for name, value in service.tags.items()},
    )
