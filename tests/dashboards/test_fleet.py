"""The own fleet on the pages: what GPUs did and cost, who used them, and beside which managed API."""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboards import attention, bill_queries, comparison, fleet_queries, flow, queries, words
from dashboards.filters import View, view
from tests import fleet
from tests.dashboards.conftest import Open
from tests.dashboards.test_app import figures, text, turn_to
from tests.world import World
from warehouse import measures
from warehouse.measures import Filters
from warehouse.snapshot import Scope, Snapshot

LAST_7 = Filters(first_day=date(2026, 10, 12), last_day=date(2026, 10, 18))


@dataclass(frozen=True)
class Zone:
    """As much of a snapshot as a clock needs."""

    zone: str


@pytest.fixture
def page(app: Open, fleet_published):
    """The page of the fleet, with an `access` section and the query of a link."""

    def open_page(name: str = "fleet", access: dict[str, object] | None = None, **query: object) -> AppTest:
        test = turn_to(app(fleet_published, access, **query), name)
        assert not test.exception
        return test

    return open_page


@pytest.fixture
def chosen(fleet_snapshot: Snapshot) -> View:
    return view(fleet_snapshot, date(2026, 10, 12), date(2026, 10, 18), {})


def of(test: AppTest, column: str) -> pd.DataFrame:
    """The first table that has a column."""
    return next(frame.value for frame in test.dataframe if column in frame.value)


def test_the_headline_shows_the_measures_of_the_period(page, fleet_snapshot):
    names = ["fleet_cost_usd", "gpu_held_ms", "gpu_busy_share", "fleet_idle_cost_usd", "fleet_under_used_cost_usd",
             "fleet_unmeasured_cost_usd", "output_tokens_per_gpu_second"]  # fmt: skip
    row = measures.table(fleet_snapshot, names, where=LAST_7).to_pylist()[0]
    assert list(figures(page()).values()) == [words.of_measure(name, row[name]) for name in names]
    # 14 days of 46 dollars an hour are billed but for the last one
    assert row["fleet_cost_usd"] == 6 * 24 * (46 + Decimal("0.1"))


def test_pools_and_nodes_add_up_to_the_fleet(page, fleet_snapshot):
    table = of(page(), "fleet_cost_usd").set_index("name")
    assert set(table.index) == {"qwen-mixed", "llama-prefill", "llama-decode", "no pool"}
    states = [f"fleet_{state}_cost_usd" for state in ("productive", "under_used", "idle", "unmeasured", "shared")]
    assert table[states].sum(axis=1).tolist() == pytest.approx(table["fleet_cost_usd"].tolist())
    total = queries.totals(fleet_snapshot, ("fleet_cost_usd",), LAST_7)["fleet_cost_usd"]
    assert table["fleet_cost_usd"].sum() == pytest.approx(float(total))
    assert table.loc["no pool", "fleet_idle_cost_usd"] == pytest.approx(6 * 24 * 12)
    assert table.loc["llama-prefill", "fleet_unmeasured_cost_usd"] == 0


def test_activity_stands_beside_what_came_out(page):
    table = of(page(), "gpu_engine_active_share").set_index("name")
    assert table.loc["qwen-mixed", "gpu_memory_used_share"] == pytest.approx(0.75)
    assert 0.3 < table.loc["qwen-mixed", "gpu_engine_active_share"] < 0.5
    # a decode pool computes no prompt, a prefill pool no answer
    assert table.loc["llama-decode", "input_tokens_per_gpu_second"] == 0
    assert table.loc["llama-prefill", "output_tokens_per_gpu_second"] == 0
    assert "GPU utilisation is not efficiency" in text(page())


def test_the_page_says_which_definition_which_reference_and_how_wrong_a_ratio_can_be(page):
    said = text(page())
    for part in ("95th percentile of five-minute work per GPU-second in the calendar week before",
                 "Here: the week from 5 Oct 2026.", "A ratio wrong by two moves a class's share by 13 to 17 points",
                 "never input and output added", "counters began at a value that nothing explains",
                 "383 h of GPU time are not billed yet"):  # fmt: skip
        assert part in said


def test_a_week_without_a_reference_is_named(page):
    said = text(page(period="Everything"))
    assert "In the week from 5 Oct 2026 no under-use of any pool shows: no reference, or all reached it." in said


def test_a_link_chooses_a_pool(page, fleet_snapshot):
    test = page(pool=["qwen-mixed"])
    where = queries.only(LAST_7, pool=("qwen-mixed",))
    row = queries.totals(fleet_snapshot, ("fleet_cost_usd",), where)
    assert figures(test)["Fleet cost"] == words.money(row["fleet_cost_usd"])
    assert of(test, "fleet_cost_usd")["name"].tolist() == ["qwen-mixed"]
    nodes = page(pool=["(none)"])
    assert of(nodes, "fleet_cost_usd")["name"].tolist() == ["no pool"]
    assert "No engine counted a token." in text(nodes)


def test_gpu_time_has_no_owner_and_the_page_says_so(page):
    test = page(team=["ads"])
    assert figures(test) == figures(page())
    assert "GPU time has no owner" in text(test)
    assert of(test, "weighed_cost_usd")["team"].tolist() == ["ads"]


def test_a_pool_that_was_not_there_says_so(page):
    test = page(model=["qwen"], pool=["llama-decode"])
    assert not test.metric
    assert "No GPU was held and none was billed" in test.info[0].value


def test_who_used_it_has_an_interval_where_a_ratio_divided(page, fleet_snapshot):
    table = of(page(), "weighed_cost_usd").set_index("team")
    row = table.loc["ads"]
    assert row["low"] < row["weighed_cost_usd"] < row["high"]
    assert row["by_ratio"] == 1
    assert 0 < table.loc["search", "by_ratio"] < 1
    exact = queries.table(fleet_snapshot, comparison.WEIGHED, ("team",), queries.only(LAST_7, model=("llama",)))
    assert (exact["weighed_low_cost_usd"] == exact["weighed_high_cost_usd"]).all()


def test_without_a_fleet_the_page_says_how_to_add_one(app: Open):
    test = turn_to(app(), "fleet")
    assert not test.metric
    assert "docs/metrics-sources.md" in test.info[0].value


def test_a_reader_of_one_team_sees_their_own_part_and_nothing_of_pools(page):
    test = page(access={"*": ["ads"]})
    assert not test.metric
    assert "shown to those who may see the whole organisation" in test.info[0].value
    assert of(test, "weighed_cost_usd")["team"].tolist() == ["ads"]
    everything = text(test) + "".join(frame.value.to_string() for frame in test.dataframe)
    assert not any(hidden in everything for hidden in ("search", "nobody", "decode pool", "no pool", "llama"))
    models = page("models", access={"*": ["ads"]})
    shown = of(models, "served_by")
    assert set(shown["served_by"]) == {"own fleet"}
    assert not any("idle_cost_usd" in frame.value for frame in models.dataframe)


def test_hours_stand_on_the_clocks_of_the_reporting_zone():
    hours = pd.DataFrame({"hour": pd.to_datetime(["2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 02:00"])})
    frame = fleet_queries.local_hours(Zone("Europe/Paris"), hours)
    assert frame["at"].dt.hour.tolist() == [2, 2, 3]


def test_a_short_period_is_shown_by_the_hour(fleet_snapshot):
    days = fleet_queries.over_time(fleet_snapshot, ("gpu_busy_ms",), LAST_7)
    day = replace(LAST_7, last_day=date(2026, 10, 12))
    hours = fleet_queries.over_time(fleet_snapshot, ("gpu_busy_ms",), day).set_index("at")["gpu_busy_ms"]
    assert (len(days), len(hours)) == (7, 24)
    assert hours.sum() == days.set_index("at")["gpu_busy_ms"].iloc[0]
    assert hours[hours > 0].index.hour.tolist() == list(range(7, 21))  # a sample tells of the minutes before it


# --- Beside managed APIs ---


def test_own_fleet_and_managed_api_stand_side_by_side(page, fleet_snapshot, chosen):
    frame = comparison.rows(fleet_snapshot, chosen).set_index(["model", "served_by"])
    assert list(frame.index) == [("llama", "own fleet"), ("qwen", "own fleet"), ("qwen", "aws.bedrock")]
    own, managed = frame.loc[("qwen", "own fleet")], frame.loc[("qwen", "aws.bedrock")]
    parts = sum(own[f"{kind}_cost_usd"] for kind in comparison.KINDS)
    assert parts == pytest.approx(own["fully_loaded_cost_usd"])
    assert managed["cost_per_mtok_usd"] == pytest.approx(0.14 / 0.22)
    assert own["fully_loaded_cost_per_mtok_usd"] > own["cost_per_mtok_usd"]
    assert frame.loc[("llama", "own fleet"), "interval"] == "exact"
    assert " to " in own["interval"]
    assert managed["interval"] == "-"
    said = text(page("models"))
    assert "belong to no model: not in these figures" in said
    assert "are not billed yet and in no unit cost" in said


def test_with_an_owner_chosen_idle_cost_is_not_counted_and_that_is_said(page):
    test = page("models", team=["ads"])
    assert "with an owner chosen it is not counted" in text(test)
    assert (of(test, "idle_cost_usd")["idle_cost_usd"] == 0).all()


def test_the_price_book_is_not_asked_about_the_own_fleet(page, fleet_snapshot, chosen):
    book = attention.against_book(fleet_snapshot, chosen).set_index("model")
    assert book["drift"].to_dict() == {"qwen": pytest.approx(0, abs=1e-9)}
    assert "None: every logged token has a price." in text(page("models"))
    assert attention.against_book(fleet_snapshot, chosen.also(provider=("self-hosted",))).empty


def test_attention_names_idle_under_used_and_unmeasured_gpus(page, fleet_snapshot):
    said = text(page("overview"))
    idle = queries.totals(fleet_snapshot, ("fleet_idle_cost_usd",), LAST_7)["fleet_idle_cost_usd"]
    assert f"**{words.money(idle)}** was paid for GPUs that did nothing" in said
    assert "most of it for replicas without traffic" in said
    assert "was paid for GPUs that were busy below what they did the week before" in said
    assert "was paid for GPUs that no metric tells of" in said
    assert figures(page("overview"))["Idle GPUs"] == words.money(idle)


# --- The bill as a flow ---


def test_both_ends_of_the_flow_and_what_is_left_out_come_to_the_bill(page, fleet_snapshot):
    bill = fleet_snapshot.sql("SELECT bill_usd FROM balance WHERE cost_basis = 'effective'").to_pylist()[0]["bill_usd"]
    found = flow.flow(bill_queries.flows(fleet_snapshot, "2026-10", "USD"))
    assert found.total == bill
    assert found.left_out == -620
    for level in flow.LEVELS:
        assert found.rows.groupby(level)["amount"].sum().sum() == pytest.approx(float(found.shown))
    said = text(page("reconciliation"))
    assert f"Left out, as an amount below zero has no width: -$620.00 in {found.left_out_rows} groups" in said
    assert f"the bill of {words.money(bill)}" in said


def test_smaller_services_and_teams_are_one_and_nothing_is_lost():
    rows = [(f"service-{n:02d}", "out_of_scope", "out_of_scope", f"team-{n:02d}", 10**9 * (n + 1)) for n in range(12)]
    rows.append(("service-00", "credit", "credit", None, -(10**9)))
    rows.append(("service-00", "out_of_scope", "out_of_scope", None, 1))
    found = flow.flow(pd.DataFrame(rows, columns=["service", "line_class", "kind", "team", "nano"]))
    assert found.shown == Decimal("78.000000001")
    assert (found.left_out, found.left_out_rows) == (-1, 1)
    assert "4 other services" in set(found.rows["service"])
    assert {"4 other teams", "nobody"} <= set(found.rows["team"])
    assert found.rows["amount"].sum() == pytest.approx(78)


def test_a_bill_of_credits_alone_has_no_picture():
    found = flow.flow(
        pd.DataFrame([("s", "credit", "credit", None, -5)], columns=["service", "line_class", "kind", "team", "nano"])
    )
    assert found.rows.empty
    assert found.total == Decimal("-0.000000005")


def test_what_a_first_fleet_looks_like_before_its_bill(app: Open, tmp_path):
    """Metrics only: time is known, money is not."""
    world = World(tmp_path)
    with world.connected():
        fleet.node(world, "n1", "2026-10-07 10:00", 60, gpus=4)
        fleet.pod(world, "p1", "n1", "2026-10-07 10:00", 60, gpus=4, app="qwen")
        fleet.engine(world, "p1", "2026-10-07 10:00", running=[1] * 60, prompt=[100 * n for n in range(60)])
        fleet.asked(world, "2026-10-07 10:30", {"key_alias": "a"}, uncached_input=100)
    world.publish()
    test = turn_to(app(world.layout.published), "fleet")
    assert not test.exception
    shown = figures(test)
    assert (shown["Fleet cost"], shown["Idle"], shown["GPU-hours held"]) == ("unknown", "unknown", "4.0 h")
    assert "4.0 h of GPU time are not billed yet" in text(test)


def test_every_read_of_the_fleet_has_a_scope(fleet_published):
    restricted = Snapshot.open(fleet_published, Scope.of("test", ["ads"]))
    assert fleet_queries.choices(restricted) == {"cluster": (), "pool": ()}
    assert fleet_queries.exists(restricted)
