"""What dcgm-exporter exposes on every GPU node. Prometheus does not honour its labels, so the pod is `exported_pod`."""

from collections.abc import Iterator

import numpy as np

from demo.clock import MINUTE, SECOND
from demo.fleet.catalogue import NAMESPACE
from demo.fleet.engine_metrics import visible
from demo.fleet.nodes import Node, Replica, hexadecimal
from demo.fleet.openmetrics import Series, Target, labels, ratios
from demo.fleet.plan import Blackout
from demo.fleet.scrapes import DCGM_EVERY, times

UTIL, ACTIVE, TENSOR = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
USED, FREE, POWER = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_POWER_USAGE"
RESERVED_MIB = 625


def series(
    node: Node, pods: list[tuple[Replica, np.ndarray]], until_us: int, blackouts: list[Blackout]
) -> Iterator[Series]:
    """All series of a node. `pods`: what ran on it, with its minutes (usage.MINUTE_ROW), in order of their GPUs."""
    name = f"dcgm {node.cluster.name} {node.number}"
    at_us = times(name, DCGM_EVERY, node.joined_us + 40 * SECOND, min(node.ended_us, until_us))
    at_us = at_us[visible(at_us, blackouts, node.cluster.name, None)]
    if not len(at_us):
        return
    target = Target.of(at_us)
    gpu = 0
    for replica, minutes in pods:
        for _ in range(replica.spec.gpus):
            yield from _gpu(node, gpu, target, replica, minutes, until_us)
            gpu += 1
    for free in range(gpu, node.instance_type.gpus):
        yield from _span(node, free, target, None, np.zeros(len(at_us)), np.zeros(len(at_us)), 0)


def _gpu(
    node: Node, gpu: int, target: Target, replica: Replica, minutes: np.ndarray, until_us: int
) -> Iterator[Series]:
    """One GPU that a pod holds for a part of the node's life."""
    at_us = target.at_us
    from_us, to_us = replica.bound_us, min(replica.ended_us, until_us)
    low, high = np.searchsorted(at_us, (from_us, to_us)).tolist()
    for first, last in ((0, low), (high, len(at_us))):
        if last > first:
            nothing = np.zeros(last - first)
            yield from _span(node, gpu, target, None, nothing, nothing, first)
    if high > low:
        slot = ((at_us[low:high] - minutes["minute_us"][0]) // MINUTE - 1).clip(0, len(minutes) - 1)
        found = minutes[slot]
        active = found["step_us"] / MINUTE
        tensor = (found["computed"] * replica.spec.prompt_token_ns / (MINUTE * 1000) * 0.55 + active * 0.02).clip(0, 1)
        yield from _span(node, gpu, target, replica, active, np.minimum(tensor, active), low)


def _span(
    node: Node,
    gpu: int,
    target: Target,
    replica: Replica | None,
    active: np.ndarray,
    tensor: np.ndarray,
    first: int,
) -> Iterator[Series]:
    """The fields of a GPU while the same pod (or none) holds it. `active`: share of the minute before a scrape."""
    kind = node.instance_type
    uuid = hexadecimal(f"gpu {node.instance_id} {gpu}", 32)
    pod = {} if replica is None else {
        "exported_namespace": NAMESPACE, "exported_pod": replica.pod, "exported_container": "vllm",
    }  # fmt: skip
    exporter = hexadecimal(f"dcgm {node.instance_id}", 5)
    own = labels(
        job="dcgm-exporter",
        instance=f"{node.ip}:9400",
        namespace="gpu-operator",
        pod=f"nvidia-dcgm-exporter-{exporter}",
        container="nvidia-dcgm-exporter",
        node=node.name,
        gpu=str(gpu),
        UUID=f"GPU-{uuid[:8]}-{uuid[8:12]}-{uuid[12:16]}-{uuid[16:20]}-{uuid[20:]}",
        device=f"nvidia{gpu}",
        modelName=kind.gpu_model,
        Hostname=node.name,
        **pod,
    )
    at_us = target.at_us[first : first + len(active)]
    loaded = np.zeros(len(active), dtype=bool)
    if replica is not None:
        for life in replica.lives:
            # weights and the key-value memory are taken when the engine starts, and kept until it ends
            loaded |= (at_us >= (life.started_us + life.ready_us) // 2) & (at_us < life.ended_us)
    used = np.where(loaded, kind.gpu_memory_mib * 9 // 10 + 7 * gpu, 4)
    watts = (
        kind.idle_watts
        + np.where(loaded, 18, 0)
        + (kind.most_watts - kind.idle_watts) * (0.42 * active + 0.45 * tensor)
    )
    fields: dict[str, list[object]] = {
        UTIL: np.rint(active * 100).astype(int).tolist(),
        ACTIVE: list(ratios(active)),
        TENSOR: list(ratios(tensor)),
        USED: used.tolist(),
        FREE: (kind.gpu_memory_mib - RESERVED_MIB - used).tolist(),
        POWER: [f"{value:.3f}" for value in (watts + gpu * 0.7).tolist()],
    }
    for name, values in fields.items():
        yield Series(name, "gauge", name, own, target, values, first)
