"""The operations database as the command line sees it: opened at its newest revision; job runs are written here."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from sqlalchemy import Column, Engine, MetaData, String, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import OperationalError

from inferledger.config import Configuration
from inferledger.exits import NotUpgraded, OperationsUnreachable
from migrations import run as migrations
from warehouse import operations
from warehouse.operations import UtcDateTime
from warehouse.publish import Publication
from warehouse.snapshot import Snapshot

KEPT_DAYS = 90
Status = Literal["running", "ok", "findings", "failed", "stopped"]

metadata = MetaData()

job_run = Table(
    "job_run",
    metadata,
    Column("id", String, primary_key=True),
    Column("job", String, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("status", String, nullable=False),
    Column("detail", String),
)


@contextmanager
def opened(configuration: Configuration) -> Iterator[Engine]:
    """The operations database at its newest revision. An empty one is set up; an older one needs `db upgrade`."""
    url = configuration.operations_url
    engine = operations.connect(url)
    try:
        _at_head(engine, url)
        yield engine
    except OperationalError as error:
        raise OperationsUnreachable(engine.url.render_as_string(hide_password=True), error) from error
    finally:
        engine.dispose()


def revision(engine: Engine) -> str | None:
    """The revision a database stands at; None when it was never set up."""
    with engine.connect() as connection:
        if not engine.dialect.has_table(connection, "alembic_version"):
            return None
        return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar_one_or_none()


def _at_head(engine: Engine, url: str) -> None:
    stands_at, head = revision(engine), migrations.heads("operations")
    if stands_at is None:
        migrations.upgrade("operations", url)
    elif (stands_at,) != head:
        raise NotUpgraded("operations database", stands_at, head[0])


def begin_job(engine: Engine, job: str, now: datetime) -> str:
    """Note that a job starts; the run's id."""
    identity = uuid.uuid4().hex
    with engine.begin() as connection:
        connection.execute(job_run.delete().where(job_run.c.started_at < now - timedelta(days=KEPT_DAYS)))
        connection.execute(job_run.insert().values(id=identity, job=job, started_at=now, status="running"))
    return identity


def end_job(engine: Engine, identity: str, status: Status, detail: str, now: datetime) -> None:
    """Note how a job ended."""
    with engine.begin() as connection:
        connection.execute(
            job_run.update().where(job_run.c.id == identity).values(ended_at=now, status=status, detail=detail[:2000])
        )


@dataclass(frozen=True)
class JobRun:
    """One run of a job of the daemon; `ended_at` is None while it runs, or when its process died."""

    job: str
    started_at: datetime
    ended_at: datetime | None
    status: Status
    detail: str | None


def last_jobs(engine: Engine) -> list[JobRun]:
    """The newest run of every job."""
    t = job_run.c
    newest = select(t.job, func.max(t.started_at).label("at")).group_by(t.job).subquery()
    query = (
        select(t.job, t.started_at, t.ended_at, t.status, t.detail)
        .join(newest, (newest.c.job == t.job) & (newest.c.at == t.started_at))
        .order_by(t.job)
    )
    with engine.connect() as connection:
        return [JobRun(*row) for row in connection.execute(query)]


def record_publication(engine: Engine, snapshot: Snapshot, done: Publication) -> None:
    """Keep which snapshot was published when; the same one again changes nothing."""
    insert = postgresql.insert if engine.dialect.name == "postgresql" else sqlite.insert
    row = {
        "manifest": done.manifest,
        "as_of": snapshot.as_of,
        "published_at": datetime.now(UTC),
        "previous": done.previous if done.previous != done.manifest else None,
        "zone": snapshot.zone,
        "currency": snapshot.currency,
        "detail": {"written": done.written, "carried": done.carried},
    }
    with engine.begin() as connection:
        connection.execute(insert(operations.publication).values(row).on_conflict_do_nothing())
