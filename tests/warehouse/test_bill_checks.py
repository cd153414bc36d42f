"""Checks of the bill as they are published, and the bridge from billed to effective cost."""

from decimal import Decimal

import pytest

from tests.world import World

AT = "2026-10-07 10:00"
MILLION = 1_000_000


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def checks(world):
    """Both sides and the verdict by name."""
    found = world.snapshot().sql("SELECT name, subject, lhs, rhs, ok, explanation FROM bill_check").to_pylist()
    return {row["name"]: row for row in found}


def delivered(world, number, *days, export="export"):
    """Totals of one delivery of October's bill: (day, cost)."""
    with world.connected() as connection:
        for day, cost in days:
            connection.execute(
                "INSERT INTO bill_version VALUES ('x', ?, '2026-10', ?, ?, ?, ?, 'EC2', 'USD', 1, ?, ?)",
                [export, number, f"2026-10-{10 + number} 04:00", f"d{number}", f"2026-10-{day:02d}", cost, cost],
            )


def test_lines_that_are_not_what_was_read_are_seen(world):
    world.line(AT, "12")
    delivered(world, 1, (7, "13"))
    found = checks(world)["billed cost stored = as read"]
    assert (found["lhs"], found["rhs"], found["ok"]) == (12, 13, False)


def test_a_day_long_past_that_moves_is_told_with_its_day(world):
    world.line(AT, "12")
    delivered(world, 1, (3, "1000"), (7, "12"))
    delivered(world, 2, (3, "787.60"), (7, "12"))
    found = checks(world)["days long past are as they were"]
    assert (found["lhs"], found["rhs"], found["ok"]) == (Decimal("212.40"), 0, False)
    assert found["subject"] == "export, delivery 2"
    assert found["explanation"] == "most on 2026-10-03: -212.40"


def test_days_that_move_against_each_other_are_both_seen(world):
    world.line(AT, "12")
    delivered(world, 1, (3, "100"), (4, "100"))
    delivered(world, 2, (3, "50"), (4, "150"))
    assert checks(world)["days long past are as they were"]["lhs"] == 100


def test_the_last_days_still_fill_and_are_no_restatement(world):
    world.line(AT, "12")
    delivered(world, 1, (10, "100"))
    delivered(world, 2, (10, "300"))
    assert "days long past are as they were" not in checks(world)


@pytest.mark.parametrize(("cost", "ok"), [("0.80", True), ("3.9", True), ("800", False), ("0.0008", False)])
def test_a_unit_price_a_thousand_times_off_is_seen(world, cost, ok):
    """reference/billing.md 5.2: AWS changed its unit from 1K to 1M tokens."""
    world.price(uncached_input="0.80")
    world.line(AT, cost, token_class="uncached_input", tokens=MILLION, x_service_tier="standard")
    found = checks(world)["unit prices within 0.2 and 5 times the price book"]
    assert (found["lhs"], found["ok"]) == (0 if ok else 1, ok)
    assert (found["explanation"] is None) == ok


def test_units_and_models_that_are_not_known_are_counted(world):
    world.line(AT, "1", token_class="output", tokens=None, pricing_unit="bushels")
    world.line(AT, "1", token_class="output", tokens=5, x_model=None, x_usage_type="USE1-Riddle-output-tokens")
    found = checks(world)
    units, models = found["units of token charges are known"], found["models of token charges are known"]
    assert (units["lhs"], units["explanation"]) == (1, "bushels")
    assert (models["lhs"], models["explanation"]) == (1, "USE1-Riddle-output-tokens")


def test_a_cross_check_that_differs_by_more_than_a_cent_is_seen(world):
    world.line(AT, "12")
    with world.connected() as connection:
        connection.execute(
            "INSERT INTO cross_check_line BY NAME "
            "SELECT * REPLACE ('other' AS export_name, billed_cost + 0.02 AS billed_cost) FROM billing_line"
        )
    found = checks(world)
    assert not found["record = cross-check, billed"]["ok"]
    assert found["record = cross-check, effective"]["ok"]
    assert found["record = cross-check, billed"]["subject"] == "other, account 999988887777"


def test_the_log_may_lack_two_hundredths_of_the_bills_tokens(world):
    world.line(AT, "1", token_class="uncached_input", tokens=1000)
    world.call("2026-10-07 10:30", {"key_alias": "a"}, uncached_input=985)
    assert checks(world)["tokens in the log = tokens on the bill"]["ok"]
    world.line("2026-10-07 12:00", "1", token_class="uncached_input", tokens=1000)
    assert not checks(world)["tokens in the log = tokens on the bill"]["ok"]


def bridge(world):
    found = world.snapshot().sql("SELECT family, part, amount_usd FROM bill_bridge ORDER BY ALL").to_pylist()
    return {(row["family"], row["part"]): row["amount_usd"] for row in found}


def test_the_bridge_from_billed_to_effective_names_what_was_paid_ahead_and_what_was_used(world):
    """reference/billing.md 4.3 for one hour: 10 an hour committed, 8 used; a reservation's fee of 8,760 paid ahead."""
    plan = {"commitment_discount_id": "sp", "x_charge_family": "commitment"}
    world.line(AT, "12", effective_cost="8", x_line_item_type="SavingsPlanCoveredUsage", commitment_discount_id="sp")
    negated = {"x_line_item_type": "SavingsPlanNegation", "charge_category": "Adjustment", **plan}
    world.line(AT, "-12", effective_cost="0", **negated)
    fee = {"charge_category": "Purchase", **plan}
    world.line(AT, "10", effective_cost="2", x_line_item_type="SavingsPlanRecurringFee", **fee)
    reserved = {**fee, "commitment_discount_id": "ri"}
    world.line(AT, "8760", effective_cost="0", x_line_item_type="Fee", **reserved)
    world.line(AT, "0", effective_cost="2", x_line_item_type="DiscountedUsage", commitment_discount_id="ri")
    world.line(AT, "5")
    found = bridge(world)
    assert found == {
        ("reservations", "fees"): -8760,
        ("reservations", "used"): 2,
        ("savings plans", "fees"): -10,
        ("savings plans", "unused"): 2,
        ("savings plans", "used"): 8,
    }
    billed, effective = world.rows("SELECT sum(billed_cost), sum(effective_cost) FROM billing_line")[0]
    assert billed + sum(found.values()) == effective


def in_reporting_currency(world):
    found = world.snapshot().sql(
        "SELECT currency, billed, billed_reporting, days_without_rate FROM bill_reporting ORDER BY ALL"
    )
    return [tuple(row.values()) for row in found.to_pylist()]


def rate(world, day, value, currency="EUR"):
    with world.connected() as connection:
        connection.execute("INSERT INTO fx_rate VALUES ('x', ?, ?, 'USD', ?)", [day, currency, value])


def test_another_currency_is_told_beside_itself_in_the_reporting_currency_by_the_rate_of_the_day(world):
    world.line("2026-10-07 10:00", "100", billing_currency="EUR")
    world.line("2026-10-09 10:00", "10", billing_currency="EUR")
    world.line(AT, "7")
    rate(world, "2026-10-01", "1.10")
    rate(world, "2026-10-08", "1.25")
    rate(world, "2026-10-10", "9")
    assert in_reporting_currency(world) == [
        ("EUR", 110, Decimal("122.5"), 0),
        ("USD", 7, 7, 0),
    ]


def test_days_without_a_rate_are_counted_and_not_converted(world):
    world.line("2026-10-07 10:00", "100", billing_currency="EUR")
    world.line("2026-10-09 10:00", "10", billing_currency="EUR")
    rate(world, "2026-10-08", "2")
    assert in_reporting_currency(world) == [("EUR", 110, 20, 1)]


def test_a_currency_without_any_rate_has_no_amount_in_another(world):
    world.line(AT, "10", billing_currency="CNY")
    assert in_reporting_currency(world) == [("CNY", 10, None, 1)]


def test_a_bill_without_commitments_has_no_bridge(world):
    world.line(AT, "5")
    assert bridge(world) == {}
