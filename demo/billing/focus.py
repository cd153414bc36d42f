"""A bill as AWS's FOCUS tables tell it: what is bought, what is used of it, and what nobody used (billing.md 3.3)."""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from demo.billing.focus_columns import COLUMNS, kind
from demo.billing.text import quoted
from demo.cur_schema import DOUBLE, MAP, NUMBER_MAP, TIME

_SQL_TYPES = {DOUBLE: "DOUBLE", TIME: "TIMESTAMP_MS", MAP: "MAP(VARCHAR, VARCHAR)", NUMBER_MAP: "MAP(VARCHAR, DOUBLE)"}


def query(connection: duckdb.DuckDBPyConnection, version: str, others: Sequence[pa.Table] = ()) -> str:
    """A SELECT of the registered table `bill` (columns of CUR 2.0) as FOCUS `version` (1.0 or 1.2).

    Discounts are in FOCUS's costs, never lines of their own: a bill that has them only as lines is refused.
    `others`: see `export.write`.
    """
    rows = connection.execute("SELECT count(*) FROM bill WHERE line_item_line_item_type LIKE '%Discount'").fetchone()
    if rows and rows[0]:
        raise ValueError("FOCUS needs the discounts in the columns of the bill, not as lines")
    fees = "SELECT * FROM bill"
    for number, other in enumerate(others):
        connection.register(f"other_{number}", other)
        fees += f" UNION ALL SELECT * FROM other_{number}"
    columns = ", ".join(f"{_typed(name)} AS {quoted(name)}" for name in COLUMNS[version])
    return f"SELECT {columns} FROM ({_STATEMENT.replace('all_bills', f'({fees})')})"


def _typed(name: str) -> str:
    """A column with the type of the export. A decimal becomes the double nearest to it only by way of its text."""
    text = "::VARCHAR" if kind(name) == DOUBLE else ""
    return f"CAST({quoted(name)}{text} AS {_SQL_TYPES.get(kind(name), 'VARCHAR')})"


_STATEMENT = Path(__file__).with_suffix(".sql").read_text()
