"""Readable ledgers: a few rows in, exact rows out."""

from decimal import Decimal

import pytest

from tests.world import World
from warehouse import measures
from warehouse.settings import WarehouseSettings

OWNERS = [
    {"when": {"key_alias": "search-*"}, "set": {"team": "search"}},
    {"when": {"key_alias": "support-*"}, "set": {"team": "support"}},
]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, WarehouseSettings.model_validate({"owners": OWNERS}))


def postings(world, columns="kind, reason, claim_set_id, tokens, effective_nano"):
    world.attribute()
    return world.rows(f"SELECT {columns} FROM ledger_hour ORDER BY ALL")


def test_a_bucket_is_shared_by_tokens_and_what_no_call_explains_is_unattributed(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, uncached_input=60)
    world.call("2026-10-01 10:40", {"key_alias": "support-1"}, uncached_input=35)
    world.line("2026-10-01 10:00", "0.10", token_class="uncached_input", tokens=100)
    assert postings(world) == [
        ("unattributed", "no_log", None, 5, 5_000_000),
        ("usage", None, "key_alias=search-1", 60, 60_000_000),
        ("usage", None, "key_alias=support-1", 35, 35_000_000),
    ]


def test_shares_that_do_not_divide_add_up_to_the_amount(world):
    for number in range(3):
        world.call("2026-10-01 10:10", {"key_alias": f"search-{number}"}, output=1)
    world.line("2026-10-01 10:00", "0.000000001", token_class="output", tokens=3)
    assert sorted(row[-1] for row in postings(world)) == [0, 0, 1]


def test_a_negative_amount_is_shared_without_a_share_of_the_wrong_sign(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=2)
    world.call("2026-10-01 10:10", {"key_alias": "support-1"}, output=1)
    world.line("2026-10-01 10:00", "-0.000000010", token_class="output", tokens=3)
    assert [row[-1] for row in postings(world)] == [-7, -3]


def test_a_bucket_without_tokens_is_unattributed_with_the_reason(world):
    world.line("2026-10-01 10:00", "1.00", token_class="output", tokens=0)
    assert postings(world) == [("unattributed", "no_tokens_on_bill", None, 0, 1_000_000_000)]


def test_calls_the_bill_has_not_reached_are_estimated_from_the_price_book(world):
    world.price(output="15")
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=1_000_000)
    assert postings(world, "kind, basis, reason, tokens, effective_nano") == [
        ("usage", "estimated", None, 1_000_000, 15_000_000_000)
    ]


def test_a_call_without_a_price_is_unknown_and_not_free(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=1_000_000)
    assert postings(world, "kind, basis, reason, tokens, effective_nano") == [
        ("usage", "estimated", "no_price", 1_000_000, None)
    ]
    row = measures.table(world.snapshot(), ["usage_cost_usd", "unknown_cost_tokens"]).to_pylist()[0]
    assert row == {"usage_cost_usd": None, "unknown_cost_tokens": 1_000_000}


def test_only_the_part_the_bill_has_not_shown_is_estimated(world):
    world.price(output="15")
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=100)
    world.line("2026-10-01 10:00", "0.0009", token_class="output", tokens=60)
    assert postings(world, "basis, tokens, effective_nano") == [
        ("billed", 60, 900_000),
        ("estimated", 40, 600_000),
    ]


def test_once_the_bill_is_a_day_past_a_bucket_unmatched_calls_are_variance_and_cost_nothing(world):
    world.price(output="15")
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=100)
    world.line("2026-10-01 10:00", "0.0009", token_class="output", tokens=60)
    world.line("2026-10-02 10:00", "0.0001", token_class="output", tokens=1)
    assert postings(world, "hour::DATE::VARCHAR, basis, kind, tokens, effective_nano") == [
        ("2026-10-01", "billed", "usage", 60, 900_000),
        ("2026-10-02", "billed", "unattributed", 1, 100_000),
    ]
    assert world.rows("SELECT variance_tokens FROM match_hour ORDER BY hour") == [(40,), (0,)]


def test_a_model_endpoint_that_no_pool_table_names_is_inference_of_nobody(world):
    world.line("2026-10-07 10:00", "5", service_name="Amazon SageMaker", x_charge_family="model_endpoint")
    world.attribute()
    assert postings(world, "kind, line_class, reason, effective_nano") == [
        ("unattributed", "in_scope_other", "no_key", 5_000_000_000)
    ]


def test_other_services_are_out_of_scope_and_still_on_the_books(world):
    world.line("2026-10-01 10:00", "5", service_name="Amazon EC2")
    assert postings(world, "kind, line_class, effective_nano") == [("out_of_scope", "out_of_scope", 5_000_000_000)]


def test_support_is_shared_by_usage_of_the_whole_bill_and_then_by_the_days_usage(world):
    world.as_of = "2026-11-05 00:00"
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=10)
    world.line("2026-10-01 10:00", "30", token_class="output", tokens=10)
    world.line("2026-10-01 10:00", "70", service_name="Amazon EC2")
    world.line(
        "2026-10-01 00:00",
        "31",
        end="2026-11-01 00:00",
        service_name="AWS Support",
        x_charge_family="support",
        charge_category="Purchase",
    )
    world.attribute()
    assert world.rows(
        "SELECT kind, coalesce(claim_set_id, '-'), sum(effective_nano)::BIGINT FROM ledger_overlay "
        "GROUP BY ALL ORDER BY ALL"
    ) == [
        ("out_of_scope", "-", 21_700_000_000),
        ("shared", "-", 9_000_000_000),  # 30 of 31 days had no usage
        ("shared", "key_alias=search-1", 300_000_000),
    ]


def test_hours_to_come_are_future(world):
    world.as_of = "2026-10-16 12:00"
    world.line(
        "2026-10-01 00:00",
        "31",
        end="2026-11-01 00:00",
        service_name="AWS Support",
        x_charge_family="support",
        charge_category="Purchase",
    )
    world.attribute()
    assert dict(world.rows("SELECT kind, sum(effective_nano)::BIGINT FROM ledger_overlay GROUP BY ALL")) == {
        "out_of_scope": 16_000_000_000,
        "future": 15_000_000_000,
    }


def test_what_lies_below_a_nano_is_one_decimal_and_the_books_balance(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=10)
    world.line("2026-10-01 10:00", "0.1234567891239", token_class="output", tokens=10)
    balance = (
        world.snapshot()
        .sql("SELECT cost_basis, bill_usd, ledger_usd, rounding_usd, difference_usd FROM balance ORDER BY cost_basis")
        .to_pylist()
    )
    assert balance[0] == {
        "cost_basis": "billed",
        "bill_usd": Decimal("0.123456789123900000"),
        "ledger_usd": Decimal("0.123456789000000000"),
        "rounding_usd": Decimal("0.000000000123900000"),
        "difference_usd": Decimal("0.000000000000000000"),
    }


def test_a_call_reported_twice_counts_once_and_the_largest_output_wins(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, record_id="m1", event_key="r:x", output=3)
    world.call("2026-10-01 10:12", {"key_alias": "search-1"}, record_id="m2", event_key="r:x", output=30)
    world.attribute()
    assert world.rows("SELECT record_id, record_count, output_tokens FROM usage_event") == [("m2", 2, 30)]


def test_attempts_of_one_operation_are_several_requests_and_one_operation(world):
    world.call("2026-10-01 10:59", {"key_alias": "search-1"}, operation_id="op", status="failure")
    world.call("2026-10-01 11:01", {"key_alias": "search-1"}, operation_id="op", output=5)
    row = measures.table(
        world.snapshot(), ["requests", "operations", "retried_requests", "failed_requests"]
    ).to_pylist()
    assert row == [{"requests": 2, "operations": 1, "retried_requests": 1, "failed_requests": 1}]


def test_a_payload_claim_does_not_move_cost_that_a_credential_decides(tmp_path):
    rules = [
        {"when": {"tag.team": "*"}, "set": {"team": "{tag.team}"}},
        {"when": {"key_alias": "search-*"}, "set": {"team": "search"}},
    ]
    world = World(tmp_path, WarehouseSettings.model_validate({"owners": rules}))
    world.call("2026-10-01 10:10", {"key_alias": "search-1", "tag.team": "victim"}, output=1)
    world.call("2026-10-01 10:10", {"tag.team": "honest"}, output=1)
    world.attribute()
    assert sorted(world.rows("SELECT team FROM claim_owner")) == [("honest",), ("search",)]


def test_a_rule_holds_for_its_dates_and_a_new_rule_moves_no_posting(tmp_path):
    rules = [
        {"when": {"key_alias": "k"}, "set": {"team": "old"}, "to": "2026-10-02"},
        {"when": {"key_alias": "k"}, "set": {"team": "new"}, "from": "2026-10-02"},
    ]
    world = World(tmp_path, WarehouseSettings.model_validate({"owners": rules}))
    for day in (1, 2):
        world.call(f"2026-10-0{day} 10:10", {"key_alias": "k"}, output=10)
        world.line(f"2026-10-0{day} 10:00", "1", token_class="output", tokens=10)
    by_day = measures.table(world.snapshot(), ["usage_cost_usd"], ["day", "team"]).to_pylist()
    assert [(str(row["day"]), row["team"]) for row in by_day] == [("2026-10-01", "old"), ("2026-10-02", "new")]


def test_days_are_cut_in_the_reporting_zone_and_add_up_to_their_range(tmp_path):
    world = World(tmp_path, WarehouseSettings(zone="America/Los_Angeles"))
    world.call("2026-10-02 03:10", {"key_alias": "k"}, output=10)
    world.line("2026-10-02 03:00", "1", token_class="output", tokens=10)
    rows = measures.table(world.snapshot(), ["effective_cost_usd"], ["day"]).to_pylist()
    assert [(str(row["day"]), str(row["effective_cost_usd"])) for row in rows] == [("2026-10-01", "1.000000000")]


def test_a_bill_that_knows_long_context_keeps_it_apart_even_where_a_class_is_missing(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, uncached_input=150_000, cache_read=100_000, output=10)
    world.call("2026-10-01 10:20", {"key_alias": "support-1"}, uncached_input=50, cache_read=1_000)
    world.line("2026-10-01 10:00", "2", token_class="uncached_input", tokens=150_000, x_context_tier="long")
    world.line("2026-10-01 10:00", "0.001", token_class="cache_read", tokens=1_000)
    world.line("2026-10-03 10:00", "0", token_class="output", tokens=1)
    rows = postings(world, "hour::DATE::VARCHAR, token_class, coalesce(claim_set_id, '-'), tokens, effective_nano")
    assert rows[:2] == [
        ("2026-10-01", "cache_read", "key_alias=support-1", 1_000, 1_000_000),
        ("2026-10-01", "uncached_input", "key_alias=search-1", 150_000, 2_000_000_000),
    ]


def test_a_bill_that_does_not_know_long_context_has_one_bucket_for_both(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, uncached_input=300_000)
    world.call("2026-10-01 10:20", {"key_alias": "support-1"}, uncached_input=100_000)
    world.line("2026-10-01 10:00", "4", token_class="uncached_input", tokens=400_000)
    assert [row[-1] for row in postings(world)] == [3_000_000_000, 1_000_000_000]


def test_geo_calls_meet_a_bill_that_says_regional_only_if_it_does_not_say_geo(world):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=10, scope="geo")
    world.call("2026-10-01 10:20", {"key_alias": "support-1"}, output=10, scope="regional")
    world.line("2026-10-01 10:00", "1", token_class="output", tokens=10, x_scope="regional")
    world.line("2026-10-01 10:00", "1.1", token_class="output", tokens=10, x_scope="geo")
    assert sorted((row[2], row[4]) for row in postings(world)) == [
        ("key_alias=search-1", 1_100_000_000),
        ("key_alias=support-1", 1_000_000_000),
    ]


def test_a_unit_cost_divides_known_cost_by_the_tokens_it_bought(world):
    world.price(output="15")
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=1_000_000)
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=3_000_000, model="brand-new")
    row = measures.table(world.snapshot(), ["cost_per_mtok_usd", "total_tokens", "unknown_cost_tokens"]).to_pylist()[0]
    assert row == {"cost_per_mtok_usd": 15.0, "total_tokens": 4_000_000, "unknown_cost_tokens": 3_000_000}


@pytest.mark.parametrize(("cloud", "provider"), [("azure", "azure.ai.openai"), ("gcp", "gcp.vertex_ai")])
def test_the_model_api_of_any_cloud_meets_its_log(world, cloud, provider):
    world.line("2026-10-07 10:00", "3", token_class="output", tokens=1000, provider_name=cloud, service_name="Models")
    world.call("2026-10-07 10:30", {"key_alias": "a"}, provider=provider, output=1000)
    world.attribute()
    assert world.rows("SELECT kind, provider, effective_nano FROM ledger_hour WHERE basis = 'billed'") == [
        ("usage", provider, 3_000_000_000)
    ]


def priced(world):
    """Dollars by the price book of every call of the hour."""
    world.attribute()
    (row,) = world.rows("SELECT sum(priced_pico) / 1e12, sum(unpriced_tokens), sum(requests) FROM usage_hour")
    return row


def test_searches_and_a_price_for_each_request_are_part_of_what_a_call_costs(world):
    world.price(output="15", web_searches="10000", requests="5000")
    world.call("2026-10-01 10:10", {}, output=1_000_000, other_units={"web_searches": "3"})
    assert priced(world) == (15 + 3 * 0.01 + 0.005, 0, 1)


def test_tokens_of_audio_have_their_own_price_and_those_in_the_cache_theirs(world):
    world.price(uncached_input="1", cache_read="0.1", input_audio="3", cache_audio_read="0.3")
    units = {"input_audio_tokens": "300000", "cache_audio_read_tokens": "100000"}
    world.call("2026-10-01 10:10", {}, uncached_input=700_000, cache_read=300_000, other_units=units)
    assert priced(world) == pytest.approx((0.5 + 0.2 * 3 + 0.2 * 0.1 + 0.1 * 0.3, 0, 1), abs=1e-12)


def test_audio_without_a_price_of_its_own_costs_what_text_does(world):
    world.price(uncached_input="1")
    world.call("2026-10-01 10:10", {}, uncached_input=1_000_000, other_units={"input_audio_tokens": "300000"})
    assert priced(world) == (1, 0, 1)


def test_a_search_without_a_price_leaves_its_calls_cost_unknown(world):
    world.price(output="15")
    world.call("2026-10-01 10:10", {}, output=1_000_000, other_units={"web_searches": "3"})
    assert priced(world) == (None, 0, 1)


def test_prices_that_are_no_whole_number_of_picos_are_multiplied_first_and_rounded_once(world):
    world.price(output="0.083333333333")
    world.call("2026-10-01 10:10", {}, output=900_000_000)
    assert priced(world) == (pytest.approx(74.9999999997, abs=1e-11), 0, 1)
