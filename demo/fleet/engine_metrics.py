"""What vLLM exposes on /metrics, scraped from every pod. Names and labels as of the version (metrics.md 2)."""

from collections.abc import Iterator

import numpy as np

from demo.clock import SECOND
from demo.fleet.catalogue import ADAPTERS, BATCH_VERSION, NAMESPACE, ROUTES
from demo.fleet.nodes import Replica
from demo.fleet.openmetrics import Series, Target, labels, ratios
from demo.fleet.plan import Blackout
from demo.fleet.scrapes import scrape_times

COUNTERS = {
    "vllm:prompt_tokens": "prompt",
    "vllm:generation_tokens": "generation",
    "vllm:prefix_cache_queries": "queries",
    "vllm:prefix_cache_hits": "hits",
    "vllm:num_preemptions": "preemptions",
}
GAUGES = {"vllm:num_requests_running": "running", "vllm:num_requests_waiting": "waiting"}
CREATED_ROUTE = "gpt-oss-120b"
"""This route's Prometheus keeps the `_created` series of two counters."""


def visible(at_us: np.ndarray, blackouts: list[Blackout], cluster: str, pod: str | None) -> np.ndarray:
    """bool per scrape: it was made."""
    seen = np.ones(len(at_us), dtype=bool)
    for dark in blackouts:
        if dark.cluster == cluster and dark.pod in (None, pod):
            seen &= (at_us < dark.start_us) | (at_us >= dark.end_us)
    return seen


def scraped(replica: Replica, until_us: int, blackouts: list[Blackout]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scrape instants of a pod, the counters' snapshots at them, and the number of the process that answered."""
    at, rows, lives = [], [], []
    for number, life in enumerate(replica.lives):
        if not len(life.snapshots):
            continue
        mine = np.array(scrape_times(replica, life.ready_us, min(life.ended_us, until_us)), dtype=np.int64)
        mine = mine[visible(mine, blackouts, replica.pool.cluster, replica.pod)]
        at.append(mine)
        rows.append(life.snapshots[np.searchsorted(life.snapshots["at_ns"], mine * 1000)])
        lives.append(np.full(len(mine), number))
    if not at:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64)
    return np.concatenate(at), np.concatenate(rows), np.concatenate(lives)


def series(replica: Replica, until_us: int, blackouts: list[Blackout]) -> Iterator[Series]:
    """All series of one pod."""
    at_us, rows, lives = scraped(replica, until_us, blackouts)
    if not len(at_us):
        return
    target = Target.of(at_us)
    pod = {
        "job": "vllm",
        "instance": f"{replica.ip}:8000",
        "namespace": NAMESPACE,
        "pod": replica.pod,
        "container": "vllm",
        "node": replica.node.name,
    }
    model = {"model_name": ROUTES[replica.pool.route][0], "engine": "0"}
    own = labels(**pod, **model)
    started_us = np.array([life.started_us for life in replica.lives])[lives]

    for family, name in COUNTERS.items():
        yield Series(family, "counter", f"{family}_total", own, target, rows[name].tolist())
    if replica.pool.route == CREATED_ROUTE:
        # the counters are made when the engine has loaded, some seconds before it serves
        created = [
            f"{at / SECOND:.3f}"
            for at in (np.array([life.ready_us for life in replica.lives])[lives] - 4 * SECOND).tolist()
        ]
        for family in ("vllm:prompt_tokens", "vllm:generation_tokens"):
            yield Series(family, "counter", f"{family}_created", own, target, created)
    for reason in ("stop", "length", "abort"):
        reasoned = labels(**pod, **model, finished_reason=reason)
        values = rows[reason].tolist()
        yield Series("vllm:request_success", "counter", "vllm:request_success_total", reasoned, target, values)
    if replica.version != BATCH_VERSION:
        yield from by_source(pod | model, target, rows)
    for name, column in GAUGES.items():
        yield Series(name, "gauge", name, own, target, rows[column].tolist())
    usage = ratios(rows["kv_tokens"] / replica.spec.kv_tokens)
    yield Series("vllm:kv_cache_usage_perc", "gauge", "vllm:kv_cache_usage_perc", own, target, usage)
    # of the histogram of tokens per step only the count is kept: an untyped series of its own
    steps = "vllm:iteration_tokens_total_count"
    yield Series(steps, "unknown", steps, own, target, rows["steps"].tolist())
    started = "process_start_time_seconds"
    yield Series(started, "gauge", started, labels(**pod), target, [f"{at / SECOND:.2f}" for at in started_us.tolist()])
    config = labels(
        **pod,
        engine="0",
        block_size=str(replica.spec.block_tokens),
        num_gpu_blocks=str(replica.spec.kv_tokens // replica.spec.block_tokens),
        cache_dtype="auto",
        enable_prefix_caching=str(replica.spec.caches_prefixes),
        gpu_memory_utilization="0.9",
    )
    yield Series("vllm:cache_config_info", "gauge", "vllm:cache_config_info", config, target, [1] * len(at_us))
    if replica.pool.route == "qwen3-32b":
        yield from adapters(pod, target, rows)


def by_source(common: dict[str, str], target: Target, rows: np.ndarray) -> Iterator[Series]:
    """Prompt tokens by where they came from; the three add up to the prompt tokens (since 0.19)."""
    name = "vllm:prompt_tokens_by_source"
    found = {
        "local_compute": rows["prompt"] - rows["cached"] - rows["transferred"],
        "local_cache_hit": rows["cached"],
        "external_kv_transfer": rows["transferred"],
    }
    for source, values in found.items():
        yield Series(name, "counter", f"{name}_total", labels(**common, source=source), target, values.tolist())


def adapters(pod: dict[str, str], target: Target, rows: np.ndarray) -> Iterator[Series]:
    """`vllm:lora_requests_info`: the running adapters are a label, the value is the time; each set is a series."""
    name = "vllm:lora_requests_info"
    for bits in np.unique(rows["adapters"]).tolist():
        running = ",".join(adapter for number, adapter in enumerate(ADAPTERS) if bits >> number & 1)
        own = labels(**pod, max_lora=str(len(ADAPTERS)), running_lora_adapters=running, waiting_lora_adapters="")
        when = np.flatnonzero(rows["adapters"] == bits)
        part = Target(target.at_us[when], [target.stamps[row] for row in when.tolist()])
        yield Series(name, "gauge", name, own, part, [f"{at / SECOND:.3f}" for at in part.at_us.tolist()])
