"""The bill of every shape: small, exact, its truth known by hand.

bills = every_shape.bills()
export.write(out, bills.november.table(Discounts.COLUMNS), Export("cur", PAYER.id, Format.CUR2_CSV), delivery)
bills.november.truth(Discounts.COLUMNS).billed
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from demo.billing import charges, commitments, machines, models, platform, pods
from demo.billing.discounts import Discounts, tell
from demo.billing.line import Line, Month, table
from demo.billing.shape import Shape
from demo.clock import HOUR, Period, microseconds
from demo.models import PAYER, Account

EURO_PAYER = Account("100000000002", "acme-europe-payer", "management")
# assumption: a payer that is billed in a currency of its own has every amount of its export in it


@dataclass(frozen=True)
class Truth:
    """What a bill comes to, in its one currency.

    `billed`: after discounts, as invoiced; `effective`: amortised, after discounts; `listed`: public cost of usage, as
    far as AWS shows one; `discount`: what discounts took off both; `bridge`: billed + its terms = effective;
    `unspent`: the part of effective cost before discounts that is commitment for hours to come.
    """

    billed: Decimal
    effective: Decimal
    listed: Decimal
    discount: Decimal
    bridge: dict[str, Decimal]
    unspent: Decimal


@dataclass(frozen=True)
class Bill:
    """One month of one payer."""

    month: Month
    shapes: tuple[Shape, ...]

    def lines(self, how: Discounts = Discounts.NONE) -> list[Line]:
        return tell([line for shape in self.shapes for line in shape.lines], how)

    def table(self, how: Discounts = Discounts.NONE, delivery: str = "1") -> pa.Table:
        """Columns of CUR 2.0. Line ids differ from delivery to delivery."""
        return table(self.lines(how), delivery)

    def truth(self, how: Discounts = Discounts.NONE) -> Truth:
        """The same however discounts are told, but for a bill that has none."""
        discount = Decimal(0) if how is Discounts.NONE else _sum(shape.discount for shape in self.shapes)
        terms = sorted({term for shape in self.shapes for term in shape.bridge})
        return Truth(
            billed=_sum(shape.billed for shape in self.shapes) - discount,
            effective=_sum(shape.effective for shape in self.shapes) - discount,
            listed=_sum(shape.listed for shape in self.shapes),
            discount=discount,
            bridge={term: _sum(shape.bridge.get(term, Decimal(0)) for shape in self.shapes) for term in terms},
            unspent=_sum(shape.unspent for shape in self.shapes),
        )

    def restated(self) -> "Bill":
        """The next delivery: the 3rd's first hour is re-rated from 21.50 to 20, and a seventh hour came late."""
        return Bill(self.month, tuple(_restated(self.month, shape) for shape in self.shapes))

    def as_open(self) -> "Bill":
        """The same month before its invoice: no line has an invoice id."""

        def opened(line: Line) -> Line:
            return replace(line, columns=line.columns | {"bill_invoice_id": ""})

        return Bill(self.month, tuple(replace(one, lines=tuple(map(opened, one.lines))) for one in self.shapes))


@dataclass(frozen=True)
class Bills:
    """`november` is final and has every shape; `december` is open, on its third day; `europe` is another payer's."""

    november: Bill
    december: Bill
    europe: Bill


def bills() -> Bills:
    """November 2026 with a line of every shape, December until the 3rd, and a November in euro."""
    november = Month(period(2026, 11, final=True), PAYER)
    december = Month(period(2026, 12, final=False), PAYER)
    europe = Month(period(2026, 11, final=True), EURO_PAYER, "EUR")
    before, after = machines.block_over_the_month(november, december)
    of_november = (
        *commitments.savings_plans(november),
        commitments.returned_plan(november),
        commitments.sagemaker_plan(november),
        *commitments.reservations(november),
        machines.on_demand(november),
        machines.spot(november),
        machines.reserved_capacity(november),
        machines.capacity_block(november),
        before,
        pods.eks(november),
        pods.ecs(november),
        models.first_party(november),
        models.marketplace_models(november),
        models.reserved_tokens(november),
        models.by_time(november),
        models.agents(november),
        platform.infrastructure(november),
        platform.endpoint(november),
        charges.credits(november),
        charges.refunds(november),
        charges.taxes(november),
        charges.support(november),
        charges.subscription(november),
        charges.marketplace(november),
    )
    of_december = (
        after,
        machines.block_to_come(december),
        commitments.plan_of_an_open_month(december, 48),
    )
    return Bills(Bill(november, of_november), Bill(december, of_december), small(europe))


def small(month: Month) -> Bill:
    """Any month of any payer in few lines: machines, models and tax."""
    return Bill(month, (machines.on_demand(month), models.first_party(month), charges.taxes(month)))


def period(year: int, month: int, final: bool) -> Period:
    """A billing month."""
    start = datetime(year, month, 1, tzinfo=UTC)
    end = datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    return Period(f"{year}-{month:02d}", microseconds(start), microseconds(end), final)


def _restated(month: Month, shape: Shape) -> Shape:
    if shape.name != "on demand":
        return shape
    rerated = replace(
        shape.lines[0],
        columns=shape.lines[0].columns
        | {
            "line_item_unblended_cost": Decimal(20),
            "line_item_blended_cost": Decimal(20),
            "pricing_public_on_demand_cost": Decimal(20),
        },
    )
    late = machines.instance(month, "Usage", "trn1.32xlarge", "training", "21.50", month.at(3) + 6 * HOUR)
    cost = 20 + 6 * Decimal("21.50")
    return Shape(shape.name, (rerated, *shape.lines[1:], late), cost, cost, cost, cost / 10)


def _sum(amounts: Iterable[Decimal]) -> Decimal:
    return sum(amounts, Decimal(0))
