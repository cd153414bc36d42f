"""The outbox and its worker: an outage delays, but neither loses nor doubles a message."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Engine, select

from delivery import outbox
from delivery.channels import Channel, open_channels
from delivery.message import Message
from delivery.outbox import delivery_attempt, outbox_message
from delivery.outcome import Outcome, Sent
from delivery.settings import BackOffSettings, DeliverySettings
from delivery.transport import Envelope, Started
from delivery.worker import delay_seconds, deliver_due
from tests.delivery.servers import Answer, HttpServer
from tests.needs import ROOT

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = timedelta(hours=1)


def test_a_message_is_sent_once_however_often_the_worker_runs(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")

    first = deliver_due(engine, channels(slack.url), NOON)
    second = deliver_due(engine, channels(slack.url), NOON + LATER)

    assert (first.sent, second.sent) == (1, 0)
    assert slack.texts == ["one"]


def test_the_same_key_on_the_same_channel_is_one_message(engine: Engine, slack: HttpServer) -> None:
    assert put(engine, "one", key="k") is True
    assert put(engine, "something else", key="k") is False
    deliver_due(engine, channels(slack.url), NOON)
    assert put(engine, "later still", key="k") is False

    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["one"]


def test_the_same_key_on_another_channel_is_another_message(engine: Engine, slack: HttpServer) -> None:
    assert put(engine, "one", key="k", channel="ops")
    assert put(engine, "one", key="k", channel="finance")

    report = deliver_due(engine, channels(slack.url, "ops", "finance"), NOON)

    assert report.sent == 2


def test_a_message_exists_only_if_its_transaction_commits(engine: Engine, slack: HttpServer) -> None:
    with engine.connect() as connection, connection.begin() as transaction:
        outbox.enqueue(connection, key="k", channel="ops", message=Message(subject="s", text="never"), now=NOON)
        transaction.rollback()

    assert deliver_due(engine, channels(slack.url), NOON).sent == 0
    assert slack.requests == []


def test_messages_of_a_channel_arrive_in_the_order_they_were_written(engine: Engine, slack: HttpServer) -> None:
    for n in range(5):
        put(engine, f"message {n}")

    deliver_due(engine, channels(slack.url), NOON)

    assert slack.texts == [f"message {n}" for n in range(5)]


def test_an_outage_delays_but_neither_loses_nor_doubles_nor_reorders(engine: Engine) -> None:
    """Slack refuses connections, comes back with errors, then works: each message arrives once, in order."""
    slack = HttpServer()
    port, address = slack.port, slack.url
    slack.stop()
    for n in range(3):
        put(engine, f"message {n}")
    down = deliver_due(engine, channels(address), NOON)
    assert (down.sent, down.retried) == (0, 1)
    assert "no connection" in down.problems[0]

    slack = HttpServer(port)
    try:
        slack.answers += [Answer(500, "rollup_error"), Answer(503, "")]
        for hours in range(1, 4):
            deliver_due(engine, channels(address), NOON + hours * LATER)

        assert slack.texts == ["message 0", "message 1", "message 2"]
    finally:
        slack.stop()
    assert [a["outcome"] for a in attempts(engine)] == ["retry", "retry", "retry", "sent", "sent", "sent"]


def test_a_refused_connection_is_known_to_have_sent_nothing(engine: Engine, free_port: int) -> None:
    put(engine, "one")

    deliver_due(engine, channels(f"http://127.0.0.1:{free_port}/x"), NOON)

    assert attempts(engine)[0]["request_started_at"] is None
    assert statuses(engine) == ["pending"]


def test_an_unknown_host_is_tried_again(lite: Engine) -> None:
    put(lite, "one")

    report = deliver_due(lite, channels("http://no-such-host.invalid/x"), NOON)

    assert statuses(lite) == ["pending"]
    assert "no connection" in report.problems[0]


def test_slack_says_how_long_to_wait_and_is_obeyed(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(429, "rate_limited", {"Retry-After": "120"}))
    deliver_due(engine, channels(slack.url), NOON)

    assert deliver_due(engine, channels(slack.url), NOON + timedelta(seconds=110)).sent == 0
    assert deliver_due(engine, channels(slack.url), NOON + timedelta(seconds=125)).sent == 1
    assert slack.texts == ["one"]


def test_while_the_oldest_message_waits_none_overtakes_it(engine: Engine, slack: HttpServer) -> None:
    put(engine, "first")
    slack.answers.append(Answer(500))
    deliver_due(engine, channels(slack.url), NOON)
    put(engine, "second")

    deliver_due(engine, channels(slack.url), NOON + timedelta(seconds=1))
    assert slack.texts == []
    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["first", "second"]


def test_a_channel_that_is_down_does_not_stop_the_others(engine: Engine, slack: HttpServer, free_port: int) -> None:
    put(engine, "to ops", channel="ops")
    put(engine, "to finance", channel="finance")
    both = {**channels(f"http://127.0.0.1:{free_port}/x", "ops"), **channels(slack.url, "finance")}

    report = deliver_due(engine, both, NOON)

    assert (report.sent, report.retried) == (1, 1)
    assert slack.texts == ["to finance"]


@pytest.mark.parametrize(
    ("status", "body", "remedy"),
    [
        (404, "no_service", "make a new one and export it as SLACK_WEBHOOK_URL"),
        (410, "channel_is_archived", "restore it, or make a webhook for another one"),
        (400, "invalid_payload", "a defect of InferLedger, please report it"),
        (403, "action_prohibited", "an admin restricts posting there"),
        (302, "", "check the webhook in Slack and SLACK_WEBHOOK_URL"),
    ],
)
def test_what_slack_refuses_for_good_fails_with_a_remedy_and_lets_the_next_pass(
    lite: Engine, slack: HttpServer, status: int, body: str, remedy: str
) -> None:
    put(lite, "refused")
    put(lite, "fine")
    slack.answers.append(Answer(status, body, {"Location": "/elsewhere"}))

    report = deliver_due(lite, channels(slack.url), NOON)

    assert (report.failed, report.sent) == (1, 1)
    assert statuses(lite) == ["failed", "sent"]
    assert remedy in problems(lite)[0]


def test_a_failed_message_is_kept_and_can_be_released(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(404, "no_service"))
    deliver_due(engine, channels(slack.url), NOON)
    (message,) = held(engine)

    with engine.begin() as connection:
        assert outbox.release(connection, message.seq, who="ada", now=NOON + LATER)
    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["one"]  # it certainly did not arrive before, so no mark
    assert problems(engine) == ()


# --- Nobody on this side can know ---


def test_a_reply_that_is_lost_holds_the_message_instead_of_doubling_it(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    put(engine, "two")
    slack.answers.append(Answer(lost=True))

    report = deliver_due(engine, channels(slack.url), NOON)
    deliver_due(engine, channels(slack.url), NOON + 24 * LATER)

    assert (report.uncertain, report.sent) == (1, 1)
    assert slack.texts == ["one", "two"]
    assert "may or may not have arrived" in problems(engine)[0]
    assert f"`inferledger alerts release {held(engine)[0].seq}`" in problems(engine)[0]


def test_a_reply_that_does_not_come_in_time_holds_the_message(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(stall=True))

    deliver_due(engine, channels(slack.url, timeout_seconds=0.3), NOON)

    assert statuses(engine) == ["uncertain"]
    assert "no answer came back" in held(engine)[0].detail


def test_a_gateway_that_gave_up_waiting_for_slack_is_uncertain(lite: Engine, slack: HttpServer) -> None:
    put(lite, "one")
    slack.answers.append(Answer(504, "upstream timeout"))

    deliver_due(lite, channels(slack.url), NOON)

    assert statuses(lite) == ["uncertain"]


def test_a_success_that_slack_did_not_write_is_uncertain(lite: Engine, slack: HttpServer) -> None:
    put(lite, "one")
    slack.answers.append(Answer(200, "<html>Please log in to the network</html>"))

    deliver_due(lite, channels(slack.url), NOON)

    assert statuses(lite) == ["uncertain"]


def test_a_released_uncertain_message_says_that_it_may_repeat(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(lost=True))
    deliver_due(engine, channels(slack.url), NOON)
    with engine.begin() as connection:
        outbox.release(connection, held(engine)[0].seq, who="ada", now=NOON)

    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["one", "(may repeat) one"]


def test_an_uncertain_message_that_did_arrive_can_be_settled(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(lost=True))
    deliver_due(engine, channels(slack.url), NOON)

    with engine.begin() as connection:
        assert outbox.settle(connection, held(engine)[0].seq, who="ada", now=NOON)
        assert not outbox.release(connection, 1, who="ada", now=NOON)
    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["one"]
    assert problems(engine) == ()


def test_with_resend_an_uncertain_message_goes_again_with_a_mark(engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    slack.answers.append(Answer(lost=True))

    deliver_due(engine, channels(slack.url, on_uncertain="resend"), NOON)
    deliver_due(engine, channels(slack.url, on_uncertain="resend"), NOON + LATER)

    assert slack.texts == ["one", "(may repeat) one"]
    assert statuses(engine) == ["sent"]


# --- Killed with kill -9 ---


def test_killed_between_claim_and_request_it_is_sent_once_after_the_lease(
    url: str, engine: Engine, slack: HttpServer
) -> None:
    put(engine, "one")
    assert worker(url, slack, "after-claim") == -signal.SIGKILL
    assert statuses(engine) == ["sending"]

    assert deliver_due(engine, channels(slack.url), NOON + timedelta(seconds=60)).sent == 0  # the lease still holds
    report = deliver_due(engine, channels(slack.url), NOON + LATER)

    assert (report.recovered, report.sent) == (1, 1)
    assert slack.texts == ["one"]
    assert [a["outcome"] for a in attempts(engine)] == ["interrupted", "sent"]


@pytest.mark.parametrize("point", ["after-start", "before-finish"])
def test_killed_once_the_request_may_have_gone_out_it_is_held_and_never_doubled(
    url: str, engine: Engine, slack: HttpServer, point: str
) -> None:
    put(engine, "one")
    put(engine, "two")
    assert worker(url, slack, point) == -signal.SIGKILL
    arrived = slack.texts.copy()

    deliver_due(engine, channels(slack.url), NOON + LATER)
    deliver_due(engine, channels(slack.url), NOON + 2 * LATER)

    assert arrived == ([] if point == "after-start" else ["one"])
    assert slack.texts == [*arrived, "two"]
    assert [message.key for message in held(engine)] == ["one"]

    if not arrived:  # a person looked, saw nothing, and releases it: not lost
        with engine.begin() as connection:
            outbox.release(connection, held(engine)[0].seq, who="ada", now=NOON + 2 * LATER)
        deliver_due(engine, channels(slack.url), NOON + 3 * LATER)
        assert slack.texts == ["two", "(may repeat) one"]


def test_killed_while_slack_has_the_body_and_has_not_answered_it_is_held(
    url: str, engine: Engine, slack: HttpServer
) -> None:
    put(engine, "one")
    process = start_worker(url, slack, "none")
    slack.on_body = lambda: os.kill(process.pid, signal.SIGKILL)
    assert process.wait(30) == -signal.SIGKILL

    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == ["one"]
    assert [message.status for message in held(engine)] == ["uncertain"]


def test_a_worker_that_ends_normally_leaves_nothing_to_do(url: str, engine: Engine, slack: HttpServer) -> None:
    put(engine, "one")
    assert worker(url, slack, "none") == 0
    assert deliver_due(engine, channels(slack.url), NOON + LATER).sent == 0
    assert slack.texts == ["one"]


# --- Several workers ---


def test_workers_in_threads_share_the_work_and_double_nothing(engine: Engine, slack: HttpServer) -> None:
    for n in range(20):
        put(engine, f"message {n}")
    threads = [threading.Thread(target=deliver_due, args=(engine, channels(slack.url), NOON)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == [f"message {n}" for n in range(20)]


def test_workers_in_processes_share_the_work_and_double_nothing(url: str, engine: Engine, slack: HttpServer) -> None:
    for n in range(10):
        put(engine, f"message {n}")
    processes = [start_worker(url, slack, "none") for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    deliver_due(engine, channels(slack.url), NOON + LATER)

    assert slack.texts == [f"message {n}" for n in range(10)]


class Between:
    """A transport that lets something happen around its sending, and counts what it sent."""

    def __init__(self, before: Callable[[], None] = lambda: None, after: Callable[[], None] = lambda: None) -> None:
        self.before, self.after = before, after
        self.sent: list[str] = []

    def send(self, envelope: Envelope, started: Started) -> Outcome:
        self.before()
        started()
        self.sent.append(envelope.message.text)
        self.after()
        return Sent()

    def check(self) -> tuple[str, ...]:
        return ()

    def secrets(self) -> tuple[str, ...]:
        return ()


def test_a_worker_that_slept_past_its_lease_does_not_send(engine: Engine) -> None:
    """Another worker recovered and sent the message meanwhile; the sleeper notices before its first byte."""
    put(engine, "one")
    quick = Between()
    slow = Between(before=lambda: deliver_due(engine, {"ops": Channel("ops", quick)}, NOON + LATER) and None)

    report = deliver_due(engine, {"ops": Channel("ops", slow)}, NOON)

    assert (quick.sent, slow.sent) == (["one"], [])
    assert report.sent == 0
    assert statuses(engine) == ["sent"]


def test_a_slow_worker_still_knows_best_what_became_of_its_message(engine: Engine) -> None:
    """While it waits for the answer its lease ends and another worker holds the message; then the answer comes."""
    put(engine, "one")
    other = Between()
    slow = Between(after=lambda: deliver_due(engine, {"ops": Channel("ops", other)}, NOON + LATER) and None)

    deliver_due(engine, {"ops": Channel("ops", slow)}, NOON)

    assert (slow.sent, other.sent) == (["one"], [])
    assert statuses(engine) == ["sent"]


def test_a_defect_in_a_transport_holds_its_message_and_no_other(engine: Engine) -> None:
    def explode() -> None:
        raise ZeroDivisionError("division by zero")

    put(engine, "before", channel="a")
    put(engine, "after", channel="b")
    put(engine, "fine", channel="c")
    fine = Between()
    broken = {"a": Channel("a", Between(before=explode)), "b": Channel("b", Between(after=explode))}

    report = deliver_due(engine, {**broken, "c": Channel("c", fine)}, NOON)

    assert (report.failed, report.uncertain, report.sent) == (1, 1, 1)
    assert fine.sent == ["fine"]


# --- Waiting ---


def test_waits_double_up_to_the_longest_and_spread_by_a_quarter() -> None:
    policy = BackOffSettings(first_seconds=30, longest_seconds=900)
    for attempt, full in [(1, 30), (2, 60), (3, 120), (6, 900), (500, 900)]:
        waits = [delay_seconds(f"key {n}", attempt, policy) for n in range(50)]
        assert 0.75 * full <= min(waits) < max(waits) <= 1.25 * full
    assert delay_seconds("key", 1, policy) == delay_seconds("key", 1, policy)


def test_a_message_is_given_up_at_last_but_kept_and_reported(lite: Engine, free_port: int) -> None:
    put(lite, "one")
    address = f"http://127.0.0.1:{free_port}/x"
    deliver_due(lite, channels(address), NOON)

    report = deliver_due(lite, channels(address), NOON + timedelta(days=8))

    assert report.failed == 1
    assert "given up after 2 attempts" in problems(lite)[0]


def test_messages_that_wait_too_long_are_reported(lite: Engine, free_port: int) -> None:
    put(lite, "one")
    deliver_due(lite, channels(f"http://127.0.0.1:{free_port}/x"), NOON)

    with lite.connect() as connection:
        assert outbox.problems(connection, now=NOON + timedelta(minutes=5)) == ()
        (line,) = outbox.problems(connection, now=NOON + timedelta(minutes=20))
    assert line.startswith("1 message(s) wait on `ops`, the oldest for 20 minutes: no connection")


def test_messages_for_a_channel_that_is_not_configured_wait_and_are_reported(lite: Engine, slack: HttpServer) -> None:
    put(lite, "one", channel="gone")

    report = deliver_due(lite, channels(slack.url), NOON)

    assert report.problems == [
        "1 message(s) wait for channel `gone`, which is not configured; add it under delivery.channels"
    ]
    assert deliver_due(lite, channels(slack.url, "gone"), NOON + LATER).sent == 1


def test_a_missing_secret_delays_and_names_its_variable(lite: Engine, slack: HttpServer) -> None:
    put(lite, "one")
    environ: dict[str, str] = {}
    opened = open_channels(DeliverySettings.model_validate({"channels": {"ops": {"kind": "slack"}}}), environ)

    assert "SLACK_WEBHOOK_URL is not set" in deliver_due(lite, opened, NOON).problems[0]
    environ["SLACK_WEBHOOK_URL"] = slack.url
    assert deliver_due(lite, opened, NOON + LATER).sent == 1


# --- Helpers ---


def put(engine: Engine, text: str, *, key: str | None = None, channel: str = "ops") -> bool:
    with engine.begin() as connection:
        message = Message(subject=f"about {text}", text=text)
        return outbox.enqueue(connection, key=key or text, channel=channel, message=message, now=NOON)


def channels(address: str, *names: str, **options: Any) -> dict[str, Channel]:
    settings = {"channels": {name: {"kind": "slack", **options} for name in names or ("ops",)}}
    return open_channels(DeliverySettings.model_validate(settings), {"SLACK_WEBHOOK_URL": address})


def start_worker(url: str, slack: HttpServer, point: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.delivery.worker_process", url, NOON.isoformat(), point]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, "SLACK_WEBHOOK_URL": slack.url})


def worker(url: str, slack: HttpServer, point: str) -> int:
    return start_worker(url, slack, point).wait(30)


def statuses(engine: Engine) -> list[str]:
    with engine.connect() as connection:
        return list(connection.execute(select(outbox_message.c.status).order_by(outbox_message.c.seq)).scalars())


def attempts(engine: Engine) -> list[Mapping[str, Any]]:
    with engine.connect() as connection:
        return [dict(row) for row in connection.execute(select(delivery_attempt).order_by("id")).mappings()]


def held(engine: Engine) -> tuple[outbox.Held, ...]:
    with engine.connect() as connection:
        return outbox.held(connection)


def problems(engine: Engine) -> tuple[str, ...]:
    with engine.connect() as connection:
        return outbox.problems(connection, now=NOON)
