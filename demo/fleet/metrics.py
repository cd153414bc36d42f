"""All samples of the fleet: engines, GPUs and Kubernetes, one Prometheus per cluster."""

from pathlib import Path

import numpy as np

from demo.fleet import engine_metrics, gpu_metrics, openmetrics
from demo.fleet.catalogue import CLUSTERS
from demo.fleet.kube_metrics import KubeStateMetrics
from demo.fleet.nodes import Replica
from demo.fleet.openmetrics import Series
from demo.fleet.operate import Fleet


def write(out: Path, fleet: Fleet, minutes: list[tuple[Replica, np.ndarray]]) -> tuple[list[Path], int]:
    """Write `out/metrics`; returns the files and the number of samples. `minutes`: of each replica (usage.minutes)."""
    files, samples = [], 0
    for cluster in CLUSTERS:
        found, count = openmetrics.write(out, cluster, of_cluster(fleet, cluster, minutes))
        files += found
        samples += count
    return files, samples


def of_cluster(fleet: Fleet, cluster: str, minutes: list[tuple[Replica, np.ndarray]]) -> list[Series]:
    """Every series of a cluster's Prometheus."""
    until_us, blackouts = fleet.window.as_of_us, fleet.plan.blackouts
    mine = [(replica, rows) for replica, rows in minutes if replica.pool.cluster == cluster and len(rows)]
    nodes = [node for node in fleet.nodes if node.cluster.name == cluster and node.joined_us < until_us]
    found: list[Series] = []
    for replica, _ in mine:
        found += engine_metrics.series(replica, until_us, blackouts)
    for node in nodes:
        if node.instance_type.gpus:
            pods = [(replica, rows) for replica, rows in mine if replica.node is node]
            found += gpu_metrics.series(node, pods, until_us, blackouts)
    kube = KubeStateMetrics(CLUSTERS[cluster], fleet.window.start_us, until_us, blackouts)
    found += kube.series(nodes, [replica for replica, _ in mine])
    return [one for one in found if len(one.values)]
