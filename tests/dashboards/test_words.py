"""How figures read."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from dashboards import words
from warehouse.measures import MEASURES


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Decimal("12345.67"), "$12,345.67"), (Decimal("0"), "$0.00"), (Decimal("-3.5"), "-$3.50"), (None, "unknown"),
        (float("nan"), "unknown"), (Decimal("0.0001"), "<$0.01"), (Decimal("-0.0001"), "-<$0.01"), (0.005, "$0.01"),
    ],
)  # fmt: skip
def test_money_is_to_the_cent_and_unknown_is_a_word(value, shown):
    assert words.money(value) == shown


def test_money_is_in_the_currency_of_the_snapshot():
    assert words.money(Decimal("1"), "EUR") == "€1.00"
    assert words.money(Decimal("1"), "CHF") == "CHF 1.00"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.905, "$1.91"), (0.1633, "$0.163"), (0.000605, "$0.000605"), (0, "$0.00"), (None, "unknown"), (-0.5, "-$0.500")],
)
def test_unit_costs_keep_three_digits_below_a_dollar(value, shown):
    assert words.unit_money(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (999, "999"), (1000, "1.00 k"), (999_999, "1.00 M"), (63_700_621, "63.7 M"), (1_234_567_890, "1.23 B"),
     (14_592_943_660, "14.6 B"), (2.5e12, "2.50 T"), (None, "unknown")],
)  # fmt: skip
def test_tokens_in_the_largest_unit(value, shown):
    assert words.tokens(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0.592, "59.2 %"), (0.0015, "0.15 %"), (0.00001, "<0.01 %"), (0, "0.0 %"), (None, "unknown")]
)
def test_shares(value, shown):
    assert words.share(value) == shown


def test_changes():
    assert words.change(0.134) == "+13.4 %"
    assert words.change(-0.07) == "-7.0 %"
    assert words.change(13.45) == "+1,345 %"
    assert words.change(None) == ""


def test_every_decimal_of_an_exact_amount():
    assert words.exact(Decimal("31466.370301751308867660")) == "31,466.370301751308867660"
    assert words.exact(Decimal("0E-18")) == "0"
    assert words.exact(None) == "unknown"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(563, "563 ms"), (38_300, "38.3 s"), (100_000, "1 min 40 s"), (4_642_000, "1 h 17 min"), (None, "unknown")],
)
def test_latencies(value, shown):
    assert words.milliseconds(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0.0 h"), (3_600_000, "1.0 h"), (7_254_000_000, "2,015 h"), (60_000, "<0.1 h"), (None, "unknown")],
)
def test_gpu_time_in_hours(value, shown):
    assert words.gpu_hours(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (0.27712, "0.277"), (9.96, "10.0"), (1072.4, "1,072"), (None, "unknown")]
)
def test_tokens_per_second(value, shown):
    assert words.rate(value) == shown


def test_every_unit_of_a_measure_can_be_read():
    assert all(words.of_measure(name, Decimal(1)) for name in MEASURES)


def test_durations():
    assert words.duration(timedelta(seconds=12)) == "12 s"
    assert words.duration(timedelta(minutes=53)) == "53 min"
    assert words.duration(timedelta(hours=9, minutes=7)) == "9 h 07 min"
    assert words.duration(timedelta(days=3, hours=4)) == "3 d 4 h"
    assert words.duration(None) == "unknown"


def test_periods():
    assert words.days(date(2026, 11, 1), date(2026, 11, 14)) == "1–14 Nov 2026"
    assert words.days(date(2026, 10, 16), date(2026, 11, 14)) == "16 Oct – 14 Nov 2026"
    assert words.days(date(2026, 12, 30), date(2027, 1, 2)) == "30 Dec 2026 – 2 Jan 2027"
    assert words.days(date(2026, 11, 1), date(2026, 11, 1)) == "1 Nov 2026"
    assert words.month("2026-11") == "November 2026"
    assert words.month("whatever") == "whatever"


def test_a_dollar_sign_is_no_formula():
    assert words.plain("$1 and $2") == r"\$1 and \$2"


def test_a_name_from_outside_is_text_and_no_markup():
    assert words.name("a*b_[c](d)") == r"a\*b\_\[c\](d)"
    assert words.name(None) == "unknown"
