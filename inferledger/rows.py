"""Rows of a snapshot as dictionaries, and what is done with them before they are shown."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from inferledger.figures import exact
from warehouse.snapshot import Snapshot

Facts = dict[str, Any]


def rows(snapshot: Snapshot, query: str, bound: Sequence[object] = ()) -> list[Facts]:
    """Run a query over the marts; a dictionary a row."""
    found: list[Facts] = snapshot.sql(query, bound).to_pylist()
    return found


def dollars(nano: int | None) -> Decimal | None:
    """Nano-dollars as dollars, exactly; None stays None, which is unknown."""
    return None if nano is None else Decimal(nano).scaleb(-9)


def shown(row: Facts) -> Facts:
    """Nano-dollars as decimal text under their name without `_nano`; decimals, days and instants as text."""
    found: Facts = {}
    for name, value in row.items():
        if name.endswith("_nano"):
            found[name.removesuffix("_nano")] = exact(dollars(value))
        elif isinstance(value, Decimal):
            found[name] = exact(value)
        else:
            found[name] = value.isoformat() if hasattr(value, "isoformat") else value
    return found


def key(row: Facts, columns: Sequence[str]) -> tuple[object, ...]:
    """The values of some columns, to find a row again."""
    return tuple(row[column] for column in columns)


def head(found: Sequence[Facts], limit: int) -> list[Facts]:
    """The first rows; all of them when only one would be left out, or when `limit` is 0."""
    return list(found if not limit or len(found) <= limit + 1 else found[:limit])


def more(left_out: Sequence[Facts], *columns: str) -> Facts:
    """How many rows were left out and what they add up to."""
    return {"count": len(left_out), **{column: sum(row[column] for row in left_out) for column in columns}}
