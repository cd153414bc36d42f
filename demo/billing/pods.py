"""Machines that AWS has split to pods and tasks: lines that repeat their parents' money (billing.md 4.6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from demo.billing.commitments import Plan
from demo.billing.line import TEAM, Columns, Line, Month
from demo.billing.machines import instance, instance_id
from demo.billing.shape import Shape

WEIGHTS = {"Accelerator": Decimal(9), "vCPU": Decimal("0.9"), "GB": Decimal("0.1")}
"""AWS's: CPU to memory 9:1, accelerator to both 9:1."""


@dataclass(frozen=True)
class Pod:
    name: str
    uses: Mapping[str, int]
    """What it reserves of each of `WEIGHTS`."""


def split(month: Month, at_us: int, machine: str, has: Mapping[str, int], cost: Decimal, pods: list[Pod]) -> list[Line]:
    """The lines of an hour: per pod and resource its own share, and its part of what no pod reserved.

    Lines of a machine add up to `cost`, its amortised cost of the hour, if every resource is used by some pod.
    """
    unit = cost / sum(WEIGHTS[one] * number for one, number in has.items())
    lines = []
    for pod in pods:
        for resource, number in pod.uses.items():
            reserved = sum(each.uses.get(resource, 0) for each in pods)
            rate = unit * WEIGHTS[resource]
            own, unused = number * rate, (has[resource] - reserved) * rate * number / reserved
            said: Columns = {
                "line_item_operation": "EKSPod-EC2",
                "line_item_resource_id": f"arn:aws:eks:us-east-1:{TEAM.id}:pod/inference/serving/{pod.name}",
                "line_item_usage_amount": Decimal(number),
                "pricing_unit": f"{resource}-Hours",
                "pricing_public_on_demand_cost": Decimal(0),
                "resource_tags": {
                    "aws_eks_cluster_name": "inference",
                    "aws_eks_namespace": "serving",
                    "aws_eks_workload_type": "Deployment",
                    "aws_eks_workload_name": pod.name.rsplit("-", 1)[0],
                    "aws_eks_node": "ip-10-0-0-1.ec2.internal",
                },
                "split_line_item_reserved_usage": Decimal(number),
                "split_line_item_split_usage": Decimal(number),
                "split_line_item_split_usage_ratio": round(Decimal(number) / has[resource], 6),
                "split_line_item_split_cost": own,
                "split_line_item_unused_cost": unused,
                "split_line_item_parent_resource_id": instance_id(machine),
            }
            # assumption: the unblended cost repeats the share (people measured bills that came out at a multiple)
            lines.append(
                month.usage(
                    "AmazonEKS", f"USE1-EKS-EC2-{resource}-Hours", own + unused, at_us, discounts={}, **said
                )
            )  # fmt: skip
    return lines


def eks(month: Month) -> Shape:
    """A g5.12xlarge under a plan at 4.92 (listed 5.672): 4 GPU, 48 vCPU, 192 GB weigh 98.4, so a unit is 0.05.

    Two pods, three hours; one GPU, half the cores and half the memory are reserved by none.
    """
    plan = Plan("plan of the cluster", "No Upfront", Decimal(0), Decimal("4.92"))
    has = {"Accelerator": 4, "vCPU": 48, "GB": 192}
    pods = [
        Pod("llama-70b-7d9f", {"Accelerator": 2, "vCPU": 16, "GB": 64}),
        Pod("reranker-5c4b", {"Accelerator": 1, "vCPU": 8, "GB": 32}),
    ]
    lines: list[Line] = []
    for hour in range(3):
        at_us = month.at(2, hour)
        lines += plan.covered(month, month.at(2), at_us, {"eks node": (Decimal("5.672"), Decimal("4.92"))})
        lines.append(plan.fee(month, month.at(2), at_us, Decimal("4.92")))
        lines += split(month, at_us, "eks node", has, Decimal("4.92"), pods)
    cost = 3 * Decimal("4.92")
    return Shape("pods of EKS", tuple(lines), cost, cost, 3 * Decimal("5.672"), cost / 10)


def ecs(month: Month) -> Shape:
    """An m7i.xlarge on demand at 0.208: 4 vCPU and 16 GB weigh 5.2, so a unit is 0.04. One task on half of it."""
    has, task = {"vCPU": 4, "GB": 16}, Pod("gateway-1", {"vCPU": 2, "GB": 8})
    at_us = month.at(2, 5)
    told: Columns = {
        "line_item_operation": "ECSTask-EC2",
        "line_item_resource_id": f"arn:aws:ecs:us-east-1:{TEAM.id}:task/gateway/1",
        "line_item_product_code": "AmazonECS",
        "product": {"product_name": "Amazon Elastic Container Service"},
        "resource_tags": {},
    }
    parts = [
        Line(line.columns | told | {"line_item_usage_type": line.usage_type.replace("EKS", "ECS")})
        for line in split(month, at_us, "ecs node", has, Decimal("0.208"), [task])
    ]  # fmt: skip
    node = instance(month, "Usage", "m7i.xlarge", "ecs node", "0.208", at_us)
    cost = Decimal("0.208")
    return Shape("tasks of ECS", (node, *parts), cost, cost, cost, cost / 10)
