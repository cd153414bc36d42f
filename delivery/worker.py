"""The worker: claims what is due, sends it, and records what happened; any number of them may run at once."""

import hashlib
import logging
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, Engine, and_, func, or_, select
from sqlalchemy.exc import SQLAlchemyError

from delivery.channels import Channel
from delivery.message import Message
from delivery.outbox import delivery_attempt, outbox_message
from delivery.outcome import Failed, LeaseLost, Outcome, Retry, Sent, Uncertain
from delivery.settings import BackOffSettings
from delivery.transport import Envelope, redact

log = logging.getLogger(__name__)

_m = outbox_message.c
_a = delivery_attempt.c


@dataclass
class DeliveryReport:
    """What one run did, in messages. `problems` are lines for a person, each with what to do."""

    sent: int = 0
    retried: int = 0
    failed: int = 0
    uncertain: int = 0
    recovered: int = 0
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Claim:
    """A message that this worker, and no other, may send until its lease ends."""

    seq: int
    token: str
    attempt: int
    give_up_at: datetime
    envelope: Envelope


class Clock:
    """Begins at a given instant and then runs: leases and waits follow the time that sending takes."""

    def __init__(self, start: datetime) -> None:
        self._start = start
        self._began = time.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=time.monotonic() - self._began)


def deliver_due(engine: Engine, channels: Mapping[str, Channel], now: datetime) -> DeliveryReport:
    """Send everything that is due at `now` (UTC), each channel in order, and give a report.

    A channel whose oldest message has to wait is left alone: nothing overtakes. Held messages (`uncertain`,
    `failed`) do not block the ones behind them. Network trouble never raises; database trouble does, and leaves
    messages to the next run.
    """
    clock, report = Clock(now), DeliveryReport()
    _recover(engine, channels, clock, report)
    for channel in channels.values():
        while (claim := _claim(engine, channel, clock)) is not None:
            _deliver(engine, channel, claim, clock, report)
    with engine.connect() as connection:
        _report_unknown_channels(connection, channels, report)
    return report


def delay_seconds(key: str, attempt: int, policy: BackOffSettings) -> float:
    """How long to wait after failed attempt number `attempt`: doubling, capped, and 75 to 125 % of that by the key."""
    spread = int.from_bytes(hashlib.sha256(f"{key}\n{attempt}".encode()).digest()[:4], "big") / 2**32
    full = min(policy.longest_seconds, policy.first_seconds * 2.0 ** min(attempt - 1, 60))
    return full * (0.75 + spread / 2)


def _claim(engine: Engine, channel: Channel, clock: Clock) -> Claim | None:
    """Lease the channel's oldest open message if it is due and nobody has it; committed before anything is sent.

    One UPDATE decides: of two workers, the second finds the row changed and gets nothing.
    """
    now, token = clock.now(), uuid.uuid4().hex
    give_up_at = now + timedelta(hours=channel.back_off.give_up_after_hours)
    oldest = (
        select(func.min(_m.seq))
        .where(_m.channel == channel.name, _m.status.in_(("pending", "sending")))
        .scalar_subquery()
    )
    claim = (
        outbox_message.update()
        .where(_m.seq == oldest, _m.status == "pending", _m.next_attempt_at <= now)
        .values(
            status="sending",
            lease_token=token,
            lease_until=now + timedelta(seconds=channel.lease_seconds),
            attempts=_m.attempts + 1,
            give_up_at=func.coalesce(_m.give_up_at, give_up_at, type_=_m.give_up_at.type),
            request_started_at=None,
        )
        .returning(_m.seq, _m.key, _m.message, _m.attempts, _m.created_at, _m.give_up_at, _m.may_repeat)
    )
    with engine.begin() as connection:
        row = connection.execute(claim).one_or_none()
        if row is None:
            return None
        connection.execute(
            delivery_attempt.insert().values(
                message_seq=row.seq, attempt=row.attempts, lease_token=token, started_at=now
            )
        )
    message = Message.model_validate(row.message)
    envelope = Envelope(row.key, channel.name, message, row.created_at, row.may_repeat)
    return Claim(row.seq, token, row.attempts, row.give_up_at, envelope)


def _deliver(engine: Engine, channel: Channel, claim: Claim, clock: Clock, report: DeliveryReport) -> None:
    began = False

    def started() -> None:
        nonlocal began
        _note_start(engine, channel, claim, clock)
        began = True

    try:
        outcome = channel.transport.send(claim.envelope, started)
    except LeaseLost:
        log.warning("message %s on %s was taken over by another worker before it was sent", claim.seq, channel.name)
        return
    except SQLAlchemyError:
        raise
    except Exception as error:  # a defect in a channel must neither stop the others nor double a message
        said = redact(f"{type(error).__name__}: {error}", channel.transport.secrets())
        log.error("defect while sending message %s on %s: %s", claim.seq, channel.name, said)
        outcome = Uncertain(said) if began else Failed(said, "a defect of InferLedger, please report it")
    _finish(engine, channel, claim, _redacted(outcome, channel), clock, report)


def _note_start(engine: Engine, channel: Channel, claim: Claim, clock: Clock) -> None:
    """Commit that bytes are about to go out, and renew the lease. A worker that lost its lease stops here."""
    now = clock.now()
    with engine.begin() as connection:
        changed = connection.execute(
            outbox_message.update()
            .where(_m.seq == claim.seq, _m.lease_token == claim.token, _m.status == "sending")
            .values(request_started_at=now, lease_until=now + timedelta(seconds=channel.lease_seconds))
        )
        if not changed.rowcount:
            raise LeaseLost
        connection.execute(
            delivery_attempt.update().where(_a.lease_token == claim.token).values(request_started_at=now)
        )


def _finish(
    engine: Engine, channel: Channel, claim: Claim, outcome: Outcome, clock: Clock, report: DeliveryReport
) -> None:
    """Record the outcome. It holds even when the lease ended meanwhile, unless someone else claimed the message."""
    now = clock.now()
    values, word = _next(channel, claim, outcome, now)
    with engine.begin() as connection:
        connection.execute(
            outbox_message.update()
            .where(_m.seq == claim.seq, _m.lease_token == claim.token, _m.status != "sent")
            .values(**values)
        )
        connection.execute(
            delivery_attempt.update()
            .where(_a.lease_token == claim.token)
            .values(ended_at=now, outcome=word, detail=outcome.detail)
        )
    _count(report, channel, claim, outcome, str(values["status"]), str(values["detail"]))


def _next(channel: Channel, claim: Claim, outcome: Outcome, now: datetime) -> tuple[dict[str, object], str]:
    """The message's new values, and the attempt's word."""
    if isinstance(outcome, Sent):
        return {"status": "sent", "sent_at": now, "detail": outcome.detail}, "sent"
    if isinstance(outcome, Failed):
        return {"status": "failed", "detail": f"{outcome.detail}; {outcome.remedy}"}, "failed"
    if isinstance(outcome, Uncertain) and channel.on_uncertain == "hold":
        return {"status": "uncertain", "detail": outcome.detail}, "uncertain"
    word = "retry" if isinstance(outcome, Retry) else "uncertain"
    repeat = {"may_repeat": True} if isinstance(outcome, Uncertain) else {}
    if now >= claim.give_up_at:
        given_up = f"given up after {claim.attempt} attempts: {outcome.detail}"
        return {"status": "failed", "detail": given_up, **repeat}, word
    wait = delay_seconds(claim.envelope.key, claim.attempt, channel.back_off)
    if isinstance(outcome, Retry) and outcome.after_seconds is not None:
        wait = outcome.after_seconds
    return {
        "status": "pending",
        "next_attempt_at": now + timedelta(seconds=wait),
        "detail": outcome.detail,
        **repeat,
    }, word


def _count(report: DeliveryReport, channel: Channel, claim: Claim, outcome: Outcome, status: str, detail: str) -> None:
    subject = claim.envelope.message.subject
    if status == "sent":
        report.sent += 1
        if outcome.detail:
            report.problems.append(f"channel `{channel.name}`: message {claim.seq} was sent, but {outcome.detail}")
    elif status == "pending":
        report.retried += 1
        report.problems.append(f"channel `{channel.name}`: message {claim.seq} waits for another attempt: {detail}")
    else:
        setattr(report, status, getattr(report, status) + 1)
        report.problems.append(
            f"channel `{channel.name}`: message {claim.seq} ({subject}) is {status}: {detail}; "
            f"`inferledger alerts release {claim.seq}` sends it again"
        )
    for line in report.problems[-1:] if status != "sent" or outcome.detail else ():
        log.warning("%s", line)


def _recover(engine: Engine, channels: Mapping[str, Channel], clock: Clock, report: DeliveryReport) -> None:
    """Take back messages whose worker died: unsent ones wait again, the others are uncertain."""
    now = clock.now()
    resend = [channel.name for channel in channels.values() if channel.on_uncertain == "resend"]
    dead = and_(_m.status == "sending", _m.lease_until <= now)
    died = "the worker died after the request began"
    steps = (
        (
            _m.request_started_at.is_(None),
            "interrupted",
            {"status": "pending", "detail": "its worker died before sending"},
        ),
        (_m.channel.in_(resend), "uncertain", {"status": "pending", "may_repeat": True, "detail": died}),
        (_m.channel.not_in(resend), "uncertain", {"status": "uncertain", "detail": died}),
    )
    with engine.begin() as connection:
        for which, word, values in steps:
            rows = connection.execute(
                outbox_message.update().where(dead, which).values(values).returning(_m.seq, _m.lease_token, _m.channel)
            ).all()
            for row in rows:
                connection.execute(
                    delivery_attempt.update()
                    .where(_a.lease_token == row.lease_token)
                    .values(ended_at=now, outcome=word, detail=values["detail"])
                )
                report.recovered += 1
                line = f"channel `{row.channel}`: message {row.seq} is {values['status']}: {values['detail']}"
                report.problems.append(line)
                log.warning("%s", line)


def _report_unknown_channels(connection: Connection, channels: Mapping[str, Channel], report: DeliveryReport) -> None:
    rows = connection.execute(
        select(_m.channel, func.count())
        .where(or_(_m.status == "pending", _m.status == "sending"), _m.channel.not_in(list(channels)))
        .group_by(_m.channel)
        .order_by(_m.channel)
    )
    for name, count in rows:
        report.problems.append(
            f"{count} message(s) wait for channel `{name}`, which is not configured; add it under delivery.channels"
        )


def _redacted(outcome: Outcome, channel: Channel) -> Outcome:
    secrets = channel.transport.secrets()
    if isinstance(outcome, Sent):
        return Sent(redact(outcome.detail, secrets)) if outcome.detail else outcome
    if isinstance(outcome, Retry):
        return Retry(redact(outcome.detail, secrets), outcome.after_seconds)
    if isinstance(outcome, Failed):
        return Failed(redact(outcome.detail, secrets), outcome.remedy)
    return Uncertain(redact(outcome.detail, secrets))
