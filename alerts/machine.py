"""The state machine: one series of one rule goes from its last state to its next. Pure, and without a clock.

    ok -> pending -> firing -> ok          `for` periods in breach; resolved once well inside the limit again
    any -> no_data, unknown, no_judgement  absent, without a figure, without enough history: none of them is ok

From firing until it resolves an *episode* is open, whatever becomes of its data meanwhile.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Literal

from alerts.data import TOTAL
from alerts.detect import Judged, Judgement
from alerts.settings import AnomalyRule, ThresholdRule
from alerts.state import State, StateName

# fired       an episode opens
# resolved    it ends
# lost        its figures went absent, unknown or beyond judgement while it was open
# reminder    it goes on, in a period that nobody was told of
# unsilenced  it goes on, and nobody was told yet
# moved       any other change
Kind = Literal["fired", "resolved", "lost", "reminder", "unsilenced", "moved"]


@dataclass(frozen=True)
class Transition:
    """One event of a series. `tell`: it deserves a message, unless a silence or a lack of channels forbids it."""

    key: str
    rule: ThresholdRule | AnomalyRule
    series: str
    kind: Kind
    from_state: StateName
    to_state: StateName
    judgement: Judgement
    since: datetime
    reason: str
    tell: bool


@dataclass(frozen=True)
class Moment:
    """What a step knows beside figures. `say` writes a figure of the rule's measure for people.

    `can_tell`: no silence matches and the rule has a channel.
    """

    manifest: str
    as_of: datetime
    now: datetime
    repeat_after: timedelta
    can_tell: bool
    say: Callable[[Decimal | None], str]


def step(
    rule: ThresholdRule | AnomalyRule, series: str, previous: State | None, judged: Judged, moment: Moment
) -> tuple[State, Transition | None]:
    """The next state and what happened, if anything. The same snapshot again, at the same time, gives nothing."""
    old = previous or State(rule.name, series, "ok", moment.as_of, "", moment.as_of)
    aim, at, reason = _aim(rule, old, judged, moment)
    kind = _kind(old, aim, at, moment)
    fires = aim == "firing" or (old.firing and aim != "ok")
    since = (old.episode_since or moment.as_of) if fires else None
    told = kind is not None and _deserves_message(rule, old, kind, aim)
    tells = told and moment.can_tell
    windows = (*judged.closed, *((judged.open,) if judged.open else ()))
    new = replace(
        old,
        state=aim,
        since=old.since if aim == old.state else moment.as_of,
        manifest=moment.manifest,
        as_of=moment.as_of,
        reason=reason or old.reason if aim == old.state else reason,
        changes=old.changes + (kind is not None),
        episode_period=(at.period if at.verdict == "breach" else old.episode_period) if fires else None,
        episode_since=since,
        notified_at=(moment.now if tells else old.notified_at) if fires else None,
        notified_period=(at.period if tells else old.notified_period) if fires else None,
        value=at.value,
        expected=at.expected,
        run=_run(old, judged, moment),
        judged={j.period: (j.verdict, None if j.value is None else str(j.value)) for j in windows},
    )
    if kind is None:
        return new, None
    key = f"alert:{rule.name}:{series}:{moment.manifest}:{new.changes}"
    began = old.episode_since or since or moment.as_of
    return new, Transition(key, rule, series, kind, old.state, aim, at, began, _reason(kind, reason), told)


def _kind(old: State, aim: StateName, at: Judgement, moment: Moment) -> Kind | None:
    if aim == "firing" and not old.firing:
        return "fired"
    if old.firing and aim == "ok":
        return "resolved"
    if old.state == "firing" and aim != "firing":
        return "lost"
    if aim == "firing" and at.verdict == "breach" and moment.can_tell:
        if old.notified_at is None:
            return "unsilenced"
        is_new = at.period == TOTAL or at.period != old.notified_period
        if is_new and moment.now - old.notified_at >= moment.repeat_after:
            return "reminder"
    return "moved" if aim != old.state else None


def _deserves_message(rule: ThresholdRule | AnomalyRule, old: State, kind: Kind, aim: StateName) -> bool:
    if kind in ("resolved", "lost"):
        return old.notified_at is not None  # nobody was told that it fired
    if kind == "moved":
        return aim == "no_data" and rule.no_data == "notify" and not old.firing
    return True


def _reason(kind: Kind, reason: str) -> str:
    if kind == "unsilenced":
        return (
            f"it fired while it was silenced or had no channel; {reason}"
            if reason
            else ("it fired while it was silenced or had no channel")
        )
    return reason


def _run(old: State, judged: Judged, moment: Moment) -> int:
    if judged.closed[-1].period != TOTAL or judged.closed[-1].verdict != "breach":
        return 0
    return old.run + (moment.manifest != old.manifest or not old.run)


def _aim(
    rule: ThresholdRule | AnomalyRule, old: State, judged: Judged, moment: Moment
) -> tuple[StateName, Judgement, str]:
    """The state to be in, the judgement it rests on, and why if that needs saying."""
    runs = _runs(judged.closed)
    newest, run = judged.closed[-1], runs[-1]
    if newest.period == TOTAL:
        run = _run(old, judged, moment)
    at = newest
    if judged.open is not None and judged.open.verdict == "breach":
        at, run = judged.open, run + 1
    if run >= rule.periods or (run and old.firing):
        return "firing", at, _news(old, at, moment)
    if old.firing:
        return _open_episode(old, judged, moment)
    for late, length in zip(reversed(judged.closed), reversed(runs), strict=True):
        if length >= rule.periods and late.period != TOTAL and _is_news(old, late):
            return "firing", late, _news(old, late, moment) or f"the figures of {late.period} came in only now"
    if run:
        return "pending", at, f"{run} of {rule.periods} periods in a row"
    rest = judged.open if newest.verdict == "absent" and judged.open is not None else newest
    return _resting(rest), rest, rest.note


def _open_episode(old: State, judged: Judged, moment: Moment) -> tuple[StateName, Judgement, str]:
    """Nothing is in breach now: resolved, still near, or without figures to tell by."""
    newest = judged.closed[-1]
    every = (*judged.closed, *((judged.open,) if judged.open else ()))
    own = next((j for j in every if j.period == old.episode_period), None)
    later = newest.period == TOTAL or newest.period > (old.episode_period or "")
    rest = newest if later or own is None else own
    if moment.manifest == old.manifest:
        return old.state, rest, old.reason  # the same figures say nothing new
    if rest.verdict == "near" or (rest.verdict == "so_far" and rest is newest):
        return "firing", rest, ""
    if rest.verdict in ("clear", "so_far"):
        return "ok", rest, _restated(old, own, moment) or f"{moment.say(rest.value)} on {rest.period}"
    return _resting(rest), rest, rest.note


def _resting(judgement: Judgement) -> StateName:
    if judgement.verdict == "absent":
        return "no_data"
    if judgement.verdict in ("unknown", "no_judgement"):
        return "unknown" if judgement.verdict == "unknown" else "no_judgement"
    return "ok"


def _runs(closed: tuple[Judgement, ...]) -> list[int]:
    """For each period, how many in a row, ending there, are in breach."""
    lengths: list[int] = []
    for judgement in closed:
        before = lengths[-1] if lengths else 0
        lengths.append(before + 1 if judgement.verdict == "breach" else 0)
    return lengths


def _is_news(old: State, judgement: Judgement) -> bool:
    return old.judged.get(judgement.period, ("", None))[0] != "breach"


def _news(old: State, at: Judgement, moment: Moment) -> str:
    """Why a breach is known only now, when the period was judged well before."""
    verdict, value = old.judged.get(at.period, (None, None))
    if verdict not in ("clear", "near") or at.value is None:
        return ""
    if value is None or Decimal(value) == at.value:
        return f"its history was restated: {at.period} was judged to be fine before"
    return f"restated: {at.period} was {moment.say(Decimal(value))} before and is {moment.say(at.value)} now"


def _restated(old: State, own: Judgement | None, moment: Moment) -> str:
    """Whether the episode ends because its own period changed, in words; empty when it does not."""
    if own is None:
        return ""
    verdict, value = old.judged.get(own.period, (None, None))
    if verdict != "breach" or value is None or own.verdict == "breach":
        return ""
    if own.value is None:
        return f"restated: {own.period} was {moment.say(Decimal(value))} before and has no figure now"
    if Decimal(value) == own.value:
        return f"its history or its rule changed: {own.period} no longer stands out"
    return f"restated: {own.period} was {moment.say(Decimal(value))} before and is {moment.say(own.value)} now"
