"""AWS's lines beyond their cost: how a machine was bought, what kind of cost a line is, what nobody can place."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.collector.conftest import House
from tests.collector.writing import Export, bedrock, line, monthly


def bill(export: Export) -> dict[str, Any]:
    return {"name": "bill", "kind": "bill", "location": str(export.root)}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "cur2")


def machine(usage_type: str, kind: str = "Usage", product: str = "AmazonEC2", **changes: Any) -> dict[str, Any]:
    return line(kind, 1.0, product, line_item_usage_type=usage_type, line_item_usage_amount=1.0, **changes)


def gpus(said: str) -> dict[str, Any]:
    """A machine of a family that no table has yet."""
    return {**machine("BoxUsage:x99.48xlarge"), "product": {"product_name": "EC2", "gpu": said}}


PLAN = {"savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::1:savingsplan/sp-1"}
RESERVATION = {"reservation_reservation_a_r_n": "arn:aws:ec2:us-east-1:1:reserved-instances/ri-1"}
BLOCK = {"reservation_reservation_a_r_n": "arn:aws:ec2:us-east-1:1:capacity-reservation/cr-0abc"}

BOUGHT = [
    (machine("BoxUsage:p5.48xlarge"), "on_demand"),
    (machine("EUW1-DedicatedUsage:p4d.24xlarge"), "on_demand"),
    (machine("USW2-SpotUsage:g6e.xlarge"), "spot"),
    (machine("BoxUsage:p5.48xlarge", "SavingsPlanCoveredUsage", **PLAN), "savings_plan"),
    (machine("BoxUsage:p5.48xlarge", "SavingsPlanNegation", **PLAN), "savings_plan"),
    (line("SavingsPlanRecurringFee", 1.0, "ComputeSavingsPlans", 0, **PLAN), "savings_plan"),
    (machine("BoxUsage:p5.48xlarge", "DiscountedUsage", **RESERVATION), "reserved"),
    (monthly("RIFee", 1.0, "AmazonEC2", line_item_usage_type="HeavyUsage:p5.48xlarge", **RESERVATION), "reserved"),
    (line("Fee", 1.0, "AmazonEC2", 0, **BLOCK), "capacity_block"),
    (machine("BoxUsage:p5.48xlarge", **BLOCK), "capacity_block"),
    (machine("USE1-TrSpt:ml.g5.2xlarge", product="AmazonSageMaker"), "spot"),
    (machine("CapacityBlockUsage:p5.48xlarge"), "capacity_block"),
    (machine("UnusedCapacityBlock:p5.48xlarge"), "capacity_block"),
    (machine("UnusedBox:p5.48xlarge"), "unused_reservation"),
    (machine("USE2-Reservation:p4de.24xlarge"), "unused_reservation"),
    (machine("UnusedDed:p4d.24xlarge"), "unused_reservation"),
    (machine("USE1-Host:ml.g5.2xlarge", product="AmazonSageMaker"), "on_demand"),
    (machine("EBS:VolumeUsage.gp3"), None),
    (bedrock(1.0), None),
    (monthly("Tax", 1.0, "AmazonEC2"), None),
]


@pytest.mark.parametrize(("row", "expected"), BOUGHT)
def test_how_a_machine_was_bought(house: House, export: Export, row: dict[str, Any], expected: str | None) -> None:
    export.deliver([row])
    house.collect(bill(export))
    assert house.row("SELECT x_purchase_option FROM billing_line") == (expected,)


COSTS = [
    # machines: by the family's table, or by what the bill says of GPUs
    (machine("BoxUsage:p5.48xlarge"), "accelerator"),
    (machine("EUW1-SpotUsage:p6-b200.48xlarge"), "accelerator"),
    (machine("UnusedBox:trn2.48xlarge"), "accelerator"),
    (gpus("8"), "accelerator"),
    (machine("USE1-Host:ml.g5.2xlarge", product="AmazonSageMaker"), "accelerator"),
    (machine("BoxUsage:m7i.2xlarge"), "compute"),
    (gpus("NA"), "compute"),
    (machine("USE1-Host:ml.m5.xlarge", product="AmazonSageMaker"), "compute"),
    (machine("USE1-Fargate-vCPU-Hours:perCPU", product="AmazonEKS"), "compute"),
    # storage
    (machine("EUC1-EBS:VolumeUsage.gp3"), "storage"),
    (machine("EBS:SnapshotUsage"), "storage"),
    (machine("TimedStorage-ByteHrs", product="AmazonS3"), "storage"),
    (machine("Requests-Tier1", product="AmazonS3"), "storage"),
    # network
    (machine("DataTransfer-Regional-Bytes"), "network_cross_zone"),
    (machine("USE1-DataTransfer-xAZ-In-Bytes"), "network_cross_zone"),
    (machine("USE1-VpcPeering-Out-Bytes"), "network_cross_zone"),
    (machine("USE1-EUW1-AWS-Out-Bytes"), "network_cross_region"),
    (machine("EU-DataTransfer-Out-Bytes"), "network_internet"),
    (machine("NatGateway-Hours"), "network_nat"),
    (machine("USW2-NatGateway-Bytes"), "network_nat"),
    (machine("LoadBalancerUsage"), "network"),
    # the rest
    (machine("us-east-1-KMS-Requests", product="awskms"), "other"),
    (bedrock(1.0), "other"),
    (monthly("Tax", 1.0, "AmazonEC2"), None),
]


@pytest.mark.parametrize(("row", "expected"), COSTS)
def test_what_kind_of_cost_a_line_is(house: House, export: Export, row: dict[str, Any], expected: str | None) -> None:
    export.deliver([row])
    house.collect(bill(export))
    assert house.row("SELECT x_cost_class FROM billing_line") == (expected,)


@pytest.mark.parametrize(
    ("usage_type", "family"),
    [
        ("USE1-Host:ml.g5.2xlarge", "model_endpoint"),
        ("AsyncInf:ml.g5.xlarge", "model_endpoint"),
        ("USE1-ServerlessInf:Memory-4GB", "model_endpoint"),
        ("USE1-Train:ml.p5.48xlarge", "other"),
        ("USE1-Studio:ml.t3.medium", "other"),
    ],
)
def test_what_answers_requests_of_sagemaker_is_inference(
    house: House, export: Export, usage_type: str, family: str
) -> None:
    export.deliver([machine(usage_type, product="AmazonSageMaker")])
    house.collect(bill(export))
    assert house.row("SELECT x_charge_family FROM billing_line") == (family,)


def test_a_usage_type_that_nobody_knows_is_kept_without_a_class_and_remarked(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0), bedrock(2.5, line_item_usage_type="USE1-NovaPro-thinking-tokens")])
    report = house.collect(bill(export))
    assert house.rows("SELECT x_charge_family, x_token_class, x_tokens, billed_cost FROM billing_line ORDER BY 4") == [
        ("model_api", "uncached_input", 500_000, Decimal(1)),
        ("model_api", None, None, Decimal("2.5")),
    ]
    assert any(note.endswith("1 lines of model APIs have a usage type of no class that is known: their cost is kept, "
                             "their tokens are not counted") for note in report.notes)  # fmt: skip


@pytest.mark.parametrize(
    "usage_type",
    ["USE1-NovaCanvas-T2I-1024-Standard-image", "USE1-Guardrail-ContentPolicyUnitsConsumed", "USE1-NovaPro-ModelUnits"],
)
def test_what_is_not_metered_in_tokens_is_no_unknown_class(house: House, export: Export, usage_type: str) -> None:
    export.deliver([bedrock(1.0, line_item_usage_type=usage_type, pricing_unit="images")])
    report = house.collect(bill(export))
    assert not any("no class that is known" in note for note in report.notes)


def test_a_line_that_names_no_model_is_kept_under_none_and_remarked(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, line_item_usage_type="InputTokenCount", line_item_resource_id=None)])
    report = house.collect(bill(export))
    assert house.row("SELECT x_model, x_token_class, x_tokens FROM billing_line") == (None, "uncached_input", 500_000)
    assert any("1 token-metered lines name no model" in note for note in report.notes)
