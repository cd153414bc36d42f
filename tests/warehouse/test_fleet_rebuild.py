"""Evidence of a fleet that comes late or in pieces: what attribution then has is what it would make of all at once."""

from datetime import datetime

import pytest

from tests import fleet
from tests.fleet import rising
from tests.world import World
from warehouse.settings import WarehouseSettings

HOUR = "2026-10-07 10:00"
EPOCH = datetime(1970, 1, 1)
TABLES = (
    "ledger_hour",
    "ledger_overlay",
    "pool_hour",
    "fleet_match_hour",
    "fleet_class_hour",
    "fleet_line_hour",
    "usage_hour",
    "task_hour",
    "user_hour",
    "ratio_hour",
    "replica_window",
    "work_reference",
    "usage_event",
)


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, WarehouseSettings())


def bill(world, *hours, name="n1", day="2026-10-07"):
    for hour in hours:
        fleet.machine(world, name, f"{day} {hour:02d}:00", "12")


def derived(world):
    assert world.attribute().failed_controls == ()
    return {table: world.rows(f"FROM {table} ORDER BY ALL") for table in TABLES}


def assert_is_the_rebuild(world):
    """Attribution by what was touched, and from nothing, give the same rows in every table."""
    by_what_was_touched = derived(world)
    with world.connected() as connection:
        connection.execute("DELETE FROM attribution_state WHERE name = 'model'")
    from_nothing = derived(world)
    for table in TABLES:
        assert by_what_was_touched[table] == from_nothing[table], table


def test_the_kind_of_gpu_is_told_late(world):
    fleet.serve(world, "2026-09-30 10:00", name="p0", prompt=1000)
    fleet.serve(world, HOUR, prompt=250)
    bill(world, 10)
    bill(world, 10, day="2026-09-30")
    world.attribute()
    labels = {"node": "n1", "label_nvidia_com_gpu_product": "NVIDIA-L40S"}
    fleet.shown(world, "kube_state_metrics", "node_labels", labels, "2026-10-07 10:30", [1], node="n1")
    assert_is_the_rebuild(world)


def test_a_call_was_still_to_come_and_then_is_past(world):
    fleet.serve(world, HOUR, minutes=300)
    bill(world, *range(10, 15))
    fleet.asked(world, "2026-10-07 13:00", {}, started_at="2026-10-07 10:10", uncached_input=100, output=300)
    world.as_of = "2026-10-07 12:00"
    world.attribute()
    world.as_of = "2026-10-07 15:00"
    assert_is_the_rebuild(world)


@pytest.mark.parametrize("start", ["2026-11-03 10:00", "2026-10-07 10:00"], ids=["next-month", "same-month"])
def test_a_commitment_becomes_the_fleets_by_a_line_that_comes_later(world, start):
    world.as_of = "2026-11-20 00:00"
    fleet.serve(world, start)
    world.line(
        "2026-10-05 00:00",
        "50",
        end="2026-10-06 00:00",
        x_charge_family="commitment",
        service_name="SP",
        commitment_discount_id="sp-1",
    )
    world.attribute()
    fleet.machine(world, "n1", start, "12", commitment_discount_id="sp-1")
    assert_is_the_rebuild(world)


def test_a_node_is_named_anew_and_shown_with_hours_between(world):
    fleet.node(world, "n1", "2026-10-07 08:00", 60)
    bill(world, *range(8, 17))
    world.attribute()
    for at in ("2026-10-07 10:00", "2026-10-07 16:00"):
        info = {"node": "n1b", "provider_id": "aws:///us-east-1a/i-n1"}
        fleet.shown(world, "kube_state_metrics", "node_info", info, at, [1] * 5, node="n1b")
        gpus = {"node": "n1b", "resource": "nvidia_com_gpu"}
        fleet.shown(world, "kube_state_metrics", "node_allocatable_gpu", gpus, at, [4] * 5, node="n1b")
    assert_is_the_rebuild(world)


def test_when_a_process_began_is_told_hours_later(world):
    fleet.node(world, "n1", HOUR, 240)
    fleet.pod(world, "p1", "n1", HOUR, 240, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 240, prompt=rising(100, 240, 5000))
    bill(world, 10)
    world.attribute()
    began = int((datetime(2026, 10, 7, 9, 59) - EPOCH).total_seconds()) * 1_000_000
    fleet.engine(world, "p1", "2026-10-07 13:00", born=[began] * 60)
    assert_is_the_rebuild(world)


def test_a_series_vanishes_for_hours_and_returns(world):
    fleet.node(world, "n1", "2026-10-07 08:00", 300)
    fleet.pod(world, "p1", "n1", "2026-10-07 08:00", 300, app="qwen")
    fleet.engine(world, "p1", "2026-10-07 08:00", running=[1] * 300, prompt=rising(10, 300, 100))
    bill(world, *range(8, 13))
    labels = {"pod": "p1", "namespace": "llm", "model_name": "qwen", "engine": "1"}
    for at, value in (("2026-10-07 08:05", 1_000_000), ("2026-10-07 12:05", 2_000_000)):
        fleet.shown(
            world, "vllm", "prompt_tokens", labels, at, [value, value + 100], pod="p1", kind="counter", target="p1"
        )
        world.attribute()
    assert_is_the_rebuild(world)


def test_a_pod_name_is_used_again_by_another_model(world):
    fleet.serve(world, "2026-10-06 10:00", app="llama")
    bill(world, 10, day="2026-10-06")
    fleet.asked(world, "2026-10-06 10:30", {}, model="llama", uncached_input=5900, output=590)
    world.attribute()
    fleet.serve(world, HOUR)
    bill(world, 10)
    fleet.asked(world, "2026-10-07 10:30", {}, uncached_input=5900, output=590)
    assert_is_the_rebuild(world)


def test_the_older_life_of_a_pod_name_comes_after_the_newer_one(world):
    fleet.serve(world, HOUR)
    bill(world, 10)
    world.attribute()
    fleet.serve(world, "2026-10-06 10:00", app="llama")
    bill(world, 10, day="2026-10-06")
    assert_is_the_rebuild(world)


def test_a_second_job_begins_to_scrape_a_pod(world):
    fleet.serve(world, HOUR, minutes=120)
    bill(world, 10, 11)
    world.attribute()
    labels = {"pod": "p1", "namespace": "llm", "model_name": "qwen", "job": "second"}
    fleet.shown(
        world,
        "vllm",
        "prompt_tokens",
        labels,
        "2026-10-07 10:50",
        rising(100, 40, 6000),
        pod="p1",
        kind="counter",
        target="second",
    )
    assert_is_the_rebuild(world)


def test_calls_come_before_anybody_knows_that_the_fleet_serves_their_model(world):
    fleet.asked(world, "2026-10-07 10:30", {}, model="Org/Qwen", uncached_input=5900, output=590)
    bill(world, 10)
    world.attribute()
    fleet.serve(world, HOUR)
    assert_is_the_rebuild(world)


def test_the_bill_is_restated_in_another_hour(world):
    fleet.serve(world, HOUR, minutes=120)
    bill(world, 10, 11)
    world.attribute()
    with world.connected() as connection:
        connection.execute("UPDATE billing_line SET load_id = 'bill-2'")
        connection.execute("UPDATE billing_line SET effective_cost = 13, billed_cost = 13 WHERE line_digest = 'line-2'")
        connection.execute("INSERT INTO touched_hour VALUES ('2026-10-07 11:00', 'billing')")
    lines = world.snapshot().sql("SELECT hour, export_name FROM fleet_line ORDER BY hour").to_pylist()
    assert len(lines) == 2
    assert all(line["export_name"] for line in lines)
    assert_is_the_rebuild(world)
