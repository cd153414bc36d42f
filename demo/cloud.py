"""The rest of the cloud bill: web servers, databases, storage and so on, which have nothing to do with models.

Prices are AWS list prices for us-east-1, in nano-dollars per unit; rounded ones are close enough to be plausible.
"""

from dataclasses import dataclass

import numpy as np

from demo.clock import HOUR
from demo.ledger import ROW, Ledger, code, digits, usd
from demo.models import ACCOUNTS


@dataclass(frozen=True)
class Service:
    """One kind of ordinary usage, billed every hour for each of `resources`."""

    product_code: str
    product_name: str
    account: str
    usage_type: str
    operation: str
    unit: str
    rate_nano: int
    per_hour: float
    resources: tuple[str, ...]
    family: str = ""
    instance_type: str | None = None
    tags: tuple[tuple[str, str], ...] = ()
    noise: float = 0.0
    daytime_only: bool = False


def _instances(prefix: str, n: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{code('instance', prefix, str(number), length=17).lower()}" for number in range(n))


_EC2, _EC2_NAME = "AmazonEC2", "Amazon Elastic Compute Cloud"
_SHOP = (("user_app", "storefront"), ("user_team", "web"))
_GATEWAY = (("user_app", "llm-gateway"), ("user_team", "platform"))

SERVICES = (
    Service(_EC2, _EC2_NAME, "web-prod", "BoxUsage:m6i.large", "RunInstances", "Hrs", 96_000_000, 1, _instances("i-0", 8),
            "Compute Instance", "m6i.large", _SHOP),
    Service(_EC2, _EC2_NAME, "web-prod", "BoxUsage:c6i.xlarge", "RunInstances", "Hrs", 170_000_000, 1,
            _instances("i-1", 5), "Compute Instance", "c6i.xlarge", _SHOP, daytime_only=True),
    Service(_EC2, _EC2_NAME, "data-platform", "BoxUsage:r6i.xlarge", "RunInstances", "Hrs", 252_000_000, 1,
            _instances("i-2", 3), "Compute Instance", "r6i.xlarge", (("user_team", "data-platform"),)),
    Service(_EC2, _EC2_NAME, "web-prod", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo", 80_000_000, 0.139,
            _instances("vol-0", 13), "Storage", None, _SHOP),
    Service(_EC2, _EC2_NAME, "web-prod", "NatGateway-Hours", "NatGateway", "Hrs", 45_000_000, 1, _instances("nat-0", 2),
            "NAT Gateway"),
    Service(_EC2, _EC2_NAME, "web-prod", "NatGateway-Bytes", "NatGateway", "GB", 45_000_000, 3.2,
            _instances("nat-0", 2), "NAT Gateway", noise=0.3),
    Service("AWSELB", "Elastic Load Balancing", "web-prod", "LoadBalancerUsage", "LoadBalancing:Application", "Hrs",
            22_500_000, 1, ("loadbalancer/app/storefront/50dc6c495c0c9188",), "Load Balancer-Application", None, _SHOP),
    Service("AmazonRDS", "Amazon Relational Database Service", "web-prod", "InstanceUsage:db.r6g.large",
            "CreateDBInstance:0021", "Hrs", 225_000_000, 1, ("db:orders", "db:catalogue"), "Database Instance",
            "db.r6g.large", _SHOP),
    Service("AmazonRDS", "Amazon Relational Database Service", "ai-prod", "InstanceUsage:db.t4g.medium",
            "CreateDBInstance:0014", "Hrs", 65_000_000, 1, ("db:litellm",), "Database Instance", "db.t4g.medium", _GATEWAY),
    Service("AmazonECS", "Amazon Elastic Container Service", "ai-prod", "USE1-Fargate-vCPU-Hours:perCPU", "FargateTask",
            "hours", 40_480_000, 4, ("task/llm-gateway/1", "task/llm-gateway/2"), "Compute", None, _GATEWAY),
    Service("AmazonS3", "Amazon Simple Storage Service", "web-prod", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo",
            23_000_000, 7.1, ("acme-media", "acme-backups"), "Storage", noise=0.02),
    Service("AmazonS3", "Amazon Simple Storage Service", "data-platform", "TimedStorage-ByteHrs", "StandardStorage",
            "GB-Mo", 23_000_000, 11.9, ("acme-lake",), "Storage", noise=0.02),
    Service("AmazonS3", "Amazon Simple Storage Service", "web-prod", "Requests-Tier2", "GetObject", "Requests", 400,
            52_000, ("acme-media",), "API Request", noise=0.4),
    Service("AmazonCloudWatch", "AmazonCloudWatch", "web-prod", "DataProcessing-Bytes", "PutLogEvents", "GB",
            500_000_000, 0.42, ("log-group:/storefront/app",), "Data Payload", noise=0.3),
    Service("AmazonCloudWatch", "AmazonCloudWatch", "ai-prod", "DataProcessing-Bytes", "PutLogEvents", "GB", 500_000_000,
            0.21, ("log-group:/ecs/llm-gateway",), "Data Payload", None, _GATEWAY, noise=0.3),
    Service("AWSLambda", "AWS Lambda", "web-prod", "Lambda-GB-Second", "Invoke", "Lambda-GB-Second", 16_667, 5400,
            ("function:thumbnails",), "Serverless", noise=0.4),
    Service("AmazonDynamoDB", "Amazon DynamoDB", "web-prod", "ReadRequestUnits", "PayPerRequestThroughput",
            "ReadRequestUnits", 125, 910_000, ("table/sessions",), "Amazon DynamoDB PayPerRequest Throughput", noise=0.3),
    Service("AmazonCloudFront", "Amazon CloudFront", "web-prod", "US-DataTransfer-Out-Bytes", "GET", "GB", 85_000_000, 9.5,
            ("distribution/E2EXAMPLE",), "Data Transfer", noise=0.3),
    Service("awskms", "AWS Key Management Service", "ai-prod", "us-east-1-KMS-Requests", "Decrypt", "Requests", 3_000, 900,
            ("key/gateway",), "Encryption Key", noise=0.3),
)  # fmt: skip


def add_services(rng: np.random.Generator, ledger: Ledger, from_us: int, until_us: int) -> None:
    """Hourly usage lines of every service for the hours in [from_us, until_us)."""
    hours = np.arange(from_us, until_us, HOUR, dtype=np.int64)
    for service in SERVICES:
        for resource in service.resources:
            wanted = hours
            if service.daytime_only:
                wanted = hours[(hours // HOUR % 24 >= 7) & (hours // HOUR % 24 < 21)]
            add_hours(rng, ledger, service, resource, wanted)


def add_hours(rng: np.random.Generator, ledger: Ledger, service: Service, resource: str, hours: np.ndarray) -> None:
    """One line per hour of one resource."""
    amount = np.full(len(hours), service.per_hour) * (1 + service.noise * rng.uniform(-1, 1, len(hours)))
    micro = np.rint(amount * 1e6).astype(np.int64)
    rows = np.zeros(len(hours), dtype=ROW)
    rows["kind"] = describe(ledger, service, resource)
    rows["start_us"] = hours
    rows["end_us"] = hours + HOUR
    rows["usage"] = micro / 1e6
    rows["cost_nano"] = rows["public_nano"] = (micro * service.rate_nano + 500_000) // 1_000_000
    ledger.add(rows)


def describe(ledger: Ledger, service: Service, resource: str) -> int:
    """Register the kind of line of one resource."""
    account = ACCOUNTS[service.account]
    rate = usd(service.rate_nano)
    sku = code("sku", service.product_code, service.usage_type)
    described = {
        "line_item_line_item_description": f"${rate.rstrip('0')} per {service.unit} - {service.product_name}",
        "line_item_operation": service.operation,
        "line_item_product_code": service.product_code,
        "line_item_resource_id": resource,
        "line_item_unblended_rate": rate,
        "line_item_blended_rate": rate,
        "line_item_usage_type": service.usage_type,
        "pricing_currency": "USD",
        "pricing_public_on_demand_rate": rate,
        "pricing_rate_code": f"{sku}.JRTCKXETXF.6YS6EN2CT7",
        "pricing_rate_id": digits("rate", sku),
        "pricing_term": "OnDemand",
        "pricing_unit": service.unit,
        "product": {"product_name": service.product_name, "region": "us-east-1"},
        "product_instance_type": service.instance_type,
        "product_location": "US East (N. Virginia)",
        "product_location_type": "AWS Region",
        "product_operation": service.operation,
        "product_pricing_unit": service.unit,
        "product_product_family": service.family,
        "product_region_code": "us-east-1",
        "product_servicecode": service.product_code,
        "product_sku": sku,
        "product_usagetype": service.usage_type,
        "resource_tags": dict(service.tags),
        "tags": {"accountTag/environment": account.environment} | {f"resourceTag/{k}": v for k, v in service.tags},
    }
    return ledger.kind(account, "AWS", "Usage", **described)
