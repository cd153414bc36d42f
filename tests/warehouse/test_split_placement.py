"""Instances that only the bill tells of: its split costs say which workload had how many of their GPUs."""

import pytest

from tests import fleet
from tests.warehouse.test_fleet_ledger import HOUR, kinds, teams
from tests.warehouse.test_fleet_rebuild import assert_is_the_rebuild
from tests.world import World
from warehouse.settings import WarehouseSettings

ROUTES = [{"name": "qwen", "workloads": ["vllm-qwen"]}, {"name": "rerank", "workloads": ["reranker"]}]
FOUR = {"product_gpu": "4"}


@pytest.fixture
def world(tmp_path):
    return World(tmp_path, WarehouseSettings.model_validate({"fleet": {"routes": ROUTES}}))


def routes(world):
    """Dollars by route and state."""
    world.attribute()
    return {
        (route, state): usd
        for route, state, usd in world.rows(
            "SELECT route, state, sum(effective_nano) / 1e9 FROM pool_hour GROUP BY ALL ORDER BY ALL"
        )
    }


def busy(world):
    fleet.asked(world, "2026-10-07 10:59:30", {"key_alias": "search-1"}, started_at=HOUR, uncached_input=100, output=25)


def test_split_costs_place_a_machine_that_no_metric_and_no_table_tells_of(world):
    fleet.machine(world, "n1", HOUR, "40", x_other=FOUR)
    fleet.split(world, "n1", "vllm-qwen", HOUR, "2", "20")
    fleet.split(world, "n1", "reranker", HOUR, "1", "10")
    fleet.split(world, "n1", "prometheus", HOUR, "1", "10", usage_type="USE1-EKS-EC2-vCPU-Hours")
    busy(world)
    assert kinds(world) == {("idle", "no_traffic"): 10, ("idle", "not_requested"): 10, ("usage", None): 20}
    assert sum(usd for usd, _ in teams(world).values()) == 20


def test_a_bill_is_never_more_than_its_machines_whatever_was_split(world):
    fleet.machine(world, "n1", HOUR, "40", x_other=FOUR)
    for workload in ("vllm-qwen", "reranker"):
        fleet.split(world, "n1", workload, HOUR, "3", "60")
    busy(world)
    assert sum(kinds(world).values()) == 40


def test_metrics_and_pool_tables_know_better(world):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "40")
    world.attribute()
    before = kinds(world)
    fleet.split(world, "n1", "reranker", HOUR, "4", "40")
    assert_is_the_rebuild(world)
    assert kinds(world) == before


def test_a_workload_that_serves_nothing_places_nothing(world):
    fleet.machine(world, "n1", HOUR, "40", x_other=FOUR)
    fleet.split(world, "n1", "etcd", HOUR, "4", "40")
    world.attribute()
    assert world.rows("SELECT kind, sum(effective_nano) / 1e9 FROM ledger_hour GROUP BY ALL") == [("out_of_scope", 40)]


def test_split_costs_that_come_late_are_the_rebuild(world):
    fleet.machine(world, "n1", HOUR, "40", x_other=FOUR)
    fleet.machine(world, "n1", "2026-10-07 11:00", "40")
    busy(world)
    world.attribute()
    fleet.split(world, "n1", "vllm-qwen", HOUR, "2", "20")
    assert_is_the_rebuild(world)
    fleet.split(world, "n1", "vllm-qwen", "2026-10-07 11:00", "4", "40")
    assert_is_the_rebuild(world)
