"""Messages: what happened, how much against what was expected, since when, made of what, and what to do."""

import html
import json
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined

from alerts import words
from alerts.contributors import TASK, Contributor
from alerts.data import HELD, TOTAL, WHOLE, Snapshot
from alerts.detect import Judgement
from alerts.machine import Transition
from alerts.settings import AlertSettings, AnomalyRule, ThresholdRule
from delivery.message import Message
from warehouse.measures import MEASURES

DIGEST_LINES = 20
HELD_LINES = 5
SEVERITIES = ("critical", "warning", "info")
ICONS = {"critical": "🔴", "warning": "🟠", "info": "🔵"}

# Autoescape is for HTML; these are text and JSON, and `tojson` and `mrkdwn` escape what needs it.
_templates = Environment(
    loader=PackageLoader("alerts"),
    undefined=StrictUndefined,
    trim_blocks=False,
    autoescape=False,  # noqa: S701
)
_templates.filters["mrkdwn"] = lambda text: html.escape(str(text), quote=False)


def message(
    transition: Transition, contributors: Sequence[Contributor], snapshot: Snapshot, settings: AlertSettings
) -> Message:
    """One transition as plain text, Slack blocks and machine-readable data."""
    judgement = transition.judgement
    subject, link = title(transition), _link(transition, settings)
    context = {
        "title": subject,
        "what": _what(transition, snapshot),
        "reason": transition.reason.rstrip("."),
        "facts": _facts(transition, snapshot),
        "contributors": _splits(transition, contributors, snapshot),
        "remedy": words.remedy(transition.rule, transition.to_state).rstrip("."),
        "link": link,
    }
    return Message(
        subject=subject,
        text=_text("alert.txt.j2", context),
        blocks=tuple(_blocks("alert.slack.j2", context)),
        data={
            "event": transition.kind,
            "key": transition.key,
            "rule": transition.rule.name,
            "severity": transition.rule.severity,
            "series": json.loads(transition.series),
            "state": transition.to_state,
            "measure": transition.rule.measure,
            "period": judgement.period,
            "value": _number(judgement.value),
            "expected": _number(judgement.expected),
            "so_far": judgement.so_far,
            "since": transition.since.isoformat(),
            "reason": transition.reason,
            "manifest": snapshot.manifest_id,
            "as_of": snapshot.as_of.isoformat(),
            "zone": snapshot.zone,
            "currency": snapshot.currency,
            "contributors": [
                {"dimension": c.dimension, "name": c.name, "value": _number(c.value), "usual": _number(c.usual)}
                for c in contributors
            ],
            "link": link,
        },
    )


def digest(transitions: Sequence[Transition], snapshot: Snapshot, settings: AlertSettings) -> Message:
    """Many transitions as one message: the gravest first, twenty lines, and how many more there are."""
    ordered = sorted(
        transitions,
        key=lambda t: (SEVERITIES.index(t.rule.severity), -abs(t.judgement.value or Decimal(0)), t.key),
    )
    lines = [f"{title(t)}: {_what(t, snapshot)}" for t in ordered[:DIGEST_LINES]]
    context = {
        "title": f"{ICONS[ordered[0].rule.severity]} {len(ordered)} alerts changed at once",
        "lines": lines,
        "more": len(ordered) - len(lines),
        "basis": _basis_of(snapshot),
        "link": settings.dashboard_url or "",
    }
    return Message(
        subject=str(context["title"]),
        text=_text("digest.txt.j2", context),
        blocks=tuple(_blocks("digest.slack.j2", context)),
        data={"event": "digest", "manifest": snapshot.manifest_id, "keys": [t.key for t in ordered]},
    )


def title(transition: Transition) -> str:
    """One line: the icon, what became of it, whose figure it is."""
    rule = transition.rule
    what = words.of_series(rule.measure, transition.series)
    if transition.kind == "resolved":
        return f"✅ Resolved: {what}"
    if transition.to_state != "firing":
        return f"⚪ No figure: {what}"
    again = "Still firing: " if transition.kind in ("reminder", "unsilenced") else ""
    so_far = " so far" if transition.judgement.so_far else ""
    return f"{ICONS[rule.severity]} {again}{what} is {'high' if transition.judgement.up else 'low'}{so_far}"


def _what(transition: Transition, snapshot: Snapshot) -> str:
    rule, judgement = transition.rule, transition.judgement
    if transition.to_state in ("no_data", "unknown", "no_judgement"):
        return f"{judgement.period}: {judgement.note or 'no figure'}"
    value = words.figure(rule.measure, judgement.value, snapshot.currency)
    when = "now" if judgement.period == TOTAL else f"on {judgement.period}"
    parts = [f"{value} {when}" + (" so far" if judgement.so_far else "")]
    if judgement.expected is not None:
        expected = words.figure(rule.measure, judgement.expected, snapshot.currency)
        parts.append(f"{_against(rule)} {expected}")
    return ", ".join(parts) + _times(judgement)


def _against(rule: AnomalyRule | ThresholdRule) -> str:
    if isinstance(rule, AnomalyRule):
        return "usually"
    return "the limit is at most" if rule.above is not None else "the limit is at least"


def _times(judgement: Judgement) -> str:
    if judgement.score is None or judgement.value is None or not judgement.expected:
        return ""
    return f" ({judgement.value / judgement.expected:.1f} times)"


def _facts(transition: Transition, snapshot: Snapshot) -> list[tuple[str, str]]:
    rule, judgement = transition.rule, transition.judgement
    facts = [("Rule", f"{rule.name} ({rule.severity})")]
    if transition.kind in ("fired", "reminder", "unsilenced", "resolved"):
        facts.append(("Since" if transition.kind != "resolved" else "Fired", _instant(transition.since, snapshot.zone)))
    facts.append(("Period", f"{'whole snapshot' if judgement.period == TOTAL else judgement.period}, {snapshot.zone}"))
    if judgement.score is not None and isinstance(rule, AnomalyRule):
        alike = "like days" if rule.seasonality == "weekday" else "days"
        facts.append(("Usually", f"median of the {alike} in {rule.history_days} days; robust z {judgement.score:.1f}"))
    known = MEASURES.get(rule.measure)
    if known is not None and known.about:
        facts.append(("Measure", f"{known.title}: {known.about}"))
    facts.append(("Basis", _basis(rule.measure, judgement, snapshot.currency)))
    facts.append(("Status", _status(judgement)))
    if rule.measure == HELD and snapshot.held:
        facts.append(("Controls", "; ".join(snapshot.held[:HELD_LINES])))
    facts.append(("Snapshot", _basis_of(snapshot)))
    return facts


def _basis(measure: str, judgement: Judgement, currency: str) -> str:
    if not measure.endswith("_usd"):
        return "counted"
    if not judgement.estimated:
        return "billed"
    if measure not in WHOLE:
        return "billed and estimated"
    if judgement.estimated == judgement.value:
        return "estimated: price book x usage, not billed yet"
    return f"billed, and {words.figure(measure, judgement.estimated, currency)} estimated"


def _status(judgement: Judgement) -> str:
    if judgement.so_far:
        return "open: so far" + (", partly estimated" if judgement.estimated else "")
    return "complete; a later bill may restate it"


def _basis_of(snapshot: Snapshot) -> str:
    return f"{snapshot.manifest_id[:12]}, evidence to {_instant(snapshot.as_of, snapshot.zone)}"


def _instant(instant: datetime, zone: str) -> str:
    return f"{instant.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M} {zone}"


def _splits(transition: Transition, contributors: Sequence[Contributor], snapshot: Snapshot) -> list[dict[str, Any]]:
    splits: dict[str, list[str]] = {}
    for part in contributors:
        value = words.figure(transition.rule.measure, part.value, snapshot.currency)
        usual = f" (usually {words.figure(transition.rule.measure, part.usual, snapshot.currency)})"
        new = " (new)" if isinstance(transition.rule, AnomalyRule) and part.dimension != TASK else ""
        line = f"{words.part_name(part.dimension, part.name)}: {value}" + (usual if part.usual is not None else new)
        splits.setdefault(part.dimension, []).append(line)
    return [{"dimension": dimension, "parts": parts} for dimension, parts in splits.items()]


def _link(transition: Transition, settings: AlertSettings) -> str:
    if settings.dashboard_url is None:
        return ""
    query = {name: value for name, value in json.loads(transition.series).items() if value is not None}
    if transition.judgement.period != TOTAL:
        query |= {"from": transition.judgement.period[:10], "to": transition.judgement.period[:10]}
    address = f"{settings.dashboard_url.rstrip('/')}/{words.page(transition.rule)}"
    return f"{address}?{urlencode(query)}" if query else address


def _number(value: Decimal | None) -> str | None:
    return None if value is None else str(value)


def _text(template: str, context: dict[str, Any]) -> str:
    return _templates.get_template(template).render(context).strip() + "\n"


def _blocks(template: str, context: dict[str, Any]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = json.loads(_templates.get_template(template).render(context))
    return blocks
