"""Where each series of each rule stands, and every transition it made: the tables, and reading and writing them."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite

from warehouse.operations import UtcDateTime

StateName = Literal["ok", "pending", "firing", "no_data", "unknown", "no_judgement"]
Notice = Literal["message", "digest", "silenced", "quiet"]

metadata = MetaData()

alert_state = Table(
    "alert_state",
    metadata,
    Column("rule", String, primary_key=True),
    Column("series", String, primary_key=True, comment="canonical JSON of the dimensions"),
    Column("state", String, nullable=False),
    Column("since", UtcDateTime, nullable=False, comment="as_of at which this state was entered"),
    Column("changes", Integer, nullable=False, comment="events so far; numbers them"),
    Column("episode_period", String, comment="the period whose breach opened the episode; NULL: none is open"),
    Column("episode_since", UtcDateTime, comment="as_of at which it opened"),
    Column("notified_at", UtcDateTime, comment="last message of the episode"),
    Column("notified_period", String, comment="the period that message was about"),
    Column("value", String, comment="decimal as text"),
    Column("expected", String, comment="decimal as text"),
    Column("run", Integer, nullable=False, comment="snapshots in breach in a row, for rules without periods"),
    Column("judged", JSON, nullable=False, comment="period to [verdict, value] as last judged"),
    Column("manifest", String, nullable=False),
    Column("as_of", UtcDateTime, nullable=False),
    Column("reason", String, nullable=False),
    CheckConstraint(
        "state IN ('ok', 'pending', 'firing', 'no_data', 'unknown', 'no_judgement')", name="alert_state_state"
    ),
)

alert_event = Table(
    "alert_event",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("key", String, nullable=False, comment="also the key of its message in the outbox"),
    Column("rule", String, nullable=False),
    Column("series", String, nullable=False),
    Column("kind", String, nullable=False, comment="fired, resolved, lost, reminder, unsilenced, moved"),
    Column("from_state", String, nullable=False),
    Column("to_state", String, nullable=False),
    Column("severity", String, nullable=False),
    Column("period", String),
    Column("value", String, comment="decimal as text"),
    Column("expected", String, comment="decimal as text"),
    Column("reason", String, nullable=False),
    Column("manifest", String, nullable=False),
    Column("as_of", UtcDateTime, nullable=False),
    Column("recorded_at", UtcDateTime, nullable=False),
    Column("notice", String, nullable=False, comment="message, digest, silenced, quiet"),
    Column("silence_id", String),
    UniqueConstraint("key", name="alert_event_key"),
    CheckConstraint("notice IN ('message', 'digest', 'silenced', 'quiet')", name="alert_event_notice"),
    Index("alert_event_series", "rule", "series", "id"),
    sqlite_autoincrement=True,
)

silence = Table(
    "silence",
    metadata,
    Column("id", String, primary_key=True),
    Column("matchers", JSON, nullable=False, comment="rule, severity or dimension to a glob"),
    Column("reason", String, nullable=False),
    Column("who", String, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("until", UtcDateTime, nullable=False),
    Column("ended_at", UtcDateTime),
    Column("ended_by", String),
)


@dataclass(frozen=True)
class State:
    """Where one series of one rule stands. An episode is open from firing until it resolves.

    `judged` maps a period to its last verdict and value, so that a restated figure is recognised.
    """

    rule: str
    series: str
    state: StateName
    since: datetime
    manifest: str
    as_of: datetime
    reason: str = ""
    changes: int = 0
    episode_period: str | None = None
    episode_since: datetime | None = None
    notified_at: datetime | None = None
    notified_period: str | None = None
    value: Decimal | None = None
    expected: Decimal | None = None
    run: int = 0
    judged: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    @property
    def firing(self) -> bool:
        """Whether an episode is open, whatever became of its data since."""
        return self.episode_period is not None


Key = tuple[str, str]


def load(connection: Connection) -> dict[Key, State]:
    """Every state, by rule and series."""
    found = {}
    for row in connection.execute(select(alert_state).order_by(alert_state.c.rule, alert_state.c.series)).mappings():
        values = dict(row)
        for name in ("value", "expected"):
            values[name] = Decimal(values[name]) if values[name] is not None else None
        values["judged"] = {period: (verdict, value) for period, (verdict, value) in values["judged"].items()}
        found[row["rule"], row["series"]] = State(**values)
    return found


def save(connection: Connection, states: Iterable[State], gone: Iterable[Key]) -> None:
    """Write `states` over what was there, and remove the states of `gone`, whose rule is no more."""
    for rule, series in gone:
        connection.execute(alert_state.delete().where(alert_state.c.rule == rule, alert_state.c.series == series))
    rows = [_row(state) for state in states]
    if not rows:
        return
    insert: Any = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(alert_state)
    keys = ("rule", "series")
    new = {column.name: statement.excluded[column.name] for column in alert_state.c if column.name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=new), rows)


def events(connection: Connection, *, limit: int = 100) -> tuple[dict[str, Any], ...]:
    """The newest transitions first, a mapping per row of `alert_event`."""
    rows = connection.execute(select(alert_event).order_by(alert_event.c.id.desc()).limit(limit)).mappings()
    return tuple(dict(row) for row in rows)


def _row(state: State) -> dict[str, Any]:
    row = asdict(state)
    for name in ("value", "expected"):
        row[name] = str(row[name]) if row[name] is not None else None
    row["judged"] = {period: list(judged) for period, judged in state.judged.items()}
    return row
