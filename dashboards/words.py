"""Figures as people read them. An unknown figure is the word `unknown`, never 0."""

import calendar
import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal

from warehouse.measures import MEASURES

Number = Decimal | float | int | None
UNKNOWN = "unknown"
SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥"}
MINUS = "-"


def is_unknown(value: object) -> bool:
    """NULL, in the forms in which it comes out of Arrow and pandas."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def symbol(currency: str) -> str:
    """What stands before an amount."""
    return SYMBOLS.get(currency, f"{currency} ")


def money(value: Number, currency: str = "USD") -> str:
    """An amount to the cent: $12,345.67. What is there and less than a cent is <$0.01, not nothing."""
    if is_unknown(value):
        return UNKNOWN
    assert value is not None
    sign, size = (MINUS if value < 0 else ""), abs(value)
    if 0 < size < Decimal("0.005"):
        return f"{sign}<{symbol(currency)}0.01"
    return f"{sign}{symbol(currency)}{size:,.2f}"


def unit_money(value: Number, currency: str = "USD") -> str:
    """A unit cost: cents from a dollar on, three digits below."""
    if is_unknown(value):
        return UNKNOWN
    assert value is not None
    size = abs(float(value))
    text = f"{size:,.2f}" if size == 0 or size >= 1 else _first_digits(size, 3)
    return f"{MINUS if value < 0 else ''}{symbol(currency)}{text}"


def count(value: Number) -> str:
    """A whole number: 170,117."""
    return UNKNOWN if is_unknown(value) else f"{int(value):,}"  # type: ignore[arg-type]


def tokens(value: Number) -> str:
    """Tokens in the largest unit that leaves a digit before the point: 1.23 B, 63.7 M, 512 k."""
    if is_unknown(value):
        return UNKNOWN
    size = abs(float(value))  # type: ignore[arg-type]
    sign = MINUS if value < 0 else ""  # type: ignore[operator]
    for unit, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if size >= unit * 0.9995:
            shown = size / unit
            digits = 2 if shown < 9.995 else 1 if shown < 99.95 else 0
            return f"{sign}{shown:.{digits}f} {name}"
    return f"{sign}{size:,.0f}"


def share(value: Number) -> str:
    """A ratio in percent: one decimal, two where it is small."""
    if is_unknown(value):
        return UNKNOWN
    percent = float(value) * 100  # type: ignore[arg-type]
    if 0 < abs(percent) < 0.005:
        return f"{MINUS if percent < 0 else ''}<0.01 %"
    return f"{percent:.{1 if percent == 0 or abs(percent) >= 0.95 else 2}f} %"


def change(value: Number) -> str:
    """A signed ratio: +12.3 %."""
    if is_unknown(value):
        return ""
    percent = float(value) * 100  # type: ignore[arg-type]
    return f"{percent:+,.{1 if abs(percent) < 99.95 else 0}f} %"


def signed_money(value: Number, currency: str = "USD") -> str:
    """An amount with its sign: +$12.34."""
    if is_unknown(value):
        return UNKNOWN
    text = money(value, currency)
    return text if text.startswith(MINUS) or not value else f"+{text}"


def milliseconds(value: Number) -> str:
    """A latency: 563 ms, 38.3 s, 12 min."""
    if is_unknown(value):
        return UNKNOWN
    size = float(value)  # type: ignore[arg-type]
    if size < 1000:
        return f"{size:,.0f} ms"
    if size < 100_000:
        return f"{size / 1000:.1f} s"
    seconds = round(size / 1000)
    return f"{seconds // 60} min {seconds % 60:02d} s" if seconds < 3600 else duration(timedelta(seconds=seconds))


def gpu_hours(value: Number) -> str:
    """GPU time in milliseconds as people say it: 1,234 h, 12.3 h."""
    if is_unknown(value):
        return UNKNOWN
    hours = float(value) / 3_600_000  # type: ignore[arg-type]
    if 0 < abs(hours) < 0.05:
        return f"{MINUS if hours < 0 else ''}<0.1 h"
    return f"{hours:,.{0 if abs(hours) >= 99.95 else 1}f} h"


def rate(value: Number) -> str:
    """Tokens per second: 1,234 or 12.3 or 0.0123."""
    if is_unknown(value):
        return UNKNOWN
    size = float(value)  # type: ignore[arg-type]
    if size == 0:
        return "0"
    return f"{size:,.0f}" if size >= 99.95 else f"{size:.1f}" if size >= 0.95 else _first_digits(size, 3)


def duration(value: timedelta | None) -> str:
    """How long something took: 9 h 07 min."""
    if value is None or value != value:  # NaT is not itself
        return UNKNOWN
    minutes = int(value.total_seconds() // 60)
    if minutes < 1:
        return f"{int(value.total_seconds())} s"
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def exact(value: Decimal | None, places: int = 18) -> str:
    """Every decimal there is, so that points stand below each other; exactly nothing is 0."""
    if value is None:
        return UNKNOWN
    return f"{value:,.{places}f}" if value else "0"


def of_measure(name: str, value: Number, currency: str = "USD") -> str:
    """The value of a measure in its unit."""
    unit = MEASURES[name].unit
    if unit == "usd":
        return money(value, currency)
    if unit in ("usd_per_mtok", "usd_each"):
        return unit_money(value, currency)
    if unit in ("tokens", "tokens_each"):
        return tokens(value)
    formats = {"count": count, "share": share, "milliseconds": milliseconds, "gpu_ms": gpu_hours}
    return {**formats, "tokens_per_second": rate}[unit](value)


def day(value: date) -> str:
    """14 Nov 2026"""
    return f"{value.day} {calendar.month_abbr[value.month]} {value.year}"


def days(first: date, last: date) -> str:
    """1–14 Nov 2026"""
    if first == last:
        return day(last)
    if (first.year, first.month) == (last.year, last.month):
        return f"{first.day}–{day(last)}"
    if first.year == last.year:
        return f"{first.day} {calendar.month_abbr[first.month]} – {day(last)}"
    return f"{day(first)} – {day(last)}"


def month(billing_period: str) -> str:
    """November 2026, from 2026-11; anything else stays as it is."""
    year, _, number = billing_period.partition("-")
    if year.isdigit() and number.isdigit() and 1 <= int(number) <= 12:
        return f"{calendar.month_name[int(number)]} {year}"
    return billing_period


def brief_instant(value: datetime) -> str:
    """15 Nov 01:00"""
    return f"{value.day} {calendar.month_abbr[value.month]} {value:%H:%M}"


def instant(value: datetime) -> str:
    """15 Nov 2026 01:00"""
    return f"{day(value.date())} {value:%H:%M}"


def age(value: timedelta) -> str:
    """3 hours, 15 days."""
    hours = value.total_seconds() / 3600
    if hours < 1:
        return _some(round(hours * 60), "minute")
    return _some(round(hours), "hour") if hours < 48 else _some(round(hours / 24), "day")


def plain(text: str) -> str:
    """Text for Markdown: a dollar sign is a dollar sign."""
    return text.replace("$", r"\$")


def name(value: object) -> str:
    """A name from outside, for Markdown: whatever is in it is text, and NULL is `unknown`."""
    return UNKNOWN if is_unknown(value) else re.sub(r"([\\`*_\[\]<>#|~:])", r"\\\1", str(value))


def _some(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _first_digits(size: float, digits: int) -> str:
    places = digits - 1 - math.floor(math.log10(size)) if size else 2
    return f"{size:.{min(max(places, 2), 9)}f}"
