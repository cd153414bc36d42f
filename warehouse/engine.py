"""Opening the warehouse file: one writer at a time, under a lock file that names its holder."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from warehouse.settings import EngineSettings

MACROS = Path(__file__).with_name("macros.sql")


class WarehouseBusy(Exception):
    """Another job holds the warehouse; the message names it and says what to do."""


@dataclass(frozen=True)
class Layout:
    """Where one installation keeps its files.

    data/warehouse.duckdb   evidence and derived tables, one writer
    data/published/         immutable snapshots for readers
    data/spool/             what is being loaded; emptied at each start
    data/operations.db      alert states, outbox, publications (when SQLite)
    """

    data: Path

    @property
    def warehouse(self) -> Path:
        return self.data / "warehouse.duckdb"

    @property
    def published(self) -> Path:
        return self.data / "published"

    @property
    def spool(self) -> Path:
        return self.data / "spool"

    @property
    def operations(self) -> Path:
        return self.data / "operations.db"


@contextmanager
def locked(layout: Layout, who: str, settings: EngineSettings | None = None) -> Iterator[None]:
    """Hold the warehouse's lock while the block runs; wait for the present holder up to the configured time."""
    settings = settings or EngineSettings()
    layout.data.mkdir(parents=True, exist_ok=True)
    lock = FileLock(layout.data / "warehouse.lock")
    holder = layout.data / "warehouse.holder"
    try:
        lock.acquire(timeout=settings.lock_wait_seconds, poll_interval=0.05)
    except Timeout:
        held = json.loads(holder.read_text()) if holder.exists() else {}
        raise WarehouseBusy(
            f"`{held.get('who', 'another job')}` (process {held.get('pid', '?')}, since {held.get('since', '?')}) "
            f"holds {layout.warehouse}. Wait for it to end, or raise engine.lock_wait_seconds."
        ) from None
    try:
        holder.write_text(
            json.dumps({"who": who, "pid": os.getpid(), "since": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}"})
        )
        yield
    finally:
        holder.unlink(missing_ok=True)
        lock.release()


def configure(connection: duckdb.DuckDBPyConnection, settings: EngineSettings, temp: Path) -> None:
    """Settings every connection shares; times are UTC and no SQL name resolves to a Python variable."""
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET autoinstall_known_extensions = false")
    connection.execute("SET enable_progress_bar = false")
    connection.execute(f"SET memory_limit = '{settings.memory_limit}'")
    connection.execute("SET temp_directory = '" + str(temp).replace("'", "''") + "'")
    if settings.threads is not None:
        connection.execute(f"SET threads = {settings.threads}")
    connection.execute(MACROS.read_text())


@contextmanager
def writing(layout: Layout, who: str, settings: EngineSettings | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
    """The warehouse, open for one job under the lock; closed (and checkpointed) when the block ends."""
    settings = settings or EngineSettings()
    with locked(layout, who, settings):
        connection = duckdb.connect(str(layout.warehouse))
        try:
            configure(connection, settings, layout.data / "temp")
            yield connection
        finally:
            connection.close()


@contextmanager
def transaction(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """All or nothing: commit when the block ends, roll back when it raises."""
    connection.begin()
    try:
        yield
    except BaseException:
        connection.rollback()
        raise
    connection.commit()
