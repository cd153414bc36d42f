"""Nodes and replicas: machines that are billed, and pods that hold their GPUs, with every instant of their lives."""

import hashlib
from dataclasses import dataclass, field

import numpy as np

from demo.clock import HOUR, SECOND
from demo.fleet.catalogue import CLUSTERS, INSTANCE_TYPES, Cluster, InstanceType, Pool
from demo.fleet.counters import SNAPSHOT
from demo.fleet.steps import EngineSpec
from demo.ledger import code

FOREVER = 1 << 62


@dataclass(eq=False)
class Node:
    """One EC2 instance in a cluster. Billed by the second from `launched_us` to `ended_us`."""

    cluster: Cluster
    instance_type: InstanceType
    purchase: str
    number: int
    launched_us: int
    joined_us: int  # when its kubelet reports to the cluster
    ended_us: int = FOREVER

    @property
    def instance_id(self) -> str:
        return "i-0" + self._code("instance", 16)

    @property
    def zone(self) -> str:
        return self.cluster.zones[self.number % len(self.cluster.zones)]

    @property
    def ip(self) -> str:
        return f"{self.cluster.subnet}.{16 + self.number // 200}.{20 + self.number % 200}"

    @property
    def name(self) -> str:
        return f"ip-{self.ip.replace('.', '-')}.{self.cluster.domain}"

    @property
    def group(self) -> str:
        """The node group, which the autoscaler scales."""
        return "system" if self.instance_type.gpus == 0 else self.instance_type.name.replace(".", "-")

    def _code(self, what: str, length: int) -> str:
        return hexadecimal(f"{what} {self.cluster.name} {self.number} {self.launched_us}", length)

    def spot_nano(self, hour_us: int) -> int:
        """The spot price of an hour, nano-dollars: about 0.44 of the on-demand price, moving by the hour."""
        base = self.instance_type.on_demand_nano[self.cluster.region]
        wave = int(hexadecimal(f"spot {self.instance_type.name} {self.zone} {hour_us // HOUR // 4}", 4), 16) % 80
        return base * (400 + wave) // 1000 // 100_000 * 100_000


@dataclass(eq=False)
class Life:
    """One process of an engine in a pod's container. `snapshots`: its counters at `marks_us`, once simulated."""

    started_us: int
    ready_us: int
    closed_us: int = FOREVER  # takes no new requests from here on
    ended_us: int = FOREVER
    dies: bool = False  # ends with requests on it
    snapshots: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=SNAPSHOT))
    left_over: int = 0  # what equal shares of its steps left over, 2^-20 ns
    running_ns: int = 0  # in all its life: with a running request, and on the GPU
    stepping_ns: int = 0


@dataclass(eq=False)
class Replica:
    """One pod. `weight`: its part of new conversations, against 1 of an ordinary replica."""

    pool: Pool
    node: Node
    number: int
    version: str
    bound_us: int  # the pod holds its GPUs from here on
    lives: list[Life]
    weight: float = 1.0
    ended_us: int = FOREVER

    @property
    def pod(self) -> str:
        revision = code("revision", self.pool.name, self.version, length=9).lower()
        return f"{self.pool.name}-{revision}-{code('pod', self.pool.key, str(self.number), length=5).lower()}"

    @property
    def uid(self) -> str:
        text = hexadecimal(f"uid {self.pool.key} {self.number}", 32)
        return f"{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}"

    @property
    def ip(self) -> str:
        return f"{self.node.cluster.subnet}.{64 + self.number // 200}.{20 + self.number % 200}"

    @property
    def spec(self) -> EngineSpec:
        return self.pool.spec


def hexadecimal(text: str, length: int) -> str:
    """A stable hexadecimal text of up to 32 digits."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()[:length]


class Machinery:
    """Makes nodes and replicas, with the delays of booting, pulling an image and loading a model."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self.nodes: list[Node] = []
        self.replicas: list[Replica] = []

    def seconds(self, least: int, most: int) -> int:
        """A delay in microseconds."""
        return int(self._rng.integers(least * SECOND, most * SECOND))

    def node(self, cluster: str, instance_type: str, purchase: str, at_us: int) -> Node:
        """Launch a node: it boots for two to four minutes before it joins."""
        node = Node(
            CLUSTERS[cluster],
            INSTANCE_TYPES[instance_type],
            purchase,
            len(self.nodes),
            at_us // SECOND * SECOND,
            at_us // SECOND * SECOND + self.seconds(125, 240),
        )
        self.nodes.append(node)
        return node

    def replica(self, pool: Pool, node: Node, version: str | None = None) -> Replica:
        """Start a pod as soon as the node has joined: three to eight minutes of pulling and loading hold its GPUs."""
        bound_us = node.joined_us + self.seconds(2, 8)
        started_us = bound_us + self.seconds(70, 190)
        ready_us = started_us + self.seconds(110, 280)
        number = len(self.replicas)
        replica = Replica(pool, node, number, version or pool.version, bound_us, [Life(started_us, ready_us)])
        self.replicas.append(replica)
        return replica

    def launch(self, pool: Pool, at_us: int, version: str | None = None) -> Replica:
        """A replica on a node of its own."""
        return self.replica(pool, self.node(pool.cluster, pool.instance_type, pool.purchase, at_us), version)

    def restart(self, replica: Replica, at_us: int) -> None:
        """The engine's process dies and is started again in the same pod: image and weights are on the node."""
        life = replica.lives[-1]
        life.closed_us = life.ended_us = at_us
        life.dies = True
        started_us = at_us + self.seconds(3, 12)
        replica.lives.append(Life(started_us, started_us + self.seconds(90, 150)))

    def lose(self, replica: Replica, at_us: int) -> None:
        """The node is gone, with the pod and all that ran in it."""
        life = replica.lives[-1]
        life.closed_us = life.ended_us = replica.ended_us = at_us
        life.dies = True
        replica.node.ended_us = at_us + 8 * SECOND
