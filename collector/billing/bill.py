"""Replacing a billing period by a newer delivery of it: shared by every export format; see bill.sql."""

from datetime import datetime

import duckdb

from collector.queries import queries


def stands(connection: duckdb.DuckDBPyConnection, export_name: str, billing_period: str) -> tuple[datetime, str] | None:
    """When the delivery in the warehouse was made (naive UTC), and its identity; None when there is none."""
    connection.execute("SET VARIABLE export_name = ?", [export_name])
    connection.execute("SET VARIABLE billing_period = ?", [billing_period])
    row = connection.execute(queries("billing/bill.sql")["standing"]).fetchone()
    return None if row is None or row[0] is None else (row[0], row[1])


def deliver(
    connection: duckdb.DuckDBPyConnection,
    export_name: str,
    billing_period: str,
    load_id: str,
    identity: str,
    delivered_at: datetime,
) -> bool:
    """Put the temporary table `staged_line` in the place of the period's lines, unless a newer delivery stands there.

    Totals of the delivery are kept either way. Answers whether the lines were replaced. Any order of loading gives the
    same lines: the delivery that the provider made last, by its own time and then by identity.
    """
    sql = queries("billing/bill.sql")
    standing = stands(connection, export_name, billing_period)
    for name, value in (("load_id", load_id), ("identity", identity), ("delivered_at", delivered_at)):
        connection.execute(f"SET VARIABLE {name} = ?", [value])
    newest = standing is None or (delivered_at, identity) >= standing
    if newest:
        for step in ("touch", "delete", "insert"):
            connection.execute(sql[step])
    connection.execute(sql["version"])
    return newest
