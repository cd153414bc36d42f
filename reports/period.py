"""Local days: which one a report is about, when it begins and ends, and which days a snapshot knows."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from apscheduler.triggers.cron import CronTrigger

from reports.settings import ReportSettings
from warehouse.snapshot import Snapshot


@dataclass(frozen=True)
class Period:
    """One local day as UTC instants; `end` is exclusive. It may have 23 or 25 hours."""

    day: date
    start: datetime
    end: datetime
    zone: str

    @classmethod
    def of(cls, day: date, zone: str) -> "Period":
        """The day in that zone."""
        return cls(day, _midnight(day, zone), _midnight(day + timedelta(days=1), zone), zone)


@dataclass(frozen=True)
class Coverage:
    """The local days of which a snapshot has evidence, first and last. Whatever lies outside is unknown, not zero."""

    first: date | None
    last: date | None

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Coverage":
        """What the snapshot covers; nothing, when nothing was loaded."""
        row = snapshot.sql(
            "SELECT min(day) AS first, max(day) AS last FROM (SELECT day FROM cost_day WHERE kind <> 'future' "
            "UNION ALL SELECT day FROM usage_day)"
        ).to_pylist()[0]
        return cls(row["first"], row["last"])

    def has(self, day: date) -> bool:
        """Whether that day is known."""
        return self.first is not None and self.last is not None and self.first <= day <= self.last


def last_covered_day(snapshot: Snapshot) -> date | None:
    """The last local day that had ended at the snapshot's as_of and of which it has evidence; None: there is none."""
    coverage = Coverage.of(snapshot)
    if coverage.first is None or coverage.last is None:
        return None
    ended = snapshot.as_of.astimezone(ZoneInfo(snapshot.zone)).date() - timedelta(days=1)
    day = min(ended, coverage.last)
    return day if day >= coverage.first else None


def due_at(settings: ReportSettings, period: Period) -> datetime | None:
    """When the report of that day is due: the first time of its schedule from the day's end on. None: by hand only."""
    if settings.schedule is None:
        return None
    trigger = CronTrigger.from_crontab(settings.schedule, timezone=ZoneInfo(period.zone))
    found: datetime | None = trigger.get_next_fire_time(None, period.end.astimezone(ZoneInfo(period.zone)))
    return None if found is None else found.astimezone(UTC)


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), ZoneInfo(zone)).astimezone(UTC)
