"""A ledger in memory, a migrated operations database, and one evaluation after another on both."""

import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from alerts import evaluate
from alerts.settings import SHIPPED_RULES, AlertSettings
from alerts.state import State, load
from delivery.outbox import outbox_message
from migrations import run
from tests.alerts import ledger
from tests.alerts.ledger import Ledger, Snapshot
from warehouse import operations

SHIPPED = tuple(rule.name for rule in SHIPPED_RULES)


class Desk:
    """Evaluates snapshots under given rules and looks at what came of it."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.settings = AlertSettings()
        self.channels: tuple[str, ...] = ("ops",)

    def rules(self, *rules: dict[str, Any], shipped: bool = False, **settings: Any) -> None:
        without = () if shipped else SHIPPED
        self.settings = AlertSettings.model_validate({"rules": rules, "without": without, **settings})

    def evaluate(self, snapshot: Snapshot, now: str | None = None) -> evaluate.EvaluationReport:
        instant = snapshot.as_of if now is None else datetime.fromisoformat(now).replace(tzinfo=snapshot.as_of.tzinfo)
        return evaluate.run(snapshot, self.settings, self.engine, self.channels, instant, measures=ledger)

    def messages(self, channel: str = "ops") -> list[dict[str, Any]]:
        """Messages in the outbox, oldest first."""
        query = select(outbox_message.c.message).where(outbox_message.c.channel == channel)
        with self.engine.connect() as connection:
            return list(connection.execute(query.order_by(outbox_message.c.seq)).scalars())

    def subjects(self) -> list[str]:
        return [message["subject"] for message in self.messages()]

    def state(self, rule: str, series: str = "{}") -> State:
        with self.engine.connect() as connection:
            return load(connection)[rule, series]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file that was migrated once; tests take a copy."""
    path = tmp_path_factory.mktemp("alerts") / "operations.db"
    run.upgrade("operations", f"sqlite:///{path}")
    return path


@pytest.fixture
def engine(tmp_path: Path, migrated: Path) -> Iterator[Engine]:
    engine = operations.connect(f"sqlite:///{shutil.copy(migrated, tmp_path / 'operations.db')}")
    yield engine
    engine.dispose()


@pytest.fixture
def desk(engine: Engine) -> Desk:
    return Desk(engine)


@pytest.fixture
def book() -> Ledger:
    return Ledger()
