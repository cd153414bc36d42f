"""What reports told before: the rows of `report_run`, and the figures in the messages they name."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from sqlalchemy import Connection, select

from delivery.outbox import outbox_message
from reports.figures import Told
from reports.operations import report_run
from reports.period import Period


@dataclass(frozen=True)
class Run:
    """One period that was told: by which message, from which snapshot. `told`: None when no message of it is left."""

    id: str
    message_key: str
    manifest: str
    told: Told | None


def runs(connection: Connection, report: str, zone: str, since: datetime) -> dict[date, Run]:
    """The periods of a report that begin at `since` or later, by local day."""
    t = report_run.c
    rows = connection.execute(
        select(t.id, t.period_start, t.period_end, t.manifest, t.message_key)
        .where(t.report == report, t.period_start >= since)
        .order_by(t.period_start)
    ).all()
    said = _said(connection, [row.message_key for row in rows])
    found = {}
    for row in rows:
        day = row.period_start.astimezone(ZoneInfo(zone)).date()
        if Period.of(day, zone).start == row.period_start:  # else its days were cut in another zone
            found[day] = Run(row.id, row.message_key, row.manifest, said.get(row.message_key))
    return found


def find(connection: Connection, report: str, period: Period) -> Run | None:
    """The run of one period."""
    return runs(connection, report, period.zone, period.start).get(period.day)


def _said(connection: Connection, keys: Sequence[str]) -> dict[str, Told]:
    rows = connection.execute(
        select(outbox_message.c.key, outbox_message.c.message).where(outbox_message.c.key.in_(keys))
    )
    return {row.key: _told(row.message["data"]) for row in rows}


def _told(data: dict[str, Any]) -> Told:
    figure, estimated = data.get("figure"), data.get("estimated")
    return Told(
        None if figure is None else Decimal(figure),
        None if estimated is None else Decimal(estimated),
    )
