"""The warehouse file at its newest revision: set up when it is new, refused with the remedy when it is older."""

import duckdb

from inferledger.config import Configuration
from inferledger.exits import NotUpgraded
from migrations import run as migrations
from warehouse.engine import Layout, locked, writing


def url(layout: Layout) -> str:
    """The warehouse as SQLAlchemy writes it."""
    return f"duckdb:///{layout.warehouse}"


def prepare(configuration: Configuration, who: str) -> None:
    """Have the evidence tables there before a job writes; raises NotUpgraded and WarehouseBusy."""
    layout = configuration.layout
    if not layout.warehouse.exists():
        with locked(layout, who, configuration.engine):
            migrations.upgrade("evidence", url(layout))
        return
    with writing(layout, who, configuration.engine) as connection:
        stands_at = revision(connection)
        is_empty = stands_at is None and not _tables(connection)
    if is_empty:
        with locked(layout, who, configuration.engine):
            migrations.upgrade("evidence", url(layout))
    elif (stands_at,) != migrations.heads("evidence"):
        raise NotUpgraded("warehouse", stands_at or "no revision", migrations.heads("evidence")[0])


def revision(connection: duckdb.DuckDBPyConnection) -> str | None:
    """The revision that the open warehouse stands at; None when it was never set up."""
    if "alembic_version" not in _tables(connection):
        return None
    row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _tables(connection: duckdb.DuckDBPyConnection) -> set[str]:
    return {
        str(row[0])
        for row in connection.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
    }
