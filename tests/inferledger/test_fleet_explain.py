"""`explain` of the own fleet: pool-hours, classes, lines; every level adds up, and restricted readers learn no more."""

import json
from decimal import Decimal

import pytest

from inferledger.explain import explain
from tests import fleet
from tests.fleet_world import HOUR
from tests.inferledger.conftest import OWNERS
from tests.world import World
from warehouse.measures import Filters
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot


def usd(amounts):
    return sum((Decimal(amount) for amount in amounts), Decimal(0))


def adds_up(facts):
    """Selection and everything else in the cluster and hour are the bill's lines; states are the pool."""
    fleet_money = usd(row["effective"] for row in facts["postings"] if row.get("cluster") and row["basis"] == "billed")
    if not any(row["method"].endswith(" more") for row in facts["postings"]):
        assert usd(pool["effective"] for pool in facts["pools"]) == fleet_money
    shown = usd(hour["selected"] for hour in facts["pool_hours"])
    assert shown + Decimal(facts["pool_hours_more"]["selected"]) == usd(pool["effective"] for pool in facts["pools"])
    for hour in facts["pool_hours"]:
        parts = [hour[name] for name in ("selected", "others", "other_pools", "nodes")]
        assert usd(parts) == Decimal(hour["bill"])
        assert Decimal(hour["selected"]) + Decimal(hour["others"]) == Decimal(hour["pool_total"])
        assert usd(hour["selected_by_kind"].values()) == Decimal(hour["selected"])
        assert usd(hour["by_state"].values()) == Decimal(hour["pool_total"])
        lines = usd(line["effective"] for line in hour["lines"]) + Decimal(hour["lines_more"]["effective"])
        assert lines == Decimal(hour["bill"])
        states = ("productive", "under_used")
        worked = usd(hour["by_state"].get(state, 0) for state in states)
        if any(row["weight"] for row in hour["classes"]):
            assert usd(row["class_cost"] for row in hour["classes"]) == worked
            assert usd(row["weight_share"] for row in hour["classes"]) == pytest.approx(1, abs=3e-9)


def test_a_teams_gpu_cost_is_walked_back_to_engine_tokens_and_instance_lines(with_fleet, cli):
    facts = cli.json("explain", "--team", "search", "--day", "2026-10-07", "--limit", "0")
    adds_up(facts)
    (hour,) = facts["pool_hours"]
    assert (hour["cluster"], hour["model"], hour["pool"], hour["bill"]) == (
        "east", "qwen", "qwen-mixed", "36.600000000",
    )  # fmt: skip
    assert hour["gpu_hours"] == {"busy": "4.000000", "unmeasured": "2.000000"}
    classes = {row["token_class"]: row for row in hour["classes"]}
    given = classes["uncached_input"]
    assert given["method"] == "configured_ratio"
    assert (given["engine_tokens"], given["logged_tokens"], given["denominator_tokens"]) == (5900, 3450, 5900)
    assert (given["selected_tokens"], given["token_share"]) == (2500, "0.423728814")
    # an output token is weighed four times an input token
    assert Decimal(classes["output"]["weight"]) / Decimal(given["weight"]) == Decimal(590 * 4) / 5900
    assert Decimal(given["selected"]) == pytest.approx(Decimal(given["class_cost"]) * 2500 / 5900, abs=Decimal("1e-8"))
    first = hour["lines"][0]
    assert (first["resource_id"], first["line_item_id"], first["file"]) == ("i-n1", "item-n1", "bill-1.parquet")
    assert (first["gpus"], first["usage_ms"], first["held_gpu_hours"]) == (4, 3_600_000, "4.000000")
    assert [line["resource_id"] for line in hour["lines"]] == ["i-n1", "i-n3", "i-n2", None]
    assert {record["record_id"] for record in facts["records"]["shown"]} == {"call-1", "call-3", "call-4", "call-5"}


def test_logged_tokens_of_the_fleet_are_the_posted_ones(with_fleet, cli):
    facts = cli.json("explain", "--team", "search")
    for row in facts["records"]["by_token_class_fleet"]:
        assert row["logged"] == row["billed"] + row["not_billed_yet"] + row["elsewhere"]
        assert row["elsewhere"] == 0
    (managed,) = facts["records"]["by_token_class"]
    assert (managed["logged"], managed["billed"]) == (60, 60)


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--team", "search"),
        ("--team", "(none)"),
        ("--kind", "idle"),
        ("--kind", "unmeasured", "--kind", "shared"),
        ("--model", "qwen"),
        ("--pool", "qwen-mixed"),
        ("--pool", "(none)", "--cluster", "east"),
    ],
)
def test_every_level_of_the_fleet_adds_up_however_it_is_asked(with_fleet, cli, words):
    for limit in ("0", "1"):
        adds_up(cli.json("explain", *words, "--limit", limit))
    result = cli("explain", *words)
    assert result.exit_code == 0
    assert max(map(len, result.output.splitlines())) <= 100


def test_idle_money_names_its_pool_its_cause_and_the_instance(with_fleet, cli):
    facts = cli.json("explain", "--kind", "idle")
    found = {(row["pool"], row["reason"]): row["effective"] for row in facts["postings"]}
    assert found == {("llama-mixed", "no_traffic"): "6.000000000", (None, "not_requested"): "6.000000000"}
    by_pool = {hour["pool"]: hour for hour in facts["pool_hours"]}
    assert by_pool["llama-mixed"]["gpu_hours"] == {"no_traffic": "2.000000"}
    assert by_pool["llama-mixed"]["lines"][0]["resource_id"] == "i-n2"
    assert by_pool[None]["gpu_hours"] == {"not_requested": "2.000000"}


def test_a_reader_of_one_team_learns_its_own_cost_and_nothing_of_the_pool(with_fleet):
    snapshot = Snapshot.open(with_fleet.layout.published, Scope.of("ada", ["search"]))
    facts = explain(snapshot, Filters())
    (hour,) = facts["pool_hours"]
    assert hour["withheld"]
    assert [hour[name] for name in ("pool_total", "others", "other_pools", "nodes", "bill")] == [None] * 5
    assert (hour["by_state"], hour["gpu_hours"], hour["lines"]) == ({}, {}, [])
    for row in hour["classes"]:
        assert [row[name] for name in ("class_cost", "engine_tokens", "logged_tokens", "token_share")] == [None] * 4
    assert usd(pool["effective"] for pool in facts["pools"]) == Decimal(hour["selected"])
    said = json.dumps(facts)
    for secret in ("i-n1", "support", "36.6", "18.36", "12.0000", "5900", "llama"):
        assert secret not in said


def test_pools_that_share_a_route_are_charged_by_the_same_tokens(tmp_path):
    """Prefill and decode apart: a call's tokens stand on one pool, and both pools are paid by them."""
    world = World(tmp_path / "data", WarehouseSettings.model_validate({"owners": OWNERS}))
    rising = [100 * n for n in range(60)]
    for number, role in ((1, "prefill"), (2, "decode")):
        fleet.node(world, f"n{number}", HOUR, 60)
        fleet.pod(world, f"p{number}", f"n{number}", HOUR, 60, app="qwen", role=role)
        fleet.engine(world, f"p{number}", HOUR, running=[1] * 60, prompt=rising, output=rising)
        fleet.machine(world, f"n{number}", HOUR, "30")
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=5900, output=2950)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "support-1"}, output=2950)
    facts = explain(world.snapshot(), Filters(team=("search",)))
    adds_up(facts)
    found = {
        hour["pool"]: [(row["token_class"], row["method"], row["selected_tokens"], row["selected"])
                       for row in hour["classes"] if Decimal(row["selected"])]
        for hour in facts["pool_hours"]
    }  # fmt: skip
    assert found == {
        "qwen-prefill": [("uncached_input", "pool_role", 5900, "30.000000000")],
        "qwen-decode": [("output", "pool_role", 2950, "15.000000000")],
    }


def test_a_tasks_part_of_the_fleet_is_posted_by_its_tokens(with_fleet, cli):
    facts = cli.json("explain", "--task", "t-own")
    own = {
        (row["pool"], row["token_class"]): row["tokens"] for row in facts["postings"] if row["method"] != "difference"
    }
    assert own == {("qwen-mixed", "uncached_input"): 500, ("qwen-mixed", "output"): 50}
    assert usd(row["effective"] for row in facts["postings"]) == Decimal(facts["total"]["effective"])
    # 500 of 5,900 input tokens and 50 of 590 output tokens of twelve dollars
    assert Decimal(facts["total"]["effective"]) == pytest.approx(Decimal(12) * 500 / 5900, abs=Decimal("1e-8"))


def test_hours_that_the_bill_has_not_reached_are_posted_without_an_amount(world, published, cli):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 60, prompt=[5 * n for n in range(60)])
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=200)
    published()
    facts = cli.json("explain", "--team", "search")
    assert (facts["pool_hours"], facts["pools"]) == ([], [])
    assert (facts["total"]["estimated"], facts["total"]["unknown_cost_tokens"]) == (None, 200)
    (row,) = facts["records"]["by_token_class_fleet"]
    assert (row["logged"], row["billed"], row["not_billed_yet"]) == (200, 0, 200)
    assert "the cost of 200 tokens is unknown" in " ".join(cli("explain", "--team", "search").output.split())
