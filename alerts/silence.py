"""Silences: for a time, matching alerts are recorded but nobody is told. Every change is in the audit trail."""

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fnmatch import fnmatchcase

from sqlalchemy import Connection, select

from alerts import state
from alerts.settings import AnomalyRule, ThresholdRule
from warehouse import operations

DIMENSIONS = ("team", "app", "model", "provider", "agent", "environment", "kind")
MATCHERS = ("rule", "severity", *DIMENSIONS)
NOBODY = "(none)"


@dataclass(frozen=True)
class Silence:
    """All `matchers` must match: `rule`, `severity` or a dimension, to a glob; `(none)` is a missing dimension."""

    id: str
    matchers: Mapping[str, str]
    reason: str
    who: str
    created_at: datetime
    until: datetime


def add(
    connection: Connection, matchers: Mapping[str, str], *, until: datetime, reason: str, who: str, now: datetime
) -> str:
    """Silence what matches until `until` (UTC), and give the silence's id.

    Raises `ValueError` on no matcher or an unknown one, an `until` that has passed, and an empty reason or name.
    """
    unknown = sorted(set(matchers) - set(MATCHERS))
    if unknown or not matchers:
        what = f"`{unknown[0]}` cannot be matched" if unknown else "nothing to match"
        raise ValueError(f"{what}; write one or more of {', '.join(MATCHERS)}, e.g. team=search")
    if until <= now:
        raise ValueError(f"`until` {until:%Y-%m-%d %H:%M} UTC has passed; write a later instant")
    if not reason.strip() or not who.strip():
        raise ValueError("a silence needs a reason and the name of who asks for it")
    identity = uuid.uuid4().hex[:12]
    row = {"id": identity, "matchers": dict(matchers), "reason": reason, "who": who}
    connection.execute(state.silence.insert().values(**row, created_at=now, until=until))
    after = {**row, "until": until.isoformat()}
    operations.audit(connection, who=who, what="silence.add", reason=reason, now=now, after=after)
    return identity


def end(connection: Connection, identity: str, *, who: str, reason: str, now: datetime) -> bool:
    """End a silence before its time; False when none of that id is in force."""
    t = state.silence.c
    changed = connection.execute(
        state.silence.update()
        .where(t.id == identity, t.ended_at.is_(None), t.until > now)
        .values(ended_at=now, ended_by=who)
    )
    if not changed.rowcount:
        return False
    row = connection.execute(select(t.matchers, t.until).where(t.id == identity)).one()
    before = {"id": identity, "matchers": row.matchers, "until": row.until.isoformat()}
    operations.audit(connection, who=who, what="silence.end", reason=reason, now=now, before=before)
    return True


def active(connection: Connection, now: datetime) -> tuple[Silence, ...]:
    """The silences in force at `now`, oldest first."""
    t = state.silence.c
    rows = connection.execute(
        select(t.id, t.matchers, t.reason, t.who, t.created_at, t.until)
        .where(t.ended_at.is_(None), t.created_at <= now, t.until > now)
        .order_by(t.created_at, t.id)
    )
    return tuple(Silence(*row) for row in rows)


def matching(rule: ThresholdRule | AnomalyRule, series: str, silences: Iterable[Silence]) -> Silence | None:
    """The first silence that covers this series of this rule."""
    dimensions = json.loads(series)
    facts = {"rule": rule.name, "severity": rule.severity}
    facts |= {name: NOBODY if value is None else value for name, value in dimensions.items()}
    for silence in silences:
        if all(name in facts and fnmatchcase(facts[name], glob) for name, glob in silence.matchers.items()):
            return silence
    return None
