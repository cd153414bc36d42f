"""Periods: relative to the snapshot, never to the clock."""

from dataclasses import dataclass
from datetime import UTC, date, datetime

import pytest

from dashboards import filters


@dataclass(frozen=True)
class Days:
    """As much of a snapshot as a period needs."""

    first_day: date
    last_day: date
    as_of: datetime
    zone: str = "UTC"


WHOLE = Days(date(2026, 10, 1), date(2026, 11, 14), datetime(2026, 11, 15, tzinfo=UTC))


def test_a_day_under_way_is_in_no_rolling_period():
    paris = Days(date(2026, 10, 1), date(2026, 11, 15), datetime(2026, 11, 15, 0, 0, tzinfo=UTC), "Europe/Paris")
    assert filters.last_whole_day(paris) == date(2026, 11, 14)
    assert filters.bounds(paris, "Last 7 days") == (date(2026, 11, 8), date(2026, 11, 14))
    assert filters.bounds(paris, "Everything") == (date(2026, 10, 1), date(2026, 11, 15))


@pytest.mark.parametrize(
    ("preset", "first", "last"),
    [
        ("Last 7 days", date(2026, 11, 8), date(2026, 11, 14)),
        ("Last 30 days", date(2026, 10, 16), date(2026, 11, 14)),
        ("Last 90 days", date(2026, 10, 1), date(2026, 11, 14)),
        ("This month", date(2026, 11, 1), date(2026, 11, 14)),
        ("Last month", date(2026, 10, 1), date(2026, 10, 31)),
        ("Everything", date(2026, 10, 1), date(2026, 11, 14)),
    ],
)
def test_presets(preset, first, last):
    assert filters.bounds(WHOLE, preset) == (first, last)


def test_the_default_is_the_longest_period_that_has_one_before_it():
    assert filters.default_preset(WHOLE) == "Last 14 days"
    assert filters.default_preset(Days(date(2026, 9, 1), WHOLE.last_day, WHOLE.as_of)) == "Last 30 days"
    assert filters.default_preset(Days(date(2026, 11, 10), WHOLE.last_day, WHOLE.as_of)) == "Everything"


def test_the_period_before_has_the_same_length_and_the_same_choice():
    view = filters.view(WHOLE, date(2026, 11, 1), date(2026, 11, 14), {"team": ("search",)})
    assert view.before is not None
    assert (view.before.first_day, view.before.last_day) == (date(2026, 10, 18), date(2026, 10, 31))
    assert view.before.team == ("search",)
    assert (view.length, view.period) == (14, "1–14 Nov 2026")


def test_a_period_before_that_the_data_do_not_hold_whole_is_none():
    assert filters.view(WHOLE, date(2026, 10, 10), date(2026, 11, 14), {}).before is None
