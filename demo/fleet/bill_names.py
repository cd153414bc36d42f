"""How the bill names the fleet's lines: usage types, operations, descriptions, tags (billing.md 3.1, 4.5)."""

from dataclasses import dataclass

from demo.clock import DAY, iso
from demo.fleet.catalogue import ACCOUNT, Cluster
from demo.fleet.nodes import Node, hexadecimal
from demo.ledger import Ledger, code, digits, usd
from demo.models import PAYER, REGIONS

EC2, EC2_NAME = "AmazonEC2", "Amazon Elastic Compute Cloud"
VOLUME_NANO = {"us-east-1": 80_000_000, "eu-west-1": 88_000_000}
PLAN_ARN = f"arn:aws:savingsplans::{PAYER.id}:savingsplan/" + "7c1d0b52-3e94-4f6a-8d27-51b9e0a4c6f3"

Described = dict[str, str | dict[str, str] | None]


@dataclass(frozen=True)
class Extra:
    """What a cluster costs an hour beside its instances. `per_hour`: units; `noise`: relative spread."""

    product_code: str
    product_name: str
    usage_type: str  # with {region} (USE1, EU) or {prefix} (nothing, EU-)
    operation: str
    unit: str
    rate_nano: int
    per_hour: float
    resource: str
    family: str
    noise: float = 0.0


EXTRAS = (
    Extra("AmazonEKS", "Amazon Elastic Container Service for Kubernetes", "{region}-AmazonEKS-Hours:perCluster",
          "CreateOperation", "Hours", 100_000_000, 1.0, "arn:aws:eks:{place}:{account}:cluster/{cluster}", "Compute"),
    Extra("AWSELB", "Elastic Load Balancing", "{prefix}LoadBalancerUsage", "LoadBalancing:Network", "Hrs", 22_500_000,
          1.0, "arn:aws:elasticloadbalancing:{place}:{account}:loadbalancer/net/{cluster}/{id}",
          "Load Balancer-Network"),
    Extra(EC2, EC2_NAME, "{prefix}NatGateway-Hours", "NatGateway", "Hrs", 45_000_000, 1.0,
          "arn:aws:ec2:{place}:{account}:natgateway/nat-0{id}", "NAT Gateway"),
    Extra(EC2, EC2_NAME, "{prefix}NatGateway-Bytes", "NatGateway", "GB", 45_000_000, 2.6,
          "arn:aws:ec2:{place}:{account}:natgateway/nat-0{id}", "NAT Gateway", 0.3),
    Extra(EC2, EC2_NAME, "{prefix}DataTransfer-Regional-Bytes", "InterZone-In", "GB", 10_000_000, 7.4, "",
          "Data Transfer", 0.35),
    Extra("AmazonS3", "Amazon Simple Storage Service", "{prefix}TimedStorage-ByteHrs", "StandardStorage", "GB-Mo",
          23_000_000, 0.61, "{cluster}-models", "Storage"),
)  # fmt: skip


def tags_of(cluster: Cluster) -> dict[str, str]:
    """EKS tags what it launches (aws:eks:cluster-name); the platform team tags its own."""
    return {"aws_eks_cluster_name": cluster.name, "user_app": "llm-serving", "user_team": "platform"}


def _common(region: str, product_code: str, product_name: str, tags: dict[str, str]) -> Described:
    return {
        "line_item_product_code": product_code,
        "pricing_currency": "USD",
        "product": {"product_name": product_name, "region": region},
        "product_location": REGIONS[region][1],
        "product_location_type": "AWS Region",
        "product_region_code": region,
        "product_servicecode": product_code,
        "resource_tags": tags,
        "tags": {"accountTag/environment": ACCOUNT.environment}
        | {f"resourceTag/{name}": value for name, value in tags.items()},
    }


def _priced(usage_type: str, operation: str, unit: str, rate_nano: int, family: str) -> Described:
    sku = code("sku", usage_type, operation)
    rate = usd(rate_nano)
    return {
        "line_item_blended_rate": rate,
        "line_item_operation": operation,
        "line_item_unblended_rate": rate,
        "line_item_usage_type": usage_type,
        "pricing_rate_code": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "pricing_rate_id": digits("rate", sku),
        "pricing_term": "OnDemand",
        "pricing_unit": unit,
        "product_operation": operation,
        "product_pricing_unit": unit,
        "product_product_family": family,
        "product_sku": sku,
        "product_usagetype": usage_type,
    }


def instance(ledger: Ledger, node: Node, rate_nano: int, covered: bool) -> int:
    """An instance's hours at one rate: on demand, on spot, or covered by the Savings Plan."""
    kind, region = node.instance_type, node.cluster.region
    spot = node.purchase == "Spot"
    usage_type = f"{node.cluster.billing_prefix}{'SpotUsage' if spot else 'BoxUsage'}:{kind.name}"
    operation = f"RunInstances{':SV001' if spot else ''}"
    rate = usd(rate_nano).rstrip("0")
    if spot:
        words = f"{kind.name} Linux/UNIX Spot Instance-hour in {REGIONS[region][1]} in VPC Zone #{node.number % 2 + 1}"
    else:
        words = f"${rate} per On Demand Linux {kind.name} Instance Hour"
    described = _common(region, EC2, EC2_NAME, tags_of(node.cluster)) | _priced(
        usage_type, operation, "Hrs", rate_nano, "Compute Instance"
    )
    described["product"] = {
        "product_name": EC2_NAME,
        "region": region,
        "instance_type_family": kind.name.split(".")[0],
        "operating_system": "Linux",
        "tenancy": "Shared",
        "vcpu": str(kind.vcpu),
        "memory": kind.memory,
        **({"gpu": str(kind.gpus)} if kind.gpus else {}),
    }
    described |= {
        "line_item_availability_zone": node.zone,
        "line_item_line_item_description": words,
        "line_item_resource_id": node.instance_id,
        # AWS leaves the type of spot lines out: it is in the usage type and the description
        "product_instance_type": None if spot else kind.name,
        "product_instance_family": None if spot else ("GPU instance" if kind.gpus else "General purpose"),
        "pricing_public_on_demand_rate": usd(kind.on_demand_nano[region]),
        "pricing_purchase_option": "Spot" if spot else None,
        "pricing_term": "Spot" if spot else "OnDemand",
    }
    if covered:
        described["savings_plan_savings_plan_a_r_n"] = PLAN_ARN
        described["savings_plan_savings_plan_rate"] = usd(kind.savings_plan_nano or 0)
        described["savings_plan_offering_type"] = "EC2InstanceSavingsPlans"
    return ledger.kind(ACCOUNT, "AWS", "SavingsPlanCoveredUsage" if covered else "Usage", **described)


def volume(ledger: Ledger, node: Node) -> int:
    """A node's root volume."""
    region = node.cluster.region
    rate = VOLUME_NANO[region]
    described = _common(region, EC2, EC2_NAME, tags_of(node.cluster)) | _priced(
        f"{node.cluster.billing_prefix}EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo", rate, "Storage"
    )
    described["line_item_resource_id"] = f"vol-0{hexadecimal(f'volume {node.instance_id}', 16)}"
    words = f"${usd(rate).rstrip('0')} per GB-month of General Purpose (gp3) provisioned storage"
    described["line_item_line_item_description"] = f"{words} - {REGIONS[region][1]}"
    described["pricing_public_on_demand_rate"] = usd(rate)
    return ledger.kind(ACCOUNT, "AWS", "Usage", **described)


def cluster_wide(ledger: Ledger, cluster: Cluster, what: Extra) -> int:
    """A cluster-wide charge."""
    values = {
        "region": REGIONS[cluster.region][0],
        "prefix": cluster.billing_prefix,
        "place": cluster.region,
        "account": ACCOUNT.id,
        "cluster": cluster.name,
        "id": hexadecimal(f"{what.product_code} {cluster.name}", 16),
    }
    usage_type = what.usage_type.format(**values)
    described = _common(cluster.region, what.product_code, what.product_name, tags_of(cluster)) | _priced(
        usage_type, what.operation, what.unit, what.rate_nano, what.family
    )
    described["line_item_resource_id"] = what.resource.format(**values)
    described["line_item_line_item_description"] = (
        f"${usd(what.rate_nano).rstrip('0')} per {what.unit} - {what.product_name}"
    )
    described["pricing_public_on_demand_rate"] = usd(what.rate_nano)
    return ledger.kind(ACCOUNT, "AWS", "Usage", **described)


def _plan(start_us: int) -> Described:
    return {
        "savings_plan_savings_plan_a_r_n": PLAN_ARN,
        "savings_plan_offering_type": "EC2InstanceSavingsPlans",
        "savings_plan_instance_type_family": "p5",
        "savings_plan_payment_option": "No Upfront",
        "savings_plan_purchase_term": "1yr",
        "savings_plan_region": "us-east-1",
        "savings_plan_start_time": iso(start_us),
        "savings_plan_end_time": iso(start_us + 365 * DAY - 1_000_000),
    }


def negation(ledger: Ledger, zone: str, start_us: int) -> int:
    """What takes the covered usage off the bill again; the fee pays for it."""
    described = _common("us-east-1", EC2, EC2_NAME, {})
    described |= _plan(start_us) | {
        "line_item_availability_zone": zone,
        "line_item_line_item_description": f"SavingsPlanNegation used by AccountId : {ACCOUNT.id} and UsageSku : p5",
        "line_item_operation": "RunInstances",
        "line_item_usage_type": "BoxUsage:p5.48xlarge",
        "product_instance_type": "p5.48xlarge",
    }
    return ledger.kind(ACCOUNT, "AWS", "SavingsPlanNegation", **described)


def recurring_fee(ledger: Ledger, start_us: int) -> int:
    """The commitment of each hour, used or not."""
    described = _common("us-east-1", "ComputeSavingsPlans", "Savings Plans for AWS Compute usage", {})
    described |= _plan(start_us) | {
        "line_item_line_item_description": "1 year No Upfront p5 EC2 Instance Savings Plan in us-east-1",
        "line_item_resource_id": PLAN_ARN,
        "line_item_usage_type": "EC2SP:p5.1yrNoUpfront",
        "pricing_unit": "Hrs",
    }
    return ledger.kind(ACCOUNT, "AWS", "SavingsPlanRecurringFee", **described)
