"""Numbers and names that nobody means: exact on the books, or refused by name; never silently wrong."""

from decimal import Decimal

import pytest

from tests.world import World
from warehouse.attribution import EvidenceRefused


@pytest.fixture
def world(tmp_path):
    return World(tmp_path / "it's here", as_of="2026-10-10 00:00")


def ledger(world, columns="kind, basis, tokens, effective_nano"):
    assert world.attribute().failed_controls == ()
    return world.rows(f"SELECT {columns} FROM ledger_hour ORDER BY ALL")


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"billed_cost": "10000000000"}, "bill line line-1 of export 2026-10: its cost is above 9,000,000,000"),
        ({"end": "9999-01-01"}, "its charge period is 2026-10-01 10:00:00 to 9999-01-01"),
    ],
)
def test_a_line_that_the_ledger_cannot_hold_is_named_and_nothing_else_is_lost(world, facts, message):
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=1)
    assert world.publish().held == ()
    before = ledger(world)
    world.line("2026-10-01 10:00", "1", **facts)
    with pytest.raises(EvidenceRefused, match=message):
        world.attribute()
    world.rows("DELETE FROM billing_line")
    assert ledger(world) == before


@pytest.mark.parametrize("year", ["1969", "2150"])
def test_a_call_in_another_age_is_named(world, year):
    world.call(f"{year}-10-01 10:10", {"key_alias": "a"}, output=1)
    with pytest.raises(EvidenceRefused, match=f"usage record call-1 of gateway: it ended at {year}"):
        world.attribute()


def test_sums_that_no_row_can_hold_are_refused(world):
    for _ in range(2):
        world.line("2026-10-01 10:00", "8000000000", token_class="output", tokens=1)
    with pytest.raises(EvidenceRefused, match="beyond the 9,000,000,000"):
        world.attribute()


def test_prices_that_no_row_can_hold_are_refused(world):
    world.price(output="1000000000000")
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=10**9)
    with pytest.raises(EvidenceRefused, match="absurd bill line, token count or price"):
        world.attribute()


def test_billions_and_more_tokens_than_a_double_counts_add_up_to_the_nano(world):
    amount = Decimal("8999999999.999999999")
    for number in range(3):
        world.call("2026-10-01 10:10", {"key_alias": f"a{number}"}, output=2**53 + number)
    world.line("2026-10-01 10:00", str(amount), token_class="output", tokens=3 * 2**53 + 3)
    rows = ledger(world)
    assert sum(row[2] for row in rows) == 3 * 2**53 + 3
    assert sum(row[3] for row in rows) == amount.scaleb(9)


def test_a_provider_without_regions_meets_a_log_without_regions(world):
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=10, region_id=None)
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=10, region_id="")
    world.line("2026-10-01 10:00", "1", token_class="output", tokens=10, region_id=None)
    world.line("2026-10-01 10:00", "1", token_class="output", tokens=10, region_id="")
    assert ledger(world) == [("usage", "billed", 20, 2_000_000_000)]


def test_names_that_look_like_absent_ones_or_like_two_are_kept_apart(world):
    for account, region in (("a|b", "c"), ("a", "b|c"), ("a", None), ("a", "-"), ("a|=b", "c"), ("a|", "b")):
        world.call("2026-10-01 10:10", {"key_alias": "k"}, output=1, account_id=account, region_id=region)
        world.line("2026-10-01 10:00", "1", token_class="output", tokens=1, sub_account_id=account, region_id=region)
    assert ledger(world) == [("usage", "billed", 1, 1_000_000_000)] * 6


def test_an_empty_text_is_no_operation_no_task_and_no_user(world):
    for minute in (10, 20):
        world.call(f"2026-10-01 10:{minute}", {"key_alias": "k"}, output=1, operation_id="", task_id="", user_id="")
    world.attribute()
    assert world.rows("SELECT sum(operations)::INT, sum(retried_requests)::INT FROM usage_hour") == [(2, 0)]
    assert world.rows("SELECT count(*) FROM task_usage_hour") == [(0,)]
    assert world.rows("SELECT DISTINCT user_id FROM user_usage_hour") == [(None,)]


def test_calls_priced_in_two_currencies_and_calls_without_a_price_are_never_one_amount(world):
    world.price(output="15")
    world.rows("UPDATE price SET valid_to = TIMESTAMP '2026-10-01 10:30'")
    world.price(output="10")
    world.rows("UPDATE price SET currency = 'EUR', valid_from = TIMESTAMP '2026-10-01 10:30' WHERE per_mtok = 10")
    world.rows("UPDATE price SET valid_to = TIMESTAMP '2026-10-01 11:00' WHERE currency = 'EUR'")
    for minute in ("10:10", "10:40"):
        world.call(f"2026-10-01 {minute}", {"key_alias": "k"}, output=1_000_000)
    assert ledger(world, "currency, basis, effective_nano") == [
        ("EUR", "estimated", 10_000_000_000),
        ("USD", "estimated", 15_000_000_000),
    ]


def test_the_outcome_of_a_task_is_the_last_one_told(world):
    world.call("2026-10-01 10:10", {"key_alias": "k"}, output=1, task_id="t", task_outcome="resolved")
    world.call("2026-10-01 10:40", {"key_alias": "k"}, output=1, task_id="t", task_outcome="failed")
    assert world.snapshot().sql("SELECT outcome FROM task_cost").to_pylist() == [{"outcome": "failed"}]


def test_the_same_line_twice_is_two_lines(world):
    for _ in range(2):
        world.line("2026-10-01 10:00", "1", token_class="output", tokens=1, line_digest="same", x_line_item_id="same")
    assert ledger(world) == [("unattributed", "billed", 2, 2_000_000_000)]


@pytest.mark.parametrize("end", ["2026-10-01 10:00:00", "2026-10-01 10:00:01", "2026-10-02 10:00", "2026-11-01 00:00"])
def test_a_token_metered_line_of_any_length_finds_its_calls(world, end):
    world.as_of = "2026-11-03 00:00"
    world.call("2026-10-01 10:59", {"key_alias": "k"}, output=7)
    world.line("2026-10-01 10:00", "1", end=end, token_class="output", tokens=7)
    assert ledger(world) == [("usage", "billed", 7, 1_000_000_000)]
