"""The bill of every shape: each shape comes to its formula, and AWS's identities hold (billing.md 4)."""

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from demo.billing import every_shape
from demo.billing.discounts import Discounts
from demo.billing.every_shape import Bill
from demo.billing.line import table
from demo.billing.shape import Shape

BILLS = every_shape.bills()
ALL = {"november": BILLS.november, "december": BILLS.december, "europe": BILLS.europe}
SHAPES = [pytest.param(shape, id=f"{name}: {shape.name}") for name, bill in ALL.items() for shape in bill.shapes]

TOLD = [Discounts.COLUMNS, Discounts.LINES, Discounts.BOTH]


def exact(column: str) -> str:
    """The decimal that a double stands for; 0 for nothing."""
    return f"coalesce({column}::VARCHAR::DECIMAL(38, 18), 0)"


def net(column: str, gross: str) -> str:
    return exact(f"coalesce({column}, {gross})")


# billing.md 4.2, net amortised; what a Capacity Block costs is left out here
EFFECTIVE = f"""
    CASE
        WHEN kind = 'DiscountedUsage' THEN {net("reservation_net_effective_cost", "reservation_effective_cost")}
        WHEN kind = 'SavingsPlanCoveredUsage' THEN
            {net("savings_plan_net_savings_plan_effective_cost", "savings_plan_savings_plan_effective_cost")}
        WHEN kind = 'SavingsPlanRecurringFee' THEN
            ({exact("savings_plan_total_commitment_to_date")} - {exact("savings_plan_used_commitment")})
            * coalesce(((savings_plan_net_amortized_upfront_commitment_for_billing_period
                + savings_plan_net_recurring_commitment_for_billing_period)
                / (savings_plan_amortized_upfront_commitment_for_billing_period
                + savings_plan_recurring_commitment_for_billing_period))::DECIMAL(18, 6), 1)
        WHEN kind = 'RIFee' THEN
            {net("reservation_net_unused_amortized_upfront_fee_for_billing_period",
                 "reservation_unused_amortized_upfront_fee_for_billing_period")}
            + {net("reservation_net_unused_recurring_fee", "reservation_unused_recurring_fee")}
        WHEN kind IN ('SavingsPlanNegation', 'SavingsPlanUpfrontFee') THEN 0
        WHEN kind = 'Fee' AND reservation_reservation_a_r_n IS NOT NULL THEN 0
        WHEN line_item_line_item_description LIKE 'Refund for one-time fee for Savings Plan ID%' THEN 0
        ELSE net
    END::DECIMAL(38, 18)
"""  # fmt: skip


def ask(lines: pa.Table, question: str) -> Any:
    """The answer's only row; `line` has the money of the bill (no split lines), `split` the others."""
    with duckdb.connect() as connection:
        connection.register("cur", lines)
        connection.execute(
            f"""
            CREATE VIEW every AS
            SELECT *, line_item_line_item_type AS kind, {exact("line_item_unblended_cost")} AS gross,
                {net("line_item_net_unblended_cost", "line_item_unblended_cost")} AS net,
                {exact("pricing_public_on_demand_cost")} AS public_cost,
                split_line_item_parent_resource_id AS parent
            FROM cur
            """
        )
        connection.execute("CREATE VIEW line AS SELECT * FROM every WHERE parent IS NULL")
        connection.execute("CREATE VIEW split AS SELECT * FROM every WHERE parent IS NOT NULL")
        return connection.execute(question).fetchone()


def told(shape: Shape, how: Discounts) -> pa.Table:
    return Bill(BILLS.november.month, (shape,)).table(how)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_comes_to_its_formula(shape: Shape) -> None:
    block = shape.bridge.get("capacity_block_hours", Decimal(0))
    assert ask(
        told(shape, Discounts.NONE), f"SELECT sum(gross), sum({EFFECTIVE}), sum(public_cost) FROM line"
    ) == (shape.billed, shape.effective - block, shape.listed)  # fmt: skip


@pytest.mark.parametrize("how", TOLD)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_discount_takes_the_same_however_it_is_told(shape: Shape, how: Discounts) -> None:
    """In columns net costs say it; as lines gross costs do, with the lines; where both do, either."""
    block = shape.bridge.get("capacity_block_hours", Decimal(0))
    lines = told(shape, how)
    if how is not Discounts.LINES:
        assert ask(lines, f"SELECT sum(net), sum({EFFECTIVE}) FROM line WHERE kind NOT LIKE '%Discount'") == (
            shape.billed - shape.discount,
            shape.effective - shape.discount - block,
        )
    if how is not Discounts.COLUMNS:
        assert ask(lines, "SELECT sum(gross) FROM line") == (shape.billed - shape.discount,)
    if how is Discounts.LINES:
        assert ask(lines, f"SELECT sum({EFFECTIVE}) FROM line") == (shape.effective - shape.discount - block,)


def test_a_bill_with_discounts_in_columns_alone_has_no_line_of_them_and_one_with_lines_alone_no_column() -> None:
    question = "SELECT count(*) FILTER (kind LIKE '%Discount') > 0, count(line_item_net_unblended_cost) > 0 FROM line"
    november = BILLS.november
    assert ask(november.table(Discounts.NONE), question) == (False, False)
    assert ask(november.table(Discounts.COLUMNS), question) == (False, True)
    assert ask(november.table(Discounts.LINES), question) == (True, False)
    assert ask(november.table(Discounts.BOTH), question) == (True, True)


@pytest.mark.parametrize("bill", ALL.values(), ids=ALL)
@pytest.mark.parametrize("how", Discounts)
def test_the_bridge_leads_from_billed_to_effective(bill: Bill, how: Discounts) -> None:
    truth = bill.truth(how)
    assert truth.billed + sum(truth.bridge.values()) == truth.effective


def test_the_truth_of_november() -> None:
    """Figures that changed by accident are seen here."""
    truth = BILLS.november.truth(Discounts.COLUMNS)
    assert (truth.billed, truth.effective, truth.listed, truth.discount) == (
        Decimal("98731.76685036"),
        Decimal("5871.06285036"),
        Decimal("3353.7085004"),
        Decimal("298.22365004"),
    )
    assert truth.bridge == {
        # two plans and two reservations for a year, the plan that was given back
        "upfront_fees": -8760 * (Decimal(3) + 5 + 1 + 1 + Decimal("1.5")),
        "amortised_upfront": 24 * (Decimal(3) + 5 + 1 + Decimal("1.5")),
        "upfront_refunds": Decimal(8760),
        "capacity_block_paid": -(24 + 72) * Decimal("31.464"),
        "capacity_block_hours": (24 + 36) * Decimal("31.464"),
    }


def test_amortised_cost_trues_up_to_cash() -> None:
    """billing.md 4.2; what it says of refunded fees and of blocks are terms of their own."""
    truth = BILLS.november.truth()
    (cash, amortised, upfront, plans, reservations) = ask(
        BILLS.november.table(),
        f"""
        SELECT sum(gross), sum({EFFECTIVE}),
            sum(gross) FILTER (kind = 'SavingsPlanUpfrontFee'
                OR kind = 'Fee' AND reservation_reservation_a_r_n LIKE '%reserved-instances%'),
            sum({exact("savings_plan_amortized_upfront_commitment_for_billing_period")}),
            sum({exact("reservation_amortized_upfront_fee_for_billing_period")}) FROM line
        """,
    )
    blocks = truth.bridge["capacity_block_paid"]
    assert amortised == cash - upfront + plans + reservations + truth.bridge["upfront_refunds"] + blocks


@pytest.mark.parametrize("bill", [BILLS.november, BILLS.december])
def test_what_a_plan_covers_and_its_negation_cancel_out_in_every_hour(bill: Bill) -> None:
    assert ask(
        bill.table(),
        """
        SELECT count(*), count(*) FILTER (left_over <> 0) FROM (
            SELECT sum(gross) AS left_over FROM line
            WHERE kind IN ('SavingsPlanCoveredUsage', 'SavingsPlanNegation')
            GROUP BY savings_plan_savings_plan_a_r_n, line_item_operation, line_item_usage_type,
                line_item_availability_zone, line_item_usage_start_date)
        """,
    ) == (48 if bill is BILLS.december else 3 * 24 + 4 + 3, 0)


def test_one_negation_stands_against_many_covered_lines() -> None:
    assert ask(
        BILLS.november.table(),
        """
        SELECT count(*) FILTER (kind = 'SavingsPlanCoveredUsage'), count(*) FILTER (kind = 'SavingsPlanNegation')
        FROM line WHERE savings_plan_payment_option = 'All Upfront' AND line_item_product_code = 'AmazonEC2'
        """,
    ) == (48, 24)


@pytest.mark.parametrize("how", [Discounts.NONE, Discounts.COLUMNS])
def test_a_plans_covered_use_is_what_its_fee_lines_call_used(how: Discounts) -> None:
    assert ask(
        BILLS.november.table(how),
        f"""
        SELECT count(*), count(*) FILTER (used <> told) FROM (
            SELECT sum({exact("savings_plan_savings_plan_effective_cost")}) AS used,
                sum({exact("savings_plan_used_commitment")}) AS told
            FROM line WHERE kind LIKE 'SavingsPlan%' AND kind <> 'SavingsPlanUpfrontFee'
            GROUP BY savings_plan_savings_plan_a_r_n, line_item_usage_start_date)
        """,
    ) == (3 * 24 + 4 + 3, 0)


def test_split_and_unused_cost_are_the_parents_amortised_cost_in_every_hour() -> None:
    assert ask(
        BILLS.november.table(),
        f"""
        WITH parent AS (
            SELECT line_item_resource_id AS machine, line_item_usage_start_date AS hour, sum({EFFECTIVE}) AS cost
            FROM line WHERE kind IN ('Usage', 'SavingsPlanCoveredUsage') GROUP BY ALL
        ), part AS (
            SELECT parent AS machine, line_item_usage_start_date AS hour,
                sum({exact("split_line_item_split_cost")} + {exact("split_line_item_unused_cost")}) AS cost
            FROM split GROUP BY ALL
        )
        SELECT count(*), count(*) FILTER (part.cost IS DISTINCT FROM parent.cost)
        FROM part LEFT JOIN parent USING (machine, hour)
        """,
    ) == (4, 0)


def test_split_lines_added_to_their_parents_would_count_money_twice() -> None:
    november = BILLS.november
    (everything, repeated) = ask(november.table(), "SELECT sum(gross), sum(gross) FILTER (parent <> '') FROM every")
    assert repeated == 3 * Decimal("4.92") + Decimal("0.208")
    assert everything == november.truth().billed + repeated


def test_a_capacity_block_over_the_months_end_costs_each_month_its_hours() -> None:
    november, december = (
        next(shape for shape in bill.shapes if shape.name == "block over the month")
        for bill in (BILLS.november, BILLS.december)
    )
    assert november.billed == november.effective + december.effective == 72 * Decimal("31.464")
    assert december.billed == 0
    assert ask(
        table(december.lines), "SELECT count(*), sum(gross), count(reservation_reservation_a_r_n) FROM line"
    ) == (
        36,
        0,
        0,
    )


def test_fees_of_hours_to_come_are_there_from_the_first_of_the_month() -> None:
    """744 hours of December at 2, of which 48 have come."""
    assert BILLS.december.truth().unspent == 696 * 2
    assert ask(
        BILLS.december.table(),
        "SELECT count(*), sum(gross) FROM line WHERE kind = 'SavingsPlanRecurringFee' "
        "AND line_item_usage_start_date >= TIMESTAMP '2026-12-03'",
    ) == (696, Decimal(696 * 2))


def test_a_final_month_has_invoices_and_an_open_one_has_none() -> None:
    question = "SELECT count(DISTINCT bill_invoice_id), count(*) FILTER (bill_invoice_id = '') FROM line"
    assert ask(BILLS.november.table(), question) == (3, 0)
    assert ask(BILLS.december.table(), question)[0] == 1
    invoices, open_lines = ask(BILLS.november.as_open().table(), question)
    assert (invoices, open_lines) == (1, ask(BILLS.november.table(), "SELECT count(*) FROM line")[0])


def test_a_bill_is_in_one_currency_of_one_payer() -> None:
    question = (
        "SELECT min(line_item_currency_code), max(line_item_currency_code), count(DISTINCT bill_payer_account_id) "
    )
    assert ask(BILLS.november.table(), question + "FROM line") == ("USD", "USD", 1)
    assert ask(BILLS.europe.table(), question + "FROM line") == ("EUR", "EUR", 1)


def test_a_restated_delivery_moves_the_third_of_november_and_no_other_day() -> None:
    question = "SELECT sum(gross) FILTER ({}), count(*) FROM line"
    third = "line_item_usage_start_date::DATE = DATE '2026-11-03'"
    first, second = BILLS.november.table(), BILLS.november.restated().table(delivery="2")
    before, lines = ask(first, question.format(third))
    after, more_lines = ask(second, question.format(third))
    assert (after - before, more_lines - lines) == (Decimal(20), 1)
    assert ask(second, question.format(f"NOT {third}"))[0] == ask(first, question.format(f"NOT {third}"))[0]
    assert BILLS.november.restated().truth().billed == BILLS.november.truth().billed + 20
    assert set(first["identity_line_item_id"].to_pylist()).isdisjoint(second["identity_line_item_id"].to_pylist())


def test_prices_of_tokens_are_the_same_in_every_unit() -> None:
    """3 dollars a million as `Units` of a million and of a thousand."""
    assert ask(
        BILLS.november.table(),
        """
        SELECT min(gross / (line_item_usage_amount * CASE
                WHEN line_item_line_item_description LIKE '%thousand%' THEN 0.001 ELSE 1 END)),
            max(gross / (line_item_usage_amount * CASE
                WHEN line_item_line_item_description LIKE '%thousand%' THEN 0.001 ELSE 1 END))
        FROM line WHERE line_item_usage_type = 'USE1-MP:USE1_InputTokenCount-Units'
            AND line_item_line_item_description NOT LIKE '%CRIS'
        """,
    ) == (3, 3)


def test_an_amount_that_a_double_cannot_hold_is_refused() -> None:
    line = BILLS.november.month.usage("AmazonEC2", "BoxUsage:m7i.xlarge", Decimal(1) / 3, BILLS.november.month.at(1))
    with pytest.raises(ValueError, match="too many digits"):
        table([line])
