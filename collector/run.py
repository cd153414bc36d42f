"""Collect: drive every source from discover to load, one transaction a batch.

A batch is either in the warehouse with its rows, refused rows, touched hours and ``load`` row, or it left no trace;
killed anywhere and run again, the same evidence is there. A source that fails is reported and the others go on.
"""

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
from filelock import FileLock, Timeout

from collector.prices.book import price_sources
from collector.queries import HERE, WRONG_SQL
from collector.registry import kinds
from collector.settings import CollectorSettings
from collector.source import Batch, CollectError, Fetched, LoadResult, Moment, Source, StoredObject
from warehouse.engine import Layout, WarehouseBusy, transaction, writing
from warehouse.settings import AttributionSettings, EngineSettings

GROUP_BYTES = 1024 * 1024 * 1024
"""What is fetched before the warehouse is opened to load it."""


@dataclass(frozen=True)
class Step:
    """Progress, for a bar: `done` of `total` batches of `source`; `detail` is what was just loaded."""

    source: str
    done: int
    total: int
    detail: str


@dataclass(frozen=True)
class Loaded:
    """One batch that is now in the warehouse."""

    source: str
    identity: str
    detail: str
    result: LoadResult


@dataclass(frozen=True)
class Finding:
    """Something a person should look at: what is wrong, where, and what to do."""

    source: str
    what: str
    where: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.source}: {self.where}: {self.what}. {self.remedy}"


@dataclass(frozen=True)
class CollectReport:
    """What a collection did.

    loaded    batches loaded now, in order
    findings  batches and sources that failed; what they had loaded before is intact
    """

    loaded: tuple[Loaded, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.findings

    def total(self, figure: str) -> int:
        """Sum of rows_read, rows_loaded, rows_rejected or rows_filtered over the batches loaded now."""
        return sum(int(getattr(each.result, figure)) for each in self.loaded)

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks of all loads, each said once: what is missing and what that makes unavailable."""
        return tuple(dict.fromkeys(f"{each.source}: {note}" for each in self.loaded for note in each.result.notes))


@dataclass
class _Run:
    layout: Layout
    engine: EngineSettings
    moment: Moment
    progress: Callable[[Step], None]
    loaded: list[Loaded] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


class LoadedState:
    """What the warehouse says has been loaded; see ``collector.source.State``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def is_loaded(self, source: str, identity: str) -> bool:
        return (
            self._connection.execute("SELECT 1 FROM load WHERE load_id = ?", [load_id(source, identity)]).fetchone()
            is not None
        )

    def unseen(self, source: str, objects: Sequence[StoredObject]) -> list[StoredObject]:
        listing = pa.table(
            {
                "number": pa.array(range(len(objects)), pa.int64()),
                "object_key": pa.array([each.key for each in objects], pa.string()),
                "version": pa.array([each.version for each in objects], pa.string()),
            }
        )
        self._connection.register("listing", listing)
        rows = self._connection.execute(
            "SELECT number FROM listing ANTI JOIN (SELECT object_key, version FROM loaded_object WHERE source = ?) "
            "USING (object_key, version) ORDER BY object_key, version",
            [source],
        ).fetchall()
        self._connection.unregister("listing")
        return [objects[row[0]] for row in rows]

    def current(self, source: str) -> str | None:
        row = self._connection.execute(
            "SELECT identity FROM load WHERE source = ? ORDER BY loaded_at DESC LIMIT 1", [source]
        ).fetchone()
        return None if row is None else str(row[0])


def load_id(source: str, identity: str) -> str:
    """Name of a load in the warehouse: md5 of source and identity."""
    return hashlib.md5(f"{source}\0{identity}".encode(), usedforsecurity=False).hexdigest()


def collect(
    layout: Layout,
    settings: CollectorSettings,
    only: set[str] | None = None,
    as_of: datetime | None = None,
    progress: Callable[[Step], None] | None = None,
    *,
    engine: EngineSettings | None = None,
    attribution: AttributionSettings | None = None,
    currency: str = "USD",
) -> CollectReport:
    """Load everything that is new in the configured sources.

    only      names of sources; default all, prices and aliases included
    as_of     aware instant of this collection; what claims to be later is refused. Default: now
    progress  called after every batch
    currency  what exchange rates lead to

    Never raises for a bad source or batch (those are findings); raises WarehouseBusy when another job holds the
    warehouse, and ValueError when `only` names a source that is not configured.
    """
    at = (as_of or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)
    moment = Moment(
        at, timedelta(minutes=(attribution or AttributionSettings.model_validate({})).clock_tolerance_minutes)
    )
    run = _Run(layout, engine or EngineSettings.model_validate({}), moment, progress or (lambda _: None))
    sources = [*price_sources(settings, currency), *(kinds()[each.kind].open(each) for each in settings.sources)]
    unknown = (only or set()) - {source.name for source in sources}
    if unknown:
        raise ValueError(
            f"no source is called {', '.join(sorted(unknown))}; there are {', '.join(each.name for each in sources)}"
        )
    layout.data.mkdir(parents=True, exist_ok=True)
    with _alone(layout, run.engine.lock_wait_seconds):
        try:
            _empty(layout.spool)  # a run that was killed may have left something
            for source in sources:
                if only is None or source.name in only:
                    _collect(run, source)
        finally:
            _empty(layout.spool)
    return CollectReport(tuple(run.loaded), tuple(run.findings))


def _collect(run: _Run, source: Source) -> None:
    try:
        with _warehouse(run) as connection:
            batches = sorted(source.discover(LoadedState(connection)), key=lambda batch: batch.order)
    except CollectError as error:
        run.findings.append(Finding(source.name, error.what, error.where, error.remedy))
        return
    done = 0
    for group in _groups(batches):
        if source.is_remote:
            fetched = [each for number, batch in enumerate(group) if (each := _fetch(run, source, batch, number))]
            with _warehouse(run) as connection:
                for each in fetched:
                    _load(run, source, each, connection)
        else:
            with _warehouse(run) as connection:
                for number, batch in enumerate(group):
                    if local := _fetch(run, source, batch, number):
                        _load(run, source, local, connection)
        _empty(run.layout.spool)
        done += len(group)
        run.progress(Step(source.name, done, len(batches), group[-1].detail))


def _groups(batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    group: list[Batch] = []
    size = 0
    for batch in batches:
        if group and size + batch.size > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(batch)
        size += batch.size
    if group:
        yield group


def _fetch(run: _Run, source: Source, batch: Batch, number: int) -> Fetched | None:
    folder = run.layout.spool / f"{number:06d}"
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return source.fetch(batch, folder)
    except CollectError as error:
        run.findings.append(Finding(source.name, error.what, error.where, error.remedy))
    except OSError as error:
        run.findings.append(
            Finding(
                source.name,
                f"cannot be spooled ({error.strerror})",
                str(folder),
                "Make room, or point `data` elsewhere",
            )
        )
    return None


def _load(run: _Run, source: Source, fetched: Fetched, connection: duckdb.DuckDBPyConnection) -> None:
    batch = fetched.batch
    name = load_id(source.name, batch.identity)
    try:
        staged = source.stage(connection, fetched, name, run.moment)
        with transaction(connection):
            result = source.load(connection, staged)
            _record(connection, source, batch, name, result)
    except CollectError as error:
        run.findings.append(Finding(source.name, error.what, error.where, error.remedy))
    except duckdb.OutOfMemoryException:
        run.findings.append(
            Finding(
                source.name,
                "does not fit into memory",
                batch.detail,
                "Raise engine.memory_limit, or free disk for the engine's temporary files",
            )
        )
    except WRONG_SQL:
        raise
    except duckdb.Error as error:
        # The engine's own message may quote a file, and a file may hold a prompt.
        run.findings.append(
            Finding(
                source.name,
                f"cannot be loaded ({type(error).__name__})",
                batch.detail,
                "Nothing of it was loaded; check that its files are whole and that the disk has room",
            )
        )
    else:
        run.loaded.append(Loaded(source.name, batch.identity, batch.detail, result))


def _record(connection: duckdb.DuckDBPyConnection, source: Source, batch: Batch, name: str, result: LoadResult) -> None:
    """The ``load`` row and the objects it consists of; a source that came back to an earlier content is loaded anew."""
    connection.execute("DELETE FROM load WHERE load_id = ?", [name])
    connection.execute(
        """
        INSERT INTO load BY NAME
        SELECT ? AS load_id, ? AS source, ? AS kind, ? AS identity, ? AS detail, ? AS rows_read, ? AS rows_loaded,
            ? AS rows_rejected, ? AS rows_filtered, ? AS first_at, ? AS last_at,
            CAST(CAST(? AS JSON) AS MAP(VARCHAR, VARCHAR)) AS sums, current_timestamp::TIMESTAMP AS loaded_at
        """,
        [
            name,
            source.name,
            source.family,
            batch.identity,
            batch.detail,
            result.rows_read,
            result.rows_loaded,
            result.rows_rejected,
            result.rows_filtered,
            result.first_at,
            result.last_at,
            json.dumps(dict(result.sums)),
        ],
    )
    if batch.objects:
        listing = pa.table(
            {
                "object_key": pa.array([each.key for each in batch.objects], pa.string()),
                "version": pa.array([each.version for each in batch.objects], pa.string()),
            }
        )
        connection.register("listing", listing)
        connection.execute(
            "INSERT INTO loaded_object BY NAME SELECT ? AS source, object_key, version, ? AS load_id FROM listing",
            [source.name, name],
        )
        connection.unregister("listing")


@contextmanager
def _alone(layout: Layout, wait_seconds: float) -> Iterator[None]:
    """One collection at a time: they share the spool. Not the warehouse's lock, which others may take meanwhile."""
    lock = FileLock(layout.data / "collect.lock")
    try:
        lock.acquire(timeout=wait_seconds, poll_interval=0.05)
    except Timeout:
        raise WarehouseBusy(
            f"another collection into {layout.data} is going on. Wait for it to end, or raise engine.lock_wait_seconds."
        ) from None
    try:
        yield
    finally:
        lock.release()


@contextmanager
def _warehouse(run: _Run) -> Iterator[duckdb.DuckDBPyConnection]:
    with writing(run.layout, "collect", run.engine) as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute((HERE / "model_name.sql").read_text())
        connection.execute((HERE / "money.sql").read_text())
        yield connection


def _empty(spool: Path) -> None:
    """The spool may hold prompt text: nothing stays in it."""
    shutil.rmtree(spool, ignore_errors=True)
    if spool.exists():
        raise CollectError("cannot be emptied", str(spool), "Remove it; it may hold text of prompts")
