"""Running one step of the waterfall, and small questions to the engine that its runners share."""

from datetime import datetime

import duckdb

from warehouse import waterfall

FIRST_INSTANT, LAST_INSTANT = "2000-01-01", "2100-01-01"


def step(connection: duckdb.DuckDBPyConnection, name: str, into: str | None = None) -> None:
    """Run one step into a temporary table, `into` or the step's own name."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {into or waterfall.table(name)} AS {waterfall.text(name)}")


def count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    """Rows of a table."""
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0


def span(connection: duckdb.DuckDBPyConnection, hours: str) -> list[datetime]:
    """First hour and the end of the last one: said as constants, they let the engine skip the rest of history."""
    row = connection.execute(f"SELECT min(hour), max(hour) + INTERVAL 1 HOUR FROM {hours}").fetchone()
    if row is None or row[0] is None:
        return [datetime.fromisoformat(FIRST_INSTANT)] * 2
    return [row[0], row[1]]


def changed(connection: duckdb.DuckDBPyConnection, insert: str) -> bool:
    """Run an INSERT; whether it added a row."""
    row = connection.execute(insert).fetchone()
    return bool(row and row[0])
