"""One figure against its limit, or against its own past."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from alerts.data import periods, read
from alerts.detect import MINIMUM_HISTORY, Judgement, judge, robust_z
from alerts.settings import AnomalyRule, Rule, ThresholdRule
from tests.alerts import ledger
from tests.alerts.ledger import Ledger, Snapshot

NOISE = ["95", "100", "105", "98", "102", "100", "103"]  # median 100, MAD 2


def rule(**facts: Any) -> ThresholdRule | AnomalyRule:
    kind = "threshold" if {"above", "below"} & facts.keys() else "anomaly"
    fixed = {"kind": kind, "name": "r", "measure": "inference_cost_usd", "by": ["team"]}
    if kind == "anomaly":
        fixed["seasonality"] = "none"
    found: ThresholdRule | AnomalyRule = TypeAdapter(Rule).validate_python({**fixed, **facts})
    return found


def judged(a_rule: ThresholdRule | AnomalyRule, snapshot: Snapshot, team: str = "a", days: int = 1) -> list[Judgement]:
    """Closed days of a team, oldest first, then the open one when it has a figure."""
    reading = read(ledger, snapshot, a_rule, first="2026-01-01")
    series = f'{{"team":"{team}"}}' if "team" in a_rule.by else "{}"
    found = judge(a_rule, reading, series, periods(a_rule, snapshot, days))
    return [*found.closed, *([found.open] if found.open else [])]


# --- Anomalies ---


def test_the_robust_z_is_the_distance_from_the_median_in_scaled_deviations() -> None:
    """median 100; deviations 5 0 5 2 2 0 3, their median 2; |130 - 100| / (1.4826 * 2) = 10.117"""
    score, middle = robust_z(Decimal(130), [Decimal(x) for x in NOISE])
    assert (round(score, 3), middle) == (10.117, Decimal(100))


@given(st.lists(st.decimals(0, 10**9, places=2), min_size=1), st.decimals(0, 10**9, places=2))
def test_the_robust_z_does_not_depend_on_the_order_of_the_past(past: list[Decimal], value: Decimal) -> None:
    assert robust_z(value, past) == robust_z(value, sorted(past, reverse=True))


def test_a_day_far_above_its_history_is_a_breach_and_says_what_was_usual(book: Ledger) -> None:
    book.days("2026-11-01", 28, NOISE, team="a")
    book.book("2026-11-29", "130", team="a")

    (found,) = judged(rule(), book.publish("2026-11-30 06:00"))

    assert (found.verdict, found.value, found.expected) == ("breach", Decimal(130), Decimal(100))
    assert not found.so_far


def test_a_day_within_its_noise_is_clear(book: Ledger) -> None:
    book.days("2026-11-01", 29, NOISE, team="a")
    assert judged(rule(), book.publish("2026-11-30 06:00"))[0].verdict == "clear"


def test_less_money_than_the_floor_is_no_breach(book: Ledger) -> None:
    book.days("2026-11-01", 28, NOISE, team="a")
    book.book("2026-11-29", "130", team="a")
    assert judged(rule(min_usd=31), book.publish("2026-11-30 06:00"))[0].verdict == "near"
    assert judged(rule(min_usd=30), book.publish("2026-11-30 06:00"))[0].verdict == "breach"


def test_a_small_change_of_a_very_steady_cost_is_no_breach(book: Ledger) -> None:
    """Without any spread z is infinite for every difference; the smallest change guards against that."""
    book.days("2026-11-01", 28, "1000", team="a")
    book.book("2026-11-29", "1010", team="a")
    assert judged(rule(), book.publish("2026-11-30 06:00"))[0].verdict == "clear"


@pytest.mark.parametrize(("days", "verdict"), [(MINIMUM_HISTORY - 1, "no_judgement"), (MINIMUM_HISTORY, "breach")])
def test_too_little_history_is_no_judgement_and_says_so(book: Ledger, days: int, verdict: str) -> None:
    book.days(f"2026-11-{29 - days:02}", days, team="a")
    book.book("2026-11-29", "900", team="a")

    (found,) = judged(rule(), book.publish("2026-11-30 06:00"))

    assert found.verdict == verdict
    if verdict == "no_judgement":
        assert found.note == "6 days of history; a judgement needs 7"


def test_absent_and_unknown_days_are_not_zeros_in_the_history(book: Ledger) -> None:
    """Twenty days without a row and one without a price leave six figures: too few, not a median of zero."""
    book.days("2026-11-22", 6, team="a")
    book.book("2026-11-28", None, team="a")
    book.book("2026-11-29", "900", team="a")
    assert judged(rule(), book.publish("2026-11-30 06:00"))[0].verdict == "no_judgement"


def test_absent_zero_and_unknown_are_three_verdicts(book: Ledger) -> None:
    book.days("2026-11-01", 26, NOISE, team="a")
    book.book("2026-11-28", "0", team="a")
    book.book("2026-11-29", None, team="a")

    found = judged(rule(direction="both"), book.publish("2026-11-30 06:00"), days=3)

    assert [(j.verdict, j.value) for j in found] == [("absent", None), ("breach", Decimal(0)), ("unknown", None)]


def test_working_days_are_held_against_working_days_and_weekends_against_weekends(book: Ledger) -> None:
    """A weekend costs 20, a working day 100. 2026-11-28 is a Saturday."""
    week = ["100"] * 5 + ["20"] * 2
    book.days("2026-11-02", 26, week, team="a")
    book.book("2026-11-28", "100", team="a")

    seasonal = judged(rule(seasonality="weekday"), book.publish("2026-11-29 06:00"))[0]
    plain = judged(rule(), book.publish("2026-11-29 06:00"))[0]

    assert (seasonal.verdict, seasonal.expected) == ("no_judgement", None)  # 6 weekend days so far
    assert plain.verdict == "clear"
    book.days("2026-10-05", 28, week, team="a")
    seasonal = judged(rule(seasonality="weekday"), book.publish("2026-11-29 06:00"))[0]
    assert (seasonal.verdict, seasonal.expected) == ("breach", Decimal(20))


@pytest.mark.parametrize(
    ("direction", "cost", "verdict"),
    [("up", "20", "clear"), ("down", "20", "breach"), ("both", "20", "breach"), ("down", "300", "clear")],
)
def test_only_the_watched_direction_is_judged(book: Ledger, direction: str, cost: str, verdict: str) -> None:
    book.days("2026-11-01", 28, NOISE, team="a")
    book.book("2026-11-29", cost, team="a")
    assert judged(rule(direction=direction), book.publish("2026-11-30 06:00"))[0].verdict == verdict


@pytest.mark.parametrize(("cost", "verdict"), [("300", "breach"), ("5", "so_far"), ("100", "so_far")])
def test_an_open_day_is_judged_upwards_only_and_called_so_far(book: Ledger, cost: str, verdict: str) -> None:
    book.days("2026-11-01", 29, NOISE, team="a")
    book.book("2026-11-30", cost, team="a")

    today = judged(rule(direction="both"), book.publish("2026-11-30 06:00"))[-1]

    assert (today.period, today.verdict, today.so_far) == ("2026-11-30", verdict, True)


@pytest.mark.parametrize(("cost", "verdict"), [("300", "breach"), ("5", "so_far")])
def test_a_day_that_is_partly_estimated_is_judged_upwards_only(book: Ledger, cost: str, verdict: str) -> None:
    book.days("2026-11-01", 28, NOISE, team="a")
    book.book("2026-11-29", cost, estimated="1", team="a")

    yesterday = judged(rule(direction="both"), book.publish("2026-11-30 06:00"))[0]

    assert (yesterday.verdict, yesterday.so_far, yesterday.estimated) == (verdict, True, Decimal(1))


def test_the_estimate_is_added_to_a_bill_measure_unless_the_rule_says_no(book: Ledger) -> None:
    book.days("2026-11-01", 28, NOISE, team="a")
    book.book("2026-11-29", "300", estimated="280", team="a")
    snapshot = book.publish("2026-11-30 06:00")

    with_estimate = judged(rule(measure="effective_cost_usd"), snapshot)[0]
    without = judged(rule(measure="effective_cost_usd", include_estimates=False), snapshot)[0]

    assert (with_estimate.verdict, with_estimate.value) == ("breach", Decimal(300))
    assert (without.verdict, without.value) == ("so_far", Decimal(20))


def test_days_are_cut_in_the_zone_of_the_snapshot(book: Ledger) -> None:
    """At 15:30 UTC it is already the next day in Tokyo, so the 30th is closed there and open in UTC."""
    book.days("2026-11-01", 30, NOISE, team="a")
    assert periods(rule(), book.publish("2026-11-30 15:30"), 1).open == "2026-11-30"
    assert periods(rule(), book.publish("2026-11-30 15:30", zone="Asia/Tokyo"), 1).closed == ("2026-11-30",)


# --- Thresholds ---


@pytest.mark.parametrize(
    ("cost", "verdict"), [("120.01", "breach"), ("120", "near"), ("108.01", "near"), ("108", "clear"), ("0", "clear")]
)
def test_a_threshold_has_a_margin_in_which_nothing_changes(book: Ledger, cost: str, verdict: str) -> None:
    book.book("2026-11-29", cost, team="a")
    assert judged(rule(above="120"), book.publish("2026-11-30 06:00"))[0].verdict == verdict


@pytest.mark.parametrize(("cost", "verdict"), [("9", "breach"), ("10", "near"), ("11", "clear")])
def test_a_threshold_may_be_a_lower_limit(book: Ledger, cost: str, verdict: str) -> None:
    book.book("2026-11-29", cost, team="a")
    assert judged(rule(below="10"), book.publish("2026-11-30 06:00"))[0].verdict == verdict


def test_an_open_day_can_already_be_too_much_but_never_too_little(book: Ledger) -> None:
    book.book("2026-11-30", "15", team="a")
    snapshot = book.publish("2026-11-30 06:00")
    assert judged(rule(above="10"), snapshot)[-1].verdict == "breach"
    assert judged(rule(below="20"), snapshot)[-1].verdict == "so_far"


def test_a_ratio_of_an_open_day_says_nothing_yet(book: Ledger) -> None:
    book.book("2026-11-30", "10", unattributed="9")
    share = rule(measure="unattributed_share", above="0.05", by=[])
    assert judged(share, book.publish("2026-11-30 06:00"))[-1].verdict == "so_far"
    assert judged(share, book.publish("2026-12-01 06:00"))[0].verdict == "breach"


def test_a_share_of_little_money_is_no_breach(book: Ledger) -> None:
    book.book("2026-11-29", "10", unattributed="4")
    share = {"measure": "unattributed_share", "above": "0.05", "by": []}
    assert judged(rule(**share, min_usd=4), book.publish("2026-11-30 06:00"))[0].verdict == "breach"
    assert judged(rule(**share, min_usd=5), book.publish("2026-11-30 06:00"))[0].verdict == "clear"


def test_a_share_of_nothing_is_unknown(book: Ledger) -> None:
    book.book("2026-11-29", "0")
    share = rule(measure="unattributed_share", above="0.05", by=[])
    assert judged(share, book.publish("2026-11-30 06:00"))[0].verdict == "unknown"


def test_a_rule_may_watch_hours(book: Ledger) -> None:
    book.book("2026-11-30T04:10", "3", team="a")
    book.book("2026-11-30T05:10", "30", team="a")
    found = judged(rule(above="10", grain="hour"), book.publish("2026-11-30 06:20"), days=2)
    assert [(j.period, j.verdict) for j in found] == [("2026-11-30T04", "clear"), ("2026-11-30T05", "breach")]


def test_a_rule_may_watch_the_whole_snapshot(book: Ledger) -> None:
    book.days("2026-11-01", 3, "5", team="a")
    found = judged(rule(above="10", grain="total"), book.publish("2026-11-30 06:00"))
    assert [(j.period, j.verdict, j.value) for j in found] == [("total", "breach", Decimal(15))]


def test_where_keeps_only_the_values_it_names(book: Ledger) -> None:
    book.book("2026-11-29", "5", team="a")
    book.book("2026-11-29", "7", team=None)
    reading = read(
        ledger, book.publish("2026-11-30 06:00"), rule(above="1", where={"team": [None]}), first="2026-11-01"
    )
    assert list(reading.series) == ['{"team":null}']


def test_where_a_rule_says_so_an_absent_series_is_clear_but_an_absent_day_is_not(book: Ledger) -> None:
    book.book("2026-11-29", "5", team="b")
    found = judged(rule(above="1", absent="clear"), book.publish("2026-11-30 06:00"), days=2)
    assert [j.verdict for j in found] == ["absent", "clear"]
