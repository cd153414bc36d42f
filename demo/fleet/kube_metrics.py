"""What kube-state-metrics exposes about nodes, pods and deployments; its labels are honoured."""

from collections.abc import Iterator

import numpy as np

from demo.clock import SECOND
from demo.fleet.catalogue import NAMESPACE, Cluster
from demo.fleet.engine_metrics import visible
from demo.fleet.nodes import Node, Replica, hexadecimal
from demo.fleet.openmetrics import Series, Target, labels
from demo.fleet.plan import Blackout
from demo.fleet.scrapes import KUBE_EVERY, times

LINGERS = 15 * SECOND
"""A pod's objects are there for some seconds after its containers have ended."""


class KubeStateMetrics:
    """One cluster's exporter."""

    def __init__(self, cluster: Cluster, start_us: int, until_us: int, blackouts: list[Blackout]) -> None:
        at_us = times(f"ksm {cluster.name}", KUBE_EVERY, start_us, until_us)
        self._target = Target.of(at_us[visible(at_us, blackouts, cluster.name, None)])
        self._scrape = {"job": "kube-state-metrics", "instance": f"{cluster.subnet}.250.10:8080"}

    def series(self, nodes: list[Node], replicas: list[Replica]) -> Iterator[Series]:
        """All series of the cluster."""
        for node in nodes:
            yield from self._node(node)
        for replica in replicas:
            yield from self._pod(replica)
        for name in sorted({replica.pool.name for replica in replicas}):
            yield self._deployment(name, [replica for replica in replicas if replica.pool.name == name])

    def _during(self, from_us: int, to_us: int) -> tuple[int, int]:
        first, last = np.searchsorted(self._target.at_us, (from_us, to_us)).tolist()
        return first, last

    def _gauge(self, name: str, from_us: int, to_us: int, value: object, **own: str) -> Series:
        """A gauge that is there, with one value, during [from, to)."""
        first, last = self._during(from_us, to_us)
        return Series(name, "gauge", name, labels(**self._scrape, **own), self._target, [value] * (last - first), first)

    def _node(self, node: Node) -> Iterator[Series]:
        there = node.joined_us, node.ended_us
        yield self._gauge(
            "kube_node_info",
            *there,
            1,
            node=node.name,
            provider_id=f"aws:///{node.zone}/{node.instance_id}",
            internal_ip=node.ip,
            kubelet_version="v1.33.5-eks-113cf36",
            os_image="Amazon Linux 2023",
            system_uuid=f"ec2{hexadecimal(node.instance_id, 29)}",
        )
        yield self._gauge("kube_node_created", *there, node.joined_us // SECOND, node=node.name)
        yield self._gauge(
            "kube_node_labels",
            *there,
            1,
            node=node.name,
            label_node_kubernetes_io_instance_type=node.instance_type.name,
            label_topology_kubernetes_io_zone=node.zone,
            label_topology_kubernetes_io_region=node.cluster.region,
            label_karpenter_sh_capacity_type="spot" if node.purchase == "Spot" else "on-demand",
            label_eks_amazonaws_com_nodegroup=node.group,
        )
        if node.instance_type.gpus:
            yield self._gauge(
                "kube_node_status_allocatable",
                *there,
                node.instance_type.gpus,
                node=node.name,
                resource="nvidia_com_gpu",
                unit="integer",
            )

    def _pod(self, replica: Replica) -> Iterator[Series]:
        there = replica.bound_us, replica.ended_us + LINGERS
        pod = {"namespace": NAMESPACE, "pod": replica.pod, "uid": replica.uid}
        yield self._gauge(
            "kube_pod_info",
            *there,
            1,
            **pod,
            node=replica.node.name,
            host_ip=replica.node.ip,
            pod_ip=replica.ip,
            created_by_kind="ReplicaSet",
            created_by_name=replica.pod.rsplit("-", 1)[0],
        )
        yield self._gauge(
            "kube_pod_labels",
            *there,
            1,
            **pod,
            label_app=replica.pool.name,
            label_llm_d_ai_model=replica.pool.route,
            label_llm_d_ai_role=replica.pool.role_label,
            label_app_kubernetes_io_version=replica.version,
        )
        yield self._gauge(
            "kube_pod_container_resource_requests",
            *there,
            replica.spec.gpus,
            **pod,
            container="vllm",
            node=replica.node.name,
            resource="nvidia_com_gpu",
            unit="integer",
        )
        first, last = self._during(*there)
        at_us = self._target.at_us[first:last]
        running = (at_us >= replica.lives[0].started_us) & (at_us < replica.ended_us)
        phase = "kube_pod_status_phase"
        own = labels(**self._scrape, **pod, phase="Running")
        yield Series(phase, "gauge", phase, own, self._target, running.astype(int).tolist(), first)
        for life in replica.lives:
            yield self._gauge(
                "kube_pod_status_ready_time", life.ready_us, life.ended_us, life.ready_us // SECOND, **pod
            )

    def _deployment(self, name: str, replicas: list[Replica]) -> Series:
        at_us = self._target.at_us
        available = np.zeros(len(at_us), dtype=int)
        for replica in replicas:
            for life in replica.lives:
                available += (at_us >= life.ready_us) & (at_us < min(life.ended_us, life.closed_us))
        own = labels(**self._scrape, namespace=NAMESPACE, deployment=name)
        metric = "kube_deployment_status_replicas_available"
        return Series(metric, "gauge", metric, own, self._target, available.tolist())
