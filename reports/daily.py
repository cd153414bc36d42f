"""Gathers the figures of the daily cost report, once; every form of the report is drawn from them."""

import calendar
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from reports import fleet, queries
from reports.figures import Bar, Books, Figures, Gaps, Month, Part, Ranking, Restated, Task, Told, Waste
from reports.period import Coverage, Period
from reports.queries import Effects, Split
from reports.series import HISTORY_DAYS, Series
from reports.settings import ReportSettings
from warehouse.measures import Filters, table
from warehouse.snapshot import Snapshot

HEADLINE = "inference_cost_usd"
UNITS = ("cost_per_mtok_usd", "cost_per_request_usd", "cost_per_task_usd")
COUNTS = ("requests", "failed_requests", "timeout_requests", "retried_requests")
DAILY = (
    HEADLINE, *UNITS, *COUNTS, "fully_loaded_cost_usd", "cache_hit_ratio", "cache_saving_usd", "total_tokens",
    "input_tokens", "tasks",
    "unattributed_cost_usd", "unattributed_share", "unknown_cost_tokens", fleet.IDLE,
)  # fmt: skip
RANKINGS: tuple[tuple[Split, ...], ...] = (("team",), ("model",), ("team", "app"))
RATE_DAYS = 7
UNKNOWN_LISTED = 2
NOTICEABLE = Decimal("0.005")


def gather(snapshot: Snapshot, settings: ReportSettings, day: date, told: Mapping[date, Told] | None = None) -> Figures:
    """Ask the measures for everything that the report of `day` says."""
    month = day.replace(day=1)
    start = min(day - timedelta(days=HISTORY_DAYS), _month_before(month), *(told or ()))
    series = Series.read(snapshot, DAILY, start, day)
    base = next((b for b in (day - timedelta(days=7), day - timedelta(days=1)) if series.coverage.has(b)), None)
    history = _history(snapshot, series.coverage, day)
    explained = base if series.money(day, HEADLINE) is not None else None
    movers = queries.effects(snapshot, day, explained, ("team", "app")) if explained else []
    listed = min(settings.top, _material(movers))
    reach = queries.reach(snapshot)
    return Figures(
        period=Period.of(day, snapshot.zone),
        coverage=series.coverage,
        base=base,
        headline=series.compare(day, HEADLINE),
        billed=history[-1].billed,
        estimated=history[-1].estimated,
        status=_status(snapshot, series.coverage, day),
        loaded=series.money(day, "fully_loaded_cost_usd"),
        history=history,
        units=tuple(series.compare(day, name) for name in UNITS),
        tokens=series.compare(day, "total_tokens"),
        requests=series.compare(day, "requests"),
        hit_ratio=series.compare(day, "cache_hit_ratio"),
        saving=series.compare(day, "cache_saving_usd"),
        saving_month=_total(series.known(month, day, "cache_saving_usd")),
        month=_month(series, day),
        total=queries.together(movers) if explained else None,
        movers=tuple(movers[:listed]),
        other_movers=tuple(movers[listed:]),
        rankings=tuple(_ranking(snapshot, settings.top, day, base, by) for by in RANKINGS),
        waste=_waste(snapshot, series, day),
        tasks=_tasks(snapshot, settings.top, day),
        fleet=fleet.gather(snapshot, series, settings.top, day),
        gaps=_gaps(snapshot, series, day),
        restated=_restated(snapshot, series, day, told),
        books=_books(snapshot) if snapshot.scope.teams is None else None,
        logged_to=_end_of(reach["logged"]),
        billed_to=_end_of(reach["billed"]),
    )


def _material(movers: Sequence[Effects]) -> int:
    """How many of them, from the largest change on, moved the whole by a hundredth or more."""
    whole = sum((max(mover.cost, mover.base) for mover in movers), Decimal(0))
    return sum(1 for mover in movers if abs(mover.change) >= max(whole / 100, NOTICEABLE))


def _history(snapshot: Snapshot, coverage: Coverage, day: date) -> tuple[Bar, ...]:
    """Billed and estimated inference cost of the last four weeks and of the day itself."""
    first = day - timedelta(days=HISTORY_DAYS)
    rows = table(snapshot, [HEADLINE], ["day", "basis"], Filters(first_day=first, last_day=day)).to_pylist()
    found = {(row["day"], row["basis"]): row[HEADLINE] for row in rows}
    days = [first + timedelta(days=n) for n in range(HISTORY_DAYS + 1)]
    return tuple(
        Bar(d, *(found.get((d, basis), Decimal(0)) if coverage.has(d) else None for basis in ("billed", "estimated")))
        for d in days
    )


def _status(snapshot: Snapshot, coverage: Coverage, day: date) -> str:
    if not coverage.has(day):
        return "unknown"
    where = Filters(first_day=day, last_day=day, kind=("usage", "unattributed"))
    found = set(table(snapshot, [HEADLINE], ["status"], where)["status"].to_pylist())
    return "final" if found == {"final"} else "open"


def _month(series: Series, day: date) -> Month:
    first, last = day.replace(day=1), day.replace(day=calendar.monthrange(day.year, day.month)[1])
    start = series.coverage.first
    to_date = _total(series.known(first, day, HEADLINE))
    recent = series.known(day - timedelta(days=RATE_DAYS - 1), day, HEADLINE)
    rate = sum(recent, Decimal(0)) / len(recent) if recent else None
    remaining = (last - day).days
    before = _month_before(first)
    return Month(
        first=first,
        last=last,
        known_from=None if start is None else max(first, start),
        to_date=to_date,
        rate=rate,
        rate_days=len(recent),
        remaining=remaining,
        forecast=None if to_date is None or rate is None else to_date + remaining * rate,
        month_before=_total(series.known(before, first - timedelta(days=1), HEADLINE))
        if series.coverage.has(before)
        else None,
    )


def _ranking(snapshot: Snapshot, top: int, day: date, base: date | None, by: tuple[Split, ...]) -> Ranking:
    wanted = [HEADLINE, "cost_per_mtok_usd"]
    rows = table(snapshot, wanted, by, Filters(first_day=day, last_day=day), order=f"-{HEADLINE}").to_pylist()
    rows = [row for row in rows if row[HEADLINE] != 0]
    past: dict[tuple[str | None, ...], Decimal | None] = {}
    if base is not None:
        old = table(snapshot, [HEADLINE], by, Filters(first_day=base, last_day=base)).to_pylist()
        past = {tuple(row[name] for name in by): row[HEADLINE] for row in old}
    total = _known_total(rows)
    known = [row for row in rows if row[HEADLINE] is not None]
    unknown = [row for row in rows if row[HEADLINE] is None]
    parts = []
    for row in known[:top] + unknown[:UNKNOWN_LISTED]:
        names = tuple(row[name] for name in by)
        share = float(row[HEADLINE] / total) if total and row[HEADLINE] is not None else None
        before = None if base is None else past.get(names, Decimal(0))
        parts.append(Part(names, row[HEADLINE], before, share, row["cost_per_mtok_usd"]))
    return Ranking(by, tuple(parts), len(rows) - len(parts), _known_total(known[top:]))


def _waste(snapshot: Snapshot, series: Series, day: date) -> Waste:
    if not series.coverage.has(day):
        return Waste(None, None, None, None, None)
    wanted = ["requests", "retried_requests", "usage_cost_usd"]
    rows = table(snapshot, wanted, ["model"], Filters(first_day=day, last_day=day)).to_pylist()
    repeated = [row for row in rows if row["retried_requests"]]
    costs = [
        row["usage_cost_usd"] * row["retried_requests"] / row["requests"]
        for row in repeated
        if row["usage_cost_usd"] is not None
    ]
    requests, failed, timeouts, retries = (series.count(day, name) for name in COUNTS)
    return Waste(requests, failed, timeouts, retries, _total(costs) if repeated else Decimal(0))


def _tasks(snapshot: Snapshot, top: int, day: date) -> tuple[Task, ...]:
    wanted, by = ["task_cost_usd", "task_tokens"], ["task_id", "team", "agent"]
    rows = table(snapshot, wanted, by, Filters(first_day=day, last_day=day), order="-task_cost_usd").to_pylist()
    rows = [row for row in rows if row["task_id"] is not None][:top]
    facts = queries.task_facts(snapshot, [row["task_id"] for row in rows])
    return tuple(
        Task(
            row["task_id"],
            row["team"],
            row["agent"],
            row["task_cost_usd"],
            row["task_tokens"],
            facts.get(row["task_id"]),
        )
        for row in rows
    )


def _gaps(snapshot: Snapshot, series: Series, day: date) -> Gaps:
    on, logged = Filters(first_day=day, last_day=day), Filters(first_day=day, last_day=day, kind=("usage",))
    unpriced = table(snapshot, ["unknown_cost_tokens"], ["model"], on, "-unknown_cost_tokens").to_pylist()
    currencies = table(snapshot, [HEADLINE], ["currency"], on).to_pylist()
    whole, known = snapshot.scope.teams is None, series.coverage.has(day)
    share = series.at(day, "unattributed_share")
    ownerless = table(snapshot, ["ownerless_cost_usd"], where=logged)["ownerless_cost_usd"][0].as_py()
    return Gaps(
        whole=whole,
        unattributed=series.money(day, "unattributed_cost_usd") if whole else None,
        unattributed_share=float(share) if whole and share is not None else None,
        ownerless=ownerless if whole and known else None,
        unknown_tokens=series.count(day, "unknown_cost_tokens"),
        unpriced=tuple((row["model"], row["unknown_cost_tokens"]) for row in unpriced if row["unknown_cost_tokens"]),
        other_currencies=tuple(
            (row["currency"], row[HEADLINE])
            for row in currencies
            if row["currency"] not in (None, snapshot.currency) and row[HEADLINE] != 0
        ),
    )


def _restated(snapshot: Snapshot, series: Series, day: date, told: Mapping[date, Told] | None) -> tuple[Restated, ...]:
    """Earlier days that are not what they were told to be; without a memory, those that this publication changed."""
    if told is None:
        return tuple(
            Restated(row["day"], None, series.money(row["day"], HEADLINE), row["change"], False)
            for row in queries.revised_days(snapshot, day)
            if abs(row["change"]) >= NOTICEABLE
        )
    found = []
    for earlier, said in sorted(told.items(), reverse=True):
        now = series.money(earlier, HEADLINE)
        change = None if now is None or said.figure is None else now - said.figure
        same = (now is None) == (said.figure is None) and abs(change or Decimal(0)) < NOTICEABLE
        if earlier < day and not same:
            found.append(Restated(earlier, said.figure, now, change, said.estimated != 0))
    return tuple(found)


def _books(snapshot: Snapshot) -> Books:
    rows = queries.balances(snapshot)
    newest = rows[0]["billing_period"] if rows else None
    kinds: list[dict[str, Any]] = []
    if newest is not None:
        where = Filters(billing_period=(newest,))
        kinds = table(snapshot, ["effective_cost_usd"], ["kind"], where, "-effective_cost_usd").to_pylist()
    return Books(
        balances=tuple(rows),
        kinds=tuple((row["kind"], row["effective_cost_usd"]) for row in kinds if row["effective_cost_usd"] != 0),
        kinds_period=newest,
        controls=queries.controls(snapshot),
        failed=table(snapshot, ["controls_failed"])["controls_failed"][0].as_py(),
    )


def _month_before(first: date) -> date:
    return (first - timedelta(days=1)).replace(day=1)


def _end_of(hour: datetime | None) -> datetime | None:
    return None if hour is None else hour.replace(tzinfo=UTC) + timedelta(hours=1)


def _known_total(rows: list[dict[str, Any]]) -> Decimal | None:
    return _total([row[HEADLINE] for row in rows if row[HEADLINE] is not None])


def _total(values: list[Any]) -> Decimal | None:
    return sum(values, Decimal(0)) if values else None
