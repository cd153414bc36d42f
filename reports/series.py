"""Daily figures of a snapshot, and a figure beside what it is compared with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from statistics import median
from typing import Any

from reports.period import Coverage
from reports.words import there
from warehouse.measures import MEASURES, Filters, table
from warehouse.snapshot import Snapshot

HISTORY_DAYS = 28
# Nothing to divide by is neither zero nor unknown: no task ran, so there is no cost per task.
ABSENT = float("nan")
COUNTED = {
    "cost_per_mtok_usd": "total_tokens",
    "cost_per_request_usd": "requests",
    "cost_per_task_usd": "tasks",
    "cache_hit_ratio": "input_tokens",
    "unattributed_share": "inference_cost_usd",
}
ENOUGH_DAYS = 7
Value = Decimal | float | int | None


@dataclass(frozen=True)
class Compared:
    """One figure of the day beside what it is compared with. None: unknown; ABSENT: nothing to divide by."""

    measure: str
    now: Value
    day_before: Value
    week_before: Value
    median: Value


@dataclass(frozen=True)
class Series:
    """One row per local day. A covered day without rows was zero; a day that is not covered is unknown."""

    rows: Mapping[date, Mapping[str, Any]]
    coverage: Coverage

    @classmethod
    def read(cls, snapshot: Snapshot, measures: Sequence[str], first: date, last: date) -> "Series":
        """The measures of a range of days."""
        rows = table(snapshot, measures, ["day"], Filters(first_day=first, last_day=last)).to_pylist()
        return cls({row["day"]: row for row in rows}, Coverage.of(snapshot))

    def at(self, day: date, measure: str) -> Value:
        """The figure of one day."""
        if not self.coverage.has(day):
            return None
        if MEASURES[measure].denominator is not None and not self.at(day, COUNTED[measure]):
            return ABSENT
        if day in self.rows:
            value: Value = self.rows[day][measure]
            return value
        return Decimal(0) if MEASURES[measure].unit == "usd" else 0

    def money(self, day: date, measure: str) -> Decimal | None:
        """The amount of one day."""
        value = self.at(day, measure)
        return value if isinstance(value, Decimal) else None

    def count(self, day: date, measure: str) -> int | None:
        """The count of one day."""
        value = self.at(day, measure)
        return value if isinstance(value, int) else None

    def known(self, first: date, last: date, measure: str) -> list[Any]:
        """The figures of a range of days, as far as there are any."""
        days = [first + timedelta(days=n) for n in range((last - first).days + 1)]
        values = [self.at(day, measure) for day in days]
        return [value for value in values if there(value)]

    def compare(self, day: date, measure: str) -> Compared:
        """A figure beside the day before, the same weekday of last week, and the median of the 28 days before."""
        history = self.known(day - timedelta(days=HISTORY_DAYS), day - timedelta(days=1), measure)
        return Compared(
            measure,
            self.at(day, measure),
            self.at(day - timedelta(days=1), measure),
            self.at(day - timedelta(days=7), measure),
            median(history) if len(history) >= ENOUGH_DAYS else None,
        )
