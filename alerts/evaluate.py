"""One evaluation: read a snapshot, let every series take its step, and write states, events and messages at once."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import partial

from sqlalchemy import Connection, Engine

import warehouse.measures
from alerts import detect, machine, render, silence, state, words
from alerts.contributors import Contributors
from alerts.data import TOTAL, Measures, Periods, Reading, Snapshot, identity, local_day, periods, read, series_key
from alerts.machine import Moment, Transition
from alerts.settings import AlertSettings, AnomalyRule, ThresholdRule
from alerts.silence import Silence
from alerts.state import Key, Notice, State
from delivery import outbox
from delivery.message import Message
from warehouse import operations
from warehouse.measures import UnknownMeasure

ATTEMPTS = 5

Rule = ThresholdRule | AnomalyRule
States = Mapping[Key, State]


@dataclass(frozen=True)
class EvaluationReport:
    """What one evaluation found. `problems` are lines for a person, each with what to do.

    `unjudged` names series that a rule could not judge, and why. `messages` counts those put into the outbox.
    """

    manifest: str
    as_of: datetime
    rules: int
    series: int
    firing: tuple[Key, ...]
    transitions: tuple[Transition, ...]
    messages: int
    silenced: int
    unjudged: tuple[str, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Readings:
    """Everything an evaluation needs of a snapshot: figures per rule, and the periods to judge."""

    snapshot: Snapshot
    rules: tuple[tuple[Rule, Periods, Reading], ...]
    problems: tuple[str, ...]


@dataclass(frozen=True)
class Evaluation:
    """The outcome of a pure evaluation. `gone` are states whose rule is no more."""

    states: tuple[State, ...]
    transitions: tuple[Transition, ...]
    gone: tuple[Key, ...]
    silenced: Mapping[str, str]


@dataclass
class _Outgoing:
    """Messages by channel, each with its outbox key, and how each transition was told of."""

    messages: list[tuple[str, str, Message]] = field(default_factory=list)
    notices: dict[str, Notice] = field(default_factory=dict)


def run(
    snapshot: Snapshot,
    rules: AlertSettings,
    engine: Engine,
    channels: Collection[str],
    now: datetime,
    *,
    measures: Measures = warehouse.measures,
) -> EvaluationReport:
    """Evaluate every rule on `snapshot` and put what has to be told into the outbox, in one transaction.

    `channels` are the names of the configured channels, `now` (UTC) times reminders and silences, `measures` gives
    the figures. The same snapshot again, or a run that was killed and started again, sends nothing twice. A rule
    whose figures cannot be read is a problem in the report and keeps its states; the others go on.
    """
    readings = gather(measures, snapshot, rules)
    contributors = Contributors(measures, snapshot)
    for _ in range(ATTEMPTS):
        with engine.connect() as connection:
            previous, silences = state.load(connection), silence.active(connection, now)
        evaluation = evaluate(readings, rules, channels, previous, silences, now)
        outgoing = _write_messages(evaluation, readings, rules, channels, contributors)
        with operations.begin_write(engine) as connection:
            # Figures are read outside the transaction, so another evaluation may have come between.
            if state.load(connection) != previous or silence.active(connection, now) != silences:
                continue
            return _commit(connection, evaluation, outgoing, readings, now)
    raise RuntimeError("other evaluations kept changing the alert states; let one run at a time")


def gather(measures: Measures, snapshot: Snapshot, settings: AlertSettings) -> Readings:
    """Read what every rule needs. A measure that refuses a rule's names is a problem of that rule alone."""
    found, problems = [], []
    for rule in settings.all_rules():
        window = periods(rule, snapshot, settings.look_back + rule.periods - 1)
        try:
            reading = read(measures, snapshot, rule, first=_first(rule, snapshot, window))
        except UnknownMeasure as error:
            problems.append(f"rule `{rule.name}`: its figures cannot be read ({error}); correct measure, by or where")
            continue
        found.append((rule, window, reading))
    return Readings(snapshot, tuple(found), tuple(problems))


def evaluate(
    readings: Readings,
    settings: AlertSettings,
    channels: Collection[str],
    previous: States,
    silences: Sequence[Silence],
    now: datetime,
) -> Evaluation:
    """The step of every series: a pure function of figures, previous states, silences and `now`."""
    states, transitions, silenced = [], [], {}
    for rule, window, reading in readings.rules:
        say = partial(_say, rule, readings.snapshot.currency)
        for series in _series(rule, window, reading, previous):
            covering = silence.matching(rule, series, silences)
            can_tell = covering is None and bool(_channels_of(rule, settings, channels))
            moment = Moment(
                identity(readings.snapshot),
                readings.snapshot.as_of,
                now,
                timedelta(hours=settings.repeat_after_hours),
                can_tell,
                say,
            )
            judged = detect.judge(rule, reading, series, window)
            new, transition = machine.step(rule, series, previous.get((rule.name, series)), judged, moment)
            states.append(new)
            if transition is not None:
                transitions.append(transition)
                if covering is not None:
                    silenced[transition.key] = covering.id
    known = {rule.name for rule in settings.all_rules()}
    gone = tuple(key for key in previous if key[0] not in known)
    return Evaluation(tuple(states), tuple(transitions), gone, silenced)


def _first(rule: Rule, snapshot: Snapshot, window: Periods) -> str:
    """The earliest period to read: the window, and before it the history that an anomaly is held against."""
    if window.closed[0] == TOTAL:
        return local_day(snapshot).isoformat()
    if isinstance(rule, AnomalyRule):
        return (date.fromisoformat(window.closed[0]) - timedelta(days=rule.history_days)).isoformat()
    return window.closed[0]


def _series(rule: Rule, window: Periods, reading: Reading, previous: States) -> list[str]:
    """The series to step: those with a figure in the window, those known from before, and a rule's only one."""
    looked_at = {*window.closed, window.open}
    present = {series for series, points in reading.series.items() if looked_at & points.keys()}
    known = {series for name, series in previous if name == rule.name}
    return sorted(present | known | (set() if rule.by else {series_key((), ())}))


def _say(rule: Rule, currency: str, value: Decimal | None) -> str:
    return words.figure(rule.measure, value, currency)


def _channels_of(rule: Rule, settings: AlertSettings, channels: Collection[str]) -> tuple[str, ...]:
    wanted = settings.channels if rule.channels is None else rule.channels
    if not wanted and rule.channels is None:
        return tuple(sorted(channels))
    return tuple(name for name in wanted if name in channels)


def _write_messages(
    evaluation: Evaluation,
    readings: Readings,
    settings: AlertSettings,
    channels: Collection[str],
    contributors: Contributors,
) -> _Outgoing:
    """Render what is to be told: a message each, or one digest where a channel would be flooded."""
    outgoing = _Outgoing()
    by_channel: dict[str, list[Transition]] = {}
    for transition in evaluation.transitions:
        names = _channels_of(transition.rule, settings, channels)
        outgoing.notices[transition.key] = "quiet"
        if transition.tell and transition.key in evaluation.silenced:
            outgoing.notices[transition.key] = "silenced"
        elif transition.tell and names:
            outgoing.notices[transition.key] = "message"
            for name in names:
                by_channel.setdefault(name, []).append(transition)
    windows = {rule.name: window for rule, window, _ in readings.rules}
    rendered: dict[str, Message] = {}
    for name, told in by_channel.items():
        if len(told) > settings.digest_above:
            keys = "\n".join(sorted(transition.key for transition in told))
            key = f"alert-digest:{identity(readings.snapshot)}:{hashlib.sha256(keys.encode()).hexdigest()[:16]}"
            outgoing.messages.append((name, key, render.digest(told, readings.snapshot, settings)))
            outgoing.notices |= dict.fromkeys((transition.key for transition in told), "digest")
            continue
        for transition in told:
            if transition.key not in rendered:
                first = _first(transition.rule, readings.snapshot, windows[transition.rule.name])
                parts = (
                    contributors.of(transition.rule, transition.series, transition.judgement.period, first)
                    if transition.to_state == "firing"
                    else ()
                )
                rendered[transition.key] = render.message(transition, parts, readings.snapshot, settings)
            outgoing.messages.append((name, transition.key, rendered[transition.key]))
    return outgoing


def _commit(
    connection: Connection, evaluation: Evaluation, outgoing: _Outgoing, readings: Readings, now: datetime
) -> EvaluationReport:
    snapshot = readings.snapshot
    state.save(connection, evaluation.states, evaluation.gone)
    rows = [
        {
            "key": t.key,
            "rule": t.rule.name,
            "series": t.series,
            "kind": t.kind,
            "from_state": t.from_state,
            "to_state": t.to_state,
            "severity": t.rule.severity,
            "period": t.judgement.period,
            "value": None if t.judgement.value is None else str(t.judgement.value),
            "expected": None if t.judgement.expected is None else str(t.judgement.expected),
            "reason": t.reason,
            "manifest": identity(snapshot),
            "as_of": snapshot.as_of,
            "recorded_at": now,
            "notice": outgoing.notices[t.key],
            "silence_id": evaluation.silenced.get(t.key),
        }
        for t in evaluation.transitions
    ]
    if rows:
        connection.execute(state.alert_event.insert(), rows)
    added = sum(
        outbox.enqueue(connection, key=key, channel=channel, message=message, now=now)
        for channel, key, message in outgoing.messages
    )
    unheard = sum(t.tell and outgoing.notices[t.key] == "quiet" for t in evaluation.transitions)
    problems = (
        (f"{unheard} alert(s) had no channel to go to; name one under alerts.channels or delivery.channels",)
        if unheard
        else ()
    )
    return EvaluationReport(
        manifest=identity(snapshot),
        as_of=snapshot.as_of,
        rules=len(readings.rules),
        series=len(evaluation.states),
        firing=tuple((s.rule, s.series) for s in evaluation.states if s.firing),
        transitions=evaluation.transitions,
        messages=added,
        silenced=sum(notice == "silenced" for notice in outgoing.notices.values()),
        unjudged=tuple(
            f"rule `{s.rule}`, {words.series_name(s.series)}: {s.reason}"
            for s in evaluation.states
            if s.state in ("no_data", "unknown", "no_judgement")
        ),
        problems=(*readings.problems, *problems),
    )
