"""Whatever the figures do: nothing is told twice, and what began to fire ends before it begins again."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.evaluate import evaluate, gather
from alerts.machine import Transition
from alerts.settings import AlertSettings
from alerts.state import Key, State
from tests.alerts import ledger
from tests.alerts.conftest import SHIPPED
from tests.alerts.ledger import Ledger, Snapshot

START = datetime(2026, 11, 1, 6, tzinfo=UTC)
DAYS = 12
RULES = AlertSettings.model_validate(
    {
        "without": SHIPPED,
        "rules": [
            {"kind": "threshold", "name": "day", "measure": "inference_cost_usd", "above": 100, "by": ["team"]},
            {"kind": "threshold", "name": "run", "measure": "inference_cost_usd", "above": 100, "for": 3},
            {"kind": "threshold", "name": "all", "measure": "inference_cost_usd", "above": 500, "grain": "total"},
            {
                "kind": "anomaly",
                "name": "odd",
                "measure": "inference_cost_usd",
                "direction": "both",
                "seasonality": "none",
            },
        ],
    }
)

# What is written before each publication: (how many days back, team, cost); a cost of None is unknown.
# A negative cost takes the day's rows away, as a restatement does.
writes = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["a", "b"]), st.none() | st.sampled_from([-1, 0, 20, 95, 100, 101, 400])
    ),
    max_size=3,
)
histories = st.lists(writes, min_size=DAYS, max_size=DAYS)


def snapshots(history: list[list[tuple[int, str, int | None]]]) -> list[Snapshot]:
    """One publication a day, each after that day's writes."""
    book, found = Ledger(), []
    for n, batch in enumerate(history):
        now = START + timedelta(days=n)
        for back, team, cost in batch:
            day = (now - timedelta(days=back)).date().isoformat()
            if cost is not None and cost < 0:
                book.forget(day, team=team)
            else:
                book.book(day, None if cost is None else str(cost), team=team)
        found.append(book.publish(now.strftime("%Y-%m-%d %H:%M")))
    return found


def replay(days: list[Snapshot], times: int) -> list[Transition]:
    """Evaluate each snapshot `times` times, minutes apart, carrying the states on."""
    states: dict[Key, State] = {}
    seen: list[Transition] = []
    for snapshot in days:
        readings = gather(ledger, snapshot, RULES)
        for n in range(times):
            found = evaluate(readings, RULES, ("ops",), states, (), snapshot.as_of + timedelta(minutes=n))
            states = {(state.rule, state.series): state for state in found.states}
            seen += found.transitions
    return seen


def told(transitions: list[Transition]) -> list[tuple[str, str, str]]:
    return [(t.key, t.kind, t.reason) for t in transitions]


@settings(max_examples=25, deadline=None)
@given(histories, st.integers(2, 3))
def test_evaluating_every_snapshot_again_tells_nothing_more(
    history: list[list[tuple[int, str, int | None]]], times: int
) -> None:
    days = snapshots(history)
    assert told(replay(days, times)) == told(replay(days, 1))


@settings(max_examples=25, deadline=None)
@given(histories)
def test_every_key_is_new_and_every_episode_ends_before_the_next(
    history: list[list[tuple[int, str, int | None]]],
) -> None:
    transitions = replay(snapshots(history), 1)

    assert len({t.key for t in transitions}) == len(transitions)
    is_open: dict[tuple[str, str], bool] = {}
    for t in transitions:
        series = (t.rule.name, t.series)
        if t.kind == "fired":
            assert not is_open.get(series)
            assert t.judgement.verdict == "breach"
            is_open[series] = True
        elif t.kind in ("resolved", "lost", "reminder"):
            assert is_open.get(series)
            is_open[series] = t.kind != "resolved"


@given(st.decimals(0, 10**6, places=2))
def test_a_figure_fires_exactly_when_it_passes_its_limit(cost: Decimal) -> None:
    book = Ledger()
    book.book("2026-11-29", str(cost), team="a")
    fired = {t.rule.name for t in replay([book.publish("2026-11-30 06:00")], 1) if t.kind == "fired"}
    assert fired == ({"day"} if cost > 100 else set()) | ({"all"} if cost > 500 else set())
