"""Savings Plans and reserved instances: covered use, negation, fees, what nobody used (billing.md 4.2, 4.3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from demo.billing.line import Columns, Line, Month
from demo.billing.machines import GPUS, instance
from demo.billing.shape import Shape
from demo.clock import HOUR, iso
from demo.ledger import code

YEAR = 8760
"""Hours."""


@dataclass(frozen=True)
class Plan:
    """A Savings Plan of one year. `upfront`, `recurring`: of an hour's commitment, what was and what is being paid."""

    name: str
    option: str
    upfront: Decimal
    recurring: Decimal
    offering: str = "ComputeSavingsPlans"
    product: str = "ComputeSavingsPlans"

    @property
    def commitment(self) -> Decimal:
        return self.upfront + self.recurring

    def columns(self, start_us: int) -> Columns:
        return {
            "savings_plan_savings_plan_a_r_n": f"arn:aws:savingsplans::100000000001:savingsplan/{self.id}",
            "savings_plan_offering_type": self.offering,
            "savings_plan_payment_option": self.option,
            "savings_plan_purchase_term": "1yr",
            "savings_plan_start_time": iso(start_us),
            "savings_plan_end_time": iso(start_us + YEAR * HOUR),
        }

    @property
    def id(self) -> str:
        return code("plan", self.name, length=12).lower()

    def fee(self, month: Month, start_us: int, at_us: int, used: Decimal) -> Line:
        """The line of one hour, there at $0 even where all is paid up front."""
        return month.line(
            "SavingsPlanRecurringFee",
            self.product,
            self.recurring,
            at_us,
            line_item_line_item_description=f"1 year {self.option} {self.offering}",
            line_item_usage_type=f"ComputeSP:1yr{self.option.replace(' ', '')}",
            savings_plan_total_commitment_to_date=self.commitment,
            savings_plan_used_commitment=used,
            savings_plan_recurring_commitment_for_billing_period=self.recurring,
            savings_plan_amortized_upfront_commitment_for_billing_period=self.upfront,
            **self.columns(start_us),
        )

    def upfront_fee(self, month: Month, start_us: int) -> Line:
        return month.line(
            "SavingsPlanUpfrontFee",
            self.product,
            YEAR * self.upfront,
            start_us,
            discounts={},
            line_item_line_item_description=f"1 year {self.option} {self.offering}: one-time fee",
            line_item_usage_type=f"ComputeSP:1yr{self.option.replace(' ', '')}",
            **self.columns(start_us),
        )

    def covered(
        self, month: Month, start_us: int, at_us: int, list_and_plan: Mapping[str, tuple[Decimal, Decimal]]
    ) -> list[Line]:
        """Covered use of instances by name (list cost, cost under the plan) and the one negation of them all."""
        type_ = "g5.12xlarge"
        lines = [
            instance(
                month, "SavingsPlanCoveredUsage", type_, name, listed, at_us,
                recurring=self.recurring / self.commitment,
                savings_plan_savings_plan_effective_cost=effective,
                savings_plan_savings_plan_rate=effective,
                pricing_term="OnDemand",
                **self.columns(start_us),
            )
            for name, (listed, effective) in list_and_plan.items()
        ]  # fmt: skip
        return [*lines, negation(month, self, start_us, lines)]


def negation(month: Month, plan: Plan, start_us: int, lines: list[Line]) -> Line:
    """What takes back the on-demand cost of covered lines of one hour, usage type and zone."""
    like = lines[0].columns
    at_us = like["line_item_usage_start_date"]
    assert isinstance(at_us, int)
    return month.line(
        "SavingsPlanNegation",
        str(like["line_item_product_code"]),
        -sum((line.cost for line in lines), Decimal(0)),
        at_us,
        discounts=lines[0].discounts,
        line_item_availability_zone=like.get("line_item_availability_zone"),
        line_item_line_item_description=f"SavingsPlanNegation used by AccountId : {like['line_item_usage_account_id']}",
        line_item_operation=like["line_item_operation"],
        line_item_usage_amount=sum((line.amount("line_item_usage_amount") for line in lines), Decimal(0)),
        line_item_usage_type=like["line_item_usage_type"],
        **plan.columns(start_us),
    )


def _plan(month: Month, plan: Plan, start_us: int, list_cost: Decimal, used: Decimal) -> tuple[Line, ...]:
    """A plan that is bought for the month's last day; two instances share an hour's use, two to one."""
    lines = [plan.upfront_fee(month, start_us)] if plan.upfront else []
    for hour in range(24):
        at_us = start_us + hour * HOUR
        two = {f"{plan.name} a": (list_cost / 3 * 2, used / 3 * 2), f"{plan.name} b": (list_cost / 3, used / 3)}
        lines += plan.covered(month, start_us, at_us, two)
        lines.append(plan.fee(month, start_us, at_us, used))
    return tuple(lines)


def savings_plans(month: Month) -> tuple[Shape, ...]:
    """24 h each: no upfront 10/h, used 8.1/h; partial 3/h + 3/h, all used; all upfront 5/h, used 2.1/h."""
    start = month.at(month.hours // 24)
    day, third = 24, Decimal(3)
    none = Plan("plan none", "No Upfront", Decimal(0), Decimal(10))
    partial = Plan("plan partial", "Partial Upfront", third, third)
    full = Plan("plan full", "All Upfront", Decimal(5), Decimal(0))
    return (
        Shape("savings plan, no upfront", _plan(month, none, start, Decimal(12), Decimal("8.1")),
              billed=day * Decimal(10), effective=day * Decimal(10), listed=day * Decimal(12),
              discount=day * Decimal(10) / 10),
        Shape("savings plan, partial upfront", _plan(month, partial, start, Decimal(9), Decimal(6)),
              billed=YEAR * third + day * third, effective=day * (third + third), listed=day * Decimal(9),
              discount=day * third / 10,
              bridge={"upfront_fees": -YEAR * third, "amortised_upfront": day * third}),
        Shape("savings plan, all upfront", _plan(month, full, start, Decimal(3), Decimal("2.1")),
              billed=YEAR * Decimal(5), effective=day * Decimal(5), listed=day * Decimal(3),
              bridge={"upfront_fees": -YEAR * Decimal(5), "amortised_upfront": day * Decimal(5)}),
    )  # fmt: skip


def returned_plan(month: Month) -> Shape:
    """An all-upfront plan of 1/h, bought on the 6th and given back on the 7th: paid and paid back, nothing used."""
    # assumption: what the plan covered in between is billed as if it had never been, so no other line is left
    plan = Plan("plan returned", "All Upfront", Decimal(1), Decimal(0))
    fee = plan.upfront_fee(month, month.at(6))
    refund = month.line(
        "Refund",
        plan.product,
        -YEAR * plan.upfront,
        month.at(7),
        line_item_line_item_description=f"Refund for one-time fee for Savings Plan ID {plan.id}",
        bill_bill_type="Refund",
        **plan.columns(month.at(6)),
    )
    moved = {"upfront_fees": -YEAR * plan.upfront, "upfront_refunds": YEAR * plan.upfront}
    return Shape("savings plan given back", (fee, refund), Decimal(0), Decimal(0), bridge=moved)


def plan_of_an_open_month(month: Month, hours: int) -> Shape:
    """A no-upfront plan of 2/h from last month: its fee stands for every hour of the month, its use for `hours`."""
    plan = Plan("plan open", "No Upfront", Decimal(0), Decimal(2))
    bought = month.period.start_us - 30 * 24 * HOUR
    lines = []
    for hour in range(month.hours):
        at_us = month.period.start_us + hour * HOUR
        if hour < hours:
            lines += plan.covered(month, bought, at_us, {"plan open": (Decimal("2.4"), Decimal("1.6"))})
        lines.append(plan.fee(month, bought, at_us, Decimal("1.6") if hour < hours else Decimal(0)))
    cost = month.hours * Decimal(2)
    return Shape("savings plan, hours to come", tuple(lines), cost, cost, hours * Decimal("2.4"), cost / 10,
                 unspent=(month.hours - hours) * Decimal(2))  # fmt: skip


def sagemaker_plan(month: Month) -> Shape:
    """A plan of another kind: an endpoint listed at 1.515/h costs 1/h under it, all used, for 4 h."""
    # assumption: the product code and the offering type of SageMaker Savings Plans
    product = "MachineLearningSavingsPlans"
    plan = Plan("plan sagemaker", "No Upfront", Decimal(0), Decimal(1), "SageMakerSavingsPlans", product)
    start, listed, lines = month.at(month.hours // 24, 20), Decimal("1.515"), []
    for hour in range(4):
        at_us = start + hour * HOUR
        use = month.usage(
            "AmazonSageMaker",
            "USE1-Host:ml.g5.2xlarge",
            listed,
            at_us,
            kind="SavingsPlanCoveredUsage",
            line_item_operation="RunInstance",
            line_item_resource_id="arn:aws:sagemaker:us-east-1:210000000012:endpoint/reranker",
            pricing_unit="Hrs",
            product={"gpu": GPUS["ml.g5.2xlarge"], "region": "us-east-1"},
            product_instance_type="ml.g5.2xlarge",
            savings_plan_savings_plan_effective_cost=Decimal(1),
            savings_plan_savings_plan_rate=Decimal(1),
            **plan.columns(start),
        )
        lines += [use, negation(month, plan, start, [use]), plan.fee(month, start, at_us, Decimal(1))]
    return Shape("savings plan of SageMaker", tuple(lines), Decimal(4), Decimal(4), 4 * listed, Decimal(4) / 10)


def reserved(month: Month, option: str, upfront: Decimal, recurring: Decimal, used_hours: int) -> Shape:
    """A reserved instance bought for the month's last 24 hours, listed at 4/h, used for some of them."""
    name, start, hours = f"reserved {option}", month.at(month.hours // 24), 24
    arn = f"arn:aws:ec2:us-east-1:210000000012:reserved-instances/{code('ri', option, length=12).lower()}"
    common: Columns = {
        "reservation_reservation_a_r_n": arn,
        "reservation_start_time": iso(start),
        "reservation_end_time": iso(start + YEAR * HOUR),
        "pricing_lease_contract_length": "1yr",
        "pricing_offering_class": "standard",
        "pricing_purchase_option": option,
        "pricing_term": "Reserved",
    }
    use = [
        instance(
            month, "DiscountedUsage", "m7i.xlarge", name, 0, start + hour * HOUR,
            pricing_public_on_demand_cost=Decimal(4),
            recurring=recurring / (upfront + recurring),
            reservation_amortized_upfront_cost_for_usage=upfront,
            reservation_recurring_fee_for_usage=recurring,
            reservation_effective_cost=upfront + recurring,
            **common,
        )
        for hour in range(used_hours)
    ]  # fmt: skip
    told: Columns = {
        "line_item_operation": "RunInstances",
        "line_item_usage_type": "HeavyUsage:m7i.xlarge",
        "line_item_line_item_description": f"USD hourly fee per Linux/UNIX, m7i.xlarge instance ({option})",
        "product_instance_type": "m7i.xlarge",
        "product_region_code": "us-east-1",
        **common,
    }
    # the monthly line, at $0 where all is paid up front
    fee = month.line(
        "RIFee", "AmazonEC2", hours * recurring, start, hours,
        reservation_amortized_upfront_fee_for_billing_period=hours * upfront,
        reservation_unused_amortized_upfront_fee_for_billing_period=(hours - used_hours) * upfront,
        reservation_unused_recurring_fee=(hours - used_hours) * recurring,
        reservation_unused_quantity=Decimal(hours - used_hours),
        reservation_upfront_value=YEAR * upfront,
        reservation_number_of_reservations="1",
        **told,
    )  # fmt: skip
    lines = [*use, fee]
    if upfront:
        lines.append(month.line("Fee", "AmazonEC2", YEAR * upfront, start, discounts={}, **told))
    moved = {"upfront_fees": -YEAR * upfront, "amortised_upfront": hours * upfront} if upfront else {}
    return Shape(name, tuple(lines), YEAR * upfront + hours * recurring, hours * (upfront + recurring),
                 used_hours * Decimal(4), hours * recurring / 10, bridge=moved)  # fmt: skip


def reservations(month: Month) -> tuple[Shape, ...]:
    return (
        reserved(month, "No Upfront", Decimal(0), Decimal("2.5"), 24),
        reserved(month, "Partial Upfront", Decimal(1), Decimal(1), 18),
        reserved(month, "All Upfront", Decimal("1.5"), Decimal(0), 12),
    )
