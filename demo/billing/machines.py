"""Machines without a commitment: on demand, spot, reserved capacity nobody used, Capacity Blocks (billing.md 4.5)."""

from decimal import Decimal
from typing import Any

from demo.billing.line import TEAM, Columns, Line, Month
from demo.billing.shape import Shape
from demo.clock import HOUR, iso
from demo.ledger import code

GPUS = {
    "g5.12xlarge": "4",
    "g6.12xlarge": "4",
    "p5.48xlarge": "8",
    "ml.g5.2xlarge": "1",
    "trn1.32xlarge": "0",
    "m7i.xlarge": "0",
}
ZONE = "us-east-1a"


def instance_id(name: str) -> str:
    return f"i-{code('instance', name, length=17).lower()}"


def reservation_arn(name: str, region: str = "us-east-1") -> str:
    return f"arn:aws:ec2:{region}:{TEAM.id}:capacity-reservation/cr-{code('cr', name, length=17).lower()}"


def instance(
    month: Month,
    kind: str,
    type_: str,
    name: str,
    cost: Decimal | str | int,
    start_us: int,
    hours: int = 1,
    **more: Any,
) -> Line:
    """An instance's hours on one line. `kind`: line item type."""
    usage_type = f"BoxUsage:{type_}"
    said: Columns = {
        "kind": kind,
        "line_item_availability_zone": ZONE,
        "line_item_line_item_description": f"{type_} Linux/UNIX instance-hours in US East (N. Virginia)",
        "line_item_operation": "RunInstances",
        "line_item_resource_id": instance_id(name),
        "pricing_unit": "Hrs",
        "product": {"instance_type_family": type_.split(".")[0], "gpu": GPUS[type_], "region": "us-east-1"},
        "product_instance_type": type_,
        "product_product_family": "Compute Instance",
        "resource_tags": {"user_team": "search"},
    }
    return month.usage("AmazonEC2", str(more.pop("usage_type", usage_type)), cost, start_us, hours, **(said | more))


def on_demand(month: Month) -> Shape:
    """Accelerators by the hour, paid as listed: 6 h of Trainium at 21.50, one line an hour."""
    lines = [instance(month, "Usage", "trn1.32xlarge", "training", "21.50", month.at(3, hour)) for hour in range(6)]
    cost = 6 * Decimal("21.50")
    return Shape("on demand", tuple(lines), cost, cost, cost, cost / 10)


def spot(month: Month) -> Shape:
    """Three hours, each at its own market price; the list price is on demand. The instance type is only in the text."""
    prices = [Decimal("1.70"), Decimal("1.82"), Decimal("1.94")]
    lines = [
        instance(
            month, "Usage", "g5.12xlarge", "spot", price, month.at(4, hour),
            usage_type="SpotUsage:g5.12xlarge",
            line_item_operation="RunInstances:SV001",
            line_item_line_item_description="g5.12xlarge Linux/UNIX Spot Instance-hour in US East (N. Virginia)",
            pricing_public_on_demand_cost=Decimal("5.672"),
            pricing_term="Spot",
            product_instance_type="",
        )
        for hour, price in enumerate(prices)
    ]  # fmt: skip
    cost = Decimal("1.70") + Decimal("1.82") + Decimal("1.94")
    return Shape("spot", tuple(lines), cost, cost, 3 * Decimal("5.672"), cost / 10)


def reserved_capacity(month: Month) -> Shape:
    """An on-demand capacity reservation of two machines at 4.60: for 4 h one is used and one is not."""
    arn, rate, lines = reservation_arn("odcr"), Decimal("4.60"), []
    for hour in range(4):
        told: Columns = {
            "capacity_reservation_capacity_reservation_arn": arn,
            "capacity_reservation_capacity_reservation_type": "default",  # assumption: the word for an ODCR
        }
        used = told | {"capacity_reservation_capacity_reservation_status": "used"}
        idle = told | {"capacity_reservation_capacity_reservation_status": "unused"}
        lines.append(instance(month, "Usage", "g6.12xlarge", "odcr", rate, month.at(5, hour), **used))
        lines.append(
            instance(
                month, "Usage", "g6.12xlarge", "odcr idle", rate, month.at(5, hour),
                usage_type="UnusedBox:g6.12xlarge", line_item_resource_id=arn, **idle,
            )
        )  # fmt: skip
    cost = 4 * 2 * rate
    return Shape("reserved capacity", tuple(lines), cost, cost, cost, cost / 10)


BLOCK_AN_HOUR = Decimal("31.464")
"""Of a p5.48xlarge."""


def block_fee(month: Month, name: str, bought_us: int, start_us: int, hours: int) -> Line:
    """The one payment for a Capacity Block of one p5.48xlarge, at its purchase."""
    return month.line(
        "Fee",
        "AmazonEC2",
        hours * BLOCK_AN_HOUR,
        bought_us,
        discounts={},  # assumption: an enterprise agreement takes nothing off a Capacity Block
        line_item_usage_amount=Decimal(1),
        line_item_line_item_description=f"EC2 Capacity Block for ML: 1 p5.48xlarge for {hours} hours",
        line_item_operation="CapacityBlock",  # assumption: no source tells operation and usage types
        line_item_usage_type="CapacityBlock:p5.48xlarge",
        product_instance_type="p5.48xlarge",
        product_region_code="us-east-1",
        reservation_reservation_a_r_n=reservation_arn(name),
        reservation_start_time=iso(start_us),
        reservation_end_time=iso(start_us + hours * HOUR),
    )


def block_hours(month: Month, name: str, start_us: int, hours: int, idle_from: int) -> list[Line]:
    """The hours of a block, at nothing; from hour `idle_from` nobody used them."""
    # assumption: the usage types, and that an unused hour says so in them
    return [
        instance(
            month, "Usage", "p5.48xlarge", name, 0, start_us + hour * HOUR,
            usage_type=f"{'CapacityBlockUsage' if hour < idle_from else 'UnusedCapacityBlock'}:p5.48xlarge",
            line_item_operation="CapacityBlock",
            line_item_resource_id=reservation_arn(name),
            pricing_public_on_demand_cost=None,  # such prices are not in the price list
            capacity_reservation_capacity_reservation_arn=reservation_arn(name),
            capacity_reservation_capacity_reservation_status="used" if hour < idle_from else "unused",
            capacity_reservation_capacity_reservation_type="capacity-block",
        )
        for hour in range(hours)
    ]  # fmt: skip


def capacity_block(month: Month) -> Shape:
    """A block of 24 h, bought two days before, of which 20 h are used: within one month it costs what is paid."""
    start = month.at(12)
    lines = [block_fee(month, "block", month.at(10, 9), start, 24), *block_hours(month, "block", start, 24, 20)]
    cost = 24 * BLOCK_AN_HOUR
    moved = {"capacity_block_paid": -cost, "capacity_block_hours": cost}
    return Shape("capacity block", tuple(lines), cost, cost, bridge=moved)


def block_over_the_month(month: Month, after: Month) -> tuple[Shape, Shape]:
    """A block of 72 h, 36 h in each month, all paid in the first."""
    name, start = "block over the month", month.period.end_us - 36 * HOUR
    rate = BLOCK_AN_HOUR
    paid = [block_fee(month, name, start - 48 * HOUR, start, 72), *block_hours(month, name, start, 36, 36)]
    later = block_hours(after, name, after.period.start_us, 36, 30)
    return (
        Shape(name, tuple(paid), 72 * rate, 36 * rate,
              bridge={"capacity_block_paid": -72 * rate, "capacity_block_hours": 36 * rate}),
        Shape(name, tuple(later), Decimal(0), 36 * rate, bridge={"capacity_block_hours": 36 * rate}),
    )  # fmt: skip


def block_to_come(month: Month) -> Shape:
    """A block that is paid while none of its hours has come: all of it is prepaid."""
    paid = 48 * BLOCK_AN_HOUR
    line = block_fee(month, "block to come", month.at(2, 9), month.period.end_us, 48)
    return Shape("capacity block to come", (line,), paid, Decimal(0), bridge={"capacity_block_paid": -paid})
