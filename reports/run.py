"""Makes a report when it is due: the page on disk, the message in the outbox, once per period."""

import hashlib
import os
import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine

from delivery import outbox
from reports import history
from reports.build import Report, build, check_scope
from reports.daily import HEADLINE
from reports.figures import Told
from reports.history import Run
from reports.operations import report_run
from reports.period import Period, due_at, last_covered_day
from reports.series import Series
from reports.settings import ReportSettings
from warehouse.operations import begin_write
from warehouse.snapshot import Snapshot

MEMORY_DAYS = 35

# told      the first message about the period is in the outbox
# restated  it moved by more than the configured share and is told again
# known     it was told before and has not moved enough
# waiting   its time has not come yet
# no_data   the snapshot covers no whole day
Outcome = Literal["told", "restated", "known", "waiting", "no_data"]


@dataclass(frozen=True)
class Page:
    """One period of a run: what became of it, and where its page is."""

    day: date
    outcome: Outcome
    figure: Decimal | None
    path: Path
    message_key: str
    messages: int


@dataclass(frozen=True)
class ReportRun:
    """What one run did. `messages` counts those put into the outbox; `problems` are lines for a person."""

    report: str
    manifest: str
    outcome: Outcome
    pages: tuple[Page, ...]
    messages: int
    due_at: datetime | None
    problems: tuple[str, ...]


def run(
    snapshot: Snapshot,
    settings: ReportSettings,
    engine: Engine,
    channels: Collection[str],
    now: datetime,
    *,
    folder: Path,
    by_hand: bool = False,
) -> ReportRun:
    """Tell the last whole day that the snapshot covers, and again those earlier ones that moved too much.

    `snapshot` is opened with `settings.scope()`; `channels` are the names of the configured ones; pages are written
    under `folder` (data/reports). `by_hand` does not wait for the schedule. Run twice, or killed anywhere and run
    again, a period is told once: its row in `report_run` and its messages are written in one transaction.
    """
    check_scope(snapshot, settings)
    wanted, problems = _channels(settings, channels)
    day = last_covered_day(snapshot)
    if day is None:
        problems.append(f"report `{settings.name}`: the snapshot covers no whole day yet; nothing to tell")
        return ReportRun(settings.name, snapshot.manifest_id, "no_data", (), 0, None, tuple(problems))
    due = due_at(settings, Period.of(day, snapshot.zone))
    waits = not by_hand and (due is None or now < due)
    with engine.connect() as connection:
        since = Period.of(day - timedelta(days=MEMORY_DAYS), snapshot.zone).start
        before = history.runs(connection, settings.name, snapshot.zone, since)
    desk = _Desk(snapshot, settings, engine, wanted, now, folder, before)
    pages = [
        desk.tell(each) for each in sorted({*_moved_days(snapshot, settings, before, day), *(() if waits else (day,))})
    ]
    outcome: Outcome = "waiting" if waits else next(page.outcome for page in pages if page.day == day)
    return ReportRun(
        settings.name, snapshot.manifest_id, outcome, tuple(pages), sum(p.messages for p in pages), due, tuple(problems)
    )


def message_key(report: str, day: date, times: int = 0) -> str:
    """The outbox key of a period's message: the first one, or that of its n-th restatement."""
    return f"report/{report}/{day.isoformat()}" + (f"/restated-{times}" if times else "")


def _channels(settings: ReportSettings, channels: Collection[str]) -> tuple[tuple[str, ...], list[str]]:
    named = settings.channels or tuple(sorted(channels))
    missing = [name for name in named if name not in channels]
    problems = [
        f"report `{settings.name}`: channel `{name}` is not configured; add it under delivery.channels"
        for name in missing
    ]
    return tuple(name for name in named if name in channels), problems


def _moved_days(snapshot: Snapshot, settings: ReportSettings, before: Mapping[date, Run], day: date) -> list[date]:
    """The last days that were told and have moved too much since."""
    first = day - timedelta(days=settings.restated_days)
    series = Series.read(snapshot, (HEADLINE,), first, day)
    return [
        each
        for each, run in before.items()
        if first <= each <= day and run.told is not None and _moved(series.money(each, HEADLINE), run.told, settings)
    ]


@dataclass(frozen=True)
class _Desk:
    """Tells one period after the other of one report."""

    snapshot: Snapshot
    settings: ReportSettings
    engine: Engine
    channels: tuple[str, ...]
    now: datetime
    folder: Path
    before: Mapping[date, Run]

    def tell(self, day: date) -> Page:
        """Draw the report, put its page on disk, and then its row and its messages into the database at once."""
        earlier = self.before.get(day)
        path = self.folder / self.settings.name / f"{day.isoformat()}.html"
        report = self._draw(day)
        moved = earlier is not None and earlier.told is not None and _moved(report.figure, earlier.told, self.settings)
        if earlier is not None and not moved:
            if not path.exists():
                write_page(path, report.html)
            return Page(day, "known", report.figure, path, earlier.message_key, 0)
        if earlier is not None:
            report = self._draw(day, restated_from=earlier.told)
        write_page(path, report.html)
        with begin_write(self.engine) as connection:
            key = _record(connection, self.settings, report, earlier, self.now)
            if key is None:
                # Another process told this period while this one drew it; nothing is told twice.
                return Page(day, "known", report.figure, path, "", 0)
            added = [
                outbox.enqueue(connection, key=key, channel=name, message=report.message, now=self.now)
                for name in self.channels
            ]
        return Page(day, "told" if earlier is None else "restated", report.figure, path, key, sum(added))

    def _draw(self, day: date, restated_from: Told | None = None) -> Report:
        told = {each: run.told for each, run in self.before.items() if each < day and run.told is not None}
        return build(self.snapshot, self.settings, day, told=told, restated_from=restated_from)


def _moved(figure: Decimal | None, told: Told, settings: ReportSettings) -> bool:
    """Whether a figure is far enough from what was told; one that became known, or unknown, always is."""
    if figure is None or told.figure is None:
        return figure is not told.figure
    change = abs(figure - told.figure)
    return change > settings.restated_usd and change > abs(told.figure) * settings.restated_share


def _record(
    connection: Connection, settings: ReportSettings, report: Report, earlier: Run | None, now: datetime
) -> str | None:
    """Note that a period is told, for the first time or again. Its message key; None: somebody else was faster."""
    period = report.period
    if history.find(connection, settings.name, period) != earlier:
        return None
    if earlier is not None:
        key = message_key(settings.name, period.day, _times(earlier.message_key) + 1)
        connection.execute(
            report_run.update()
            .where(report_run.c.id == earlier.id)
            .values(manifest=report.manifest_id, message_key=key, created_at=now)
        )
        return key
    key = message_key(settings.name, period.day)
    connection.execute(
        report_run.insert().values(
            id=hashlib.sha256(f"{settings.name}\n{period.start}\n{period.end}".encode()).hexdigest()[:32],
            report=settings.name,
            period_start=period.start,
            period_end=period.end,
            manifest=report.manifest_id,
            message_key=key,
            created_at=now,
        )
    )
    return key


def _times(key: str) -> int:
    """How often a period was restated so far."""
    _, _, times = key.rpartition("/restated-")
    return int(times) if times.isdigit() and "/restated-" in key else 0


def write_page(path: Path, html: str) -> None:
    """Replace a page as a whole: readers see the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}-{uuid.uuid4().hex}")
    with temporary.open("w", encoding="utf-8") as file:
        file.write(html)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
