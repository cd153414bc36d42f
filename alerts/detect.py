"""Detectors: one figure of one series in one period, judged. Pure; statistics come from scipy."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from statistics import median
from typing import Literal

from alerts.data import Periods, Point, Points, Reading, is_additive
from alerts.settings import AnomalyRule, ThresholdRule

MINIMUM_HISTORY = 7

# breach      past the limit
# near        inside it again, but not by the margin: what fires goes on firing, what does not, does not begin to
# clear       well inside
# so_far      not past the limit, in a period that can still grow past it
# absent      the series has no row in this period
# unknown     it has one, without a figure
# no_judgement  the figure is known, but there is too little history to hold it against
Verdict = Literal["breach", "near", "clear", "so_far", "absent", "unknown", "no_judgement"]


@dataclass(frozen=True)
class Judgement:
    """What a detector says. `expected` is the limit or the median, `score` the robust z of an anomaly.

    `so_far`: the period is open, or part of its figure, `estimated` (USD), is an estimate.
    """

    period: str
    verdict: Verdict
    value: Decimal | None = None
    expected: Decimal | None = None
    score: float | None = None
    so_far: bool = False
    estimated: Decimal = Decimal(0)
    up: bool = True
    note: str = ""


@dataclass(frozen=True)
class Judged:
    """The window of one series: its closed periods, oldest first, and the open one when it has a row."""

    closed: tuple[Judgement, ...]
    open: Judgement | None


def judge(rule: ThresholdRule | AnomalyRule, reading: Reading, series: str, window: Periods) -> Judged:
    """One judgement per period of the window."""
    points = reading.series.get(series, {})
    closed = tuple(_judge(rule, reading, points, period, is_open=False) for period in window.closed)
    if window.open is None or window.open not in points:
        return Judged(closed, None)
    return Judged(closed, _judge(rule, reading, points, window.open, is_open=True))


def history(rule: AnomalyRule, points: Points, period: str) -> tuple[Decimal, ...]:
    """The figures that `period` is held against: earlier days, of its kind when the rule is seasonal.

    Days without a row or a figure are left out: absent and unknown are not zero. So are days that are partly
    estimated, unless the rule adds estimates.
    """
    day = date.fromisoformat(period)
    days = (day - timedelta(days=n) for n in range(1, rule.history_days + 1))
    alike = (d for d in days if rule.seasonality == "none" or (d.weekday() >= 5) == (day.weekday() >= 5))
    known = (points[d.isoformat()] for d in alike if d.isoformat() in points)
    return tuple(p.value for p in known if p.value is not None and (rule.include_estimates or not p.estimated))


def robust_z(value: Decimal, past: Iterable[Decimal]) -> tuple[float, Decimal]:
    """How far `value` lies from the median of `past` in units of 1.4826 * MAD, and that median.

    A history without any spread gives infinity for every other value; `min_usd` and `min_change` guard against it.
    """
    # Imported here: loading scipy.stats takes longer than everything else the command line needs.
    from scipy.stats import median_abs_deviation

    figures = sorted(past)
    middle = median(figures)
    spread = float(median_abs_deviation([float(figure) for figure in figures], scale="normal"))
    distance = abs(float(value - middle))
    if spread > 0:
        return distance / spread, middle
    return (float("inf") if distance > 0 else 0.0), middle


def _judge(
    rule: ThresholdRule | AnomalyRule, reading: Reading, points: Points, period: str, *, is_open: bool
) -> Judgement:
    point = points.get(period)
    if point is None and isinstance(rule, ThresholdRule) and rule.absent == "clear" and period in reading.covered:
        return Judgement(period, "clear", note="nothing is left of it")
    if point is None:
        return Judgement(period, "absent", note="there is no figure for it: the series is absent, which is not zero")
    so_far = is_open or bool(point.estimated)
    if point.value is None:
        return Judgement(period, "unknown", so_far=so_far, note="its figure is unknown, which is not zero")
    if isinstance(rule, ThresholdRule):
        return _threshold(rule, point, point.value, period, is_open=is_open)
    return _anomaly(rule, points, point, point.value, period, is_open=is_open)


def _threshold(rule: ThresholdRule, point: Point, value: Decimal, period: str, *, is_open: bool) -> Judgement:
    up, limit = (True, rule.above) if rule.above is not None else (False, rule.below or Decimal(0))
    beyond = value - limit if up else limit - value
    matters = not rule.min_usd or _stake(rule, point, value, beyond) >= rule.min_usd
    verdict: Verdict
    if is_open and not (up and is_additive(rule.measure)):
        verdict = "so_far"  # until its period ends a ratio means little, and a small sum nothing
    elif beyond > 0 and matters:
        verdict = "breach"
    elif is_open:
        verdict = "so_far"
    else:
        verdict = "near" if matters and beyond > -abs(limit) * rule.margin else "clear"
    so_far = is_open or bool(point.estimated)
    return Judgement(period, verdict, value, limit, None, so_far, point.estimated, up)


def _stake(rule: ThresholdRule, point: Point, value: Decimal, beyond: Decimal) -> Decimal:
    """The money that a breach is about: the excess of an amount, the part that a share names, else the whole cost."""
    if rule.measure.endswith("_usd") and is_additive(rule.measure):
        return abs(beyond)
    cost = abs(point.stake_usd or Decimal(0))
    return cost * abs(value) if rule.measure.endswith("_share") else cost


def _anomaly(
    rule: AnomalyRule, points: Points, point: Point, value: Decimal, period: str, *, is_open: bool
) -> Judgement:
    past, estimated = history(rule, points, period), point.estimated
    so_far = is_open or bool(estimated)
    if len(past) < MINIMUM_HISTORY:
        alike = "days of its kind" if rule.seasonality == "weekday" else "days"
        note = f"{len(past)} {alike} of history; a judgement needs {MINIMUM_HISTORY}"
        return Judgement(period, "no_judgement", value, None, None, so_far, estimated, note=note)
    score, middle = robust_z(value, past)
    up = value >= middle
    # A figure that can still grow can only be too high already; that it is low says nothing yet.
    unfinished = (
        is_open or (bool(estimated) and not rule.include_estimates) or (so_far and not up and rule.direction != "up")
    )
    watched = (rule.direction in ("both", "up" if up else "down")) and (up or not so_far)
    verdict: Verdict = "so_far" if unfinished else "clear"
    if watched and _passes(rule, value - middle, middle, score, Decimal(1)):
        verdict = "breach"
    elif watched and not unfinished and _passes(rule, value - middle, middle, score, 1 - rule.margin):
        verdict = "near"
    return Judgement(period, verdict, value, middle, score, so_far, estimated, up)


def _passes(rule: AnomalyRule, difference: Decimal, middle: Decimal, score: float, part: Decimal) -> bool:
    size = abs(difference)
    return (
        score > rule.sensitivity * float(part)
        and size > 0
        and size >= rule.min_usd * part
        and size >= abs(middle) * rule.min_change * part
    )
