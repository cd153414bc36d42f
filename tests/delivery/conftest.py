"""A migrated operations database on either engine, and servers that play the other side."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from migrations import run
from tests.delivery.servers import HttpServer, SmtpServer
from warehouse import operations


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file that was migrated once; tests take a copy."""
    path = tmp_path_factory.mktemp("delivery") / "operations.db"
    run.upgrade("operations", f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path, migrated: Path) -> str:
    """The operations database, on SQLite and on PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{shutil.copy(migrated, tmp_path / 'operations.db')}"
    url = str(request.getfixturevalue("postgres_database"))
    run.upgrade("operations", url)
    return url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = operations.connect(url)
    yield engine
    engine.dispose()


@pytest.fixture
def lite(tmp_path: Path, migrated: Path) -> Iterator[Engine]:
    """The operations database on SQLite alone, for what does not depend on the engine."""
    engine = operations.connect(f"sqlite:///{shutil.copy(migrated, tmp_path / 'lite.db')}")
    yield engine
    engine.dispose()


@pytest.fixture
def slack() -> Iterator[HttpServer]:
    server = HttpServer()
    yield server
    server.stop()


@pytest.fixture
def smtp() -> Iterator[SmtpServer]:
    server = SmtpServer()
    yield server
    server.stop()
