"""AWS CUR 2.0: what becomes of each line, how a delivery replaces another, and what is refused."""

import json
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from collector.billing.aws import REQUIRED
from tests.collector.conftest import Builder, House
from tests.collector.writing import Export, bedrock, line, monthly


def bill(folder: Path, **more: Any) -> dict[str, Any]:
    return {"name": "bill", "kind": "bill", "location": str(folder), **more}


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "cur2")


def test_a_bedrock_line_in_full(house: House, export: Export) -> None:
    export.deliver([bedrock(1.65, hour=10, line_item_iam_principal="arn:aws:sts::2:assumed-role/gateway/x")])
    report = house.collect(bill(export.root))

    assert report.ok, report.findings
    assert house.row(
        "SELECT export_name, billing_period, provider_name, invoice_issuer_name, publisher_name, billing_account_id, "
        "sub_account_id, invoice_id, billing_currency, charge_category, charge_class, charge_frequency, service_name, "
        "x_service_code, x_line_item_type, x_usage_type, region_id, pricing_unit, consumed_quantity, billed_cost, "
        "effective_cost, list_cost, contracted_cost, tags, x_principal FROM billing_line"
    ) == (
        "100000000001/cur2", "2026-11", "aws", "AWS", "AWS", "100000000001", "210000000012", None, "USD", "Usage", None,
        "Usage-Based", "Amazon Bedrock Service", "AmazonBedrockService", "Usage", "USE1-Claude4.6Sonnet-input-tokens",
        "us-east-1", "1M tokens", Decimal("0.5"), Decimal("1.65"), Decimal("1.65"), Decimal("1.65"), Decimal("1.65"),
        {"user_team": "search"}, "arn:aws:sts::2:assumed-role/gateway/x",
    )  # fmt: skip
    assert house.row(
        "SELECT charge_period_start, charge_period_end, billing_period_start, billing_period_end, "
        "x_charge_family, x_model, "
        "x_token_class, x_tokens, x_service_tier, x_scope, x_context_tier, x_inference_profile, "
        "x_file FROM billing_line"
    ) == (
        datetime(2026, 11, 2, 10), datetime(2026, 11, 2, 11), datetime(2026, 11, 1), datetime(2026, 12, 1), "model_api",
        "claude-sonnet-4-6", "uncached_input", 500_000, "standard", "geo", "base",
        "arn:aws:bedrock:us-east-1:210000000012:inference-profile/us.anthropic.claude-sonnet-4-6-v1:0",
        "cur2-00001.snappy.parquet",
    )  # fmt: skip


MARKETPLACE = {
    "bill_billing_entity": "AWS Marketplace",
    "line_item_product_code": "4a524th30q694o538qndh9ucht",
    "product": {"product_name": "Claude Sonnet 4.5 (Amazon Bedrock Edition)"},
    "pricing_unit": "Units",
    "line_item_resource_id": None,
}
BEDROCK = {"line_item_product_code": "AmazonBedrock", "line_item_resource_id": None, "pricing_unit": "1K tokens"}


def third(meter: str) -> str:
    return f"AWS Marketplace software usage|us-east-1|{meter}"


FAMILIES = [
    # usage type, changes -> model, class, tokens of 0.5 units, tier, scope, context
    # A: AmazonBedrock
    ("USE1-NovaPro-input-tokens", BEDROCK, ("novapro", "uncached_input", 500, "standard", "regional", "base")),
    ("EU-NovaPro-output-tokens-batch", BEDROCK, ("novapro", "output", 500, "batch", "regional", "base")),
    ("USE1-Llama3-3-70B-input-tokens-latency-optimized", BEDROCK,
     ("llama3-3-70b", "uncached_input", 500, "latency_optimized", "regional", "base")),
    ("USE1-NovaPro-cache-read-input-token-count-flex", BEDROCK,
     ("novapro", "cache_read", 500, "flex", "regional", "base")),
    ("APN1-Nova2Lite-cache-write-input-token-count-priority", BEDROCK,
     ("nova2lite", "cache_write_5m", 500, "priority", "regional", "base")),
    ("USE1-openai.gpt-oss-120b-mantle-input-tokens-standard", BEDROCK | {"pricing_unit": "1M tokens"},
     ("gpt-oss-120b", "uncached_input", 500_000, "standard", "regional", "base")),
    ("USE1-TitanEmbeddingV2-Text-input-tokens", BEDROCK,
     ("titanembeddingv2-text", "uncached_input", 500, "standard", "regional", "base")),
    # B: AmazonBedrockService
    ("USE1-Claude4.6Sonnet-output-tokens-cross-region-global",
     {"line_item_resource_id": None}, ("claude4.6sonnet", "output", 500_000, "standard", "global", "base")),
    ("USE1-Claude4.6Opus-cache-write-input-token-count-1h", {"line_item_resource_id": None},
     ("claude4.6opus", "cache_write_1h", 500_000, "standard", "regional", "base")),
    # C: Marketplace
    ("USE1-MP:USE1_InputTokenCount-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Input Tokens")},
     ("claude sonnet 4.5", "uncached_input", 500_000, "standard", "regional", "base")),
    ("USE1-MP:USE1_OutputTokenCount_Global-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Response Tokens Global")},
     ("claude sonnet 4.5", "output", 500_000, "standard", "global", "base")),
    ("EUW2-MP:EUW2_CacheReadInputTokenCount-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Cache Read Input Tokens Regional CRIS")},
     ("claude sonnet 4.5", "cache_read", 500_000, "standard", "geo", "base")),
    ("USE1-MP:USE1_CacheWrite1hInputTokenCount_Batch-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Cache Write Input Tokens")},
     ("claude sonnet 4.5", "cache_write_1h", 500_000, "batch", "regional", "base")),
    ("USE1-MP:USE1_input_tokens_long_ctx_global_standard-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Input Tokens Long Context - Standard, Global")},
     ("claude sonnet 4.5", "uncached_input", 500_000, "standard", "global", "long")),
    ("USW2-MP:USW2_InputTokenCount-Units",
     MARKETPLACE | {"line_item_line_item_description": third("thousand Input Tokens")},
     ("claude sonnet 4.5", "uncached_input", 500, "standard", "regional", "base")),
    ("USW2-MP:USW2_InputTokenCount-Units",
     MARKETPLACE | {"line_item_line_item_description": third("Million Input Tokens"), "line_item_resource_id":
                    "arn:aws:bedrock:us-west-2::foundation-model/anthropic.claude-3-5-sonnet-20240620-v1:0"},
     ("claude-3-5-sonnet", "uncached_input", 500_000, "standard", "regional", "base")),
    # not tokens
    ("USE1-NovaPro-ProvisionedThroughput-ModelUnits", BEDROCK | {"pricing_unit": "hours"}, (None,) * 6),
    ("USE1-NovaCanvas-T2I-1024-Standard-image", BEDROCK | {"pricing_unit": "images"}, (None,) * 6),
    ("USE1-Guardrail-ContentPolicyUnitsConsumed", BEDROCK | {"pricing_unit": "1K TextUnits"}, (None,) * 6),
    ("USE1-MP:USE1_Reserved_1Month_InputTPM_Geo-Units", MARKETPLACE, ("claude sonnet 4.5", *(None,) * 5)),
    # D: agents
    ("USE1-Runtime-vCPU-Hours", {"line_item_product_code": "AmazonBedrockAgentCore", "pricing_unit": "hours",
                                 "line_item_resource_id": None}, (None,) * 6),
]  # fmt: skip


@pytest.mark.parametrize(("usage_type", "changes", "expected"), FAMILIES)
def test_what_a_usage_type_means(
    house: House, export: Export, usage_type: str, changes: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    export.deliver([bedrock(1.0, line_item_usage_type=usage_type, **changes)])
    house.collect(bill(export.root))
    assert (
        house.row("SELECT x_model, x_token_class, x_tokens, x_service_tier, x_scope, x_context_tier FROM billing_line")
        == expected
    )
    assert house.row("SELECT x_charge_family FROM billing_line") == ("model_api",)


def test_one_price_per_token_whatever_the_unit(house: House, export: Export) -> None:
    """AWS changed from 1K to 1M tokens within a month."""
    old = bedrock(0.003, hour=1, line_item_usage_amount=1.0, pricing_unit="1K tokens")
    new = bedrock(3.0, hour=2, line_item_usage_amount=1.0, pricing_unit="1M tokens")
    export.deliver([old, new])
    house.collect(bill(export.root))
    assert house.rows("SELECT billed_cost / x_tokens * 1000000 FROM billing_line ORDER BY charge_period_start") == [
        (3.0,),
        (3.0,),
    ]


def test_a_unit_nobody_knows_leaves_tokens_unknown_and_is_remarked(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, pricing_unit="bushels")])
    report = house.collect(bill(export.root))
    assert house.row("SELECT x_token_class, x_tokens FROM billing_line") == ("uncached_input", None)
    assert any("unit that is not known" in note for note in report.notes)


def test_tokens_are_whole_although_quantities_are_binary_fractions(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, line_item_usage_amount=0.1 + 0.2), bedrock(2.0, line_item_usage_amount=1.234567)])
    house.collect(bill(export.root))
    assert house.rows("SELECT x_tokens FROM billing_line ORDER BY billed_cost") == [(300_000,), (1_234_567,)]


def test_an_opaque_profile_takes_the_model_from_the_usage_type_and_stays_as_a_dimension(
    house: House, export: Export
) -> None:
    profile = "arn:aws:bedrock:us-east-1:2:application-inference-profile/ab12"
    export.deliver([bedrock(1.0, line_item_resource_id=profile)])
    house.collect(bill(export.root))
    assert house.row("SELECT x_model, x_inference_profile, x_scope FROM billing_line") == (
        "claude4.6sonnet", profile, "regional",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "region"),
    [
        ({}, "us-east-1"),
        ({"product_region_code": "", "product": {"region": "eu-central-1"}}, "eu-central-1"),
        ({"product_region_code": None, "line_item_usage_type": "APS3-NovaPro-input-tokens"}, "ap-south-1"),
        ({"product_region_code": None, "line_item_usage_type": "BoxUsage:p5.48xlarge"}, None),
    ],
)
def test_the_region_of_a_line(house: House, export: Export, changes: dict[str, Any], region: str | None) -> None:
    export.deliver([bedrock(1.0, **changes)])
    house.collect(bill(export.root))
    assert house.row("SELECT region_id FROM billing_line") == (region,)


SAVINGS_PLAN = {"savings_plan_savings_plan_a_r_n": "arn:aws:savingsplans::1:savingsplan/sp-1"}
RESERVATION = {"reservation_reservation_a_r_n": "arn:aws:ec2:us-east-1:1:reserved-instances/ri-1"}
BLOCK = {"reservation_reservation_a_r_n": "arn:aws:ec2:us-east-1:1:capacity-reservation/cr-0abc"}

KINDS = [
    # line -> category, family, commitment status, billed, effective
    (line("Usage", 2.0, "AmazonEC2"), ("Usage", "other", None, "2", "2")),
    (line("DiscountedUsage", 0.0, "AmazonEC2", reservation_effective_cost=0.75, **RESERVATION),
     ("Usage", "other", "Used", "0", "0.75")),
    (line("SavingsPlanCoveredUsage", 3.0, "AmazonEC2", savings_plan_savings_plan_effective_cost=2.1, **SAVINGS_PLAN),
     ("Usage", "other", "Used", "3", "2.1")),
    (line("SavingsPlanNegation", -3.0, "AmazonEC2", **SAVINGS_PLAN), ("Adjustment", "commitment", None, "-3", "0")),
    (line("SavingsPlanRecurringFee", 10.0, "ComputeSavingsPlans", savings_plan_total_commitment_to_date=10.0,
          savings_plan_used_commitment=8.0, **SAVINGS_PLAN), ("Purchase", "commitment", "Unused", "10", "2")),
    (line("SavingsPlanUpfrontFee", 43800.0, "ComputeSavingsPlans", **SAVINGS_PLAN),
     ("Purchase", "commitment", None, "43800", "0")),
    (monthly("RIFee", 24.0, "AmazonEC2", reservation_unused_amortized_upfront_fee_for_billing_period=6.0,
             reservation_unused_recurring_fee=6.5, **RESERVATION), ("Purchase", "commitment", "Unused", "24", "12.5")),
    (line("Fee", 8760.0, "AmazonEC2", **RESERVATION), ("Purchase", "commitment", None, "8760", "0")),
    (line("Fee", 5000.0, "AmazonEC2", **BLOCK), ("Purchase", "commitment", None, "5000", "5000")),
    (monthly("Fee", 100.0, "AWSSupportBusiness"), ("Purchase", "support", None, "100", "100")),
    (monthly("Tax", 19.0, "AmazonBedrock"), ("Tax", "tax", None, "19", "19")),
    (monthly("Credit", -50.0, "AmazonBedrock"), ("Credit", "credit", None, "-50", "-50")),
    (line("Refund", -5.0, "AmazonEC2"), ("Credit", "credit", None, "-5", "-5")),
    (line("Refund", -5.0, "ComputeSavingsPlans",
          line_item_line_item_description="Refund for one-time fee for Savings Plan ID sp-1"),
     ("Credit", "credit", None, "-5", "0")),
    (line("EdpDiscount", -1.5, "AmazonEC2"), ("Adjustment", "discount", None, "-1.5", "-1.5")),
    (line("SomeNewDiscount", -1.5, "AmazonEC2"), ("Adjustment", "discount", None, "-1.5", "-1.5")),
    (line("FlatRateSubscription", 20.0, "AmazonQ"), ("Usage", "other", None, "20", "20")),
]  # fmt: skip


@pytest.mark.parametrize(("row", "expected"), KINDS, ids=[str(row["line_item_line_item_type"]) for row, _ in KINDS])
def test_cash_and_amortised_cost_of_every_kind_of_line(
    house: House, export: Export, row: dict[str, Any], expected: tuple[Any, ...]
) -> None:
    export.deliver([row])
    house.collect(bill(export.root))
    category, family, status, billed, effective = expected
    assert house.row(
        "SELECT charge_category, x_charge_family, commitment_discount_status, billed_cost, "
        "effective_cost FROM billing_line"
    ) == (category, family, status, Decimal(billed), Decimal(effective))


def test_amortised_cost_trues_up_to_cash(house: House, export: Export) -> None:
    """A day of a no-upfront savings plan: $10/h committed, $8/h used (reference/billing.md 4.3)."""
    day: list[dict[str, Any]] = []
    for hour in range(24):
        day += [
            line("SavingsPlanCoveredUsage", 12.0, "AmazonEC2", hour, savings_plan_savings_plan_effective_cost=8.0),
            line("SavingsPlanNegation", -12.0, "AmazonEC2", hour),
            line("SavingsPlanRecurringFee", 10.0, "ComputeSavingsPlans", hour,
                 savings_plan_total_commitment_to_date=10.0, savings_plan_used_commitment=8.0),
        ]  # fmt: skip
    export.deliver(day)
    house.collect(bill(export.root))
    assert house.row("SELECT sum(billed_cost), sum(effective_cost) FROM billing_line") == (Decimal(240), Decimal(240))


def test_net_columns_are_the_basis_where_discounts_are_columns_only(house: House, export: Export) -> None:
    export.deliver(
        [
            line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=90.0),
            line(
                "DiscountedUsage",
                0.0,
                "AmazonEC2",
                line_item_net_unblended_cost=0.0,
                reservation_effective_cost=10.0,
                reservation_net_effective_cost=9.0,
                **RESERVATION,
            ),
            line("Usage", 5.0, "AWSMarketplace"),  # no discount: no net value
        ]
    )
    report = house.collect(bill(export.root))
    assert house.row("SELECT sum(billed_cost), sum(effective_cost) FROM billing_line") == (Decimal(95), Decimal(104))
    assert report.loaded[0].result.sums["basis"] == "net"


def test_net_columns_beside_discount_lines_count_the_discount_once(house: House, export: Export) -> None:
    export.deliver(
        [
            line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=90.0),
            line("EdpDiscount", -10.0, "AmazonEC2", line_item_net_unblended_cost=0.0),
        ]
    )
    house.collect(bill(export.root))
    assert house.rows("SELECT x_charge_family, billed_cost FROM billing_line ORDER BY 1") == [
        ("discount", Decimal(0)),
        ("other", Decimal(90)),
    ]


def test_discount_lines_alone_are_kept_as_discount(house: House, export: Export) -> None:
    export.deliver([line("Usage", 100.0, "AmazonEC2"), line("EdpDiscount", -10.0, "AmazonEC2")])
    report = house.collect(bill(export.root))
    assert house.row("SELECT sum(billed_cost), sum(effective_cost) FROM billing_line") == (Decimal(90), Decimal(90))
    assert report.loaded[0].result.sums["basis"] == "unblended"


def test_net_columns_that_disagree_with_discount_lines_are_remarked_and_the_lines_are_used(
    house: House, export: Export
) -> None:
    export.deliver(
        [
            line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=80.0),
            line("EdpDiscount", -10.0, "AmazonEC2", line_item_net_unblended_cost=0.0),
        ]
    )
    report = house.collect(bill(export.root))
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(90),)
    assert any("discounts are stated twice" in note for note in report.notes)


def test_of_a_file_with_two_months_each_has_its_own_basis(house: House, export: Export, tmp_path: Path) -> None:
    """October tells its discount by net columns, November by lines; one file without a manifest holds both."""
    october = {
        "bill_billing_period_start_date": datetime(2026, 10, 1),
        "bill_billing_period_end_date": datetime(2026, 11, 1),
        "line_item_usage_start_date": datetime(2026, 10, 2),
        "line_item_usage_end_date": datetime(2026, 10, 2, 1),
    }
    export.deliver(
        [
            line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=80.0, **october),
            line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=0.0),
            line("EdpDiscount", -10.0, "AmazonEC2"),
        ]
    )
    (data,) = export.root.rglob("*.parquet")
    (tmp_path / "alone").mkdir()
    data.rename(tmp_path / "alone" / "bill.parquet")
    report = house.collect(bill(tmp_path / "alone"))
    assert house.rows("SELECT billing_period, sum(billed_cost) FROM billing_line GROUP BY ALL ORDER BY ALL") == [
        ("2026-10", Decimal(80)),
        ("2026-11", Decimal(90)),
    ]
    assert report.loaded[0].result.sums["basis"] == "net and unblended"


def test_net_columns_full_of_zeros_are_no_net_columns(house: House, export: Export) -> None:
    export.deliver([line("Usage", 100.0, "AmazonEC2", line_item_net_unblended_cost=0.0)])
    house.collect(bill(export.root))
    assert house.row("SELECT billed_cost FROM billing_line") == (Decimal(100),)


def test_split_cost_lines_stay_out_of_the_bill(house: House, export: Export) -> None:
    export.deliver(
        [
            line("Usage", 10.0, "AmazonEC2"),
            line("Usage", 6.0, "AmazonEC2", line_item_operation="EKSPod-EC2"),
            line("Usage", 4.0, "AmazonEC2", split_line_item_parent_resource_id="i-1"),
        ]
    )
    report = house.collect(bill(export.root))
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (1, Decimal(10))
    assert (report.total("rows_read"), report.total("rows_loaded"), report.total("rows_filtered")) == (3, 1, 2)


COSTS = st.lists(st.floats(-1e6, 1e6, allow_nan=False, allow_infinity=False), min_size=1, max_size=40)


@hypothesis_settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COSTS)
def test_what_goes_in_comes_out_to_the_last_digit(build: Builder, costs: list[float]) -> None:
    house = build()
    export = Export(house.data / "cur2")
    export.deliver([line("Usage", cost, "AmazonEC2", number % 24) for number, cost in enumerate(costs)], files=3)
    report = house.collect(bill(export.root))
    lines = [Decimal(repr(cost)).quantize(Decimal("1e-18")) for cost in costs]
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (len(costs), sum(lines))
    assert Decimal(report.loaded[0].result.sums["unblended_cost"]) == sum(lines)
    assert house.row("SELECT sum(billed_cost) FROM bill_version") == (sum(lines),)


def test_columns_without_a_place_are_kept(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, line_item_blended_rate="3.3", brand_new_column="x", product_sku="SKU-1")])
    house.collect(bill(export.root))
    assert house.row("SELECT x_other, sku_id FROM billing_line") == (
        {"line_item_blended_rate": "3.3", "brand_new_column": "x"}, "SKU-1",
    )  # fmt: skip


def test_tag_keys_are_normalised_and_of_equal_ones_the_first_is_kept(house: House, export: Export) -> None:
    tags = {"resource_tags_user:Team": "a", "user_team": "b", "aws:eks/name": "c"}
    export.deliver([bedrock(1.0, resource_tags=tags, tags={"iamPrincipal/app": "web"})])
    house.collect(bill(export.root))
    assert house.row("SELECT tags FROM billing_line") == (
        {"user_team": "a", "aws_eks_name": "c", "iamprincipal_app": "web"},
    )


def test_a_missing_optional_column_is_remarked_with_what_it_makes_unavailable(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0)], without=["line_item_resource_id", "line_item_iam_principal", "resource_tags"])
    report = house.collect(bill(export.root))
    assert house.row("SELECT x_model, resource_id, tags FROM billing_line") == ("claude4.6sonnet", None, None)
    said = " ".join(report.notes)
    assert "no column line_item_resource_id, so cost by inference profile and exact model id" in said
    assert "no column resource_tags, so cost by tag is unavailable" in said


@pytest.mark.parametrize("layout", ["create-new", "overwrite"])
def test_both_layouts_of_an_export_are_read(house: House, export: Export, layout: str) -> None:
    export.deliver([bedrock(1.0), bedrock(2.0, 5)], layout=layout, files=2)
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (2, Decimal(3))


def test_an_emptied_chunk_of_an_overwritten_export_is_legal(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0)], layout="overwrite", files=3)
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT count(*) FROM billing_line") == (1,)


def test_a_folder_above_several_exports_is_read_with_the_account_in_the_exports_name(
    house: House, tmp_path: Path
) -> None:
    Export(tmp_path / "all" / "one" / "cur2").deliver([bedrock(1.0)])
    Export(tmp_path / "all" / "two" / "cur2").deliver([bedrock(2.0, bill_payer_account_id="100000000002")])
    house.collect(bill(tmp_path / "all"))
    assert house.rows("SELECT export_name, billed_cost FROM billing_line ORDER BY 1") == [
        ("100000000001/cur2", Decimal(1)),
        ("100000000002/cur2", Decimal(2)),
    ]


def restated(export: Export) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """A first delivery, and a later one in which hour 5 costs more, an hour came late and support was added."""
    first = [bedrock(1.0, hour) for hour in range(8)]
    second = [{**row, "identity_line_item_id": f"new-{n}"} for n, row in enumerate(first)]
    second[5]["line_item_unblended_cost"] = 1.5
    return first, [*second, bedrock(1.0, 9), monthly("Fee", 100.0, "AWSSupportBusiness")]


def test_a_restated_bill_replaces_the_month_and_touches_only_what_changed(house: House, export: Export) -> None:
    first, second = restated(export)
    export.deliver(first, "20261103T040000Z")
    house.collect(bill(export.root))
    assert house.row("SELECT count(*) FROM touched_hour") == (8,)
    house_touched(house)

    export.deliver(second, "20261104T040000Z")
    house.collect(bill(export.root))
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (10, Decimal("109.5"))
    assert house.rows("SELECT hour, reason FROM touched_hour ORDER BY hour") == [
        (datetime(2026, 11, 1), "overlay"),
        (datetime(2026, 11, 2, 5), "billing"),
        (datetime(2026, 11, 2, 9), "billing"),
    ]


def house_touched(house: House) -> None:
    """What attribution does when it has recomputed the touched hours."""
    import duckdb

    with duckdb.connect(str(house.layout.warehouse)) as connection:
        connection.execute("DELETE FROM touched_hour")


def test_a_delivery_with_the_same_lines_in_another_order_touches_nothing(house: House, export: Export) -> None:
    first, _ = restated(export)
    export.deliver(first, "20261103T040000Z")
    house.collect(bill(export.root))
    house_touched(house)
    export.deliver([{**row, "identity_line_item_id": "other"} for row in reversed(first)], "20261104T040000Z", files=3)
    assert house.collect(bill(export.root)).total("rows_loaded") == 8
    assert house.rows("SELECT * FROM touched_hour") == []


def test_two_equal_lines_are_not_one(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, 3)], "20261103T040000Z")
    house.collect(bill(export.root))
    house_touched(house)
    export.deliver([bedrock(1.0, 3), bedrock(1.0, 3)], "20261104T040000Z")
    house.collect(bill(export.root))
    assert house.row("SELECT count(*) FROM billing_line") == (2,)
    assert house.rows("SELECT hour FROM touched_hour") == [(datetime(2026, 11, 2, 3),)]


def test_a_line_that_goes_away_touches_its_hour(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0, 3), bedrock(1.0, 4)], "20261103T040000Z")
    house.collect(bill(export.root))
    house_touched(house)
    export.deliver([bedrock(1.0, 3)], "20261104T040000Z")
    house.collect(bill(export.root))
    assert house.rows("SELECT hour FROM touched_hour") == [(datetime(2026, 11, 2, 4),)]


def test_a_daily_line_touches_the_hours_of_its_day_and_a_monthly_one_the_overlay(house: House, export: Export) -> None:
    day = {"line_item_usage_end_date": datetime(2026, 11, 3)}
    export.deliver([bedrock(1.0, 0, **day), monthly("Tax", 1.0, "AmazonBedrock")])
    house.collect(bill(export.root))
    assert house.rows("SELECT reason, count(*), min(hour), max(hour) FROM touched_hour GROUP BY 1 ORDER BY 1") == [
        ("billing", 24, datetime(2026, 11, 2, 0), datetime(2026, 11, 2, 23)),
        ("overlay", 1, datetime(2026, 11, 1), datetime(2026, 11, 1)),
    ]


def test_tokens_billed_by_the_month_touch_the_hours_of_the_month(house: House, export: Export) -> None:
    period = {"line_item_usage_start_date": datetime(2026, 11, 1), "line_item_usage_end_date": datetime(2026, 12, 1)}
    export.deliver([bedrock(1.0, **period)])
    house.collect(bill(export.root))
    assert house.rows("SELECT reason, count(*) FROM touched_hour GROUP BY 1") == [("billing", 720)]


def test_any_order_of_deliveries_gives_the_delivery_that_was_made_last(build: Builder, tmp_path: Path) -> None:
    first, second = restated(Export(tmp_path))
    in_order, reversed_order, at_once = build(), build(), build()

    for house, deliveries in (
        (in_order, [(first, "20261103T040000Z"), (second, "20261104T040000Z")]),
        (reversed_order, [(second, "20261104T040000Z"), (first, "20261103T040000Z")]),
    ):
        export = Export(house.data / "cur2")
        for rows, made in deliveries:
            export.deliver(rows, made)
            house.collect(bill(export.root))
    export = Export(at_once.data / "cur2")
    export.deliver(first, "20261103T040000Z")
    export.deliver(second, "20261104T040000Z")
    at_once.collect(bill(export.root))

    expected = in_order.evidence()
    for house in (reversed_order, at_once):
        assert {**house.evidence(), "touched_hour": []} == {**expected, "touched_hour": []}
    assert {row[2] for row in expected["bill_version"]} == {"1", "2"}


def test_an_overwritten_export_is_read_again_when_its_manifest_is_new(house: House, export: Export) -> None:
    first, second = restated(export)
    export.deliver(first, layout="overwrite", execution="one")
    house.collect(bill(export.root))
    export.deliver(second, layout="overwrite", execution="two")
    house.collect(bill(export.root))
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal("109.5"),)
    assert house.row("SELECT count(DISTINCT delivery) FROM bill_version") == (2,)


def test_an_old_delivery_whose_files_are_gone_is_no_error(house: House, export: Export) -> None:
    first, second = restated(export)
    export.deliver(first, "20261103T040000Z")
    export.deliver(second, "20261104T040000Z")
    for path in (export.root / "data").rglob("20261103*/*.parquet"):
        path.unlink()
    report = house.collect(bill(export.root))
    assert report.ok
    assert any("its totals are not in the history" in note for note in report.notes)
    assert house.row("SELECT count(*) FROM billing_line") == (10,)
    assert house.collect(bill(export.root)).loaded == ()


def test_months_are_replaced_apart(house: House, export: Export) -> None:
    october = {
        "bill_billing_period_start_date": datetime(2026, 10, 1),
        "line_item_usage_start_date": datetime(2026, 10, 5),
        "line_item_usage_end_date": datetime(2026, 10, 5, 1),
    }
    export.deliver([bedrock(7.0, **october)], "20261106T000000Z", period="2026-10")
    export.deliver([bedrock(1.0)])
    house.collect(bill(export.root))
    assert house.rows("SELECT billing_period, sum(billed_cost) FROM billing_line GROUP BY 1 ORDER BY 1") == [
        ("2026-10", Decimal(7)),
        ("2026-11", Decimal(1)),
    ]


# --- Bad input: refused whole, with the remedy, and what was loaded stays ---


@pytest.fixture
def loaded(house: House, export: Export) -> dict[str, Any]:
    """A good first delivery, in the warehouse; answers the evidence that must not change."""
    export.deliver([bedrock(1.0, hour) for hour in range(3)], "20261103T040000Z")
    house.collect(bill(export.root))
    return house.evidence()


def the_finding(house: House, export: Export) -> str:
    report = house.collect(bill(export.root))
    assert len(report.findings) == 1, report.findings
    return str(report.findings[0])


def test_a_location_without_an_export(house: House, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    report = house.collect(bill(tmp_path / "empty"))
    assert "no bill is here" in str(report.findings[0])
    assert "a data export holds `data` and `metadata`" in report.findings[0].remedy


def test_a_location_that_does_not_exist(house: House, tmp_path: Path) -> None:
    report = house.collect(bill(tmp_path / "nowhere"))
    assert report.findings[0].what == "no such file or folder"
    assert "location" in report.findings[0].remedy


def test_data_without_a_manifest(house: House, export: Export, loaded: dict[str, Any]) -> None:
    export.deliver([bedrock(1.0, bill_billing_period_start_date=datetime(2026, 12, 1))], period="2026-12")
    for path in (export.root / "metadata" / "BILLING_PERIOD=2026-12").rglob("*.json"):
        path.unlink()
    said = the_finding(house, export)
    assert "has no manifest" in said
    assert "AWS writes the manifest last" in said
    assert house.evidence() == loaded


def test_a_half_written_manifest(house: House, export: Export, loaded: dict[str, Any]) -> None:
    manifest = export.deliver([bedrock(9.0)], "20261104T040000Z")
    manifest.write_text(manifest.read_text()[:60])
    period = export.root / "metadata" / "BILLING_PERIOD=2026-11" / "cur2-Manifest.json"
    period.write_text(period.read_text()[:60])
    report = house.collect(bill(export.root))
    assert {finding.what for finding in report.findings} == {
        "the manifest is half-written or no manifest of a data export"
    }
    assert house.evidence() == loaded


def test_a_half_written_manifest_is_read_when_it_is_whole(house: House, export: Export, loaded: dict[str, Any]) -> None:
    manifest = export.deliver([bedrock(9.0)], "20261104T040000Z", layout="overwrite")
    whole = manifest.read_text()
    manifest.write_text(whole[:60])
    house.collect(bill(export.root))
    manifest.write_text(whole)
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(9),)


def test_a_missing_data_file(house: House, export: Export, loaded: dict[str, Any]) -> None:
    export.deliver([bedrock(9.0), bedrock(8.0)], "20261104T040000Z", files=2)
    next((export.root / "data").rglob("20261104*/*-00002.snappy.parquet")).unlink()
    said = the_finding(house, export)
    assert "1 of the 2 data files that the manifest names are not there" in said
    assert "Nothing of this delivery was loaded" in said
    assert house.evidence() == loaded


@pytest.mark.parametrize("keep", [0, 4, 200])
def test_a_truncated_data_file(house: House, export: Export, loaded: dict[str, Any], keep: int) -> None:
    export.deliver([bedrock(9.0), bedrock(8.0)], "20261104T040000Z", files=2)
    path = next((export.root / "data").rglob("20261104*/*-00002.snappy.parquet"))
    path.write_bytes(path.read_bytes()[:keep])
    said = the_finding(house, export)
    assert "cur2-00002.snappy.parquet is truncated or no Parquet" in said
    assert house.evidence() == loaded


def test_a_data_file_with_a_hole(house: House, export: Export, loaded: dict[str, Any]) -> None:
    export.deliver([bedrock(float(n)) for n in range(2000)], "20261104T040000Z")
    path = next((export.root / "data").rglob("20261104*/*.parquet"))
    content = bytearray(path.read_bytes())
    content[2000:3000] = bytes(1000)
    path.write_bytes(content)
    assert "cannot be read" in the_finding(house, export)
    assert house.evidence() == loaded


@pytest.mark.parametrize("column", REQUIRED)
def test_a_missing_core_column(house: House, export: Export, loaded: dict[str, Any], column: str) -> None:
    export.deliver([bedrock(9.0)], "20261104T040000Z", without=[column])
    said = the_finding(house, export)
    assert f"cannot be understood without: {column}." in said
    assert house.evidence() == loaded


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bill_billing_period_start_date": datetime(2026, 10, 1)}, "1 of 2 lines are not of 2026-11"),
        ({"line_item_usage_start_date": None}, "1 of 2 lines have no charge period"),
        ({"line_item_usage_end_date": datetime(2026, 11, 1)}, "ends before it starts"),
        ({"line_item_currency_code": ""}, "lines have no currency"),
        ({"line_item_line_item_type": None}, "lines have no line item type"),
        ({"line_item_unblended_cost": None}, "lines have no cost"),
        ({"line_item_unblended_cost": float("nan")}, "or one that is no number"),
    ],
)
def test_a_line_that_cannot_stand_in_a_bill_refuses_the_delivery(
    house: House, export: Export, loaded: dict[str, Any], changes: dict[str, Any], says: str
) -> None:
    export.deliver([bedrock(9.0), bedrock(8.0, **changes)], "20261104T040000Z")
    said = the_finding(house, export)
    assert says in said
    assert "loaded whole or not at all" in said
    assert house.evidence() == loaded


def test_data_files_without_one_line_are_no_bill(house: House, export: Export, loaded: dict[str, Any]) -> None:
    export.deliver([bedrock(9.0)], "20261104T040000Z")
    path = next((export.root / "data").rglob("20261104*/*.parquet"))
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(path).slice(0, 0), path)
    assert "there is not one line in them" in the_finding(house, export)
    assert house.evidence() == loaded


def test_a_manifest_that_names_no_file_is_an_empty_bill(house: House, export: Export) -> None:
    manifest = export.deliver([bedrock(9.0)], layout="overwrite")
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "dataFiles": []}))
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT count(*) FROM billing_line") == (0,)


def test_a_manifest_that_names_files_that_are_not_there(house: House, export: Export) -> None:
    manifest = export.deliver([bedrock(9.0)], layout="overwrite")
    manifest.write_text(manifest.read_text().replace(".snappy.parquet", ".csv.gz"))
    assert "1 of the 1 data files that the manifest names are not there" in the_finding(house, export)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: {**told, "dataFiles": [{"key": key} for key in told["dataFiles"]]},
        lambda told: {"assemblyId": "a", "reportKeys": ["/" + key.split("/", 3)[3] for key in told["dataFiles"]]},
        lambda told: {"files": told["dataFiles"]},
    ],
)
def test_manifests_are_read_tolerantly(house: House, export: Export, change: Any) -> None:
    manifest = export.deliver([bedrock(9.0)], layout="overwrite")
    manifest.write_text(json.dumps(change(json.loads(manifest.read_text()))))
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(9),)


def test_one_bad_month_does_not_keep_the_others_out(house: House, export: Export) -> None:
    export.deliver([bedrock(1.0)])
    (export.root / "metadata" / "BILLING_PERIOD=2026-10").mkdir()
    (export.root / "metadata" / "BILLING_PERIOD=2026-10" / "cur2-Manifest.json").write_text("{")
    report = house.collect(bill(export.root))
    assert len(report.findings) == 1
    assert house.row("SELECT count(*) FROM billing_line") == (1,)


def test_hours_are_utc_whatever_the_files_time_type(house: House, export: Export, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    export.deliver([bedrock(1.0, 5)], layout="overwrite")
    path = next((export.root / "data").rglob("*.parquet"))
    table = pq.read_table(path)
    place = table.schema.get_field_index("line_item_usage_start_date")
    zoned = table.column(place).cast(pa.timestamp("us", tz="UTC"))
    pq.write_table(table.set_column(place, "line_item_usage_start_date", zoned), path)
    house.collect(bill(export.root))
    assert house.row("SELECT charge_period_start, charge_period_end - charge_period_start FROM billing_line") == (
        datetime(2026, 11, 2, 5),
        timedelta(hours=1),
    )
