"""What is chosen of the snapshot: a period and owners, models, providers. Chosen values are in the link.

Periods are relative to the snapshot's last whole day, never to the clock: the same link on the same snapshot shows the
same figures.
"""

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import streamlit as st

from dashboards import queries, words
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

OWNERS = ("team", "app", "environment")
DIMENSIONS = {"team": "Team", "app": "App", "model": "Model", "provider": "Provider", "environment": "Environment"}
NOBODY = "(none)"
ROLLING = {"Last 7 days": 7, "Last 14 days": 14, "Last 30 days": 30, "Last 90 days": 90}
THIS_MONTH, LAST_MONTH, EVERYTHING, CUSTOM = "This month", "Last month", "Everything", "Custom"
PRESETS = (*ROLLING, THIS_MONTH, LAST_MONTH, EVERYTHING, CUSTOM)


@dataclass(frozen=True)
class View:
    """The chosen rows, and the same rows in the period of equal length just before; None if the data begin later."""

    filters: Filters
    before: Filters | None

    @property
    def first_day(self) -> date:
        """First day of the period."""
        assert self.filters.first_day is not None
        return self.filters.first_day

    @property
    def last_day(self) -> date:
        """Last day of the period, inclusive."""
        assert self.filters.last_day is not None
        return self.filters.last_day

    @property
    def length(self) -> int:
        """Days in the period."""
        return (self.last_day - self.first_day).days + 1

    @property
    def period(self) -> str:
        """The period in words."""
        return words.days(self.first_day, self.last_day)

    def also(self, **chosen: tuple[str | None, ...]) -> "View":
        """The same, restricted to these values too."""
        return View(
            replace(self.filters, **chosen),  # type: ignore[arg-type]
            replace(self.before, **chosen) if self.before else None,  # type: ignore[arg-type]
        )

    def without(self, *dimensions: str) -> "View":
        """The same without some dimensions."""
        nothing: dict[str, tuple[str | None, ...]] = dict.fromkeys(dimensions, ())
        return self.also(**nothing)


def last_whole_day(snapshot: Snapshot) -> date:
    """The last day that had ended at the snapshot's as-of, if the data have one."""
    midnight = datetime.combine(snapshot.last_day + timedelta(days=1), time(), ZoneInfo(snapshot.zone))
    last = snapshot.last_day if midnight <= snapshot.as_of else snapshot.last_day - timedelta(days=1)
    return max(last, snapshot.first_day)


def default_preset(snapshot: Snapshot) -> str:
    """The longest of 30, 14 and 7 days that has a period of the same length before it."""
    covered = (last_whole_day(snapshot) - snapshot.first_day).days + 1
    fitting = [name for name in ("Last 30 days", "Last 14 days", "Last 7 days") if 2 * ROLLING[name] <= covered]
    return fitting[0] if fitting else EVERYTHING


def bounds(snapshot: Snapshot, preset: str) -> tuple[date, date]:
    """First and last day of a preset, within the snapshot."""
    last = last_whole_day(snapshot)
    if preset in ROLLING:
        first = last - timedelta(days=ROLLING[preset] - 1)
    elif preset == THIS_MONTH:
        first = last.replace(day=1)
    elif preset == LAST_MONTH:
        last = last.replace(day=1) - timedelta(days=1)
        first = last.replace(day=1)
    else:
        return snapshot.first_day, snapshot.last_day
    if last < snapshot.first_day:
        return first, last
    return max(first, snapshot.first_day), last


def view(snapshot: Snapshot, first: date, last: date, chosen: dict[str, tuple[str | None, ...]]) -> View:
    """The view of these days and values."""
    length = (last - first).days + 1
    filters = Filters(first_day=first, last_day=last, **chosen)  # type: ignore[arg-type]
    start = first - timedelta(days=length)
    before = replace(filters, first_day=start, last_day=first - timedelta(days=1))
    return View(filters, before if start >= snapshot.first_day else None)


def sidebar(snapshot: Snapshot) -> View:
    """The filters that all pages share."""
    with st.sidebar:
        preset = st.selectbox(
            "Period",
            PRESETS,
            PRESETS.index(default_preset(snapshot)),
            key="period",
            bind="query-params",
            persist_state="session",
            help=f"Relative to the last whole day of the data, {words.day(last_whole_day(snapshot))}",
        )
        first, last = bounds(snapshot, preset)
        if preset == CUSTOM:
            first, last = _custom(snapshot)
        choices = queries.choices(snapshot)
        chosen = {name: _choice(name, title, choices[name]) for name, title in DIMENSIONS.items()}
    return view(snapshot, first, last, chosen)


def pools(view: View, choices: dict[str, tuple[str | None, ...]]) -> View:
    """The filters of a page about the own fleet, beside those that all pages share."""
    titles = {"cluster": "Cluster", "pool": "Pool"}
    with st.container(horizontal=True, key="by-pools"):
        return view.also(**{name: _choice(name, title, choices[name]) for name, title in titles.items()})


def _custom(snapshot: Snapshot) -> tuple[date, date]:
    days = st.date_input(
        "Days",
        bounds(snapshot, default_preset(snapshot)),
        snapshot.first_day,
        snapshot.last_day,
        key="days",
        bind="query-params",
        persist_state="session",
    )
    if isinstance(days, date):
        return days, days
    # Between the two clicks of a range there is one day only.
    return (days[0], days[-1]) if days else (snapshot.first_day, snapshot.last_day)


def _choice(name: str, title: str, values: tuple[str | None, ...]) -> tuple[str | None, ...]:
    options = [NOBODY if value is None else value for value in values]
    picked = st.multiselect(title, options, key=name, bind="query-params", persist_state="session", placeholder="all")
    return tuple(None if value == NOBODY else value for value in picked)
