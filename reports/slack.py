"""The report as a Slack message: a few blocks, within Slack's limits whatever people called their things."""

import html
from datetime import timedelta
from typing import Any

from reports import sentences, words
from reports.figures import Figures, Fleet, Ranking
from reports.settings import ReportSettings
from warehouse.snapshot import Snapshot

HEADER_CHARACTERS = 150
SECTION_CHARACTERS = 3_000
ELEMENT_CHARACTERS = 2_000
LINES = 3
Block = dict[str, Any]


def blocks(
    figures: Figures, snapshot: Snapshot, settings: ReportSettings, *, subject: str, restated_notice: str | None
) -> tuple[Block, ...]:
    """Headline, reasons, the three dearest of each kind, gaps, basis."""
    currency = snapshot.currency
    warnings = [*([restated_notice] if restated_notice else []), *sentences.notices(figures, snapshot, currency)]
    found: list[Block] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(subject, HEADER_CHARACTERS), "emoji": False}},
        _section(_escape(sentences.summary(figures, currency))),
        *(_section(f":warning: {_escape(text)}") for text in warnings),
        {"type": "section", "fields": [_field(title, text) for title, text in _facts(figures, currency)]},
    ]
    if figures.movers and figures.base is not None:
        found.append(
            _section("\n".join([f"*What moved since {words.day(figures.base)}*", *_movers(figures, currency)]))
        )
    dearest = [
        _text("\n".join([f"*{title}*", *_ranking(ranking, currency)]))
        for title, ranking in zip(("Teams", "Models"), figures.rankings, strict=False)
        if ranking.parts
    ]
    if dearest:
        found.append({"type": "section", "fields": dearest})
    if figures.fleet:
        found.append(_section("\n".join(["*GPU fleet*", *_fleet(figures.fleet, currency)])))
    if figures.tasks:
        found.append(_section("\n".join(["*Dearest agent tasks*", *_tasks(figures, currency)])))
    if figures.restated:
        earlier = [f"{words.day(r.day)}: {sentences.restatement(r, currency)}" for r in figures.restated[:LINES]]
        found.append(_section("\n".join(["*Restated*", *map(_escape, earlier)])))
    found.append({"type": "context", "elements": [_text("\n".join(_basis(figures, snapshot)))]})
    if settings.dashboard_url:
        found.append(_section(f"<{_escape(settings.dashboard_url)}|Open the dashboard>"))
    return tuple(found)


def _facts(figures: Figures, currency: str) -> list[tuple[str, str]]:
    day, headline = figures.period.day, figures.headline
    month, unit = figures.month, figures.units[0]
    compared = (
        (words.day(day - timedelta(days=1)), headline.day_before),
        (words.day(day - timedelta(days=7)), headline.week_before),
        ("28-day median", headline.median),
    )
    against = "\n".join(
        f"{label}: {words.money(before, currency)} ({words.change(figures.figure, before)})"
        for label, before in compared
    )
    return [
        (
            f"Cost of {words.day(day)}",
            f"{sentences.least(figures)}{words.money(figures.figure, currency)}\n"
            f"billed {words.money(figures.billed, currency)}, estimated {words.money(figures.estimated, currency)}",
        ),
        ("Against", against),
        (
            f"{month.first:%B}",
            f"{words.money(month.to_date, currency)} to date\nforecast {words.money(month.forecast, currency)}: "
            f"{sentences.forecast(month, currency)}",
        ),
        (
            "Unit cost, cache",
            f"{words.unit_cost(unit.now, currency)} per M tokens (median {words.unit_cost(unit.median, currency)})\n"
            f"hit ratio {words.percent(figures.hit_ratio.now)}, saved {words.money(figures.saving.now, currency)}",
        ),
    ]


def _movers(figures: Figures, currency: str) -> list[str]:
    assert figures.base is not None
    return [
        f"• {_escape(sentences.mover_name(m))}: *{words.signed(m.change, currency)}* to "
        f"{words.money(m.cost, currency)} ({_escape(sentences.reason(m, figures.base))})"
        for m in figures.movers[:LINES]
    ]


def _ranking(ranking: Ranking, currency: str) -> list[str]:
    lines = []
    for part in ranking.parts[:LINES]:
        named = " / ".join(words.name(value, by) for value, by in zip(part.names, ranking.by, strict=True))
        moved = "" if part.base is None else f", {words.change(part.cost, part.base)}"
        share = words.percent(part.share, 0)
        lines.append(f"• {_escape(named)}: *{words.money(part.cost, currency)}* ({share}{moved})")
    return lines


def _tasks(figures: Figures, currency: str) -> list[str]:
    return [
        f"• {_escape(words.name(task.task_id, 'task'))} ({_escape(words.name(task.team, 'team'))}): "
        f"*{words.money(task.cost, currency)}*, {words.tokens(task.tokens)} tokens"
        for task in figures.tasks[:LINES]
    ]


def _fleet(fleet: Fleet, currency: str) -> list[str]:
    idle = [
        f"• {_escape(words.pool(each.names))}: *{words.money(each.cost, currency)}* idle, {words.cause(each.cause)}"
        for each in fleet.causes[:LINES]
    ]
    return [_escape(sentences.fleet(fleet, currency)), *idle]


def _basis(figures: Figures, snapshot: Snapshot) -> list[str]:
    lines = []
    if figures.gaps.whole:
        lines.append(
            f"In no log {words.money(figures.gaps.unattributed, snapshot.currency)}, of no team "
            f"{words.money(figures.gaps.ownerless, snapshot.currency)}, tokens of unknown cost "
            f"{words.tokens(figures.gaps.unknown_tokens)}"
        )
    for row in (figures.books.balances if figures.books else ())[:1]:
        lines.append(
            f"Books {row['billing_period']}: bill {words.money(row['bill'], row['currency'])}, "
            f"ledger {words.money(row['ledger'], row['currency'])}, "
            f"difference {words.exact(row['difference'], row['currency'])}"
        )
    lines.append(
        f"{sentences.basis(figures)}; status {figures.status}; {figures.period.day.isoformat()} in {snapshot.zone}; "
        f"as of {sentences.local(snapshot.as_of, snapshot.zone)}; snapshot {snapshot.manifest_id[:12]}"
    )
    return [_escape(line) for line in lines]


def _section(text: str) -> Block:
    return {"type": "section", "text": {"type": "mrkdwn", "text": _cut(text, SECTION_CHARACTERS)}}


def _field(title: str, text: str) -> Block:
    return _text(f"*{_escape(title)}*\n{_escape(text)}")


def _text(text: str) -> Block:
    return {"type": "mrkdwn", "text": _cut(text, ELEMENT_CHARACTERS)}


def _escape(text: str) -> str:
    """Slack reads `<...>` as mentions and links; a grave accent would begin code."""
    return html.escape(text, quote=False).replace("`", "'").replace("*", "∗").replace("~", "∼")


def _cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[: characters - 1] + "…"
