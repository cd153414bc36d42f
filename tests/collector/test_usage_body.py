"""What providers' APIs answer as `usage`, in disjoint classes: no token twice, none left out."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.writing import lines

CLASSES = "uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, cache_write_1h_tokens, output_tokens"


def source(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "bodies", "kind": "usage_body", "location": str(folder), "provider": "openai", **more}


def body(**more: Any) -> dict[str, Any]:
    return {"id": "c-1", "created": 1_790_000_000, "model": "m-1", **more}


@pytest.mark.samples
def test_all_recorded_bodies_give_the_listed_counts(house: House, tmp_path: Path) -> None:
    """789 bodies; a list of counts is what the package reads of one for some provider, the longest for its own."""
    recorded = json.loads(needs.samples("usage", "provider_usage", "usages.json").read_text())
    lines(
        tmp_path / "log" / "bodies.jsonl",
        [
            body(
                id=str(number),
                model=each.get("model", "unknown"),
                provider="x-ai" if "grok" in each.get("model", "") else "openai",
                **{name: each["body"][name] for name in ("usage", "usageMetadata", "meta") if name in each["body"]},
            )
            for number, each in enumerate(recorded)
        ],
    )
    report = house.collect(source(tmp_path / "log"))
    assert (report.ok, report.total("rows_loaded")) == (True, 789)
    found = house.rows(f"SELECT record_id, reasoning_tokens, other_units, {CLASSES} FROM usage_record")
    as_listed = 0
    for record_id, reasoning, units, fresh, read, short, long, output in found:
        ours = {
            "input_tokens": sum(count or 0 for count in (fresh, read, short, long)),
            "cache_read_tokens": read,
            "cache_write_tokens": (short or 0) + (long or 0),
            "output_tokens": output,
            "output_reasoning_tokens": reasoning,
            **{name: int(count) for name, count in (units or {}).items()},
        }
        listed = [_comparable(each["usage"]) for each in recorded[int(record_id)]["extracted"]]
        assert _comparable(ours) in listed, (recorded[int(record_id)]["body"], ours)
        as_listed += _comparable(ours) == max(listed, key=len)
    assert as_listed >= 783


def _comparable(counts: dict[str, Any]) -> dict[str, int]:
    """Without zeros, text (which is what is no audio, image or video), tools within the input and parts of writes."""
    parts = ("cache_write_5m_tokens", "cache_write_1h_tokens", "input_tool_tokens")
    return {name: count for name, count in counts.items() if count and "text" not in name and name not in parts}


CASES = {
    "openai chat, input holds cache reads and writes": (
        {"usage": {"prompt_tokens": 100, "completion_tokens": 9,
                   "prompt_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 20}}},
        (50, 30, 20, 0, 9), "openai.chat:inclusive+5m_assumed",
    ),
    "openai responses": (
        {"usage": {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 30}, "output_tokens": 9}},
        (70, 30, 0, 0, 9), "openai.responses:inclusive",
    ),
    "anthropic, input holds neither": (
        {"usage": {"input_tokens": 100, "cache_read_input_tokens": 30, "cache_creation_input_tokens": 20,
                   "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 15},
                   "output_tokens": 9}},
        (100, 30, 5, 15, 9), "anthropic.messages:disjoint",
    ),
    "bedrock converse": (
        {"usage": {"inputTokens": 100, "outputTokens": 9, "cacheReadInputTokens": 30, "cacheWriteInputTokens": 20,
                   "cacheDetails": [{"ttl": "1h", "inputTokens": 20}]}},
        (100, 30, 0, 20, 9), "bedrock.converse:disjoint",
    ),
    "gemini, thoughts and tool prompts stand beside": (
        {"usageMetadata": {"promptTokenCount": 100, "toolUsePromptTokenCount": 10, "cachedContentTokenCount": 30,
                           "candidatesTokenCount": 9, "thoughtsTokenCount": 4}},
        (80, 30, 0, 0, 13), "gemini:thoughts_beside",
    ),
    "xAI chat, reasoning stands beside": (
        {"provider": "x-ai", "usage": {"prompt_tokens": 100, "completion_tokens": 9,
                                       "completion_tokens_details": {"reasoning_tokens": 40}}},
        (100, 0, 0, 0, 49), "x_ai.chat:reasoning_beside",
    ),
    "cohere, what is billed": (
        {"meta": {"billed_units": {"input_tokens": 100, "output_tokens": 9}}}, (100, 0, 0, 0, 9), "cohere:billed_units",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("given", "expected", "semantics"), CASES.values(), ids=CASES)
def test_classes_are_disjoint_whatever_an_api_calls_input(
    house: House, tmp_path: Path, given: dict[str, Any], expected: tuple[int, ...], semantics: str
) -> None:
    lines(tmp_path / "log" / "a.jsonl", [body(**given)])
    house.collect(source(tmp_path / "log"))
    row = house.row(f"SELECT {CLASSES}, semantics FROM usage_record")
    assert tuple(count or 0 for count in row[:-1]) == expected
    assert row[-1] == semantics


def test_a_part_above_its_total_is_refused_with_the_reason(house: House, tmp_path: Path) -> None:
    wrong = {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 11}, "completion_tokens": 1}
    lines(tmp_path / "log" / "a.jsonl", [body(usage=wrong), body(id="c-2", usage={"prompt_tokens": 10})])
    house.collect(source(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 1, "subset_exceeds_total")]
    assert house.row(f"SELECT {CLASSES} FROM usage_record") == (10, 0, 0, 0, None), "null is not zero"


def test_a_body_without_usage_is_a_call_of_unknown_tokens(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [body()])
    house.collect(source(tmp_path / "log"))
    assert house.row(f"SELECT {CLASSES}, semantics FROM usage_record") == (None, None, None, None, None, "unknown")


def test_a_usage_that_is_no_object_is_refused_and_the_rest_kept(house: House, tmp_path: Path) -> None:
    lines(tmp_path / "log" / "a.jsonl", [body(usage=[1]), "{broken", body(id="c-2", usage={"prompt_tokens": 10})])
    house.collect(source(tmp_path / "log"))
    assert house.refused() == [("a.jsonl", 1, "wrong_type"), ("a.jsonl", 2, "malformed_json")]
    assert house.row("SELECT record_id FROM usage_record") == ("c-2",)
