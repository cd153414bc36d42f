"""Calls of everything that is not an agent: chat, retrieval, completion, drafting, and nightly batch jobs."""

import numpy as np

from demo import shapes
from demo.calls import CallKind, empty
from demo.clock import HOUR, MINUTE, SECOND, Window
from demo.models import DEPLOYMENTS, INDEX, OUTPUT, READ, UNCACHED, WRITE_5M
from demo.people import APP_INDEX, App, Kind, pick_credentials, pick_deployments, pick_users

CACHE_TTL_US = 5 * MINUTE


def arrivals(rng: np.random.Generator, n: int, window: Window, shape: shapes.DayShape) -> np.ndarray:
    """n start instants in microseconds, sorted: by hour of day and weekday, with bursts by minute and quarter-hour."""
    days = np.array([shape.weekend if window.weekday(day) >= 5 else 1.0 for day in range(window.days)])
    minutes = np.repeat(np.repeat(days, 24) * np.tile(shape.hours, window.days), 60)
    bursts = rng.gamma(shape.burst, 1 / shape.burst, len(minutes))
    swells = np.repeat(rng.gamma(4.0, 1 / 4.0, len(minutes) // 15), 15)
    load = np.cumsum(minutes * bursts * swells)
    minute = np.searchsorted(load, rng.random(n) * load[-1], side="right").clip(max=len(minutes) - 1)
    return np.sort(window.start_us + minute * MINUTE + rng.integers(0, MINUTE, n))


def amount(per_month: int, window: Window, scale: float) -> int:
    """How many of something there are in the window; never none."""
    return max(1, round(per_month * scale * window.days / 30))


def set_times(calls: np.ndarray, start_us: np.ndarray, first_token_s: np.ndarray, tokens_per_second: float) -> None:
    """Fill the three instants: first token after the prompt is read, end after the output is written."""
    calls["start_us"] = start_us
    calls["first_token_us"] = start_us + np.rint(first_token_s * SECOND).astype(np.int64)
    writing_s = calls["tokens"][:, OUTPUT] / tokens_per_second
    calls["end_us"] = calls["first_token_us"] + np.rint(writing_s * SECOND).astype(np.int64)


def identify(rng: np.random.Generator, calls: np.ndarray, app: App) -> None:
    """Fill who calls and what is called, independently per call."""
    calls["app"] = APP_INDEX[app.name]
    calls["credential"] = pick_credentials(rng, app, len(calls))
    calls["deployment"] = calls["asked_deployment"] = pick_deployments(rng, app, len(calls))
    calls["user"] = pick_users(rng, app, len(calls))
    calls["feature"] = rng.integers(0, len(app.features), len(calls))


def share_prefix(calls: np.ndarray, prefix_tokens: int) -> None:
    """Serve an application's constant prompt prefix from the model's cache, where the model has one.

    The prefix is warm when the same deployment saw it within the last five minutes; otherwise it is written anew.
    Calls must be in order of start.
    """
    for number in np.unique(calls["deployment"]):
        input_nano, read_nano, write_nano, *_ = DEPLOYMENTS[number].model.prices[DEPLOYMENTS[number].scope]
        if not read_nano or not input_nano:
            continue
        rows = np.flatnonzero(calls["deployment"] == number)
        tokens = calls["tokens"][rows]
        prefix = np.where(tokens[:, UNCACHED] > prefix_tokens, prefix_tokens, 0)
        warm = np.diff(calls["start_us"][rows], prepend=np.iinfo(np.int64).min // 2) <= CACHE_TTL_US
        tokens[:, READ] = np.where(warm, prefix, 0)
        tokens[:, WRITE_5M] = np.where(warm | (write_nano == 0), 0, prefix)
        tokens[:, UNCACHED] -= tokens[:, READ] + tokens[:, WRITE_5M]
        calls["tokens"][rows] = tokens


def interactive(rng: np.random.Generator, app: App, window: Window, scale: float) -> np.ndarray:
    """Independent calls: chat and completion after the Azure traces, drafting with longer outputs."""
    n = amount(app.per_month, window, scale)
    calls = empty(n)
    inputs, outputs, prefix = {
        Kind.CHAT: (shapes.CONVERSATION_INPUT, shapes.CONVERSATION_OUTPUT, 400),
        Kind.COMPLETION: (shapes.COMPLETION_INPUT, shapes.COMPLETION_OUTPUT, 0),
        Kind.DRAFT: (shapes.DRAFT_INPUT, shapes.DRAFT_OUTPUT, 1100),
    }[app.kind]
    calls["tokens"][:, UNCACHED] = inputs.tokens(rng, n)
    calls["tokens"][:, OUTPUT] = outputs.tokens(rng, n)
    calls["stream"] = app.kind is not Kind.COMPLETION and app.name != "ticket-triage"
    calls["trace"] = np.arange(n)
    identify(rng, calls, app)
    set_times(calls, arrivals(rng, n, window, app.shape), shapes.FIRST_TOKEN_S.sample(rng, n), 90.0)
    if prefix:
        share_prefix(calls, prefix)
    return calls


def retrieval(rng: np.random.Generator, app: App, window: Window, scale: float) -> np.ndarray:
    """Retrieval-augmented answers after the Mooncake trace: an embedding call, then an answer, in one trace."""
    n = amount(app.per_month, window, scale)
    answers = empty(n)
    answers["tokens"][:, UNCACHED] = shapes.RETRIEVAL_INPUT.tokens(rng, n)
    answers["tokens"][:, OUTPUT] = shapes.RETRIEVAL_OUTPUT.tokens(rng, n)
    answers["stream"] = app.name not in ("evals", "invoice-reader")
    answers["trace"] = np.arange(n)
    identify(rng, answers, app)
    set_times(answers, arrivals(rng, n, window, app.shape), 0.4 + shapes.FIRST_TOKEN_S.sample(rng, n), 75.0)
    share_prefix(answers, 2600)
    if app.embedding_deployment is None:
        return answers
    return np.concatenate([query_embeddings(rng, app, answers), index_refresh(rng, app, window, scale, n), answers])


def query_embeddings(rng: np.random.Generator, app: App, answers: np.ndarray) -> np.ndarray:
    """One embedding of the question before each answer."""
    calls = answers.copy()
    n = len(calls)
    calls["tokens"] = 0
    calls["tokens"][:, UNCACHED] = shapes.EMBEDDED_QUERY.tokens(rng, n)
    calls["kind"] = CallKind.EMBEDDING
    calls["stream"] = False
    calls["deployment"] = calls["asked_deployment"] = INDEX[app.embedding_deployment or ""]
    took_us = rng.integers(40_000, 180_000, n)
    calls["start_us"] = answers["start_us"] - took_us - rng.integers(20_000, 250_000, n)
    calls["first_token_us"] = calls["end_us"] = calls["start_us"] + took_us
    return calls


def index_refresh(rng: np.random.Generator, app: App, window: Window, scale: float, first_trace: int) -> np.ndarray:
    """The nightly embedding of changed documents, 60 calls a night at scale 1."""
    n = amount(60 * 30, window, scale)
    calls = empty(n)
    identify(rng, calls, app)
    calls["user"] = -1
    calls["deployment"] = calls["asked_deployment"] = INDEX[app.embedding_deployment or ""]
    calls["kind"] = CallKind.EMBEDDING
    calls["tokens"][:, UNCACHED] = shapes.EMBEDDED_CHUNKS.tokens(rng, n)
    calls["trace"] = first_trace + np.arange(n)
    start_us = arrivals(rng, n, window, shapes.NIGHT)
    calls["start_us"] = start_us
    calls["first_token_us"] = calls["end_us"] = start_us + rng.integers(200_000, 900_000, n)
    return calls


def batch(rng: np.random.Generator, app: App, window: Window, scale: float) -> np.ndarray:
    """Nightly Bedrock batch jobs, one row a job of at least 100 documents.

    assumption: the gateway polls the job and logs its completion in the hour in which AWS ends and meters it.
    """
    n = amount(app.per_month, window, scale)
    calls = empty(n)
    identify(rng, calls, app)
    calls["kind"] = CallKind.BATCH_JOB
    calls["documents"] = rng.integers(250, 1600, n)
    mean_input, mean_output = (6900, 880) if app.name == "doc-extraction" else (2600, 2300)
    calls["tokens"][:, UNCACHED] = np.rint(calls["documents"] * rng.normal(mean_input, mean_input / 18, n))
    calls["tokens"][:, OUTPUT] = np.rint(calls["documents"] * rng.normal(mean_output, mean_output / 18, n))
    calls["trace"] = np.arange(n)
    start_us = arrivals(rng, n, window, app.shape)
    calls["start_us"] = start_us
    calls["first_token_us"] = calls["end_us"] = start_us + rng.integers(HOUR // 4, 2 * HOUR, n)
    return calls


def generate(rng: np.random.Generator, app: App, window: Window, scale: float) -> np.ndarray:
    """All calls of one application that is not an agent."""
    if app.kind is Kind.RETRIEVAL:
        return retrieval(rng, app, window, scale)
    if app.kind is Kind.BATCH:
        return batch(rng, app, window, scale)
    return interactive(rng, app, window, scale)
