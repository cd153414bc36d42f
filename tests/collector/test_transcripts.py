"""Session logs of coding agents: what was answered once counts once, however often it was written down."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.writing import lines
from tests.world import World

EVENTS = """
SELECT count(*), sum(uncached_input_tokens), sum(cache_write_5m_tokens + coalesce(cache_write_1h_tokens, 0)),
    sum(cache_read_tokens), sum(output_tokens)
FROM usage_event
"""


def claude(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "claude-code", "kind": "claude_code", "location": str(folder), **more}


def codex(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "codex", "kind": "codex", "location": str(folder), **more}


def answer(output: int, at: str = "2026-10-11T02:40:21.204Z", session: str = "s-1", **more: Any) -> dict[str, Any]:
    """One writing of an answer."""
    usage = {
        "input_tokens": 3,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": output,
    }
    message = {"id": "msg_1", "role": "assistant", "model": "claude-opus-4-6", "content": "SECRET", "usage": usage}
    given = {"type": "assistant", "timestamp": at, "sessionId": session, "requestId": "req_1", "cwd": "/srv/code/shop"}
    return {**given, "uuid": f"{session}-{at}-{output}", "message": message | more.pop("message", {}), **more}


def token_count(at: str, last: int | None, total: int, **more: Any) -> dict[str, Any]:
    """A Codex event: so many input tokens of which a quarter came from the cache, and a tenth of it as output."""

    def usage(tokens: int) -> dict[str, int]:
        return {
            "input_tokens": tokens, "cached_input_tokens": tokens // 4, "output_tokens": tokens // 10,
            "reasoning_output_tokens": tokens // 20, "total_tokens": tokens + tokens // 10,
        }  # fmt: skip

    info = {"last_token_usage": usage(last) if last is not None else None, "total_token_usage": usage(total)}
    return {"timestamp": at, "type": "event_msg", "payload": {"type": "token_count", "info": info}, **more}


def attributed(house: House) -> World:
    """The events that attribution makes of a house's records."""
    world = World(house.data, as_of="2026-11-30 00:00")
    world.attribute()
    return world


@pytest.mark.samples
def test_the_cases_written_by_hand_are_four_requests(house: House, tmp_path: Path) -> None:
    cases = needs.samples("usage", "claude_code_jsonl", "HANDWRITTEN__dedupe_cases.jsonl")
    report = house.collect(claude(cases))
    assert report.total("rows_read") == 9
    assert attributed(house).rows(EVENTS) == [(4, 1_219, 23_137, 46_559, 1_003)]


@pytest.mark.samples
def test_sessions_without_usage_or_of_other_shapes_are_survived_and_counted(house: House) -> None:
    report = house.collect(claude(needs.samples("usage", "claude_code_jsonl")))
    figures = tuple(report.total(name) for name in ("rows_read", "rows_loaded", "rows_rejected", "rows_filtered"))
    assert report.ok
    # one writing stands there twice to the letter
    assert figures == (68, 29, 3, 35)
    assert {reason for _, _, reason in house.refused()} == {"not_an_object"}


@pytest.mark.samples
def test_a_session_of_codex_adds_up_the_answers_and_not_the_totals(house: House) -> None:
    house.collect(codex(needs.samples("usage", "codex_jsonl")))
    assert house.rows(
        "SELECT model_raw, uncached_input_tokens, cache_read_tokens, output_tokens, reasoning_tokens FROM usage_record "
        "ORDER BY started_at"
    ) == [("gpt-5.2-codex", 750, 250, 125, 75), ("gpt-5.3-codex", 2_000, 500, 300, 200)]


@pytest.mark.parametrize("order", [(9, 9, 159), (159, 9, 9)])
def test_of_an_answer_that_grows_the_largest_writing_counts_in_any_order(
    house: House, tmp_path: Path, order: tuple[int, ...]
) -> None:
    for number, output in enumerate(order):
        lines(tmp_path / "log" / f"{number}.jsonl", [answer(output, f"2026-10-11T02:40:2{number}Z")])
        house.collect(claude(tmp_path / "log"))
    assert attributed(house).rows(EVENTS) == [(1, 3, 20, 100, 159)]
    assert attributed(house).rows("SELECT record_count FROM usage_event") == [(3,)]


def test_a_session_that_resumes_another_repeats_its_answers_and_costs_nothing(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [answer(9)])
    lines(tmp_path / "log" / "b.jsonl", [answer(9, session="s-2"), answer(5, session="s-2", requestId="req_2")])
    house.collect(claude(tmp_path / "log"))
    assert attributed(house).rows(EVENTS) == [(2, 6, 40, 200, 14)]


def test_what_claude_code_says_in_a_models_place_is_no_call(house: House, tmp_path: Path) -> None:
    rows = [
        answer(1, message={"model": "<synthetic>"}),
        answer(2, isApiErrorMessage=True),
        {"type": "user", "timestamp": "2026-10-11T02:40:21Z", "message": {"role": "user", "content": "SECRET"}},
        {"type": "summary", "summary": "SECRET"},
    ]
    lines(tmp_path / "log" / "a.jsonl", rows)
    report = house.collect(claude(tmp_path / "log"))
    assert (report.total("rows_loaded"), report.total("rows_filtered"), report.total("rows_rejected")) == (0, 4, 0)


def test_sub_agents_long_caches_searches_and_clouds_are_told(house: House, tmp_path: Path) -> None:
    usage = {
        "input_tokens": 10,
        "cache_creation_input_tokens": 9_500,
        "cache_creation": {"ephemeral_5m_input_tokens": 9_000, "ephemeral_1h_input_tokens": 500},
        "output_tokens": 120,
        "server_tool_use": {"web_search_requests": 2},
    }
    told = {"id": "msg_bdrk_01AbCdEfGhIjKlMnOpQrStUv", "usage": usage, "model": "us.anthropic.claude-haiku-4-5-v1:0"}
    lines(tmp_path / "log" / "a.jsonl", [answer(0, isSidechain=True, agentId="a1", message=told)])
    house.collect(claude(tmp_path / "log", account="111122223333", user="ada"))
    assert house.row(
        "SELECT provider, provider_response_id, scope, account_id, user_id, agent, parent_agent, task_id, "
        "cache_write_5m_tokens, cache_write_1h_tokens, other_units, semantics FROM usage_record"
    ) == (
        "aws.bedrock", "msg_bdrk_01AbCdEfGhIjKlMnOpQrStUv", "geo", "111122223333", "ada", "sub-agent", "main", "s-1",
        9_000, 500, {"web_searches": "2"}, "anthropic:disjoint",
    )  # fmt: skip
    assert house.row("SELECT claims FROM claim_set") == ({"project": "shop"},)


def test_no_word_of_a_session_is_kept(house: House, tmp_path: Path) -> None:
    broken = json.dumps(answer(3)) + "{broken SECRET"
    lines(tmp_path / "log" / "a.jsonl", [answer(9), broken, "SECRET"])
    report = house.collect(claude(tmp_path / "log"))
    assert report.total("rows_rejected") == 2
    assert b"SECRET" not in house.bytes()


def test_an_answer_of_codex_that_is_told_again_with_other_limits_is_the_same(house: House, tmp_path: Path) -> None:
    meta = {"timestamp": "2026-10-11T09:00:00Z", "type": "session_meta", "payload": {"id": "c-1", "cwd": "/srv/code"}}
    rows = [
        meta,
        {"timestamp": "2026-10-11T09:00:01Z", "type": "turn_context", "payload": {"model": "gpt-5.2-codex"}},
        token_count("2026-10-11T09:00:05Z", 1_000, 1_000),
        token_count("2026-10-11T09:00:06Z", 1_000, 1_000),
        token_count("2026-10-11T09:01:00Z", None, 3_000),
    ]
    lines(tmp_path / "log" / "rollout-1.jsonl", rows)
    # a fork begins with its parent's history
    fork = meta | {"payload": {"id": "c-2", "cwd": "/srv/code"}}
    lines(tmp_path / "log" / "rollout-2.jsonl", [fork, *rows[1:3]])
    report = house.collect(codex(tmp_path / "log"))
    assert report.ok, report.findings
    world = attributed(house)
    assert world.rows(
        "SELECT model, uncached_input_tokens, cache_read_tokens, output_tokens, reasoning_tokens FROM usage_event "
        "ORDER BY started_at"
    ) == [("gpt-5.2-codex", 750, 250, 100, 50), ("gpt-5.2-codex", 1_500, 500, 200, 100)]


@pytest.mark.parametrize("source", [claude, codex])
def test_the_same_files_again_change_nothing(house: House, tmp_path: Path, source: Any) -> None:
    rows = [answer(9)] if source is claude else [token_count("2026-10-11T09:00:05Z", 1_000, 1_000)]
    lines(tmp_path / "log" / "a.jsonl", rows)
    house.collect(source(tmp_path / "log"))
    evidence = house.evidence()
    lines(tmp_path / "log" / "a.jsonl", rows)
    house.collect(source(tmp_path / "log"))
    assert house.evidence() == evidence
