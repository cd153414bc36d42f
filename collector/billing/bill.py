"""Putting a delivery of a bill in the place of the one before it: shared by every export format; see bill.sql."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Literal

import duckdb

from collector.billing import capacity_block
from collector.queries import queries

NOT_CONTENT = frozenset({"x_line_item_id", "x_file", "x_other", "effective_cost"})
"""What is not of a line's digest: what differs between deliveries and formats of one line, and what is only kept."""

CHUNK = 4_000_000

Wish = Literal["auto", "record", "cross_check"]


@dataclass(frozen=True)
class Export:
    """Which export a delivery is of.

    name    as it stays with the lines: <payer account>/<export>, or <source>/<path> of a file without a manifest
    group   exports of one group complete each other; of two groups that tell one account's month, one is the record
    format  cur2, legacy_cur, focus: the earlier one is the record when nobody says otherwise
    wish    what the source is set to
    """

    name: str
    group: str
    format: str
    wish: Wish = "auto"


def stands(connection: duckdb.DuckDBPyConnection, export_name: str, billing_period: str) -> tuple[datetime, str] | None:
    """When the delivery in the warehouse was made (naive UTC), and its identity; None when there is none."""
    _set(connection, {"export_name": export_name, "billing_period": billing_period})
    row = connection.execute(queries("billing/bill.sql")["standing"]).fetchone()
    return None if row is None or row[0] is None else (row[0], row[1])


def deliver(
    connection: duckdb.DuckDBPyConnection,
    export: Export,
    billing_period: str,
    load_id: str,
    identity: str,
    delivered_at: datetime,
) -> bool:
    """Put the temporary tables `staged_line`, `staged_check` and `staged_split` in the place of what stands there of
    the period, unless that was delivered later.

    Totals of the delivery are kept either way. Answers whether the lines were replaced. Any order of loading gives the
    same lines: the delivery that the provider made last, by its own time and then by identity; and where several
    exports tell the bill of one account and month, those of the record count and the others are kept to compare.
    """
    sql = queries("billing/bill.sql")
    standing = stands(connection, export.name, billing_period)
    facts = {
        "load_id": load_id,
        "identity": identity,
        "delivered_at": delivered_at,
        "export_group": export.group,
        "format": export.format,
        "wish": export.wish,
    }
    _set(connection, facts)
    newest = standing is None or (delivered_at, identity) >= standing
    if newest:
        connection.execute(sql["named"].replace("{{content}}", _content(connection)))
        for step in ("judge", "before", "delete", "move"):
            connection.execute(sql[step])
        for first, last in _chunks(connection):
            _set(connection, {"chunk_from": first, "chunk_to": last})
            connection.execute(sql["insert"])
        connection.execute(sql["beside"])
        capacity_block.spread(connection, export.name)
        connection.execute(sql["touch"])
    connection.execute(sql["version"])
    return newest


def periods_of(connection: duckdb.DuckDBPyConnection, export_name: str) -> list[str]:
    """Billing periods of the staged lines, and those that an earlier delivery told and this one may not."""
    _set(connection, {"export_name": export_name})
    return [row[0] for row in connection.execute(queries("billing/bill.sql")["periods"]).fetchall()]


def compared_with(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Accounts of the delivery at hand that another export is the record of, each with that export's name."""
    return [row[0] for row in connection.execute(queries("billing/bill.sql")["compared"]).fetchall()]


def _chunks(connection: duckdb.DuckDBPyConnection) -> list[tuple[datetime, datetime]]:
    """Spans of the lines' charge periods, each with some `CHUNK` lines: what is sorted at once spills as a whole."""
    lines = connection.execute("SELECT count(*) FROM named_line").fetchone() or (0,)
    number = lines[0] // CHUNK + 1
    _set(connection, {"shares": [n / number for n in range(1, number)]})
    cuts = (connection.execute(queries("billing/bill.sql")["cuts"]).fetchone() or ([],))[0] or []
    bounds = [datetime.min, *sorted(set(cuts)), datetime.max]
    return list(pairwise(bounds))


def _content(connection: duckdb.DuckDBPyConnection) -> str:
    """Everything that a staged line says, with its name; NULL says nothing."""
    names = [row[0] for row in connection.execute("SELECT column_name FROM (DESCRIBE staged_line)").fetchall()]
    said = [f"'{name}=' || CAST({name} AS VARCHAR)" for name in sorted(names) if name not in NOT_CONTENT]
    return ", ".join(said)


def _set(connection: duckdb.DuckDBPyConnection, variables: Mapping[str, object]) -> None:
    for name, value in variables.items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])
