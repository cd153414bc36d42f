"""What every node costs in every hour: on demand, on spot, or under the company's Savings Plan. Whole nano-dollars."""

from collections.abc import Iterator
from dataclasses import dataclass

from demo.clock import HOUR, SECOND
from demo.fleet.catalogue import INSTANCE_TYPES
from demo.fleet.nodes import Node

COVERED_TYPE = INSTANCE_TYPES["p5.48xlarge"]
COMMITMENT_NANO = (COVERED_TYPE.savings_plan_nano or 0) * 5 // 4
"""An hour's commitment: one and a quarter of the p5 nodes. One works all the time, the second in office hours."""


@dataclass(frozen=True)
class NodeHour:
    """A node in an hour. `covered_s` of its `seconds` are under the Savings Plan, at `plan_nano` in all."""

    node: Node
    hour_us: int
    seconds: int
    covered_s: int
    rate_nano: int  # of an hour that is not covered
    plan_nano: int

    @property
    def covered_at_list_nano(self) -> int:
        """What the covered seconds would have cost on demand."""
        return rated(self.covered_s, self.rate_nano)

    @property
    def paid_nano(self) -> int:
        """The seconds that are not covered."""
        return rated(self.seconds - self.covered_s, self.rate_nano)

    @property
    def effective_nano(self) -> int:
        return self.paid_nano + self.plan_nano


def rated(seconds: int, nano_an_hour: int) -> int:
    return (seconds * nano_an_hour + 1800) // 3600


def node_hours(nodes: list[Node], until_us: int) -> list[NodeHour]:
    """Every node and hour in order of hour. AWS bills Linux instances by the second."""
    used = sorted(
        (hour_us, number, seconds)
        for number, node in enumerate(nodes)
        for hour_us, seconds in _seconds(node.launched_us, min(node.ended_us, until_us))
    )
    found, hour, left = [], -1, 0
    for hour_us, number, seconds in used:
        if hour_us != hour:
            hour, left = hour_us, COMMITMENT_NANO
        node = nodes[number]
        covered_s = plan_nano = 0
        plan_rate = node.instance_type.savings_plan_nano
        if plan_rate is not None:
            covered_s = min(seconds, left * 3600 // plan_rate)
            plan_nano = min(rated(covered_s, plan_rate), left)
            left -= plan_nano
        listed = node.instance_type.on_demand_nano[node.cluster.region]
        rate = node.spot_nano(hour_us) if node.purchase == "Spot" else listed
        found.append(NodeHour(node, hour_us, seconds, covered_s, rate, plan_nano))
    return found


def _seconds(start_us: int, end_us: int) -> Iterator[tuple[int, int]]:
    """(hour, whole seconds in it) of an interval; what is begun counts."""
    start, end = start_us // SECOND, -(-end_us // SECOND)
    for hour in range(start // 3600, -(-end // 3600)):
        seconds = min(end, (hour + 1) * 3600) - max(start, hour * 3600)
        if seconds > 0:
            yield hour * HOUR, seconds
