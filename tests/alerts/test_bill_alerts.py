"""What a delivery of the bill moved or left unknown, from a real ledger to the message as it arrives."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from alerts import evaluate
from alerts.settings import SHIPPED_RULES, AlertSettings
from delivery.outbox import outbox_message
from migrations import run
from tests.world import World
from warehouse import operations
from warehouse.settings import WarehouseSettings

SHIPPED = {rule.name for rule in SHIPPED_RULES}
NOW = datetime(2026, 10, 20, 6, 5, tzinfo=UTC)
KEPT = ("bill-restated", "bill-checks")


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path / "data", WarehouseSettings(), as_of="2026-10-20 06:00")
    world.line("2026-10-03 10:00", "1000")
    return world


@pytest.fixture
def engine(tmp_path: Path):
    url = f"sqlite:///{tmp_path}/operations.db"
    run.upgrade("operations", url)
    engine = operations.connect(url)
    yield engine
    engine.dispose()


def deliver(world: World, number: int, cost: str) -> None:
    with world.connected() as connection:
        connection.execute(
            "INSERT INTO bill_version VALUES ('x', 'export', '2026-10', ?, ?, ?, '2026-10-03', 'Amazon EC2', "
            "'USD', 1, ?, ?)",
            [number, f"2026-10-{12 + number} 04:00", f"d{number}", cost, cost],
        )
        connection.execute("UPDATE billing_line SET billed_cost = ?, effective_cost = ?", [cost, cost])
        connection.execute("INSERT INTO touched_hour VALUES ('2026-10-03 10:00', 'billing')")


def evaluated(world: World, engine: Engine) -> list[dict[str, str]]:
    """Messages after one evaluation with the two rules about bills."""
    settings = AlertSettings.model_validate({"without": sorted(SHIPPED - set(KEPT))})
    report = evaluate.run(world.snapshot(), settings, engine, ["ops"], NOW)
    assert report.problems == ()
    with engine.connect() as connection:
        return list(connection.execute(select(outbox_message.c.message)).scalars())


def test_a_restatement_is_told_with_its_day_its_service_and_its_delivery(world: World, engine: Engine) -> None:
    deliver(world, 1, "1000")
    assert evaluated(world, engine) == []
    deliver(world, 2, "787.60")
    (message,) = evaluated(world, engine)
    assert message["subject"] == "🔵 restated cost of days long past is high"
    for said in (
        "$212.40 now, the limit is at most $1.00",
        "3 October fell, Amazon EC2, delivery 2 of 2026-10: $212.40",
        "the ledger followed",
    ):
        assert said in message["text"]
    assert len(evaluated(world, engine)) == 1


def test_a_unit_that_nobody_knows_is_told(world: World, engine: Engine) -> None:
    deliver(world, 1, "1000")
    world.line("2026-10-04 10:00", "0", token_class="output", tokens=None, pricing_unit="bushels")
    (message,) = evaluated(world, engine)
    assert message["subject"].endswith("number of failed checks of the bill is high")
    assert "By name:\n- units of token charges are known: 1" in message["text"]
    assert "inferledger doctor" in message["text"]
