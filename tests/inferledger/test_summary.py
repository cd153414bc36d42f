"""`summary`: kinds = teams = the bill, exactly; what is not known is not zero."""

from decimal import Decimal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inferledger.figures import exact, money, mtok, percent, ratio
from inferledger.summary import summary
from tests.inferledger.conftest import OWNERS
from tests.world import World
from warehouse.settings import WarehouseSettings


def total(amounts):
    return sum((Decimal(amount) for amount in amounts.values()), Decimal(0))


def test_kinds_and_teams_add_up_to_the_bill_to_the_last_digit(filled, cli):
    facts = cli.json("summary")
    assert facts["effective"] == facts["billed"] == "12.445000000000400000"
    assert facts["by_kind"] == {
        "out_of_scope": "12.345000000",
        "usage": "0.095000000",
        "unattributed": "0.005000000",
        "rounding": "0.000000000000400000",
    }
    assert facts["by_team"] == {"(no team)": "12.350000000000400000", "search": "0.060000000", "support": "0.035000000"}
    for names in ("by_kind", "by_team", "by_kind_billed", "by_team_billed"):
        assert total(facts[names]) == Decimal(facts["effective"])
    assert Decimal(facts["difference"]) == Decimal(facts["difference_billed"]) == 0
    assert facts["difference"].startswith("0")
    assert facts["status"] == "open"
    assert [(row["cost_basis"], row["bill"]) for row in facts["balances"]] == [
        ("billed", "12.445000000000400000"),
        ("effective", "12.445000000000400000"),
    ]


def test_an_estimate_is_in_unit_costs_and_never_in_the_bill(filled, cli):
    facts = cli.json("summary")
    assert facts["estimated"] == "3.000000000"
    assert facts["totals"]["usage_cost"] == "3.095000000"
    (model,) = facts["models"]
    assert (model["model"], model["cost_per_mtok"]) == ("nova-pro", ratio(3.095 / 1.000095))
    assert any("$3.00 is estimated" in note for note in facts["notes"])


def test_the_billed_basis_is_a_ledger_of_its_own(world, published, cli):
    world.call("2026-10-01 10:10", {"key_alias": "search-1"}, output=10)
    world.line("2026-10-01 10:00", "1.00", billed_cost="0", effective_cost="1.00", token_class="output", tokens=10)
    published()
    facts = cli.json("summary")
    assert (facts["billed"], facts["effective"]) == ("0.000000000000000000", "1.000000000000000000")
    assert (facts["by_team"]["search"], facts["by_team_billed"]["search"]) == ("1.000000000", "0.000000000")


def test_other_currencies_are_listed_and_never_added(world, published, cli):
    world.line("2026-10-01 10:00", "5", service_name="Amazon EC2")
    world.line("2026-10-01 10:00", "7", service_name="Amazon EC2", billing_currency="EUR")
    published()
    facts = cli.json("summary")
    assert facts["effective"] == "5.000000000000000000"
    assert total(facts["by_team"]) == 5
    assert [(row["currency"], row["effective"], row["difference"]) for row in facts["other_currencies"]] == [
        ("EUR", "7.000000000000000000", "0.000000000000000000")
    ]
    assert "7.00 EUR in EUR" in cli("summary").output


def test_another_currency_is_told_in_the_reporting_currency_by_dated_rates(world, published, cli):
    world.line("2026-10-01 10:00", "5")
    world.line("2026-10-01 10:00", "10", billing_currency="EUR")
    world.line("2026-10-02 10:00", "10", billing_currency="CNY")
    with world.connected() as connection:
        connection.execute("INSERT INTO fx_rate VALUES ('x', '2026-09-30', 'EUR', 'USD', 1.1)")
    published()
    notes = cli.json("summary")["notes"]
    assert (
        "The bill of 2026-10 also holds 10.00 EUR, $11.00 by the rate of each day. Currencies are never added up."
        in notes
    )
    assert (
        "The bill of 2026-10 also holds 10.00 CNY, without an exchange rate (exchange_rates). "
        "Currencies are never added up." in notes
    )


def test_a_range_of_days_is_what_the_ledger_posted_to_them(filled, cli):
    facts = cli.json("summary", "--from", "2026-10-01", "--to", "2026-10-01")
    assert facts["period"] == {"first_day": "2026-10-01", "last_day": "2026-10-01", "whole_ledger": False}
    assert Decimal(facts["effective"]) == Decimal("0.1") == total(facts["by_kind"]) == total(facts["by_team"])
    assert Decimal(facts["difference"]) == 0


def test_a_split_by_any_dimension(filled, cli):
    facts = cli.json("summary", "--by", "day,team")
    assert facts["breakdown"]["by"] == ["day", "team"]
    rows = {(row["day"], row["team"]): row["effective_cost"] for row in facts["breakdown"]["rows"]}
    assert rows["2026-10-01", "search"] == "0.060000000"
    assert sum(map(Decimal, rows.values())) == Decimal("12.445")
    tasks = cli.json("summary", "--by", "task_id")["breakdown"]["rows"]
    assert {row["task_id"]: row["task_cost"] for row in tasks}["t-1"] == "0.060000000"
    result = cli("summary", "--by", "colour")
    assert result.exit_code == 2
    assert "does not know colour; it can be split by day, week, month" in result.output


def test_without_a_bill_it_says_what_models_and_tasks_cost_at_the_price_book(ledger, cli):
    facts = cli.json("summary")
    assert (facts["billed"], facts["effective"], facts["status"]) == ("0", "0", "no bill")
    assert facts["by_kind"] == {"usage": "0.000000000", "rounding": "0"} or total(facts["by_kind"]) == 0
    models = {row["model"]: row for row in facts["models"]}
    # 1.6 M x $1 + 301 k x $5 over 1.901 M tokens
    assert models["nova-pro"]["usage_cost"] == "3.105000000"
    assert models["nova-pro"]["cost_per_mtok"] == ratio(3.105 / 1.901)
    assert models["mystery-9"]["usage_cost"] is None
    assert models["mystery-9"]["cost_per_mtok"] is None
    assert facts["tasks"][0]["task_id"] == "t-1"
    assert facts["tasks"][0]["task_cost"] == "3.000000000"
    assert facts["price_book"]["list_cost"] == "3.105000000"
    said = cli("summary").output
    assert "No bill has been loaded" in said
    assert "The cost of 0.007 M tokens is unknown" in said.replace("\n", " ")
    assert "unknown" in said


def test_the_table_fits_into_a_hundred_columns(filled, cli):
    for words in (("summary",), ("summary", "--by", "day,team,model")):
        output = cli(*words).output
        assert max(map(len, output.splitlines())) <= 100
    assert "balanced" in cli("summary").output


def test_a_range_that_ends_before_it_begins_and_a_day_that_is_none(ledger, cli):
    result = cli("summary", "--from", "2026-10-02", "--to", "2026-10-01")
    assert (result.exit_code, "is after --to" in result.output) == (2, True)
    result = cli("summary", "--from", "yesterday")
    assert (result.exit_code, "`yesterday` is no day" in result.output) == (2, True)


costs = st.decimals(min_value=-1000, max_value=1000, places=12)
lines = st.lists(
    st.tuples(costs, st.sampled_from(["uncached_input", "output", None]), st.integers(0, 500)), min_size=1, max_size=5
)
calls = st.lists(st.tuples(st.sampled_from(["search-1", "support-1", "x"]), st.integers(0, 300)), max_size=4)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(bill=lines, log=calls)
def test_the_identities_hold_for_any_bill_and_any_log(tmp_path_factory, bill, log):
    world = World(tmp_path_factory.mktemp("world"), WarehouseSettings.model_validate({"owners": OWNERS}))
    for cost, token_class, tokens in bill:
        facts = {"token_class": token_class, "tokens": tokens} if token_class else {"service_name": "Amazon EC2"}
        world.line("2026-10-01 10:00", str(cost), **facts)
    for alias, tokens in log:
        world.call("2026-10-01 10:10", {"key_alias": alias}, output=tokens)
    facts = summary(world.snapshot())
    for basis, kinds, teams in (
        ("effective", "by_kind", "by_team"),
        ("billed", "by_kind_billed", "by_team_billed"),
    ):
        assert total(facts[kinds]) == total(facts[teams]) == Decimal(facts[basis]) == sum(line[0] for line in bill)
    assert Decimal(facts["difference"]) == Decimal(facts["difference_billed"]) == 0


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (money("1234.5"), "$1,234.50"),
        (money("-3"), "-$3.00"),
        (money("0.00123"), "$0.0012"),
        (money("5", "EUR"), "5.00 EUR"),
        (money(None), "unknown"),
        (mtok(5_487_743_409), "5,487.7 M"),
        (mtok(7000), "0.007 M"),
        (mtok(None), "unknown"),
        (percent("0.0724"), "7.2 %"),
        (percent(None), "-"),
        (exact(Decimal("1E-18")), "0.000000000000000001"),
        (exact(None), None),
        (ratio(None), None),
    ],
)
def test_figures_for_people(shown, text):
    assert shown == text
