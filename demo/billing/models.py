"""Bedrock in the bill: its four families, units, token classes, tiers, scopes, and what is no token (billing.md 5)."""

from decimal import Decimal
from typing import Any

from demo.billing.line import TEAM, Columns, Line, Month
from demo.billing.shape import Shape

PER_UNIT = {"1K tokens": Decimal("0.001"), "1M tokens": Decimal(1)}
"""Millions of tokens in a unit."""

ARN = "arn:aws:bedrock:us-east-1"

# usage type, unit, millions of tokens, dollars per million
FAMILY_A = [
    ("USE1-NovaPro-input-tokens", "1K tokens", "2", "0.8"),
    ("USE1-NovaPro-output-tokens", "1K tokens", "0.5", "3.2"),
    ("USE1-NovaPro-cache-read-input-token-count", "1K tokens", "4", "0.2"),
    ("USE1-NovaPro-cache-write-input-token-count", "1K tokens", "1", "0"),
    ("USE1-NovaPro-input-tokens-batch", "1K tokens", "10", "0.4"),
    ("USE1-NovaPro-output-tokens-flex", "1K tokens", "1", "1.6"),
    ("USE1-NovaPro-output-tokens-priority", "1K tokens", "1", "5.6"),
    ("USE1-NovaPro-input-tokens-latency-optimized", "1K tokens", "3", "1"),
    ("USE1-Nova2Lite-input-tokens-cross-region-global", "1M tokens", "5", "0.3"),
    ("USE1-openai.gpt-oss-120b-mantle-input-tokens-standard", "1M tokens", "6", "0.15"),
    ("USE1-openai.gpt-oss-120b-mantle-output-tokens-global-standard", "1M tokens", "2", "0.6"),
    ("USE1-TitanEmbeddingV2-Text-input-tokens", "1K tokens", "20", "0.02"),
]
FAMILY_B = [
    ("USE1-Claude4.6Sonnet-input-tokens", "1M tokens", "1.5", "3.3"),
    ("USE1-Claude4.6Sonnet-output-tokens", "1M tokens", "0.25", "16.5"),
    ("USE1-Claude4.6Sonnet-cache-read-input-token-count", "1M tokens", "12", "0.33"),
    ("USE1-Claude4.6Sonnet-cache-write-input-token-count", "1M tokens", "1", "4.125"),
    ("USE1-Claude4.6Sonnet-cache-write-input-token-count-1h", "1M tokens", "1", "6.6"),
    ("USE1-Claude4Sonnet-input-tokens-cross-region-global", "1M tokens", "2", "3"),
]
# usage type after `USE1-MP:USE1_`, third field of the description, units, millions in a unit, dollars per million
FAMILY_C = [
    ("InputTokenCount-Units", "Million Input Tokens", "2", "1", "3"),
    ("OutputTokenCount-Units", "Million Response Tokens", "0.4", "1", "15"),
    ("InputTokenCount-Units", "Million Input Tokens Regional CRIS", "1", "1", "3.3"),
    ("OutputTokenCount_Global-Units", "Million Response Tokens Global", "0.2", "1", "15"),
    ("CacheReadInputTokenCount-Units", "Million Cache Read Input Tokens", "8", "1", "0.3"),
    ("CacheWriteInputTokenCount-Units", "Million Cache Write Input Tokens", "1", "1", "3.75"),
    ("CacheWrite1hInputTokenCount-Units", "Million Cache Write 1h Input Tokens", "1", "1", "6"),
    ("InputTokenCount_Batch-Units", "Million Input Tokens Batch", "4", "1", "1.5"),
    ("input_tokens_long_ctx_global_standard-Units", "Input Tokens Long Context - Standard, Global", "1", "1", "6"),
    ("InputTokenCount-Units", "thousand Input Tokens", "500", "0.001", "3"),  # as it was until a unit was a million
]
# usage type, unit, quantity, dollars per unit: bought by time or by capacity
BY_TIME = [
    ("USE1-NovaPro-ProvisionedThroughput-ModelUnits", "hours", "24", "90"),
    ("USE1-CustomModelImport-CMU-Minutes", "minutes", "30", "0.0785"),
    ("USE1-NovaCanvas-T2I-1024-Standard-image", "images", "50", "0.04"),
    ("USE1-Guardrail-ContentPolicyUnitsConsumed", "1K TextUnits", "2", "0.15"),
]
AGENTS = [
    ("USE1-Runtime-vCPU-Hours", "vCPU-Hours", "10", "0.0895"),
    ("USE1-Runtime-Memory-GB-Hours", "GB-Hours", "20", "0.00945"),
    ("USE1-Gateway-Tool-Invocations", "Requests", "4000", "0.000005"),
    ("USE1-CodeInterpreter-vCPU-Hours", "vCPU-Hours", "2", "0.0895"),
    ("USE1-BrowserTool-vCPU-Hours", "vCPU-Hours", "4", "0.0895"),
    ("USE1-Memory-ShortTerm-Events", "Events", "1000", "0.00025"),
    ("USE1-Memory-LongTerm-Records", "Records", "100", "0.00075"),
]


def _bedrock(month: Month, product_code: str, usage_type: str, cost: Decimal, hour: int, **more: Any) -> Line:
    said: Columns = {
        "line_item_operation": "InvokeModelInference",
        "product": {"region": "us-east-1"},
        "product_product_family": "Amazon Bedrock",
    }
    return month.usage(product_code, usage_type, cost, month.at(8, hour), **(said | more))


def first_party(month: Month) -> Shape:
    """Families A and B: 1K and 1M tokens in one month, every class, tier and scope."""
    lines, cost = [], Decimal(0)
    for product_code, family in (("AmazonBedrock", FAMILY_A), ("AmazonBedrockService", FAMILY_B)):
        for number, (usage_type, unit, millions, price) in enumerate(family):
            amount = Decimal(millions) * Decimal(price)
            lines.append(
                _bedrock(
                    month, product_code, usage_type, amount, number,
                    line_item_iam_principal=f"arn:aws:sts::{TEAM.id}:assumed-role/gateway/search",
                    line_item_resource_id=f"{ARN}:{TEAM.id}:application-inference-profile/abc123def456",
                    line_item_usage_amount=Decimal(millions) / PER_UNIT[unit],
                    line_item_unblended_rate=f"{Decimal(price) * PER_UNIT[unit]:f}",
                    pricing_unit=unit,
                    resource_tags={"user_team": "search", "user_app": "assistant"},
                    tags={"accountTag/environment": TEAM.environment, "iamPrincipal/app": "llm-gateway"},
                )
            )  # fmt: skip
            cost += amount
    return Shape("bedrock, first party", tuple(lines), cost, cost, cost, cost / 10)


def marketplace_models(month: Month) -> Shape:
    """Family C: an opaque product code, no public price (measured: 0), discounts that do not apply."""
    lines, cost = [], Decimal(0)
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    for number, (meter, third, units, per_unit, price) in enumerate(FAMILY_C):
        amount = Decimal(units) * Decimal(per_unit) * Decimal(price)
        lines.append(
            _bedrock(
                month, "4a524th30q694o538qndh9ucht", f"USE1-MP:USE1_{meter}", amount, number,
                entity="AWS Marketplace",
                line_item_legal_entity="Anthropic, PBC",
                line_item_line_item_description=f"AWS Marketplace software usage|us-east-1|{third}",
                line_item_operation="Usage",
                line_item_resource_id=f"{ARN}::foundation-model/{model}",
                line_item_usage_amount=Decimal(units),
                pricing_public_on_demand_cost=Decimal(0),
                pricing_unit="Units",
                product={"product_name": "Claude Sonnet 4.5 (Amazon Bedrock Edition)", "region": "us-east-1"},
                product_product_family="",
            )
        )  # fmt: skip
        cost += amount
    return Shape("bedrock, marketplace", tuple(lines), cost, cost)


def reserved_tokens(month: Month) -> Shape:
    """A reserved tier of a Marketplace model: a thousand tokens a minute for a month, priced by capacity, not use."""
    line = _bedrock(
        month, "4a524th30q694o538qndh9ucht", "USE1-MP:USE1_Reserved_1Month_InputTPM_Geo-Units", Decimal(720), 0,
        entity="AWS Marketplace",
        line_item_legal_entity="Anthropic, PBC",
        line_item_line_item_description="AWS Marketplace software usage|us-east-1|Reserved 1 Month Input TPM Geo",
        line_item_operation="Usage",
        line_item_usage_amount=Decimal(1440),
        pricing_public_on_demand_cost=Decimal(0),
        pricing_unit="Units",
        product={"product_name": "Claude Sonnet 4.5 (Amazon Bedrock Edition)", "region": "us-east-1"},
    )  # fmt: skip
    cost = 1440 * Decimal("0.5")
    return Shape("bedrock, reserved tier", (line,), cost, cost)


def by_time(month: Month) -> Shape:
    """Provisioned throughput, imported models, images and guardrails: none of it is tokens."""
    lines = [
        _bedrock(
            month, "AmazonBedrock", usage_type, Decimal(quantity) * Decimal(price), number,
            line_item_usage_amount=Decimal(quantity), pricing_unit=unit,
        )
        for number, (usage_type, unit, quantity, price) in enumerate(BY_TIME)
    ]  # fmt: skip
    cost = 24 * Decimal(90) + 30 * Decimal("0.0785") + 50 * Decimal("0.04") + 2 * Decimal("0.15")
    return Shape("bedrock, not tokens", tuple(lines), cost, cost, cost, cost / 10)


def agents(month: Month) -> Shape:
    """Family D: AgentCore's runtimes, tools and memory."""
    # assumption: AWS's documentation names the parts; their usage types here only follow its pattern
    lines = [
        month.usage(
            "AmazonBedrockAgentCore", usage_type, Decimal(quantity) * Decimal(price), month.at(9, number),
            line_item_operation="AgentCore",
            line_item_resource_id=f"arn:aws:bedrock-agentcore:us-east-1:{TEAM.id}:runtime/support-agent",
            line_item_usage_amount=Decimal(quantity), pricing_unit=unit,
        )
        for number, (usage_type, unit, quantity, price) in enumerate(AGENTS)
    ]  # fmt: skip
    cost = 16 * Decimal("0.0895") + Decimal("0.189") + Decimal("0.02") + Decimal("0.25") + Decimal("0.075")
    return Shape("agents", tuple(lines), cost, cost, cost, cost / 10)
