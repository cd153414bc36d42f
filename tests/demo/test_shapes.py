"""The traffic has the shapes of the public traces (samples/README.md)."""

from collections.abc import Callable

import duckdb
import numpy as np
import pytest

from demo import shapes
from demo.calls import CallKind, Planted, Status, prompt_tokens
from demo.clock import DAY, HOUR, MINUTE
from demo.models import OUTPUT, READ
from demo.people import APP_INDEX, STAFF, TEAMS
from demo.simulation import Simulation
from tests import needs


def coding(simulation: Simulation) -> np.ndarray:
    """The main agent's ordinary calls of code-agent."""
    calls = simulation.calls
    mine = (calls["app"] == APP_INDEX["code-agent"]) & (calls["parent_agent"] < 0)
    return calls[mine & (calls["incident"] == Planted.NONE) & (calls["status"] == Status.SUCCESS)]


def test_coding_requests(full_month: Simulation) -> None:
    calls = coding(full_month)
    quantiles = [0.1, 0.5, 0.9, 0.99]
    prompts = np.quantile(prompt_tokens(calls), quantiles)
    assert prompts == pytest.approx([42_000, 104_000, 234_000, 499_000], rel=0.25)
    assert np.quantile(calls["tokens"][:, OUTPUT], quantiles) == pytest.approx([105, 216, 898, 3686], rel=0.2)
    took = (calls["end_us"] - calls["start_us"]) / 1e6
    assert np.quantile(took, [0.5, 0.99]) == pytest.approx([6.1, 61], rel=0.2)
    assert np.mean(prompt_tokens(calls) > 200_000) == pytest.approx(0.105, abs=0.03)


def test_coding_cache_hits(full_month: Simulation) -> None:
    calls = coding(full_month)
    assert calls["tokens"][:, READ].sum() / prompt_tokens(calls).sum() == pytest.approx(0.916, abs=0.02)


def test_coding_tasks(full_month: Simulation) -> None:
    calls = coding(full_month)
    _, lengths = np.unique(calls["trace"], return_counts=True)
    assert np.median(lengths) == pytest.approx(45, rel=0.15)
    assert lengths.max() <= 561
    minutes = [np.ptp(calls["start_us"][calls["trace"] == trace]) / MINUTE for trace in np.unique(calls["trace"])[:400]]
    assert np.median(minutes) == pytest.approx(60, rel=0.6)


@pytest.mark.parametrize(
    ("app", "inputs", "outputs"),
    [
        ("assistant", (1_020, 4_142), 129),  # Azure 2023 conversation: input p50 and p99, output p50
        ("code-complete", (1_469, 7_436), 13),  # Azure 2023 code
        ("product-search", (6_909, 85_400), 350),  # Mooncake conversation
    ],
)
def test_interactive_tokens(full_month: Simulation, app: str, inputs: tuple[int, int], outputs: int) -> None:
    calls = full_month.calls
    mine = calls[
        (calls["app"] == APP_INDEX[app]) & (calls["kind"] == CallKind.CHAT) & (calls["status"] == Status.SUCCESS)
    ]
    assert np.quantile(prompt_tokens(mine), [0.5, 0.99]) == pytest.approx(inputs, rel=0.15)
    assert np.median(mine["tokens"][:, OUTPUT]) == pytest.approx(outputs, rel=0.15)


def test_calls_come_in_bursts(full_month: Simulation) -> None:
    """In an ordinary working hour the minutes differ more than those of a Poisson stream would."""
    starts = full_month.calls["start_us"][full_month.calls["app"] == APP_INDEX["product-search"]]
    counts = np.bincount((starts - full_month.window.start_us) // MINUTE, minlength=30 * 24 * 60)
    busy = counts.reshape(-1, 60)[20 : 24 * 10 : 24]  # eight in the evening, ten days
    assert np.mean(busy.var(axis=1) / busy.mean(axis=1)) > 1.5


def test_days_and_nights_and_weekends(full_month: Simulation) -> None:
    window, calls = full_month.window, full_month.calls
    starts = calls["start_us"][calls["app"] == APP_INDEX["code-complete"]] - window.start_us
    per_day = np.bincount(starts // DAY, minlength=window.days)
    weekend = np.array([window.weekday(day) >= 5 for day in range(window.days)])
    assert per_day[weekend].mean() < 0.4 * per_day[~weekend].mean()
    per_hour = np.bincount(starts // HOUR % 24, minlength=24)
    assert per_hour[9:17].mean() > 8 * per_hour[0:5].mean()


def test_the_company_has_its_people(full_month: Simulation) -> None:
    calls = full_month.calls
    assert len(TEAMS) == 7
    assert len(np.unique(calls["app"])) >= 14
    assert len(np.unique(calls["user"][calls["app"] == APP_INDEX["code-complete"]])) > 0.9 * STAFF


@pytest.mark.samples
@pytest.mark.parametrize(
    ("table", "query"),
    [
        (shapes.COMPLETION_INPUT, "SELECT ContextTokens AS v FROM '{}/azure_llm_2023/AzureLLMInferenceTrace_code.csv'"),
        (shapes.RETRIEVAL_INPUT, "SELECT input_length AS v FROM '{}/mooncake_fast25/conversation_trace.jsonl'"),
        (shapes.RETRIEVAL_OUTPUT, "SELECT output_length AS v FROM '{}/mooncake_fast25/conversation_trace.jsonl'"),
        (
            shapes.CODING_OUTPUT,
            "SELECT output_tokens AS v FROM '{}/claude_code_agentic/agentic_requests.parquet'"
            " WHERE duplicate_of IS NULL AND output_tokens > 0",
        ),
        (
            shapes.CODING_REQUESTS,
            "SELECT count(*) AS v FROM '{}/claude_code_agentic/agentic_requests.parquet'"
            " WHERE duplicate_of IS NULL GROUP BY trace_id",
        ),
    ],
    ids=["completion input", "retrieval input", "retrieval output", "coding output", "coding requests"],
)
def test_quantile_tables_are_those_of_the_traces(table: shapes.Quantiles, query: str) -> None:
    traces = needs.samples() / "traces"
    wanted = [0.1, 0.25, 0.5, 0.75, 0.9, 0.99]
    (real,) = duckdb.sql(f"SELECT quantile_cont(v, {wanted}) FROM ({query.format(traces)})").fetchone() or ([],)
    assert table.at(np.array(wanted)) == pytest.approx(real, rel=0.1)


def test_quantiles_interpolate_between_their_values() -> None:
    table = shapes.Quantiles((0.0, 0.5, 1.0), (1, 10, 1000))
    at: Callable[[float], float] = lambda probability: float(table.at(np.array(probability)))  # noqa: E731
    assert at(0.0) == pytest.approx(1)
    assert at(0.25) == pytest.approx(10**0.5)
    assert at(0.75) == pytest.approx(100)
    assert at(1.0) == pytest.approx(1000)
