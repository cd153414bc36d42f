"""A small GPU fleet written by hand, minute by minute, for tests of every room."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from tests.world import World

P = ParamSpec("P")
R = TypeVar("R")
CLUSTER = "east"


def _at_once(write: Callable[P, R]) -> Callable[P, R]:
    """What one call writes goes through one connection: opening the warehouse costs more than its rows."""

    @wraps(write)
    def together(*args: P.args, **kwargs: P.kwargs) -> R:
        world = args[0]
        assert isinstance(world, World)
        with world.connected():
            return write(*args, **kwargs)

    return together


_cluster = CLUSTER


@contextmanager
def another_cluster(name: str) -> Iterator[None]:
    """What is written inside is told of a cluster of this name."""
    global _cluster
    _cluster = name
    try:
        yield
    finally:
        _cluster = CLUSTER


@_at_once
def node(world: World, name: str, start: str, minutes: int, *, gpus: int = 4, skip: Sequence[int] = ()) -> None:
    """A node of a cluster, seen every minute but those of `skip`; its instance is `i-<name>`."""
    labels = {"node": name, "provider_id": f"aws:///us-east-1a/i-{name}"}
    _series(world, "kube_state_metrics", "node_info", labels, node=name)
    _minutes(world, "kube_minute", "node_info", labels, start, [1] * minutes, skip)
    allocatable = {"node": name, "resource": "nvidia_com_gpu"}
    _series(world, "kube_state_metrics", "node_allocatable_gpu", allocatable, node=name)
    _minutes(world, "kube_minute", "node_allocatable_gpu", allocatable, start, [gpus] * minutes, skip)


@_at_once
def pod(
    world: World,
    name: str,
    on: str,
    start: str,
    minutes: int,
    *,
    gpus: int = 4,
    skip: Sequence[int] = (),
    ended: Sequence[int] = (),
    **labels: str,
) -> None:
    """A pod that holds GPUs of a node; `labels` are pod labels: app (its route), role, version.

    `ended`: the minute from which it no longer runs, though kube-state-metrics still shows it.
    """
    asked = {"namespace": "llm", "pod": name, "node": on, "resource": "nvidia_com_gpu"}
    _series(world, "kube_state_metrics", "pod_gpu_request", asked, node=on, pod=name)
    _minutes(world, "kube_minute", "pod_gpu_request", asked, start, [gpus] * minutes, skip)
    for n in ended:
        running = {"namespace": "llm", "pod": name, "phase": "Running"}
        _series(world, "kube_state_metrics", "pod_phase_running", running, pod=name)
        _minutes(world, "kube_minute", "pod_phase_running", running, start, [1] * n + [0] * (minutes - n), skip)
    if labels:
        told = {"namespace": "llm", "pod": name, **{f"label_{key}": value for key, value in labels.items()}}
        _series(world, "kube_state_metrics", "pod_labels", told, pod=name)
        _minutes(world, "kube_minute", "pod_labels", told, start, [1] * minutes, skip)


@_at_once
def engine(
    world: World, name: str, start: str, *, skip: Sequence[int] = (), served: str = "qwen", **samples: Sequence[int]
) -> None:
    """An engine's counters and gauges, one sample a minute: running, prompt, cached, output,
    steps, prefill, decode, born."""
    concepts = {
        "running": ("requests_running", "gauge", {}),
        "prompt": ("prompt_tokens", "counter", {}),
        "cached": ("prompt_tokens_cached", "counter", {}),
        "output": ("generation_tokens", "counter", {}),
        "steps": ("engine_steps", "counter", {}),
        "prefill": ("forward_seconds", "counter", {"category": "prefill"}),
        "decode": ("forward_seconds", "counter", {"category": "decode"}),
    }
    for word, values in samples.items():
        if word == "born":
            labels = {"job": "vllm", "instance": name}
            _series(world, "process", "process_start", labels, pod=name, target=name)
            _minutes(world, "serving_minute", "process_start", labels, start, values, skip)
            continue
        concept, kind, more = concepts[word]
        labels = {"pod": name, "namespace": "llm", "model_name": served, **more}
        _series(world, "vllm", concept, labels, pod=name, kind=kind, target=name)
        _minutes(world, "serving_minute", concept, labels, start, values, skip)


def member(world: World, resource: str, route: str, role: str, **facts: Any) -> None:
    """A row of a pool table."""
    with world.connected() as c:
        row = {
            "load_id": "table",
            "source": "table",
            "resource_id": resource,
            "cluster": CLUSTER,
            "region_id": "us-east-1",
            "route": route,
            "pool": f"{route}-{role}",
            "role": role,
            "gpus": 8,
            "valid_from": "2000-01-01",
            "valid_to": "9999-12-31",
            **facts,
        }
        world._insert(c, "pool_member", row)


def split(world: World, name: str, workload: str, start: str, gpus: str, cost: str, **facts: Any) -> None:
    """What the bill says a workload's pod had of a node's GPUs in one hour."""
    with world.connected() as c:
        row = {
            "load_id": "bill",
            "export_name": "export",
            "billing_period": start[:7],
            "currency": "USD",
            "charge_period_start": start,
            "charge_period_end": datetime.fromisoformat(start) + timedelta(hours=1),
            "parent_resource_id": f"i-{name}",
            "resource_id": f"arn:aws:eks:us-east-1:1:pod/{CLUSTER}/llm/{workload}-7d9f",
            "cluster": CLUSTER,
            "namespace": "llm",
            "workload": workload,
            "usage_type": "USE1-EKS-EC2-Accelerator-Hours",
            "split_cost": cost,
            "unused_cost": 0,
            "quantity": gpus,
            **facts,
        }
        world._insert(c, "split_cost_line", row)


def machine(world: World, name: str, start: str, cost: str, *, hours: str = "1", **facts: Any) -> None:
    """The bill line of a node's instance for one hour."""
    world.line(
        start,
        cost,
        service_name="Amazon Elastic Compute Cloud",
        resource_id=f"i-{name}",
        pricing_unit="Hrs",
        consumed_quantity=hours,
        x_usage_type="BoxUsage:g6e.12xlarge",
        **facts,
    )


def rising(step: int, minutes: int = 60, start: int = 0) -> list[int]:
    """A counter's samples, one a minute."""
    return [start + step * n for n in range(minutes)]


@_at_once
def serve(
    world: World,
    start: str,
    *,
    name: str = "p1",
    on: str = "n1",
    minutes: int = 60,
    gpus: int = 4,
    app: str = "qwen",
    prompt: int = 100,
    cached: int = 0,
    output: int = 10,
) -> None:
    """A node of four GPUs and a pod on it that is busy all the time and rises by so many tokens a minute."""
    node(world, on, start, minutes)
    pod(world, name, on, start, minutes, gpus=gpus, app=app)
    engine(
        world,
        name,
        start,
        served=app,
        running=[1] * minutes,
        prompt=rising(prompt, minutes, 1000),
        cached=rising(cached, minutes),
        output=rising(output, minutes),
        born=[1] * minutes,
    )


@_at_once
def shown(
    world: World, exporter: str, concept: str, labels: dict[str, str], start: str, values: Sequence[int], **facts: Any
) -> None:
    """One more series, with any labels, and its minutes; `facts`: kind, pod, node, target."""
    _series(world, exporter, concept, labels, **facts)
    table = "kube_minute" if exporter == "kube_state_metrics" else "serving_minute"
    _minutes(world, table, concept, labels, start, values, ())


@_at_once
def asked(world: World, ended_at: str, claims: dict[str, str], **facts: Any) -> str:
    """A call that the fleet answered."""
    return world.call(
        ended_at,
        claims,
        **{"provider": "self-hosted", "model": "qwen", "account_id": None, "scope": None, "region_id": None, **facts},
    )


def _series(
    world: World,
    exporter: str,
    concept: str,
    labels: dict[str, str],
    *,
    kind: str = "gauge",
    pod: str | None = None,
    node: str | None = None,
    target: str = "",
) -> None:
    series = _name(concept, labels)
    with world.connected() as c:
        if c.execute("SELECT 1 FROM metric_series WHERE series_id = ?", [series]).fetchone():
            return
        c.execute(
            "INSERT INTO metric_series BY NAME SELECT 'metrics' AS load_id, ? AS series_id, 'metrics' AS source, "
            "? AS engine, ? AS metric, ? AS concept, ? AS sample_kind, 'one' AS unit, ? AS cluster, ? AS target_id, "
            "'llm' AS namespace, ? AS pod, ? AS node, MAP(?::VARCHAR[], ?::VARCHAR[]) AS labels",
            [
                series,
                exporter,
                concept,
                concept,
                kind,
                _cluster,
                target,
                pod,
                node,
                list(labels),
                list(labels.values()),
            ],
        )


def _minutes(
    world: World,
    table: str,
    concept: str,
    labels: dict[str, str],
    start: str,
    values: Sequence[int],
    skip: Sequence[int],
) -> None:
    first = datetime.fromisoformat(start)
    kept = [(first + timedelta(minutes=n), value) for n, value in enumerate(values) if n not in skip]
    with world.connected() as c:
        c.execute(
            f"""
            INSERT INTO {table} BY NAME
            SELECT 'metrics' AS load_id, ? AS series_id, t AS minute, t AS first_at, v AS first_value, t AS last_at,
                v AS last_value, 0 AS increase, 1 AS sample_count, v AS value_sum, v AS max_value, v AS min_value,
                [t] AS sample_at, [v] AS sample_value
            FROM (SELECT unnest(?::TIMESTAMP[]) AS t, unnest(?::BIGINT[]) AS v)
            """,
            [_name(concept, labels), [at for at, _ in kept], [value for _, value in kept]],
        )
        c.execute(
            "INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', t + to_minutes(n)), 'metrics' "
            "FROM (SELECT unnest(?::TIMESTAMP[]) AS t), (VALUES (0), (5)) AS s(n)",
            [[at for at, _ in kept]],
        )


def _name(concept: str, labels: dict[str, str]) -> str:
    return f"{_cluster} {concept}{sorted(labels.items())}"
