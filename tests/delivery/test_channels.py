"""What each channel sends, how it reads answers, and that it keeps its secrets."""

import email
import hashlib
import hmac
import json
import logging
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import default as modern
from typing import Any

import pytest
from pydantic import ValidationError
from sqlalchemy import Engine, text

from delivery import outbox, slack
from delivery.channels import open_channels
from delivery.message import Message
from delivery.settings import DeliverySettings
from delivery.transport import Envelope, redact
from delivery.wire import retry_after_seconds
from delivery.worker import DeliveryReport, deliver_due
from tests.delivery.servers import Answer, HttpServer, SmtpServer

NOON = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
LATER = timedelta(hours=1)


# --- Slack ---


def test_slack_receives_blocks_and_a_plain_line_for_notifications(lite: Engine, slack: HttpServer) -> None:
    blocks = ({"type": "section", "text": {"type": "mrkdwn", "text": "*cost* of a & b"}},)

    send(lite, {"kind": "slack"}, Message(subject="cost < limit", text="all of it", blocks=blocks), slack.url)

    assert slack.accepted == [{"text": "cost &lt; limit", "blocks": list(blocks)}]
    assert slack.requests[0][0]["content-type"] == "application/json;charset=utf-8"


def test_what_slack_would_refuse_for_its_size_is_cut_instead() -> None:
    header = {"type": "header", "text": {"type": "plain_text", "text": "h" * 200}}
    section = {"type": "section", "text": {"type": "mrkdwn", "text": "s" * 5000}}
    fields = {"type": "section", "fields": [{"type": "mrkdwn", "text": "f" * 3000}] * 12}
    divider = {"type": "divider"}

    body = slack.payload(envelope(Message(subject="s", text="t", blocks=(header, section, fields, *[divider] * 59))))

    assert len(body["blocks"]) == 50
    assert [len(field["text"]) for field in body["blocks"][2]["fields"]] == [2000] * 10
    assert [len(block["text"]["text"]) for block in body["blocks"][:2]] == [150, 3000]
    assert body["blocks"][-1]["elements"][0]["text"] == "13 more parts are not shown"


def test_a_repetition_is_marked_in_text_and_blocks() -> None:
    blocks = ({"type": "divider"},)

    body = slack.payload(envelope(Message(subject="s", text="t", blocks=blocks), may_repeat=True))

    assert body["text"] == "(may repeat) s"
    assert body["blocks"][0]["elements"][0]["text"] == "(may repeat)"


# --- Generic webhook ---


def test_a_webhook_gets_signed_json_with_a_key_that_names_repetitions(lite: Engine, slack: HttpServer) -> None:
    message = Message(subject="s", text="t", data={"value": "12.30"})
    environ = {"HOOK": slack.url, "HOOK_KEY": "sesame"}

    send(lite, {"kind": "webhook", "url_env": "HOOK", "secret_env": "HOOK_KEY"}, message, environ=environ)

    headers, body = slack.requests[0]
    assert json.loads(body) == {
        "key": "k",
        "channel": "ops",
        "created_at": "2026-11-30T12:00:00+00:00",
        "may_repeat": False,
        "subject": "s",
        "text": "t",
        "data": {"value": "12.30"},
    }
    signed = headers["x-inferledger-timestamp"].encode() + b"." + body
    assert headers["x-inferledger-signature"] == "v1=" + hmac.new(b"sesame", signed, hashlib.sha256).hexdigest()
    assert headers["idempotency-key"] == hashlib.sha256(b"k").hexdigest()


def test_a_webhook_without_its_signing_key_sends_nothing_unsigned(lite: Engine, slack: HttpServer) -> None:
    settings = {"kind": "webhook", "url_env": "HOOK", "secret_env": "HOOK_KEY"}

    report = send(lite, settings, Message(subject="s", text="t"), environ={"HOOK": slack.url})

    assert slack.requests == []
    assert "HOOK_KEY is not set" in report.problems[0]


@pytest.mark.parametrize(("status", "outcome"), [(204, "sent"), (408, "retried"), (422, "failed"), (504, "uncertain")])
def test_a_webhook_answer_decides_by_its_status(lite: Engine, slack: HttpServer, status: int, outcome: str) -> None:
    slack.answers.append(Answer(status, ""))

    report = send(
        lite, {"kind": "webhook", "url_env": "HOOK"}, Message(subject="s", text="t"), environ={"HOOK": slack.url}
    )

    assert getattr(report, outcome) == 1


# --- Email ---


def mail(smtp: SmtpServer, **settings: Any) -> dict[str, Any]:
    fixed = {"kind": "email", "host": "127.0.0.1", "port": smtp.port, "security": "none", "sender": "costs@example.com"}
    return {**fixed, "recipients": ["ada@example.com", "bob@example.com"], "timeout_seconds": 2, **settings}


def test_an_email_has_text_and_html_and_goes_to_every_recipient_once(lite: Engine, smtp: SmtpServer) -> None:
    message = Message(subject="Costs ✓", text="Plain é", html="<p>Rich</p>")

    report = send(lite, mail(smtp), message)

    (sender, recipients, content), found = smtp.messages[0], parse(smtp)
    assert report.sent == len(smtp.messages) == 1
    assert (sender, recipients) == ("costs@example.com", ["ada@example.com", "bob@example.com"])
    assert found["Subject"] == "Costs ✓"
    assert body_of(found, "plain").strip() == "Plain é"
    assert body_of(found, "html").strip() == "<p>Rich</p>"
    assert b"Message-ID: <" in content


def test_a_repeated_email_has_the_same_id_and_says_that_it_may_repeat(lite: Engine, smtp: SmtpServer) -> None:
    smtp.hang_up_after_body = True
    report = send(lite, mail(smtp), Message(subject="s", text="t"))
    assert report.uncertain == 1

    smtp.hang_up_after_body = False
    with lite.begin() as connection:
        outbox.release(connection, outbox.held(connection)[0].seq, who="ada", now=NOON)
    deliver_due(lite, open_channels(settings_of(mail(smtp)), {}), NOON + LATER)

    first, second = parse(smtp, 0), parse(smtp, 1)
    assert first["Message-ID"] == second["Message-ID"]
    assert (first["Subject"], second["Subject"]) == ("s", "(may repeat) s")


@pytest.mark.parametrize(
    ("replies", "outcome", "detail"),
    [
        ({"DATA": "451 try later"}, "retried", "451 try later"),
        ({"DATA": "554 no"}, "failed", "554 no"),
        ({"BODY": "452 full"}, "retried", "452 full"),
        ({"BODY": "554 spam"}, "failed", "554 spam"),
        ({"MAIL": "550 unknown sender"}, "failed", "550 unknown sender"),
        ({"RCPT": "550 nobody"}, "failed", "correct the channel's `recipients`"),
        ({"RCPT TO:<bob": "450 greylisted"}, "retried", "bob@example.com: 450 greylisted"),
        ({"RCPT TO:<bob": "550 nobody"}, "sent", "bob@example.com refused: 550 nobody"),
    ],
)
def test_an_smtp_answer_decides_what_becomes_of_an_email(
    lite: Engine, smtp: SmtpServer, replies: dict[str, str], outcome: str, detail: str
) -> None:
    smtp.replies = replies

    report = send(lite, mail(smtp), Message(subject="s", text="t"))

    assert getattr(report, outcome) == 1
    assert detail in report.problems[0]
    assert len(smtp.messages) == (outcome == "sent")


def test_a_mail_server_that_is_down_is_tried_again(lite: Engine, smtp: SmtpServer, free_port: int) -> None:
    report = send(lite, mail(smtp, port=free_port), Message(subject="s", text="t"))

    assert report.retried == 1
    assert "no SMTP session" in report.problems[0]


def test_a_mail_server_that_offers_no_starttls_gets_no_message_in_the_clear(lite: Engine, smtp: SmtpServer) -> None:
    report = send(lite, mail(smtp, security="starttls"), Message(subject="s", text="t"))

    assert smtp.messages == []
    assert "check the channel's `security` and `port`" in report.problems[0]


def test_a_subject_cannot_smuggle_headers_in(lite: Engine, smtp: SmtpServer) -> None:
    send(lite, mail(smtp), Message(subject="s\r\nBcc: eve@example.com", text="t"))

    assert parse(smtp)["Subject"] == "s Bcc: eve@example.com"
    assert parse(smtp)["Bcc"] is None


# --- Secrets and settings ---


def test_no_secret_reaches_the_logs_or_the_database(
    lite: Engine, slack: HttpServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    slack.answers += [Answer(500, f"echo {slack.url}"), Answer(404, "no_service"), Answer(lost=True)]
    for n in range(3):
        send(lite, {"kind": "slack"}, Message(subject=f"s{n}", text="t"), slack.url, now=NOON + n * LATER, key=f"k{n}")

    with lite.connect() as connection:
        rows = connection.execute(text("SELECT * FROM outbox_message")).all()
        rows += connection.execute(text("SELECT * FROM delivery_attempt")).all()

    assert "very-secret-token" not in repr(rows) + caplog.text
    assert "***" in repr(rows)


def test_the_longest_secret_is_hidden_first() -> None:
    assert redact("at https://host/abc and abc", ("abc", "https://host/abc")) == "at *** and ***"


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (
            "",
            "channel `ops`: the environment variable SLACK_WEBHOOK_URL is not set; export SLACK_WEBHOOK_URL=https://...",
        ),
        ("hooks.slack.com/x", "channel `ops`: SLACK_WEBHOOK_URL holds no http(s) address"),
        ("file:///etc/passwd", "channel `ops`: SLACK_WEBHOOK_URL holds no http(s) address"),
        ("http://hooks.slack.com/x", "channel `ops`: SLACK_WEBHOOK_URL is http, which sends its secret in the clear"),
        ("http://127.0.0.1:1/x", "channel `ops`: 127.0.0.1:1 cannot be reached"),
    ],
)
def test_a_check_says_what_stops_a_channel_and_how_to_mend_it(value: str, line: str) -> None:
    opened = open_channels(settings_of({"kind": "slack"}), {"SLACK_WEBHOOK_URL": value})

    assert opened["ops"].check()[0].startswith(line)


def test_a_check_of_a_working_channel_finds_nothing_and_sends_nothing(slack: HttpServer, smtp: SmtpServer) -> None:
    settings = DeliverySettings.model_validate({"channels": {"a": {"kind": "slack"}, "b": mail(smtp)}})

    opened = open_channels(settings, {"SLACK_WEBHOOK_URL": slack.url})

    assert [channel.check() for channel in opened.values()] == [(), ()]
    assert (slack.requests, smtp.messages) == ([], [])


@pytest.mark.parametrize(
    "channel",
    [
        {"kind": "pager"},
        {"kind": "slack", "url": "https://hooks.slack.com/services/secret"},
        {"kind": "slack", "url_env": "https://hooks.slack.com/services/secret"},
        {"kind": "email", "host": "h", "sender": "nobody", "recipients": ["a@b.c"]},
        {"kind": "email", "host": "h", "sender": "a@b.c", "recipients": []},
        {"kind": "email", "host": "h", "sender": "a@b.c", "recipients": ["a@b.c"], "username_env": "USER"},
        {
            "kind": "email",
            "host": "h",
            "sender": "a@b.c",
            "recipients": ["a@b.c"],
            "username_env": "USER",
            "password_env": "PASSWORD",
            "security": "none",
        },
    ],
)
def test_a_mistake_in_a_channel_is_refused(channel: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings_of(channel)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("30", 30.0), ("Mon, 30 Nov 2026 12:01:00 GMT", 60.0), ("-5", 0.0), ("soon", None), ("inf", None), ("", None)],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(value: str, seconds: float | None) -> None:
    assert retry_after_seconds({"retry-AFTER": value}, NOON) == seconds


# --- Helpers ---


def settings_of(channel: dict[str, Any]) -> DeliverySettings:
    return DeliverySettings.model_validate({"channels": {"ops": channel}})


def send(
    engine: Engine,
    channel: dict[str, Any],
    message: Message,
    address: str = "",
    *,
    environ: dict[str, str] | None = None,
    now: datetime = NOON,
    key: str = "k",
) -> DeliveryReport:
    with engine.begin() as connection:
        outbox.enqueue(connection, key=key, channel="ops", message=message, now=NOON)
    opened = open_channels(settings_of(channel), environ or {"SLACK_WEBHOOK_URL": address})
    return deliver_due(engine, opened, now)


def envelope(message: Message, *, may_repeat: bool = False) -> Envelope:
    return Envelope("k", "ops", message, NOON, may_repeat)


def parse(smtp: SmtpServer, n: int = 0) -> EmailMessage:
    found = email.message_from_bytes(smtp.messages[n][2], policy=modern)
    assert isinstance(found, EmailMessage)
    return found


def body_of(found: EmailMessage, kind: str) -> str:
    part = found.get_body((kind,))
    assert part is not None
    return str(part.get_content())
