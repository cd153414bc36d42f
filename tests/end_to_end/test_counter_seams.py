"""From text to increases: known counters with restarts, gaps and births, in any split into loads."""

import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.collector.conftest import House
from tests.collector.test_openmetrics import put, source
from warehouse import attribution
from warehouse.engine import writing
from warehouse.settings import WarehouseSettings

START = datetime(2026, 11, 2, 9, 40, tzinfo=UTC).timestamp()
SEAM = 900
REACH = 300
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Scrape:
    """One look at one target: seconds, when its process started, counters by child."""

    second: int
    started: int
    counters: dict[str, int]


scrapes = st.lists(
    st.fixed_dictionaries(
        {
            "after": st.integers(5, 90) | st.sampled_from([15, 60, 299, 300, 301, 899, 900, 901]),
            "restart": st.sampled_from([False] * 6 + [True]),
            "early": st.sampled_from([1, 4, 250, 400]),
            "child": st.booleans(),
            "rise": st.tuples(st.integers(0, 900), st.integers(0, 50)),
            "seen": st.sampled_from([True] * 5 + [False]),
        }
    ),
    min_size=2,
    max_size=25,
)


def history(drawn, first_started: int) -> tuple[list[Scrape], int]:
    """What a scraper sees, and all that was really counted while it was there."""
    second, started, really = 0, first_started, 0
    counters: dict[str, int] = {"a": 17}
    found = []
    for step in drawn:
        second += step["after"]
        if step["restart"]:
            counters, started = {"a": 0}, second - min(step["early"], step["after"] - 1)
        if step["child"]:
            counters.setdefault("b", 0)
        for child, rise in zip(("a", "b"), step["rise"], strict=True):
            if child in counters:
                counters[child] += rise
                really += rise
        if step["seen"]:
            found.append(Scrape(second, started, dict(counters)))
    return found, really


def defined(seen: list[Scrape]) -> tuple[int, int]:
    """The rule of reference 4.3 in a loop: what is booked, and how many first values are unknown."""
    booked = unknown = 0
    last: dict[str, tuple[int, int]] = {}
    shown: int | None = None
    for scrape in seen:
        for child, value in scrape.counters.items():
            before = last.get(child)
            if before and scrape.second - before[0] <= SEAM:
                booked += value - before[1] if value >= before[1] else value
            elif 0 <= scrape.second - scrape.started < REACH or (shown is not None and scrape.second - shown <= REACH):
                booked += value
            else:
                unknown += 1
            last[child] = (scrape.second, value)
        shown = scrape.second
    return booked, unknown


def lines(scrape: Scrape) -> list[str]:
    target = 'instance="10.0.0.1:8000",job="vllm",namespace="llm",pod="qwen-0"'
    at = f"{START + scrape.second:.3f}"
    return [
        f"process_start_time_seconds{{{target}}} {START + scrape.started:.3f} {at}",
        *(
            f'vllm:generation_tokens_total{{engine="{child}",model_name="qwen",{target}}} {value}.0 {at}'
            for child, value in scrape.counters.items()
        ),
    ]


def booked(folder: Path, loads: list[list[str]]) -> tuple[int, int]:
    """Increases and unknown first values that attribution sees after these loads."""
    house = House(folder / "data")
    for number, load in enumerate(loads):
        put(folder / "in", f"{number:03d}.om", *load)
        assert house.collect(source(folder / "in")).ok
    with writing(house.layout, "test") as connection:
        connection.execute(
            "INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', minute), 'metrics' FROM serving_minute"
        )
        attribution.attribute(connection, WarehouseSettings(), datetime(2026, 11, 3))
        row = connection.execute(
            "SELECT coalesce(sum(increase), 0)::BIGINT, coalesce(sum(is_unknown), 0)::BIGINT FROM counter_minute "
            "WHERE concept = 'generation_tokens'"
        ).fetchone()
    assert row
    return row


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(scrapes, st.sampled_from([-100_000, -1]), st.data())
def test_any_split_gives_the_increases_that_are_defined_and_never_more_than_was_counted(drawn, first_started, data):
    seen, really = history(drawn, first_started)
    every = [line for scrape in seen for line in lines(scrape)]
    if not every:
        return
    shuffled = data.draw(st.permutations(every))
    cut = data.draw(st.integers(0, len(shuffled)))
    with tempfile.TemporaryDirectory() as folder:
        whole = booked(Path(folder) / "whole", [every])
        assert whole == defined(seen)
        # the counter stood at 17 when the first process was born
        assert whole[0] <= really + 17
        assert booked(Path(folder) / "parts", [shuffled[:cut], shuffled[cut:], shuffled[: cut // 2]]) == whole


def test_a_counter_that_is_seen_all_the_time_loses_nothing_but_its_first_value(tmp_path):
    steps = [
        {"after": 15, "restart": n == 20, "early": 5, "child": n > 10, "rise": (n, 2 * n), "seen": True}
        for n in range(40)
    ]
    seen, really = history(steps, -100_000)
    first = 17 + steps[0]["rise"][0]
    assert booked(tmp_path, [[line for scrape in seen for line in lines(scrape)]]) == (
        really + 17 - first,
        1,
    )
