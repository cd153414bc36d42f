"""`doctor` on the bill: every check with both sides; what does not hold, each place with its remedy."""

from pathlib import Path

from inferledger.checks import bill as bill_checks
from warehouse.snapshot import Scope, Snapshot

ROOT = Path(__file__).parents[2]
SQL = ("warehouse/marts/bill_check.sql", "collector/billing/aws_check.sql")


def found(world):
    snapshot = Snapshot.open(world.layout.published, Scope.everything("test"))
    checks = list(bill_checks.bill(snapshot))
    for check in checks:
        assert (check.result == "ok") == (check.remedy == ""), check
    return {check.subject: check for check in checks}


def evidence(world, name, lhs, rhs, tolerance="0.01"):
    with world.connected() as connection:
        connection.execute(
            "INSERT INTO bill_check VALUES ('x', 'export', '2026-10', ?, 'sp-1', 'USD', ?, ?, ?)",
            [name, lhs, rhs, tolerance],
        )


def test_a_check_that_holds_shows_both_sides_and_one_that_does_not_its_remedy(world, published):
    world.line("2026-10-07 10:00", "12")
    evidence(world, "savings plans: covered + negated = 0", "0.004", "0")
    evidence(world, "discounts in columns = discounts in lines", "90", "100")
    published()
    checks = found(world)
    plan = checks["savings plans: covered + negated = 0"]
    assert (plan.result, plan.detail) == (
        "ok",
        "2026-10, export, sp-1, USD: 0.004 and 0, difference 0.004 (up to 0.01 is none)",
    )
    discount = checks["discounts in columns = discounts in lines"]
    assert (discount.result, discount.detail) == (
        "warn",
        "2026-10, export, sp-1, USD: 90 and 100, difference -10 (up to 0.01 is none)",
    )
    assert "INCLUDE_MANUAL_DISCOUNT_COMPATIBILITY" in discount.remedy


def test_every_remedy_is_for_a_check_that_there_is():
    text = "".join((ROOT / file).read_text() for file in SQL)
    assert [name for name in bill_checks.REMEDIES if f"'{name}'" not in text] == []


def test_without_a_bill_nothing_is_checked(world, published):
    world.call("2026-10-07 10:00", {"key_alias": "a"}, uncached_input=1)
    published()
    assert found(world) == {}
