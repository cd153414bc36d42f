"""Every measure says the same whichever way it is cut; what is unknown or withheld is never 0."""

from datetime import date
from decimal import Decimal

import pytest

from tests import fleet
from tests.world import World
from warehouse import measures
from warehouse.measures import COMPONENTS, DIMENSIONS, MEASURES, Filters, UnknownMeasure, table
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot

TEAMS = ["alpha", 'o\'brien/"ops"', "équipe 北", "x" * 300]
RULES = [{"when": {"key_alias": "*", "tag.team": "*"}, "set": {"team": "{tag.team}", "app": "{key_alias}"}}]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    settings = WarehouseSettings.model_validate({"owners": RULES, "zone": "America/New_York"})
    world = World(tmp_path_factory.mktemp("measures"), settings, as_of="2027-01-05 00:00")
    with world.connected():
        world.price(output="15", uncached_input="3")
        for number, team in enumerate([*TEAMS, None]):
            claims = {"key_alias": f"key-{number}", **({"tag.team": team} if team else {})}
            for day in ("2026-12-27", "2026-12-31", "2027-01-01", "2027-01-03"):
                world.call(
                    f"{day} 04:10",
                    claims,
                    output=10 + number,
                    uncached_input=5,
                    model="opus" if number == 3 else "nova-pro",
                    task_id=f"task-{number % 2}",
                    user_id=f"user-{number}" if number else None,
                    status="failure" if number == 2 else "success",
                )
        world.line("2026-12-27 04:00", "3.000000001", token_class="output", tokens=40)
        world.line("2026-12-31 04:00", "-1", token_class="output", tokens=70)
        world.line("2027-01-01 04:00", "7", service_name="Amazon EC2", billing_currency="EUR")
        world.line("2026-12-01 00:00", "31", end="2027-01-01 00:00", x_charge_family="support")
        world.line("2027-01-01 00:00", "31", end="2027-02-01 00:00", x_charge_family="credit")
    world.publish()
    return world


@pytest.fixture(scope="module")
def snapshot(world):
    return Snapshot.open(world.layout.published, Scope.everything("test"))


def additive() -> list[str]:
    return [n for n, m in MEASURES.items() if m.denominator is None and not COMPONENTS[m.numerator].distinct]


@pytest.mark.parametrize("mart", sorted({COMPONENTS[MEASURES[name].numerator].mart for name in additive()}))
def test_groups_add_up_to_the_total_for_every_measure_and_every_dimension(snapshot, mart):
    names = [name for name in additive() if COMPONENTS[MEASURES[name].numerator].mart == mart]
    total = table(snapshot, names).to_pylist()[0]
    for dimension in set(DIMENSIONS[mart]) - {"currency"}:
        rows = table(snapshot, names, [dimension]).to_pylist()
        for name in names:
            assert sum((row[name] or 0 for row in rows), Decimal(0)) == (total[name] or 0), (name, dimension)


def test_every_measure_stands_alone(snapshot):
    for name in MEASURES:
        assert table(snapshot, [name]).num_rows == 1


def test_weeks_begin_on_monday_across_the_year_and_months_do_not_mix(snapshot):
    weeks = table(snapshot, ["requests"], ["week"]).to_pylist()
    assert [(str(row["week"]), row["requests"]) for row in weeks] == [("2026-12-21", 5), ("2026-12-28", 15)]
    months = table(snapshot, ["requests"], ["month"]).to_pylist()
    assert [(str(row["month"]), row["requests"]) for row in months] == [("2026-12-01", 15), ("2027-01-01", 5)]


def test_a_price_nobody_knows_makes_the_price_book_amount_unknown_and_not_free(snapshot):
    names = ["list_cost_usd", "cache_saving_usd", "list_cost_per_mtok_usd", "unpriced_tokens"]
    rows = {row["model"]: row for row in table(snapshot, names, ["model"]).to_pylist()}
    assert rows["opus"] == {"model": "opus", **dict.fromkeys(names), "unpriced_tokens": 72}
    assert rows["nova-pro"]["list_cost_usd"] > 0


def test_calls_without_tokens_cost_nothing_which_is_known(tmp_path):
    world = World(tmp_path)
    world.call("2026-10-01 10:10", {"key_alias": "k"}, status="failure")
    assert table(world.snapshot(), ["list_cost_usd"]).to_pylist() == [{"list_cost_usd": 0}]


def test_ratios_of_nothing_are_unknown(snapshot):
    nobody = Filters(team=("nobody",))
    row = table(snapshot, ["cost_per_mtok_usd", "error_ratio", "unattributed_share"], where=nobody).to_pylist()[0]
    assert set(row.values()) == {None}


def test_money_is_of_one_currency_unless_asked_by_currency(snapshot):
    euro = Filters(currency="EUR")
    assert table(snapshot, ["effective_cost_usd"], where=euro).to_pylist() == [{"effective_cost_usd": 7}]
    rows = table(snapshot, ["effective_cost_usd"], ["currency"]).to_pylist()
    assert [row["currency"] for row in rows] == ["EUR", "USD"]
    assert [row["effective_cost_usd"] for row in table(snapshot, ["effective_cost_usd"], ["currency"], euro).to_pylist()
            if row["effective_cost_usd"]] == [7]  # fmt: skip


@pytest.mark.parametrize("value", ["' OR TRUE --", "x'; DROP VIEW cost_day; --", '"', "\\", "%"])
def test_filter_values_are_values(snapshot, value):
    where = Filters(team=(value,), model=(value, None), currency=value)
    assert table(snapshot, ["requests", "effective_cost_usd"], where=where).to_pylist()[0]["requests"] == 0
    assert measures.percentile(snapshot, "duration", 0.5, where=Filters(team=(value,))).num_rows == 0


@pytest.mark.parametrize("name", ['team"', "1; DROP VIEW cost_day", "claims", ""])
def test_dimensions_and_orders_are_names_that_exist(snapshot, name):
    with pytest.raises(UnknownMeasure):
        table(snapshot, ["requests"], [name])
    with pytest.raises(UnknownMeasure):
        table(snapshot, ["requests"], ["team"], order=name or "-")
    with pytest.raises(UnknownMeasure):
        measures.percentile(snapshot, "duration", 0.5, [name])


def test_nobodys_rows_can_be_asked_for(snapshot):
    rows = table(snapshot, ["requests"], ["team"], Filters(team=(None, "alpha"))).to_pylist()
    assert rows == [{"team": "alpha", "requests": 4}, {"team": None, "requests": 4}]
    days = Filters(first_day=date(2027, 1, 1), last_day=date(2026, 1, 1))
    assert table(snapshot, ["requests"], where=days).to_pylist() == [{"requests": 0}]


@pytest.mark.parametrize("team", TEAMS)
def test_a_reader_of_one_team_sees_that_team_and_no_total(world, team):
    snapshot = Snapshot.open(world.layout.published, Scope.of("reader", [team]))
    for mart in DIMENSIONS:
        if "team" in DIMENSIONS[mart]:
            assert {row["team"] for row in snapshot.sql(f'SELECT team FROM "{mart}"').to_pylist()} <= {team}, mart
    for mart in ("bill_day", "balance", "match_day", "control", "bill_bucket", "rejected", "revision", "source_state"):
        assert snapshot.sql(f'SELECT * FROM "{mart}"').num_rows == 0, mart
    claims = snapshot.sql("SELECT claims FROM owner").to_pylist()
    others = [other for other in TEAMS if other != team]
    assert claims
    assert not any(other in row["claims"] for other in others for row in claims)
    assert table(snapshot, ["requests"], ["team"]).to_pylist() == [{"team": team, "requests": 4}]


@pytest.mark.parametrize("teams", [[], ["nobody"], [""], ["ALPHA"], ["alpha "], ["*"]])
def test_a_reader_of_no_such_team_sees_nothing(world, teams):
    snapshot = Snapshot.open(world.layout.published, Scope.of("reader", teams))
    assert table(snapshot, ["requests"]).to_pylist() == [{"requests": 0}]
    for mart in ("event", "owner", "cost_hour", "task_cost", "latency_day"):
        assert snapshot.sql(f'SELECT * FROM "{mart}"').num_rows == 0


def test_what_is_withheld_is_unknown_and_not_zero(world):
    snapshot = Snapshot.open(world.layout.published, Scope.of("reader", ["alpha"]))
    row = table(snapshot, ["controls_failed", "rejected_rows", "variance_tokens", "missing_tokens"]).to_pylist()[0]
    assert set(row.values()) == {None}
    whole = Snapshot.open(world.layout.published, Scope.everything("finance"))
    assert table(whole, ["controls_failed", "rejected_rows"]).to_pylist() == [
        {"controls_failed": 0, "rejected_rows": 0}
    ]


def test_no_sql_reaches_files_outside_the_scope(world):
    snapshot = Snapshot.open(world.layout.published, Scope.of("reader", ["alpha"]))
    other = next((world.layout.published / "files").glob("balance-*.parquet"))
    for query in (f"FROM '{other}'", f"COPY (SELECT 1) TO '{other}x'", "SET enable_external_access = true"):
        with pytest.raises(Exception, match=r"disabled by configuration|configuration has been locked"):
            snapshot.sql(query)


def test_a_price_per_million_divides_by_the_tokens_that_have_a_price(snapshot):
    priced = table(snapshot, ["list_cost_per_mtok_usd"], where=Filters(model=("nova-pro",))).to_pylist()
    assert table(snapshot, ["list_cost_per_mtok_usd"]).to_pylist() == priced


# --- The own fleet: eight GPUs for two hours, half of them held by a pod; the bill has the first hour ---

GPU_HOUR_MS = 3_600_000


def fleet_world(folder, *, is_billed=True):
    owners = [{"when": {"key_alias": "*"}, "set": {"team": "{key_alias}"}}]
    world = World(folder, WarehouseSettings.model_validate({"owners": owners}))
    hour = "2026-10-07 10:00"
    with world.connected():
        fleet.node(world, "n1", hour, 120, gpus=8)
        fleet.pod(world, "p1", "n1", hour, 120, gpus=4, app="qwen", inference_pool="east-qwen")
        rising = [100 * n for n in range(60)]
        fleet.engine(
            world,
            "p1",
            hour,
            running=[1] * 60 + [0] * 60,
            prompt=rising + [5900] * 60,
            cached=[each // 4 for each in rising] + [1475] * 60,
            output=[each // 10 for each in rising] + [590] * 60,
        )
        labels = {"pod": "p1", "gpu": "0"}
        fleet._series(world, "dcgm", "gpu_engine_active", labels, pod="p1")
        fleet._minutes(world, "gpu_minute", "gpu_engine_active", labels, hour, [900_000] * 60 + [100_000] * 60, ())
        fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search"}, uncached_input=4425, cache_read=1475)
        fleet.asked(world, "2026-10-07 10:30", {"key_alias": "ads"}, output=590)
        if is_billed:
            fleet.machine(world, "n1", hour, "24")
    world.publish()
    return world


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return fleet_world(tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def own_snapshot(own):
    return Snapshot.open(own.layout.published, Scope.everything("test"))


def figures(snapshot, *names, by=(), where=None):
    return table(snapshot, names, by, where).to_pylist()


@pytest.mark.parametrize("mart", ["pool_hour", "ratio_day"])
def test_the_fleets_groups_add_up_to_the_total_for_every_dimension(own_snapshot, mart):
    names = [name for name in additive() if COMPONENTS[MEASURES[name].numerator].mart == mart]
    total = table(own_snapshot, names).to_pylist()[0]
    assert any(total.values())
    for dimension in set(DIMENSIONS[mart]) - {"currency"}:
        rows = table(own_snapshot, names, [dimension]).to_pylist()
        for name in names:
            assert sum((row[name] or 0 for row in rows), Decimal(0)) == (total[name] or 0), (name, dimension)


def test_gpu_time_is_held_busy_and_requested_by_nobody(own_snapshot):
    names = ("gpu_ms", "gpu_held_ms", "gpu_busy_ms", "gpu_no_traffic_ms", "gpu_not_requested_ms", "gpu_unbilled_ms")
    row = figures(own_snapshot, *names, "gpu_busy_share")[0]
    assert {name: row[name] / GPU_HOUR_MS for name in names} == {
        "gpu_ms": 16, "gpu_held_ms": 8, "gpu_busy_ms": 4, "gpu_no_traffic_ms": 4, "gpu_not_requested_ms": 8,
        "gpu_unbilled_ms": 8,
    }  # fmt: skip
    assert row["gpu_busy_share"] == 4 / 16
    pool = figures(own_snapshot, "gpu_busy_share", where=Filters(pool=("east-qwen",)))
    assert pool == [{"gpu_busy_share": 0.5}]


def test_unit_costs_of_the_fleet_divide_by_what_the_bill_has_reached(own_snapshot):
    names = ("cost_per_gpu_hour_usd", "engine_cost_per_mtok_usd")
    row = figures(own_snapshot, *names, "fleet_cost_usd", "fleet_idle_cost_usd", "fleet_unmeasured_cost_usd")[0]
    assert row["fleet_cost_usd"] == 24
    assert row["fleet_idle_cost_usd"] == 12
    assert row["fleet_unmeasured_cost_usd"] == 0  # the hour without a bill makes it no less known
    assert row["cost_per_gpu_hour_usd"] == pytest.approx(3)
    assert row["engine_cost_per_mtok_usd"] == pytest.approx(12 / 6490 * 1e6)


def test_what_no_bill_has_reached_is_unknown_and_not_free(tmp_path):
    snapshot = Snapshot.open(fleet_world(tmp_path, is_billed=False).layout.published, Scope.everything("test"))
    names = ("fleet_cost_usd", "fleet_idle_cost_usd", "cost_per_gpu_hour_usd", "weighed_cost_usd")
    row = figures(snapshot, *names, "gpu_busy_share", "gpu_unbilled_ms", "gpu_ms")[0]
    assert (row["fleet_cost_usd"], row["fleet_idle_cost_usd"], row["cost_per_gpu_hour_usd"]) == (None, None, None)
    assert row["gpu_busy_share"] == 4 / 16
    assert row["gpu_unbilled_ms"] == row["gpu_ms"]


def test_input_computed_input_and_output_stand_apart_over_held_and_over_busy_time(own_snapshot):
    names = [f"{kind}_per_{state}gpu_second" for kind in ("input_tokens", "computed_input_tokens", "output_tokens")
             for state in ("", "busy_")]  # fmt: skip
    row = figures(own_snapshot, *names)[0]
    seconds = 8 * 3600
    assert row == pytest.approx(
        {
            "input_tokens_per_gpu_second": 5900 / seconds,
            "input_tokens_per_busy_gpu_second": 5900 / seconds * 2,
            "computed_input_tokens_per_gpu_second": 4425 / seconds,
            "computed_input_tokens_per_busy_gpu_second": 4425 / seconds * 2,
            "output_tokens_per_gpu_second": 590 / seconds,
            "output_tokens_per_busy_gpu_second": 590 / seconds * 2,
        }
    )


def test_dcgm_activity_is_a_mean_of_samples_and_memory_without_samples_is_unknown(own_snapshot):
    row = figures(own_snapshot, "gpu_engine_active_share", "gpu_memory_used_share", "unknown_counter_starts")[0]
    assert row["gpu_engine_active_share"] == pytest.approx(0.5)
    assert row["gpu_memory_used_share"] is None
    assert row["unknown_counter_starts"] == 3


def test_weights_move_money_between_teams_and_not_the_total(own_snapshot):
    # 5,900 input tokens (a quarter from the cache, at 0.05) and 590 output tokens at 4, or 2, or 8
    names = ("weighed_cost_usd", "weighed_low_cost_usd", "weighed_high_cost_usd")
    work = 4425 + 1475 * 0.05
    rows = {row.pop("team"): tuple(float(value) for value in row.values())
            for row in figures(own_snapshot, *names, by=("team",))}  # fmt: skip
    assert rows == {
        "search": pytest.approx([12 * work / (work + 590 * weight) for weight in (4, 2, 8)]),
        "ads": pytest.approx([12 * 590 * weight / (work + 590 * weight) for weight in (4, 2, 8)]),
    }
    assert figures(own_snapshot, *names) == [dict.fromkeys(names, Decimal(12))]
    assert figures(own_snapshot, "weighed_cost_usd", by=("method",))[0]["method"] == "configured_ratio"


def test_pools_are_withheld_from_a_reader_of_one_team_and_their_own_use_is_not(own):
    snapshot = Snapshot.open(own.layout.published, Scope.of("reader", ["ads"]))
    row = figures(snapshot, "fleet_cost_usd", "gpu_busy_ms", "gpu_busy_share", "unknown_counter_starts")[0]
    assert set(row.values()) == {None}
    assert [row["team"] for row in figures(snapshot, "weighed_cost_usd", by=("team",))] == ["ads"]


def test_what_the_own_fleet_serves_has_a_cost_and_lacks_no_price(own_snapshot):
    assert figures(own_snapshot, "unpriced_tokens", "known_cost_tokens") == [
        {"unpriced_tokens": 0, "known_cost_tokens": 6490}
    ]
