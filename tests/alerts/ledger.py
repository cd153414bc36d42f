"""A small ledger in memory that answers like `warehouse.measures`, and snapshots of it."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from warehouse.measures import Filters, UnknownMeasure

DIMENSIONS = ("day", "hour", "team", "app", "model", "agent", "task_id", "cluster", "pool", "reason", "name")
AMOUNTS = ("cost", "estimated", "unattributed", "ownerless", "idle", "unmeasured", "restated")
TYPES = {"day": pa.date32(), "hour": pa.timestamp("us")}


@dataclass
class Snapshot:
    manifest_id: str
    as_of: datetime
    zone: str = "UTC"
    currency: str = "USD"
    held: tuple[str, ...] = ()
    rows: list[dict[str, Any]] = field(default_factory=list)


class Ledger:
    """Rows of a day. `cost` is what inference cost in all, `estimated` the part that the bill does not show yet."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.published = 0

    def book(self, day: str, cost: str | None = "0", **facts: Any) -> None:
        """One row; amounts are decimal text, None is unknown. Dimensions that are not given are null."""
        row: dict[str, Any] = dict.fromkeys(DIMENSIONS)
        at = datetime.fromisoformat(day)
        row |= {
            "day": at.date(),
            "hour": at.replace(minute=0),
            "tokens": 1000,
            "unpriced": 0,
            "controls": 0,
            "checks": 0,
        }
        row |= {name: Decimal(0) for name in AMOUNTS}
        row |= {"cost": None if cost is None else Decimal(cost)}
        row |= {name: Decimal(value) if name in AMOUNTS else value for name, value in facts.items()}
        self.rows.append(row)

    def days(self, first: str, count: int, cost: str | Sequence[str] = "100", **facts: Any) -> None:
        """`count` days from `first` on, each at `cost`, or at the costs of a list in turn."""
        for n in range(count):
            amount = cost if isinstance(cost, str) else cost[n % len(cost)]
            self.book((date.fromisoformat(first) + timedelta(days=n)).isoformat(), amount, **facts)

    def forget(self, day: str, **facts: Any) -> None:
        """Drop the rows of a day, as a restatement does before it brings others."""
        gone = {"day": date.fromisoformat(day), **facts}
        self.rows = [row for row in self.rows if any(row[name] != value for name, value in gone.items())]

    def publish(self, as_of: str, **facts: Any) -> Snapshot:
        """The ledger as it stands now, as of an instant in UTC."""
        self.published += 1
        instant = datetime.fromisoformat(as_of).replace(tzinfo=UTC)
        return Snapshot(f"manifest-{self.published:03}", instant, rows=copy.deepcopy(self.rows), **facts)


def table(
    snapshot: Snapshot,
    measures: Sequence[str],
    by: Sequence[str] = (),
    where: Filters | None = None,
    order: str | None = None,
    limit: int | None = None,
) -> pa.Table:
    """Group, sum, divide: what `warehouse.measures.table` does."""
    where = where or Filters()
    for name in by:
        if name not in DIMENSIONS:
            raise UnknownMeasure(f"the ledger does not know {name}")
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {} if by else {(): []}
    for row in snapshot.rows:
        inside = (where.first_day or row["day"]) <= row["day"] <= (where.last_day or row["day"])
        if inside and all(row[name] in values for name, values in where.chosen().items()):
            groups.setdefault(tuple(row[name] for name in by), []).append(row)
    found = [
        {**dict(zip(by, key, strict=True)), **{name: _measure(name, rows) for name in measures}}
        for key, rows in groups.items()
    ]
    if order is not None:
        found.sort(key=lambda row: -row[order.removeprefix("-")])
    columns = {name: pa.array([row[name] for row in found], TYPES.get(name)) for name in (*by, *measures)}
    return pa.table(columns).slice(0, limit)


def _measure(name: str, rows: list[dict[str, Any]]) -> Any:
    if name in ("inference_cost_usd", "usage_cost_usd", "task_cost_usd"):
        return _sum("cost", rows)
    if name == "effective_cost_usd":  # the bill: without what is only estimated
        return (_sum("cost", rows) or Decimal(0)) - (_sum("estimated", rows) or Decimal(0))
    if name in ("estimated_cost_usd", "ownerless_cost_usd", "idle_cost_usd", "unmeasured_cost_usd"):
        return _sum(name.removesuffix("_cost_usd"), rows)
    if name == "restated_usd":
        return _sum("restated", rows)
    if name == "unattributed_share":
        whole = _sum("cost", rows)
        return float(_sum("unattributed", rows) / whole) if whole else None
    columns = {
        "total_tokens": "tokens",
        "unpriced_tokens": "unpriced",
        "controls_failed": "controls",
        "bill_checks_failed": "checks",
    }
    if name not in columns:
        raise UnknownMeasure(f"There is no measure `{name}`")
    return sum(row[columns[name]] for row in rows)


def _sum(column: str, rows: list[dict[str, Any]]) -> Decimal | None:
    known = [row[column] for row in rows if row[column] is not None]
    return sum(known, Decimal(0)) if known or not rows else None
