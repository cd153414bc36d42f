"""Outbox, alerts, silences, publications, schedules, reports, audit trail, closed periods."""

import sqlalchemy as sa
from alembic import op

revision = "operations_0001"
down_revision = None
branch_labels = None
depends_on = None

SERIAL = sa.BigInteger().with_variant(sa.Integer, "sqlite")
INSTANT = sa.DateTime(timezone=True)


def upgrade() -> None:
    _outbox()
    _alerts()
    _publications()
    _schedules()


def downgrade() -> None:
    for table in (
        "report_run",
        "job_run",
        "closed_period",
        "audit_entry",
        "publication",
        "silence",
        "alert_event",
        "alert_state",
        "delivery_attempt",
        "outbox_message",
    ):
        op.drop_table(table)


def _outbox() -> None:
    op.create_table(
        "outbox_message",
        sa.Column("seq", SERIAL, primary_key=True, autoincrement=True, comment="order within a channel"),
        sa.Column("key", sa.String, nullable=False),
        sa.Column("channel", sa.String, nullable=False),
        sa.Column("message", sa.JSON, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("next_attempt_at", INSTANT, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("give_up_at", INSTANT, comment="set at the first attempt; after it the message is failed"),
        sa.Column("lease_token", sa.String),
        sa.Column("lease_until", INSTANT),
        sa.Column("request_started_at", INSTANT, comment="set just before bytes go out"),
        sa.Column("sent_at", INSTANT),
        sa.Column("may_repeat", sa.Boolean, nullable=False, comment="sent before with an unknown outcome"),
        sa.Column("detail", sa.String, comment="the last outcome and, for a problem, its remedy"),
        sa.UniqueConstraint("channel", "key", name="outbox_message_channel_key"),
        sa.CheckConstraint(
            "status IN ('pending', 'sending', 'sent', 'failed', 'uncertain')", name="outbox_message_status"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("outbox_message_open", "outbox_message", ["status", "channel", "seq"])
    op.create_table(
        "delivery_attempt",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("message_seq", SERIAL, sa.ForeignKey("outbox_message.seq"), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False, comment="1 is the first"),
        sa.Column("lease_token", sa.String, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("request_started_at", INSTANT),
        sa.Column("ended_at", INSTANT, comment="NULL: still running, or its worker died"),
        sa.Column("outcome", sa.String),
        sa.Column("detail", sa.String),
        sa.UniqueConstraint("message_seq", "attempt", name="delivery_attempt_message_attempt"),
        sa.CheckConstraint(
            "outcome IN ('sent', 'retry', 'failed', 'uncertain', 'interrupted')", name="delivery_attempt_outcome"
        ),
        sqlite_autoincrement=True,
    )


def _alerts() -> None:
    op.create_table(
        "alert_state",
        sa.Column("rule", sa.String, primary_key=True),
        sa.Column("series", sa.String, primary_key=True, comment="canonical JSON of the dimensions"),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("since", INSTANT, nullable=False, comment="as_of at which this state was entered"),
        sa.Column("changes", sa.Integer, nullable=False, comment="events so far; numbers them"),
        sa.Column(
            "episode_period", sa.String, comment="the period whose breach opened the episode; NULL: none is open"
        ),
        sa.Column("episode_since", INSTANT, comment="as_of at which it opened"),
        sa.Column("notified_at", INSTANT, comment="last message of the episode"),
        sa.Column("notified_period", sa.String, comment="the period that message was about"),
        sa.Column("value", sa.String, comment="decimal as text"),
        sa.Column("expected", sa.String, comment="decimal as text"),
        sa.Column("run", sa.Integer, nullable=False, comment="snapshots in breach in a row, for rules without periods"),
        sa.Column("judged", sa.JSON, nullable=False, comment="period to [verdict, value] as last judged"),
        sa.Column("manifest", sa.String, nullable=False),
        sa.Column("as_of", INSTANT, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.CheckConstraint(
            "state IN ('ok', 'pending', 'firing', 'no_data', 'unknown', 'no_judgement')", name="alert_state_state"
        ),
    )
    op.create_table(
        "alert_event",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("key", sa.String, nullable=False, comment="also the key of its message in the outbox"),
        sa.Column("rule", sa.String, nullable=False),
        sa.Column("series", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False, comment="fired, resolved, lost, reminder, unsilenced, moved"),
        sa.Column("from_state", sa.String, nullable=False),
        sa.Column("to_state", sa.String, nullable=False),
        sa.Column("severity", sa.String, nullable=False),
        sa.Column("period", sa.String),
        sa.Column("value", sa.String, comment="decimal as text"),
        sa.Column("expected", sa.String, comment="decimal as text"),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("manifest", sa.String, nullable=False),
        sa.Column("as_of", INSTANT, nullable=False),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.Column("notice", sa.String, nullable=False, comment="message, digest, silenced, quiet"),
        sa.Column("silence_id", sa.String),
        sa.UniqueConstraint("key", name="alert_event_key"),
        sa.CheckConstraint("notice IN ('message', 'digest', 'silenced', 'quiet')", name="alert_event_notice"),
        sqlite_autoincrement=True,
    )
    op.create_index("alert_event_series", "alert_event", ["rule", "series", "id"])
    op.create_table(
        "silence",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("matchers", sa.JSON, nullable=False, comment="rule, severity or dimension to a glob"),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("until", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT),
        sa.Column("ended_by", sa.String),
    )


def _publications() -> None:
    op.create_table(
        "publication",
        sa.Column("manifest", sa.String, primary_key=True, comment="the manifest's id"),
        sa.Column("as_of", INSTANT, nullable=False, comment="evidence known up to this instant"),
        sa.Column("published_at", INSTANT, nullable=False),
        sa.Column("previous", sa.String, comment="the manifest that this one replaced"),
        sa.Column("zone", sa.String, nullable=False, comment="IANA zone in which its days are cut"),
        sa.Column("currency", sa.String, nullable=False),
        sa.Column("detail", sa.JSON, comment="files written and kept, hours recomputed, controls failed"),
    )
    op.create_table(
        "audit_entry",
        sa.Column("id", SERIAL, primary_key=True, autoincrement=True),
        sa.Column("who", sa.String, nullable=False),
        sa.Column("what", sa.String, nullable=False, comment="the act, e.g. silence.add, period.close"),
        sa.Column("recorded_at", INSTANT, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("before", sa.JSON, comment="the thing as it was; NULL when it did not exist"),
        sa.Column("after", sa.JSON, comment="the thing as it became; NULL when it ended"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "closed_period",
        sa.Column("billing_period", sa.String, primary_key=True, comment="YYYY-MM"),
        sa.Column("closed_at", INSTANT, nullable=False),
        sa.Column("closed_by", sa.String, nullable=False),
        sa.Column("manifest", sa.String, nullable=False, comment="the publication that holds the closed figures"),
    )


def _schedules() -> None:
    op.create_table(
        "job_run",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("job", sa.String, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("detail", sa.String),
    )
    op.create_table(
        "report_run",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("report", sa.String, nullable=False),
        sa.Column("period_start", INSTANT, nullable=False),
        sa.Column("period_end", INSTANT, nullable=False),
        sa.Column("manifest", sa.String, nullable=False),
        sa.Column("message_key", sa.String, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.UniqueConstraint("report", "period_start", "period_end", name="report_run_period"),
    )
