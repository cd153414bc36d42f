"""The outbox: messages that wait, are being sent, were sent, or need a person.

    pending -> sending -> sent
                       -> pending    certainly not accepted; next_attempt_at says when to try again
                       -> failed     refused for good, or given up; `detail` holds the remedy
                       -> uncertain  the request went out and its outcome is unknown; a person decides

`enqueue` runs in the caller's transaction, so a message exists exactly when what it tells of exists. The table is
the only truth: a worker claims a message by a lease that is committed before anything is sent, and notes the
instant just before bytes go out. A worker that dies before that instant has sent nothing, and its message is tried
again; one that dies after it leaves `uncertain`, because no one on this side can know.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Connection,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from delivery.message import Message


class UtcDateTime(TypeDecorator[datetime]):
    """A UTC instant with its zone: `timestamptz` on PostgreSQL, zone-less UTC text on SQLite."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"{value!r} has no zone; pass an aware datetime such as datetime.now(UTC)")
        utc = value.astimezone(UTC)
        return utc.replace(tzinfo=None) if dialect.name == "sqlite" else utc

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


metadata = MetaData()
_serial = BigInteger().with_variant(Integer, "sqlite")

outbox_message = Table(
    "outbox_message",
    metadata,
    Column("seq", _serial, primary_key=True, autoincrement=True, comment="order within a channel"),
    Column("key", String, nullable=False),
    Column("channel", String, nullable=False),
    Column("message", JSON, nullable=False),
    Column("status", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("next_attempt_at", UtcDateTime, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("give_up_at", UtcDateTime, comment="set at the first attempt; after it the message is failed"),
    Column("lease_token", String),
    Column("lease_until", UtcDateTime),
    Column("request_started_at", UtcDateTime, comment="set just before bytes go out"),
    Column("sent_at", UtcDateTime),
    Column("may_repeat", Boolean, nullable=False, comment="sent before with an unknown outcome"),
    Column("detail", String, comment="the last outcome and, for a problem, its remedy"),
    UniqueConstraint("channel", "key", name="outbox_message_channel_key"),
    CheckConstraint("status IN ('pending', 'sending', 'sent', 'failed', 'uncertain')", name="outbox_message_status"),
    Index("outbox_message_open", "status", "channel", "seq"),
    sqlite_autoincrement=True,
)

delivery_attempt = Table(
    "delivery_attempt",
    metadata,
    Column("id", _serial, primary_key=True, autoincrement=True),
    Column("message_seq", _serial, ForeignKey("outbox_message.seq"), nullable=False),
    Column("attempt", Integer, nullable=False, comment="1 is the first"),
    Column("lease_token", String, nullable=False),
    Column("started_at", UtcDateTime, nullable=False),
    Column("request_started_at", UtcDateTime),
    Column("ended_at", UtcDateTime, comment="NULL: still running, or its worker died"),
    Column("outcome", String),
    Column("detail", String),
    UniqueConstraint("message_seq", "attempt", name="delivery_attempt_message_attempt"),
    CheckConstraint(
        "outcome IN ('sent', 'retry', 'failed', 'uncertain', 'interrupted')", name="delivery_attempt_outcome"
    ),
    sqlite_autoincrement=True,
)


def enqueue(connection: Connection, *, key: str, channel: str, message: Message, now: datetime | None = None) -> bool:
    """Add `message` for `channel` in the caller's transaction; True when it was added.

    The same key on the same channel again has no effect, whatever the message says, and gives False. Messages of
    one channel leave in the order in which they were added. `now` (UTC) is when it may leave; default: at once.
    """
    instant = now or datetime.now(UTC)
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = (
        insert(outbox_message)
        .values(
            key=key,
            channel=channel,
            message=message.model_dump(mode="json"),
            status="pending",
            created_at=instant,
            next_attempt_at=instant,
            attempts=0,
            may_repeat=False,
        )
        .on_conflict_do_nothing(index_elements=["channel", "key"])
        .returning(outbox_message.c.seq)
    )
    return connection.execute(statement).one_or_none() is not None


@dataclass(frozen=True)
class Held:
    """A message that waits for a person: `status` is `uncertain` or `failed`."""

    seq: int
    key: str
    channel: str
    status: str
    subject: str
    created_at: datetime
    attempts: int
    detail: str


def held(connection: Connection) -> tuple[Held, ...]:
    """Every message that will not leave by itself, oldest first."""
    t = outbox_message.c
    rows = connection.execute(
        select(t.seq, t.key, t.channel, t.status, t.message, t.created_at, t.attempts, t.detail)
        .where(t.status.in_(("uncertain", "failed")))
        .order_by(t.seq)
    )
    return tuple(
        Held(r.seq, r.key, r.channel, r.status, r.message["subject"], r.created_at, r.attempts, r.detail or "")
        for r in rows
    )


def release(connection: Connection, seq: int, *, who: str, now: datetime) -> bool:
    """Let a held message be sent again; one of unknown outcome is marked "(may repeat)". False: it is not held.

    It takes its place by its age, so it leaves before newer messages of its channel that still wait.
    """
    t = outbox_message.c
    changed = connection.execute(
        outbox_message.update()
        .where(t.seq == seq, t.status.in_(("uncertain", "failed")))
        .values(
            status="pending",
            next_attempt_at=now,
            give_up_at=None,
            may_repeat=or_(t.may_repeat, t.status == "uncertain"),
            detail=f"released by {who}",
        )
    )
    return bool(changed.rowcount)


def settle(connection: Connection, seq: int, *, who: str, now: datetime) -> bool:
    """Note that a held message needs no sending, because it arrived or no longer matters. False: it is not held."""
    t = outbox_message.c
    changed = connection.execute(
        outbox_message.update()
        .where(t.seq == seq, t.status.in_(("uncertain", "failed")))
        .values(status="sent", sent_at=now, detail=f"settled by {who} without sending again")
    )
    return bool(changed.rowcount)


def problems(connection: Connection, *, now: datetime, late_after_seconds: float = 900) -> tuple[str, ...]:
    """What is wrong with the outbox and what to do about it, one line each; for `doctor` and `alerts`."""
    lines = []
    for message in held(connection):
        what = "may or may not have arrived" if message.status == "uncertain" else "was not sent"
        lines.append(
            f"Message {message.seq} on `{message.channel}` ({message.subject}) {what}: {message.detail}. "
            f"Look there; then `inferledger alerts release {message.seq}` sends it again, "
            f"`inferledger alerts settle {message.seq}` closes it."
        )
    t = outbox_message.c
    waiting: dict[str, list[Any]] = {}
    for row in connection.execute(
        select(t.channel, t.created_at, t.detail).where(t.status.in_(("pending", "sending"))).order_by(t.seq)
    ):
        waiting.setdefault(row.channel, []).append(row)
    for channel, rows in waiting.items():
        age = (now - rows[0].created_at).total_seconds()
        if age > late_after_seconds:
            why = f": {rows[0].detail}" if rows[0].detail else ""
            lines.append(f"{len(rows)} message(s) wait on `{channel}`, the oldest for {age / 60:.0f} minutes{why}.")
    return tuple(lines)
