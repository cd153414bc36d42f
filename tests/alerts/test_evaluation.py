"""From snapshot to message: states, transitions, silences, restatements, and nothing twice."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, func, select

from alerts import silence
from alerts.state import alert_event, alert_state, events, load
from tests.alerts.conftest import Desk
from tests.alerts.evaluator_process import evaluate_once
from tests.alerts.ledger import Ledger
from tests.needs import ROOT
from warehouse.operations import audit_entry

NOISE = ["95", "100", "105", "98", "102", "100", "103"]
TEAM_A = '{"team":"a"}'


def anomaly(**facts: Any) -> dict[str, Any]:
    fixed = {"kind": "anomaly", "name": "team", "measure": "inference_cost_usd", "by": ["team"], "min_usd": 20}
    return {**fixed, "seasonality": "none", **facts}


def limit(**facts: Any) -> dict[str, Any]:
    return {"kind": "threshold", "name": "limit", "measure": "inference_cost_usd", "above": 100, **facts}


# --- An episode ---


def test_a_spike_fires_once_and_resolves_once_when_a_later_day_is_fine(desk: Desk, book: Ledger) -> None:
    desk.rules(anomaly())
    book.days("2026-11-01", 27, NOISE, team="a")
    desk.evaluate(book.publish("2026-11-28 06:00"))
    assert desk.subjects() == []

    book.book("2026-11-28", "900", team="a")
    fired = desk.evaluate(book.publish("2026-11-28 18:00"))
    assert fired.firing == (("team", TEAM_A),)
    desk.evaluate(book.publish("2026-11-28 19:00"))
    desk.evaluate(book.publish("2026-11-29 06:00"))  # the day is closed, and still a spike
    book.book("2026-11-29", "101", team="a")
    desk.evaluate(book.publish("2026-11-29 18:00"))  # a low figure so far proves nothing
    resolved = desk.evaluate(book.publish("2026-11-30 06:00"))

    assert desk.subjects() == [
        "🟠 inference cost of team a is high so far",
        "✅ Resolved: inference cost of team a",
    ]
    assert resolved.firing == ()
    assert desk.state("team", TEAM_A).state == "ok"


def test_a_rule_may_want_several_periods_in_a_row(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(**{"for": 3}))
    for day, state in [("27", "pending"), ("28", "pending"), ("29", "firing")]:
        book.book(f"2026-11-{day}", "150")
        desk.evaluate(book.publish(f"2026-11-{int(day) + 1} 00:10"))
        assert desk.state("limit").state == state

    assert desk.subjects() == ["🟠 inference cost is high"]
    assert [e["to_state"] for e in history(desk.engine)] == ["pending", "firing"]


def test_what_is_pending_and_passes_is_never_told(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(**{"for": 2}))
    book.book("2026-11-28", "150")
    desk.evaluate(book.publish("2026-11-29 00:10"))
    book.book("2026-11-29", "50")
    desk.evaluate(book.publish("2026-11-30 00:10"))

    assert [e["to_state"] for e in history(desk.engine)] == ["pending", "ok"]
    assert desk.messages() == []


def test_a_figure_just_inside_its_limit_neither_resolves_nor_fires_again(desk: Desk, book: Ledger) -> None:
    """The limit is 100, the margin a tenth: 95 keeps what it finds."""
    desk.rules(limit(), repeat_after_hours=1000)
    costs = {"24": "95", "25": "101", "26": "95", "27": "101", "28": "95", "29": "89"}
    for day, cost in costs.items():
        book.book(f"2026-11-{day}", cost)
        desk.evaluate(book.publish(f"2026-11-{int(day) + 1} 00:10"))

    assert [e["kind"] for e in history(desk.engine)] == ["fired", "resolved"]
    assert [e["period"] for e in history(desk.engine)] == ["2026-11-25", "2026-11-29"]


def test_a_whole_snapshot_rule_counts_snapshots_not_evaluations(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(grain="total", **{"for": 2}))
    book.book("2026-11-29", "150")
    first = book.publish("2026-11-30 06:00")
    desk.evaluate(first)
    desk.evaluate(first)
    assert desk.state("limit").state == "pending"

    desk.evaluate(book.publish("2026-11-30 07:00"))

    assert desk.state("limit").state == "firing"


def test_failed_controls_that_hold_publication_back_are_told_though_the_snapshot_is_the_last_good_one(
    desk: Desk, book: Ledger
) -> None:
    desk.rules(shipped=True)
    book.book("2026-11-29", "1", team="a")
    good = book.publish("2026-11-30 06:00")
    desk.evaluate(good)
    good.held = ("bill = ledger (effective) of 2026-11 USD",)

    desk.evaluate(good)
    desk.evaluate(good)

    (subject,) = desk.subjects()
    assert subject == "🔴 number of failed controls is high"
    assert "bill = ledger (effective) of 2026-11 USD" in desk.messages()[0]["text"]

    desk.evaluate(book.publish("2026-11-30 12:00"))
    assert desk.subjects()[-1] == "✅ Resolved: number of failed controls"


def test_a_new_rule_fires_on_the_snapshot_that_was_there_before_it(desk: Desk, book: Ledger) -> None:
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")
    desk.rules(limit(grain="total", above=1000), limit(name="day", above=1000))
    desk.evaluate(snapshot)
    desk.rules(limit(grain="total"), limit(name="day"))
    desk.evaluate(snapshot)

    assert [state.state for state in (desk.state("limit"), desk.state("day"))] == ["firing", "firing"]


# --- Nothing twice ---


def test_the_same_snapshot_again_sends_nothing_and_changes_nothing(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")

    first, again = desk.evaluate(snapshot), desk.evaluate(snapshot, now="2026-11-30 07:00")

    assert (first.messages, again.messages, again.transitions) == (1, 0, ())
    assert len(desk.messages()) == len(history(desk.engine)) == 1


def test_states_that_were_lost_do_not_repeat_the_message_of_a_snapshot(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")
    desk.evaluate(snapshot)
    with desk.engine.begin() as connection:
        connection.execute(alert_state.delete())
        connection.execute(alert_event.delete())

    assert desk.evaluate(snapshot).messages == 0
    assert len(desk.messages()) == 1


@pytest.mark.parametrize("point", ["before-commit", "after-commit"])
def test_killed_around_its_commit_and_run_again_it_tells_once(desk: Desk, engine: Engine, point: str) -> None:
    command = [sys.executable, "-m", "tests.alerts.evaluator_process", str(engine.url), point]
    killed = subprocess.run(command, cwd=ROOT, check=False)
    after = len(desk.messages())

    again = evaluate_once(engine)

    assert killed.returncode == -signal.SIGKILL
    assert (after, again.messages) == ((1, 0) if point == "after-commit" else (0, 1))
    assert len(desk.messages()) == len(history(desk.engine)) == 1


def test_evaluations_at_once_tell_once(desk: Desk, engine: Engine) -> None:
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(evaluate_once, [engine] * 4))

    assert sorted(report.messages for report in reports) == [0, 0, 0, 1]
    assert len(desk.messages()) == len(history(desk.engine)) == 1


# --- Absent, zero, unknown ---


def test_a_firing_series_whose_figures_go_absent_is_neither_resolved_nor_firing(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]))
    book.book("2026-11-28", "150", team="a")
    desk.evaluate(book.publish("2026-11-29 00:10"))
    book.book("2026-11-29", "1", team="b")
    desk.evaluate(book.publish("2026-11-30 00:10"))

    assert desk.state("limit", TEAM_A).state == "no_data"
    assert desk.subjects()[-1] == "⚪ No figure: inference cost of team a"
    assert "the series is absent, which is not zero" in desk.messages()[-1]["text"]
    assert "run `inferledger doctor`" in desk.messages()[-1]["text"]

    book.book("2026-11-30", "20", team="a")
    desk.evaluate(book.publish("2026-12-01 00:10"))
    assert desk.subjects()[-1] == "✅ Resolved: inference cost of team a"


def test_a_firing_series_of_zero_cost_is_resolved(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]))
    book.book("2026-11-28", "150", team="a")
    desk.evaluate(book.publish("2026-11-29 00:10"))
    book.book("2026-11-29", "0", team="a")
    desk.evaluate(book.publish("2026-11-30 00:10"))

    assert desk.state("limit", TEAM_A).state == "ok"


def test_an_unknown_figure_is_a_state_of_its_own(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]))
    book.book("2026-11-29", None, team="a")
    report = desk.evaluate(book.publish("2026-11-30 00:10"))

    assert desk.state("limit", TEAM_A).state == "unknown"
    assert report.unjudged == ("rule `limit`, team a: its figure is unknown, which is not zero",)
    assert desk.messages() == []


def test_a_series_that_was_fine_goes_absent_quietly_unless_its_rule_wants_to_know(desk: Desk, book: Ledger) -> None:
    book.book("2026-11-28", "50", team="a")
    desk.rules(limit(by=["team"]), limit(name="loud", by=["team"], no_data="notify"))
    desk.evaluate(book.publish("2026-11-29 00:10"))
    book.book("2026-11-29", "50", team="b")
    desk.evaluate(book.publish("2026-11-30 00:10"))

    assert desk.state("limit", TEAM_A).state == "no_data"
    assert [message["data"]["rule"] for message in desk.messages()] == ["loud"]


def test_too_little_history_is_reported_and_told_to_nobody(desk: Desk, book: Ledger) -> None:
    desk.rules(anomaly())
    book.days("2026-11-26", 4, ["10", "10", "10", "900"], team="a")
    report = desk.evaluate(book.publish("2026-11-30 00:10"))

    assert report.unjudged == ("rule `team`, team a: 3 days of history; a judgement needs 7",)
    assert desk.messages() == []


# --- Late and restated figures ---


def test_a_restated_day_resolves_and_the_message_says_why(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.book("2026-11-29", "900")
    desk.evaluate(book.publish("2026-11-30 06:00"))
    book.forget("2026-11-29")
    book.book("2026-11-29", "80")
    desk.evaluate(book.publish("2026-11-30 12:00"))

    assert desk.subjects()[-1] == "✅ Resolved: inference cost"
    assert "restated: 2026-11-29 was $900.00 before and is $80.00 now" in desk.messages()[-1]["text"]


def test_a_restated_day_fires_though_newer_days_are_fine_and_the_message_says_why(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.days("2026-11-26", 4, "50")
    desk.evaluate(book.publish("2026-11-30 06:00"))
    book.forget("2026-11-28")
    book.book("2026-11-28", "500")
    restated = book.publish("2026-11-30 12:00")
    desk.evaluate(restated)
    desk.evaluate(restated)
    desk.evaluate(book.publish("2026-11-30 18:00"))
    desk.evaluate(book.publish("2026-11-30 19:00"))

    assert [e["kind"] for e in history(desk.engine)] == ["fired", "resolved"]
    assert "restated: 2026-11-28 was $50.00 before and is $500.00 now" in desk.messages()[0]["text"]


def test_a_day_that_came_in_late_still_fires_once(desk: Desk, book: Ledger) -> None:
    """Collection stood still for three days, and one of them was a spike."""
    desk.rules(limit())
    book.book("2026-11-26", "50")
    desk.evaluate(book.publish("2026-11-27 06:00"))
    book.days("2026-11-27", 3, ["50", "700", "50"])
    for hour in (6, 7, 8):
        desk.evaluate(book.publish(f"2026-11-30 0{hour}:00"))

    assert [(e["kind"], e["period"]) for e in history(desk.engine)] == [
        ("fired", "2026-11-28"),
        ("resolved", "2026-11-29"),
    ]


def test_a_figure_that_grows_during_its_day_is_not_called_restated(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.book("2026-11-30", "60")
    desk.evaluate(book.publish("2026-11-30 06:00"))
    book.book("2026-11-30", "60")
    desk.evaluate(book.publish("2026-11-30 12:00"))

    assert "restated" not in desk.messages()[0]["text"]
    assert desk.messages()[0]["data"]["so_far"] is True


# --- Reminders and silences ---


def test_what_still_fires_is_reminded_of_after_the_interval(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(grain="total"), repeat_after_hours=24)
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")
    for now in ("2026-11-30 06:00", "2026-12-01 05:00", "2026-12-01 06:00", "2026-12-01 07:00", "2026-12-02 06:00"):
        desk.evaluate(snapshot, now)

    assert desk.subjects() == [
        "🟠 inference cost is high",
        "🟠 Still firing: inference cost is high",
        "🟠 Still firing: inference cost is high",
    ]


def test_a_spike_that_goes_on_is_reminded_of_with_the_newer_day(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.days("2026-11-26", 4, "150")
    for n in (27, 28, 29, 30):
        desk.evaluate(book.publish(f"2026-11-{n} 06:00"))

    assert [e["kind"] for e in history(desk.engine)] == ["fired", "reminder", "reminder"]
    assert [e["period"] for e in history(desk.engine)] == ["2026-11-27", "2026-11-28", "2026-11-29"]


def test_a_silenced_alert_is_recorded_and_nobody_is_told(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]))
    identity = hush(desk, {"team": "a", "rule": "lim*"}, until="2026-12-02 00:00")
    book.book("2026-11-29", "150", team="a")
    book.book("2026-11-29", "150", team="b")

    report = desk.evaluate(book.publish("2026-11-30 06:00"))

    assert (report.messages, report.silenced) == (1, 1)
    assert desk.subjects() == ["🟠 inference cost of team b is high"]
    silenced = next(e for e in history(desk.engine) if e["series"] == TEAM_A)
    assert (silenced["notice"], silenced["silence_id"]) == ("silenced", identity)


def test_what_still_fires_when_its_silence_ends_is_told_then(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(grain="total"))
    hush(desk, {"rule": "limit"}, until="2026-12-01 00:00")
    book.book("2026-11-29", "150")
    snapshot = book.publish("2026-11-30 06:00")

    desk.evaluate(snapshot)
    assert desk.messages() == []
    desk.evaluate(snapshot, "2026-12-01 06:00")
    desk.evaluate(snapshot, "2026-12-01 07:00")

    assert desk.subjects() == ["🟠 Still firing: inference cost is high"]
    assert "it fired while it was silenced" in desk.messages()[0]["text"]


def test_the_end_of_what_nobody_was_told_of_is_not_told_either(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    hush(desk, {"rule": "limit"}, until="2026-11-30 12:00")
    book.book("2026-11-29", "150")
    desk.evaluate(book.publish("2026-11-30 06:00"))
    book.book("2026-11-30", "50")
    desk.evaluate(book.publish("2026-12-01 06:00"))

    assert [e["kind"] for e in history(desk.engine)] == ["fired", "resolved"]
    assert desk.messages() == []


def test_silences_are_audited_when_they_begin_and_when_they_are_ended(desk: Desk) -> None:
    now = datetime(2026, 11, 30, 6, tzinfo=UTC)
    identity = hush(desk, {"team": "(none)"}, until="2026-12-02 00:00")
    with desk.engine.begin() as connection:
        assert silence.end(connection, identity, who="bob", reason="done", now=now)
        assert not silence.end(connection, identity, who="bob", reason="again", now=now)
        assert silence.active(connection, now) == ()

    with desk.engine.connect() as connection:
        trail = connection.execute(select(audit_entry).order_by(audit_entry.c.id)).mappings().all()
    assert [(row["who"], row["what"], row["reason"]) for row in trail] == [
        ("ada", "silence.add", "load test"),
        ("bob", "silence.end", "done"),
    ]
    assert (trail[0]["after"]["matchers"], trail[1]["before"]["id"]) == ({"team": "(none)"}, identity)


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"matchers": {}}, "nothing to match"),
        ({"matchers": {"colour": "red"}}, "`colour` cannot be matched"),
        ({"until": datetime(2026, 1, 1, tzinfo=UTC)}, "has passed"),
        ({"reason": " "}, "needs a reason"),
    ],
)
def test_a_silence_without_sense_is_refused(desk: Desk, facts: dict[str, Any], message: str) -> None:
    now = datetime(2026, 11, 30, tzinfo=UTC)
    given: dict[str, Any] = {"matchers": {"team": "a"}, "until": now + timedelta(days=1), "reason": "r", **facts}
    with desk.engine.begin() as connection, pytest.raises(ValueError, match=message):
        silence.add(connection, given["matchers"], until=given["until"], reason=given["reason"], who="ada", now=now)


# --- Where messages go ---


def test_rules_name_their_channels_and_others_go_to_all(desk: Desk, book: Ledger) -> None:
    desk.channels = ("ops", "finance")
    desk.rules(limit(name="one", channels=["finance"]), limit(name="two"))
    book.book("2026-11-29", "150")
    desk.evaluate(book.publish("2026-11-30 06:00"))

    assert [m["data"]["rule"] for m in desk.messages("ops")] == ["two"]
    assert [m["data"]["rule"] for m in desk.messages("finance")] == ["one", "two"]


def test_an_alert_without_a_channel_is_a_problem_and_is_told_once_there_is_one(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(channels=["pager"]))
    book.book("2026-11-29", "150")
    report = desk.evaluate(book.publish("2026-11-30 06:00"))
    assert report.problems[0].startswith("1 alert(s) had no channel to go to")

    desk.channels = ("pager",)
    desk.evaluate(book.publish("2026-11-30 07:00"))

    assert len(desk.messages("pager")) == 1


def test_a_flood_becomes_one_digest_with_the_gravest_first(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]), limit(name="grave", severity="critical", above=170, by=["team"]))
    for n in range(30):
        book.book("2026-11-29", str(150 + n), team=f"team {n}")
    snapshot = book.publish("2026-11-30 06:00")
    report = desk.evaluate(snapshot)
    desk.evaluate(snapshot)

    (message,) = desk.messages()
    assert report.messages == 1
    assert message["subject"] == "🔴 39 alerts changed at once"
    assert "- 🔴 inference cost of team team 29 is high: $179.00 on 2026-11-29" in message["text"]
    assert "and 19 more" in message["text"]
    assert {e["notice"] for e in history(desk.engine)} == {"digest"}


def test_ten_messages_are_no_flood(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(by=["team"]))
    for n in range(10):
        book.book("2026-11-29", "150", team=f"t{n}")
    desk.evaluate(book.publish("2026-11-30 06:00"))

    assert len(desk.messages()) == 10


def test_a_rule_whose_figures_cannot_be_read_is_a_problem_and_stops_no_other(desk: Desk, book: Ledger) -> None:
    desk.rules(limit(name="broken", measure="no_such_measure"), limit())
    book.book("2026-11-29", "150")
    report = desk.evaluate(book.publish("2026-11-30 06:00"))

    assert "rule `broken`: its figures cannot be read (There is no measure `no_such_measure`)" in report.problems[0]
    assert report.messages == 1


def test_the_states_of_a_removed_rule_go_and_its_events_stay(desk: Desk, book: Ledger) -> None:
    desk.rules(limit())
    book.book("2026-11-29", "150")
    desk.evaluate(book.publish("2026-11-30 06:00"))
    desk.rules(limit(name="other", above=1000))
    desk.evaluate(book.publish("2026-11-30 07:00"))

    with desk.engine.connect() as connection:
        assert list(load(connection)) == [("other", "{}")]
        assert connection.execute(select(func.count()).select_from(alert_event)).scalar_one() == 1


def test_the_shipped_rules_watch_costs_gaps_and_controls(desk: Desk, book: Ledger) -> None:
    """A month of two teams; on the last day one team runs away, a model has no price, and a part has no owner."""
    desk.rules(shipped=True)
    book.days("2026-10-26", 35, ["60", "65", "62", "58"], team="search", model="sonnet")
    book.days("2026-10-26", 34, ["30", "31", "29", "30"], team="chat", model="nova")
    book.book("2026-11-29", "31", team="chat", model="nova")
    book.book("2026-11-29", "400", team="search", model="sonnet", agent="crawler")
    book.book("2026-11-29", None, team="chat", model="brand-new", unpriced=1000)
    book.book("2026-11-29", "50", model="nova", ownerless="50", unattributed="50")

    report = desk.evaluate(book.publish("2026-11-30 06:00"))

    assert {key for key in report.firing if key[1] != '{"team":null}'} == {
        ("team-cost", '{"team":"search"}'),
        ("model-cost", '{"model":"sonnet"}'),
        ("model-cost", '{"model":"nova"}'),
        ("unpriced-tokens", '{"model":"brand-new"}'),
        ("unattributed-share", "{}"),
        ("cost-without-owner", "{}"),
    }
    assert report.problems == ()


# --- Helpers ---


def history(engine: Engine) -> list[dict[str, Any]]:
    """Every event, oldest first."""
    with engine.connect() as connection:
        return list(reversed(events(connection)))


def hush(desk: Desk, matchers: dict[str, str], *, until: str) -> str:
    now = datetime(2026, 11, 20, tzinfo=UTC)
    end = datetime.fromisoformat(until).replace(tzinfo=UTC)
    with desk.engine.begin() as connection:
        return silence.add(connection, matchers, until=end, reason="load test", who="ada", now=now)
