"""GPUs that did nothing, and GPUs that nobody measures: the shipped rules, by hand and on a real ledger."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from alerts import evaluate, words
from alerts.settings import SHIPPED_RULES, AlertSettings
from migrations import run
from tests.alerts.conftest import Desk
from tests.alerts.ledger import Ledger
from tests.fleet_world import fill_fleet
from tests.world import World
from warehouse import operations
from warehouse.settings import WarehouseSettings

RULES = {rule.name: rule for rule in SHIPPED_RULES}


def test_a_day_of_idle_gpus_fires_once_and_says_of_which_pools_and_why(desk: Desk, book: Ledger) -> None:
    desk.rules(shipped=True)
    book.days("2026-11-20", 10, "60", team="search", model="qwen")
    book.book("2026-11-29", "0", idle="90", cluster="east", pool="llama-mixed", reason="no_traffic")
    book.book("2026-11-29", "0", idle="35", cluster="east", reason="not_requested")
    report = desk.evaluate(book.publish("2026-11-30 06:00"))
    assert report.problems == ()
    assert ("idle-gpus", "{}") in report.firing
    assert ("unmeasured-gpus", "{}") not in report.firing
    (message,) = [each for each in desk.messages() if "idle GPUs" in each["subject"]]
    assert message["subject"] == "🟠 cost of idle GPUs is high"
    for said in (
        "$125.00 on 2026-11-29, the limit is at most $100.00",
        "By pool:\n- llama-mixed: $90.00\n- no pool: $35.00",
        "By cluster:\n- east: $125.00",
        "By reason:\n- no traffic: $90.00\n- requested by no pod: $35.00",
        "scale down the pools without traffic",
    ):
        assert said in message["text"]
    assert desk.evaluate(book.publish("2026-11-30 07:00")).messages == 0


def test_gpus_that_no_metric_tells_of_fire_on_their_own(desk: Desk, book: Ledger) -> None:
    desk.rules(shipped=True)
    book.book("2026-11-29", "10", team="search", unmeasured="21")
    report = desk.evaluate(book.publish("2026-11-30 06:00"))
    assert report.firing == (("unmeasured-gpus", "{}"),)
    assert "cost of GPUs that no metric tells of is high" in desk.messages()[0]["subject"]


def test_without_a_fleet_both_rules_are_silent(desk: Desk, book: Ledger) -> None:
    desk.rules(shipped=True)
    book.days("2026-11-20", 10, "60", team="search", model="nova")
    assert desk.evaluate(book.publish("2026-11-30 06:00")).firing == ()


@pytest.mark.parametrize(
    ("rule", "firing"),
    [
        ({"measure": "idle_cost_usd", "by": ["cluster", "pool"], "above": 5},
         ['{"cluster":"east","pool":"llama-mixed"}', '{"cluster":"east","pool":null}']),
        ({"measure": "gpu_unmeasured_share", "by": ["cluster"], "above": 0.3}, ['{"cluster":"east"}']),
        ({"measure": "gpu_busy_share", "by": ["pool"], "where": {"pool": ["llama-mixed"]}, "below": 0.2},
         ['{"pool":"llama-mixed"}']),
    ],
)  # fmt: skip
def test_a_rule_by_pool_or_on_a_share_works_on_a_real_ledger(tmp_path: Path, rule, firing) -> None:
    world = World(tmp_path / "data", WarehouseSettings(), as_of="2026-10-08 06:00")
    fill_fleet(world)
    url = f"sqlite:///{tmp_path}/operations.db"
    run.upgrade("operations", url)
    engine = operations.connect(url)
    settings = AlertSettings.model_validate(
        {"without": sorted(RULES), "rules": [{"kind": "threshold", "name": "gpus", **rule}]}
    )
    report = evaluate.run(world.snapshot(), settings, engine, ["ops"], datetime(2026, 10, 8, 6, 5, tzinfo=UTC))
    assert report.problems == ()
    assert sorted(series for _, series in report.firing) == firing
    engine.dispose()


def test_gpu_time_is_written_in_hours_and_leads_to_its_page() -> None:
    assert words.figure("gpu_held_ms", Decimal(5_400_000), "USD") == "1.5 GPU-hours"
    assert words.figure("gpu_busy_share", Decimal("0.42"), "USD") == "42.0 %"
    assert {words.page(RULES[name]) for name in ("idle-gpus", "unmeasured-gpus")} == {"fleet"}
    assert words.part_name("reason", "not_in_cluster") == "billed, but in no cluster"
