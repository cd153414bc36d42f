"""What can be configured, and how figures are written."""

from datetime import date
from decimal import Decimal

import pytest
from pydantic import TypeAdapter, ValidationError

from reports import words
from reports.series import ABSENT
from reports.settings import DEFAULT_REPORTS, Reports, ReportSettings


def test_everything_has_a_working_default():
    [report] = DEFAULT_REPORTS
    assert (report.name, report.kind, report.schedule, report.teams) == ("daily-cost", "daily_cost", "0 8 * * *", ())
    assert report.scope().teams is None


def test_teams_become_the_scope():
    assert ReportSettings(name="a", teams=("search", "data")).scope().teams == {"search", "data"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"schedule": "at eight"}, "is no cron expression"),
        ({"schedule": "0 25 * * *"}, "is no cron expression"),
        ({"name": "../x"}, "pattern"),
        ({"kind": "weekly"}, "daily_cost"),
        ({"top": 0}, "greater than or equal to 1"),
        ({"restated_share": 0}, "greater than 0"),
        ({"dashboard_url": "javascript:alert(1)"}, "pattern"),
        ({"chanels": ["slack"]}, "Extra inputs"),
    ],
)
def test_a_mistake_is_named(given, said):
    with pytest.raises(ValidationError, match=said):
        ReportSettings.model_validate({"name": "daily-cost", **given})


def test_two_reports_of_one_name_are_a_mistake():
    with pytest.raises(ValidationError, match="two reports are called `a`"):
        TypeAdapter(Reports).validate_python([{"name": "a"}, {"name": "a"}])


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (None, "unknown"), (ABSENT, "none"), (Decimal(0), "$0.00"), (Decimal("1234.565"), "$1,234.56"),
        (Decimal("-3.1"), "−$3.10"), (Decimal("0.0049"), "under $0.01"), (Decimal("-0.0049"), "under $0.01"),
    ],
)  # fmt: skip
def test_money(value, written):
    assert words.money(value) == written


def test_money_in_another_currency():
    assert words.money(Decimal("12.5"), "EUR") == "12.50 EUR"


@pytest.mark.parametrize(
    ("value", "written"),
    [(0.00076051, "$0.000761"), (0.4259, "$0.426"), (1.4072, "$1.41"), (0, "$0.00"), (None, "unknown")],
)
def test_unit_costs_keep_three_figures(value, written):
    assert words.unit_cost(value) == written


@pytest.mark.parametrize(
    ("now", "before", "written"),
    [
        (Decimal(131), Decimal(100), "+31 %"), (Decimal(100), Decimal(131), "−24 %"), (1.012, 1.0, "+1.2 %"),
        (5, 0, "new"), (0, 0, "no change"), (100, 100, "no change"), (1200, 100, "×12"), (None, 1, "unknown"),
        (1, None, "unknown"), (ABSENT, 1.0, "none"), (Decimal(5), Decimal(-5), "+200 %"),
    ],
)  # fmt: skip
def test_changes(now, before, written):
    assert words.change(now, before) == written


def test_a_difference_of_the_books_shows_every_digit():
    assert words.exact(Decimal("0E-18")) == "$0.00"
    assert words.exact(Decimal("-0.000000001")) == "−$0.000000001"


@pytest.mark.parametrize(
    ("value", "written"), [(999, "999"), (12_400, "12.4 k"), (3_100_000, "3.1 M"), (5_467_403_989, "5.5 B")]
)
def test_tokens(value, written):
    assert words.tokens(value) == written


def test_names_and_days():
    assert words.name(None, "team") == "no team"
    assert words.name("x" * 100, "team") == "x" * 43 + "…"
    assert words.day(date(2026, 10, 3)) == "Sat 3 Oct"
    assert words.long_day(date(2026, 10, 3)) == "Saturday 3 October 2026"
