"""Parent spans that repeat their children: the usage counts once, whatever is delivered first."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.run import collect
from collector.settings import CollectorSettings
from tests.collector.conftest import AS_OF, Builder, House
from tests.collector.spans import AGENT, CHAT, TRACE, span, write_spans
from tests.collector.test_otlp import COUNTED, traces
from tests.warehouse.moving import differences_from_one_run
from tests.world import World

PLAIN: dict[str, Any] = {}


def kept(house: House) -> list[int]:
    """Numbers of the spans whose usage counts."""
    return [int(row[0].split(":")[1], 16) for row in house.rows("SELECT record_id FROM usage_record ORDER BY 1")]


def listed(house: House) -> list[str]:
    return [
        row[0] for row in house.rows("SELECT location FROM rejected_row WHERE reason = 'repeats_children' ORDER BY 1")
    ]


def test_cost_is_on_the_leaves_and_each_collapse_is_listed(house: House, tmp_path: Path) -> None:
    write_spans(
        tmp_path / "in" / "a.jsonl", span(1, AGENT, seconds=9), span(2, parent=1, start=1), span(3, parent=1, start=4)
    )
    house.collect(traces(tmp_path / "in"))
    assert kept(house) == [2, 3]
    assert listed(house) == [f"span {TRACE}:{1:016x}"]
    assert house.rows(COUNTED) == [(3, 2, 1, 0)]


def test_a_parent_counts_where_no_child_has_usage_and_says_so(house: House, tmp_path: Path) -> None:
    silent = {"gen_ai.operation.name": "execute_tool"}
    write_spans(tmp_path / "in" / "a.jsonl", span(1, AGENT, seconds=9), span(2, silent, parent=1, start=1))
    house.collect(traces(tmp_path / "in"))
    assert house.rows("SELECT semantics, output_tokens FROM usage_record") == [("otlp:inclusive+agent_total", 20)]


def test_a_parent_counts_where_the_only_child_failed(house: House, tmp_path: Path) -> None:
    failed = span(2, parent=1, start=1, status={"code": 2})
    write_spans(tmp_path / "in" / "a.jsonl", span(1, AGENT, seconds=9), failed)
    house.collect(traces(tmp_path / "in"))
    assert house.rows("SELECT status, output_tokens FROM usage_record ORDER BY ALL") == [
        ("failure", None),
        ("success", 20),
    ]


def test_spans_without_usage_between_parent_and_child_do_not_hide_the_child(house: House, tmp_path: Path) -> None:
    write_spans(
        tmp_path / "in" / "a.jsonl", span(1, CHAT, seconds=1), span(2, PLAIN, parent=1), span(3, PLAIN, parent=2),
        span(4, parent=3, start=50),
    )  # fmt: skip
    house.collect(traces(tmp_path / "in"))
    assert kept(house) == [4]


def test_two_calls_at_once_are_two_calls(house: House, tmp_path: Path) -> None:
    write_spans(tmp_path / "in" / "a.jsonl", span(1, seconds=9), span(2, start=1), span(3, parent=8, start=2))
    house.collect(traces(tmp_path / "in"))
    assert kept(house) == [1, 2, 3]


def test_spans_that_are_each_others_parents_are_both_kept(house: House, tmp_path: Path) -> None:
    write_spans(tmp_path / "in" / "a.jsonl", span(1, parent=2), span(2, parent=1), span(3, parent=3))
    house.collect(traces(tmp_path / "in"))
    assert kept(house) == [1, 2, 3]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_parents_and_children_in_files_of_their_own_count_once_in_any_order(
    house: House, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """The agent's file, the file of a call below it, and that of another, linked by a span that is in no file."""
    files = [[span(1, AGENT, seconds=30)], [span(2, parent=1, start=1)], [span(3, parent=77, start=5)]]
    for number in order:
        write_spans(tmp_path / "in" / f"{number}.jsonl", *files[number])
        house.collect(traces(tmp_path / "in"))
    assert kept(house) == [2, 3]
    assert listed(house) == [f"span {TRACE}:{1:016x}"]
    assert house.row("SELECT sum(output_tokens), count(DISTINCT claim_set_id) FROM usage_record") == (40, 1)


def test_a_parent_that_is_read_again_is_listed_once(house: House, tmp_path: Path) -> None:
    for number in range(3):
        write_spans(tmp_path / "in" / f"{number}.jsonl", span(1, AGENT, seconds=9), span(2, parent=1, start=1))
        house.collect(traces(tmp_path / "in"))
    assert kept(house) == [2]
    assert len(listed(house)) == 1


def test_a_withdrawn_parent_leaves_no_trace_and_its_hour_is_computed_anew(house: House, tmp_path: Path) -> None:
    write_spans(tmp_path / "in" / "a.jsonl", span(1, AGENT, seconds=9), resource={"service.name": "parent"})
    house.collect(traces(tmp_path / "in"))
    write_spans(tmp_path / "in" / "b.jsonl", span(2, parent=1, start=1), resource={"service.name": "child"})
    report = house.collect(traces(tmp_path / "in"))
    assert house.rows("SELECT claims FROM claim_set") == [({"resource.service.name": "child"},)]
    assert any("withdrawn" in note for each in report.loaded for note in each.result.notes)


def test_the_books_of_a_withdrawn_parent_are_those_of_one_run(tmp_path: Path) -> None:
    world = World(tmp_path / "data", as_of="2026-11-03 00:00")
    sources = {"prices": {"catalogue": "none"}, "sources": [traces(tmp_path / "in")]}
    for number, spans in enumerate([[span(1, AGENT, seconds=4000)], [span(2, parent=1, start=1), span(3, parent=1)]]):
        write_spans(tmp_path / "in" / f"{number}.jsonl", *spans)
        collect(world.layout, CollectorSettings.model_validate(sources), {"traces"}, AS_OF)
        world.attribute()
    assert world.rows("SELECT CAST(sum(output_tokens) AS BIGINT), count(*) FROM usage_event") == [(40, 2)]
    assert differences_from_one_run(world, tmp_path / "one-run") == []


def test_agents_that_show_nothing_below_do_not_count_beside_a_gateway(house: House, tmp_path: Path) -> None:
    write_spans(tmp_path / "in" / "a.jsonl", span(1, AGENT), span(2, start=9))
    house.collect(traces(tmp_path / "in", agent_totals=False))
    assert kept(house) == [2]
    assert house.rows(COUNTED) == [(2, 1, 0, 1)]


CHAIN = {1: None, 2: 1, 3: 2, 4: 3}


@pytest.mark.parametrize("order", [(4, 3, 2, 1), (4, 2, 1, 3), (1, 2, 3, 4), (3, 1, 4, 2)])
def test_wrappers_around_wrappers_that_come_one_by_one_count_once(
    house: House, tmp_path: Path, order: tuple[int, ...]
) -> None:
    """What was left out by an earlier load still links those above it to the call below it."""
    for number in order:
        write_spans(tmp_path / "in" / f"{number}.jsonl", span(number, parent=CHAIN[number]))
        house.collect(traces(tmp_path / "in"))
    assert kept(house) == [4]
    assert listed(house) == [
        f"span {TRACE}:{1:016x}",
        f"span {TRACE}:{2:016x} in {TRACE}:{1:016x}",
        f"span {TRACE}:{3:016x} in {TRACE}:{2:016x}",
    ]


trees = st.lists(st.tuples(st.integers(0, 7), st.booleans()), min_size=1, max_size=8)


@given(tree=trees, split=st.randoms(use_true_random=False))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_of_every_path_to_a_leaf_one_call_counts(
    build: Builder, tmp_path: Path, tree: list[tuple[int, bool]], split: Any
) -> None:
    """Any tree, in one file: exactly the calls without a call below them are kept."""
    house = build()
    folder = tmp_path / f"in-{house.data.name}"
    spans = [
        span(number, CHAT if has_usage else PLAIN, parent=parent if 0 < parent < number else None)
        for number, (parent, has_usage) in enumerate(tree, start=1)
    ]
    split.shuffle(spans)
    write_spans(folder / "a.jsonl", *spans)
    house.collect(traces(folder))

    parents = {n: (p if 0 < p < n else None) for n, (p, _) in enumerate(tree, start=1)}
    calls = {n for n, (_, has_usage) in enumerate(tree, start=1) if has_usage}
    above = set()
    for call in calls:
        at = parents[call]
        while at:
            above.add(at)
            at = parents[at]
    assert kept(house) == sorted(calls - above)
