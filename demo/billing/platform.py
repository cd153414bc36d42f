"""What tokens cause beside machines: endpoints, volumes, requests, traffic, clusters, logs (billing.md 4.5, 4.7)."""

from decimal import Decimal

from demo.billing.line import EDP, TEAM, Month
from demo.billing.shape import Shape

PRIVATE = {"private_rate": Decimal("0.2")} | EDP
"""A private rate takes a fifth, the enterprise agreement a tenth. assumption: both of the undiscounted cost."""

BUNDLED = {"bundled": Decimal("0.5")}

# product, usage type, operation, unit, quantity, price, resource, discounts
ROWS = [
    ("AmazonEC2", "EBS:VolumeUsage.gp3", "CreateVolume-Gp3", "GB-Mo", "100", "0.08", "vol-0a1b2c3d4e5f60718", EDP),
    ("AmazonEC2", "NatGateway-Hours", "NatGateway", "Hrs", "1", "0.045", "natgateway/nat-0f1e2d3c", EDP),
    ("AmazonEC2", "NatGateway-Bytes", "NatGateway", "GB", "200", "0.045", "natgateway/nat-0f1e2d3c", PRIVATE),
    ("AmazonEC2", "DataTransfer-Regional-Bytes", "InterZone-In", "GB", "300", "0.01", "i-0123456789abcdef0", PRIVATE),
    ("AmazonEC2", "USE1-EUW1-AWS-Out-Bytes", "InterRegion-Out", "GB", "50", "0.02", "i-0123456789abcdef0", PRIVATE),
    ("AmazonEC2", "DataTransfer-Out-Bytes", "RunInstances", "GB", "40", "0.09", "i-0123456789abcdef0", BUNDLED),
    ("AmazonVPC", "PublicIPv4:InUseAddress", "AllocateAddress", "Hrs", "1", "0.005", "eni-0a1b2c", EDP),
    ("AmazonVPC", "USE1-VpcEndpoint-Bytes", "VpcEndpoint", "GB", "10", "0.01", "vpce-0a1b2c", EDP),
    ("AmazonS3", "TimedStorage-ByteHrs", "StandardStorage", "GB-Mo", "1000", "0.023", "model-weights", EDP),
    ("AmazonS3", "Requests-Tier1", "PutObject", "Requests", "2000", "0.000005", "invocation-logs", EDP),
    # one request: an amount that a double prints as 4e-07
    ("AmazonS3", "Requests-Tier2", "GetObject", "Requests", "1", "0.0000004", "invocation-logs", EDP),
    ("AmazonEKS", "USE1-AmazonEKS-Hours:perCluster", "CreateOperation", "Hours", "1", "0.1", "inference", EDP),
    ("AmazonEC2", "LoadBalancerUsage", "LoadBalancing:Application", "Hrs", "1", "0.0225", "alb/gateway", EDP),
    ("AmazonCloudWatch", "USE1-DataProcessing-Bytes", "PutLogEvents", "GB", "4", "0.5", "log-group/vllm", EDP),
]

ENDPOINT = [
    ("USE1-Host:ml.g5.2xlarge", "Hrs", "3", "1.515"),
    ("USE1-Host:VolumeUsage.gp3", "GB-Mo", "2", "0.112"),
    ("USE1-Host:Data-Bytes-Out", "GB", "5", "0.016"),
    ("USE1-Train:ml.p5.48xlarge", "Hrs", "1", "63.296"),
]


def infrastructure(month: Month) -> Shape:
    """Storage, network of every direction, a cluster's fee, logs."""
    lines = [
        month.usage(
            product_code, usage_type, Decimal(quantity) * Decimal(price), month.at(13, number),
            discounts=discounts,
            line_item_operation=operation,
            line_item_resource_id=resource,
            line_item_usage_amount=Decimal(quantity),
            pricing_unit=unit,
            product={"region": "us-east-1"},
            product_product_family="Data Transfer" if "Out" in operation or "InterZone" in operation else "",
            # what CSV has to quote, and a letter that ASCII lacks
            line_item_line_item_description=f'${price} per {unit}, "{operation}", São Paulo excluded',
            resource_tags={"user_app": "platform", "user_owner": 'Zoë "Z", platform'} if number % 2 else {},
        )
        for number, (product_code, usage_type, operation, unit, quantity, price, resource, discounts) in enumerate(ROWS)
    ]  # fmt: skip
    privately = 200 * Decimal("0.045") + 300 * Decimal("0.01") + 50 * Decimal("0.02")
    bundled = 40 * Decimal("0.09")
    stored = 100 * Decimal("0.08") + 1000 * Decimal("0.023") + 2000 * Decimal("0.000005") + Decimal("0.0000004")
    hourly = Decimal("0.045") + Decimal("0.005") + Decimal("0.1") + Decimal("0.0225")
    other = stored + hourly + 10 * Decimal("0.01") + 4 * Decimal("0.5")
    cost = privately + bundled + other
    discount = privately * 3 / 10 + bundled / 2 + other / 10
    return Shape("infrastructure", tuple(lines), cost, cost, cost, discount)


def endpoint(month: Month) -> Shape:
    """A real-time endpoint and a training job of SageMaker, without a plan."""
    resource = f"arn:aws:sagemaker:us-east-1:{TEAM.id}:endpoint/reranker"
    job = resource.replace("endpoint/reranker", "training-job/tune-1")
    lines = [
        month.usage(
            "AmazonSageMaker", usage_type, Decimal(quantity) * Decimal(price), month.at(14, number),
            line_item_operation="RunInstance",
            line_item_resource_id=job if "Train" in usage_type else resource,
            line_item_usage_amount=Decimal(quantity),
            pricing_unit=unit,
            product_instance_type=usage_type.split(":")[1] if ":ml." in usage_type else None,
        )
        for number, (usage_type, unit, quantity, price) in enumerate(ENDPOINT)
    ]  # fmt: skip
    cost = 3 * Decimal("1.515") + 2 * Decimal("0.112") + 5 * Decimal("0.016") + Decimal("63.296")
    return Shape("endpoint", tuple(lines), cost, cost, cost, cost / 10)
