"""One report, in every form: a page, plain text, a message. A function of the snapshot, the settings and the day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from delivery.message import Message
from reports import render, sentences, slack, words
from reports.daily import gather
from reports.figures import Figures, Told
from reports.period import Period
from reports.settings import ReportSettings
from warehouse.snapshot import Forbidden, Snapshot

NANO = Decimal("1e-9")


@dataclass(frozen=True)
class Report:
    """One report. `figure` is the cost it is about, None when unknown; `message` is what channels send."""

    subject: str
    html: str
    text: str
    message: Message
    period: Period
    manifest_id: str
    figure: Decimal | None
    figures: Figures


def build(
    snapshot: Snapshot,
    settings: ReportSettings,
    day: date,
    *,
    told: Mapping[date, Told] | None = None,
    restated_from: Told | None = None,
) -> Report:
    """Make the report of `day`, a local day of the snapshot's zone.

    `told` is what earlier messages said about earlier days; without it, restatements are those of this publication.
    `restated_from` is what was said about `day` itself, when it is told again because it moved.
    Raises `Forbidden` when the snapshot was not opened with the report's own scope.
    """
    check_scope(snapshot, settings)
    figures = gather(snapshot, settings, day, told)
    notice = _notice(figures, restated_from, snapshot.currency)
    said = render.context(figures, snapshot, settings, restated_notice=notice, remembers=told is not None)
    html, text = render.page(said), render.text(said)
    message = Message(
        subject=said["subject"],
        text=text,
        html=html,
        blocks=slack.blocks(figures, snapshot, settings, subject=said["subject"], restated_notice=notice),
        data=_data(figures, snapshot, settings, restated_from),
    )
    return Report(said["subject"], html, text, message, figures.period, snapshot.manifest_id, figures.figure, figures)


def check_scope(snapshot: Snapshot, settings: ReportSettings) -> None:
    """A report of some teams reads a snapshot that holds nothing else, so that nothing else can get into it."""
    wanted, given = settings.scope().teams, snapshot.scope.teams
    if wanted != given:
        raise Forbidden(
            f"Report `{settings.name}` shows {sentences.audience(wanted)}, but the snapshot was opened for "
            f"{sentences.audience(given)}. Open it with the report's own `scope()`."
        )


def _notice(figures: Figures, before: Told | None, currency: str) -> str | None:
    if before is None:
        return None
    moved = words.change(figures.figure, before.figure)
    why = " That figure was partly an estimate." if before.estimated != 0 else ""
    return (
        f"Restated: this day was told as {words.money(before.figure, currency)} and is now "
        f"{words.money(figures.figure, currency)} ({moved}).{why}"
    )


def _data(figures: Figures, snapshot: Snapshot, settings: ReportSettings, restated_from: Told | None) -> dict[str, Any]:
    return {
        "event": "report",
        "report": settings.name,
        "kind": settings.kind,
        "teams": sorted(settings.teams) or None,
        "day": figures.period.day.isoformat(),
        "period_start": figures.period.start.isoformat(),
        "period_end": figures.period.end.isoformat(),
        "zone": snapshot.zone,
        "currency": snapshot.currency,
        "measure": figures.headline.measure,
        "figure": _number(figures.figure),
        "billed": _number(figures.billed),
        "estimated": _number(figures.estimated),
        "restated_from": _number(restated_from.figure) if restated_from else None,
        "month_to_date": _number(figures.month.to_date),
        "forecast": _number(figures.month.forecast),
        "fleet": None
        if figures.fleet is None
        else {
            "cost": _number(figures.fleet.cost),
            "idle": _number(figures.fleet.idle.now if isinstance(figures.fleet.idle.now, Decimal) else None),
            "under_used": _number(figures.fleet.under_used),
            "unmeasured": _number(figures.fleet.unmeasured),
        },
        "basis": sentences.basis(figures),
        "status": figures.status,
        "manifest": snapshot.manifest_id,
        "as_of": snapshot.as_of.isoformat(),
    }


def _number(value: Decimal | None) -> str | None:
    return None if value is None else format(value.quantize(NANO), "f")
