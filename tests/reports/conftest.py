"""A published organisation to report on, and an operations database to report through."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from migrations import run as migrations
from reports.settings import ReportSettings
from tests.reports.organisation import organisation
from tests.world import World
from warehouse import operations
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot

# Every key is a team of its own, named as the key is; the app is a tag.
BY_KEY = [
    {"when": {"key_alias": "*"}, "set": {"team": "{key_alias}"}},
    {"when": {"tag.app": "*"}, "set": {"app": "{tag.app}"}},
]


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Thirty days of six teams, published once; tests read it and change nothing."""
    world = organisation(tmp_path_factory.mktemp("acme"), scale=0.04)
    world.publish()
    return world


@pytest.fixture(scope="session")
def snapshot(acme: World) -> Snapshot:
    return Snapshot.open(acme.layout.published, Scope.everything("test"))


@pytest.fixture
def settings() -> ReportSettings:
    return ReportSettings(name="daily-cost")


@pytest.fixture
def world(tmp_path: Path) -> World:
    """An organisation without any evidence yet."""
    return World(tmp_path / "data", WarehouseSettings.model_validate({"owners": BY_KEY}))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    url = f"sqlite:///{tmp_path}/operations.db"
    migrations.upgrade("operations", url)
    engine = operations.connect(url)
    yield engine
    engine.dispose()
