"""A bill with the columns of the legacy CUR: dynamic, one column per tag, cost category and product attribute."""

import duckdb

from demo.billing.legacy_names import TAG_CATEGORIES, key_name, slash_name
from demo.billing.text import literal, quoted
from demo.cur_schema import SCHEMA

NEVER = {
    "bill_payer_account_name",
    "line_item_iam_principal",
    "line_item_usage_account_name",
    "line_item_user_identifier",
    "tags",
}
"""Columns that only CUR 2.0 has (billing.md 3.1)."""

ALWAYS = ("identity_", "bill_", "line_item_", "pricing_", "reservation_")
"""Groups whose columns are there in every month; but not what is net of discounts."""


def query(connection: duckdb.DuckDBPyConnection, table: str) -> str:
    """A SELECT of the table under slash names. Other columns are there in months in which they hold something."""
    flat = [name for name in SCHEMA.names if name not in {*TAG_CATEGORIES, *NEVER, "discount"}]
    filled = _filled(connection, table, flat)
    columns = {
        slash_name(name): quoted(name)
        for name in flat
        if name in filled or (name.startswith(ALWAYS) and "_net_" not in name)
    }
    for name in TAG_CATEGORIES:
        for key in _keys(connection, table, name):
            # a product attribute that is flat in CUR 2.0 too keeps its place
            columns.setdefault(key_name(name, key), f"{quoted(name)}[{literal(key)}]")
    # assumption: the keys of CUR 2.0's map `discount` are the legacy columns' names, spelled as Athena spells them
    for key in _keys(connection, table, "discount"):
        columns.setdefault(slash_name(f"discount_{key}"), f"discount[{literal(key)}]")
    return f"SELECT {', '.join(f'{said} AS {quoted(name)}' for name, said in sorted(columns.items()))} FROM {table}"


def _filled(connection: duckdb.DuckDBPyConnection, table: str, names: list[str]) -> set[str]:
    counts = ", ".join(f"count(nullif({quoted(name)}::VARCHAR, ''))" for name in names)
    found = connection.execute(f"SELECT {counts} FROM {table}").fetchone() or ()
    return {name for name, count in zip(names, found, strict=True) if count}


def _keys(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> list[str]:
    found = connection.execute(f"SELECT DISTINCT unnest(map_keys({column})) AS key FROM {table} ORDER BY key")
    return [key for (key,) in found.fetchall()]
