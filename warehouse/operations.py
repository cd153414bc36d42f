"""The operations database: small and transactional, SQLite by default, PostgreSQL in a deployment.

This module opens it and declares the tables that publishing, closing and auditing use. `delivery`, `alerts`,
`reports` and `inferledger` declare the tables that they use; one Alembic environment (``migrations/operations``)
creates them all, and a test holds the migrated schema against every declaration.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Connection,
    DateTime,
    Dialect,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
    create_engine,
    event,
    make_url,
)

BUSY_TIMEOUT_MILLISECONDS = 30_000
WRITER_LOCK = 0x1F1ED6E4  # PostgreSQL advisory lock that `begin_write` takes


class UtcDateTime(TypeDecorator[datetime]):
    """A UTC instant with its zone: `timestamptz` on PostgreSQL, zone-less UTC text on SQLite.

    A datetime without a zone is refused (`ValueError`): it could mean any instant.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no zone; pass an aware datetime such as datetime.now(UTC)")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()

publication = Table(
    "publication",
    metadata,
    Column("manifest", String, primary_key=True, comment="the manifest's id"),
    Column("as_of", UtcDateTime, nullable=False, comment="evidence known up to this instant"),
    Column("published_at", UtcDateTime, nullable=False),
    Column("previous", String, comment="the manifest that this one replaced"),
    Column("zone", String, nullable=False, comment="IANA zone in which its days are cut"),
    Column("currency", String, nullable=False),
    Column("detail", JSON(none_as_null=True), comment="files written and kept, hours recomputed, controls failed"),
)

audit_entry = Table(
    "audit_entry",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("who", String, nullable=False),
    Column("what", String, nullable=False, comment="the act, e.g. silence.add, period.close"),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("reason", String, nullable=False),
    Column("before", JSON(none_as_null=True), comment="the thing as it was; NULL when it did not exist"),
    Column("after", JSON(none_as_null=True), comment="the thing as it became; NULL when it ended"),
    sqlite_autoincrement=True,
)

closed_period = Table(
    "closed_period",
    metadata,
    Column("billing_period", String, primary_key=True, comment="YYYY-MM"),
    Column("closed_at", UtcDateTime, nullable=False),
    Column("closed_by", String, nullable=False),
    Column("manifest", String, nullable=False, comment="the publication that holds the closed figures"),
)


def connect(url: str) -> Engine:
    """An engine on the operations database at `url`, e.g. `sqlite:///data/operations.db` or `postgresql://...`.

    Nothing is opened yet. SQLite gets a write-ahead log (readers do not wait for the writer), enforced foreign
    keys, a busy time-out of 30 s and real transactions, DDL included; its folder is made when it is missing.
    PostgreSQL is spoken through psycopg whichever of `postgres://` and `postgresql://` is written.

    Raises `ValueError` on any other kind of database.
    """
    parsed = make_url(url)
    if parsed.drivername in ("postgres", "postgresql"):
        parsed = parsed.set(drivername="postgresql+psycopg")
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return create_engine(parsed, pool_pre_ping=True)
    if backend != "sqlite":
        raise ValueError(f"operations database `{backend}` is not supported; write sqlite:///PATH or postgresql://...")
    if parsed.database and parsed.database != ":memory:":
        Path(parsed.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_MILLISECONDS / 1000})
    event.listen(engine, "connect", _set_pragmas)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


@contextmanager
def begin_write(engine: Engine) -> Iterator[Connection]:
    """One transaction that holds the write lock from its first statement; commits at the end, or rolls back.

    Two of them never overlap on one database, so what is read inside stays true until the commit. On SQLite a
    plain `engine.begin()` that reads first and writes later can fail with "database is locked"; this cannot.
    """
    options = {"sqlite_begin": "BEGIN IMMEDIATE"}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({WRITER_LOCK})")
        yield connection


def audit(
    connection: Connection,
    *,
    who: str,
    what: str,
    reason: str,
    now: datetime,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """Write one line of the audit trail in the caller's transaction; `before` and `after` must be JSON."""
    connection.execute(
        audit_entry.insert().values(who=who, what=what, recorded_at=now, reason=reason, before=before, after=after)
    )


def _set_pragmas(dbapi_connection: Any, _record: object) -> None:
    dbapi_connection.isolation_level = None  # transactions begin where SQLAlchemy begins them, not inside sqlite3
    cursor = dbapi_connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MILLISECONDS}")
    cursor.execute("PRAGMA journal_mode = WAL")
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
