"""Model APIs in FOCUS bills: model, token class, tokens and dimensions of AI providers and of the clouds' services."""

import pytest

from tests.collector.focus_bills import Desk, charge

AI = {"ServiceCategory": "AI and Machine Learning"}
BEDROCK = AI | {"ProviderName": "AWS", "ServiceName": "Amazon Bedrock", "ConsumedUnit": "1K tokens"}
MARKET = BEDROCK | {"ServiceName": "Claude Sonnet 4.5 (Amazon Bedrock Edition)", "ConsumedUnit": "Units"}
AZURE = AI | {"ProviderName": "Microsoft", "ServiceName": "Azure OpenAI Service", "ConsumedUnit": "1K Tokens"}
GOOGLE = AI | {"ProviderName": "Google Cloud", "ServiceName": "Vertex AI", "ConsumedUnit": "count"}
OPENAI = AI | {"ProviderName": "OpenAI", "ServiceName": "OpenAI API", "ConsumedUnit": "Tokens"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


def details(direction: str, action: str = "", model: str = "solora-atlas-5.5") -> str:
    cache = f', "TokenCacheAction": "{action}"' if action else ""
    return f'{{"ModelId": "{model}", "TokenDirection": "{direction}"{cache}}}'


LINES: list[tuple[dict[str, str], tuple[object, ...]]] = [
    # line -> model, class, tokens of a quantity of 500, tier, scope, context
    # the specification's own keys come before names of meters
    (OPENAI | {"SkuPriceDetails": details("Input", "Uncached")},
     ("solora-atlas-5.5", "uncached_input", 500, "standard", None, "base")),
    (OPENAI | {"SkuPriceDetails": details("Input", "Read"), "SkuMeter": "Input Tokens"},
     ("solora-atlas-5.5", "cache_read", 500, "standard", None, "base")),
    (OPENAI | {"SkuPriceDetails": details("Input", "Write")},
     ("solora-atlas-5.5", "cache_write_5m", 500, "standard", None, "base")),
    (OPENAI | {"SkuPriceDetails": details("Input", "Write"), "SkuMeter": "Cache Write 1h Tokens"},
     ("solora-atlas-5.5", "cache_write_1h", 500, "standard", None, "base")),
    (OPENAI | {"SkuPriceDetails": details("Output")}, ("solora-atlas-5.5", "output", 500, "standard", None, "base")),
    (OPENAI | {"SkuPriceDetails": '{"ModelId": "gpt-5-mini"}', "SkuMeter": "Cached Input Tokens - Batch"},
     ("gpt-5-mini", "cache_read", 500, "batch", None, "base")),
    (OPENAI | {"SkuMeter": "gpt-5-mini Cache Read Tokens"},
     ("gpt-5-mini", "cache_read", 500, "standard", None, "base")),
    (OPENAI | {"SkuMeter": "Input Tokens", "SkuId": "gpt-5.4-input"},
     ("gpt-5.4", "uncached_input", 500, "standard", None, "base")),
    # Amazon Bedrock, by usage type
    (BEDROCK | {"x_UsageType": "USE1-NovaPro-input-tokens"},
     ("novapro", "uncached_input", 500_000, "standard", "regional", "base")),
    (BEDROCK | {"SkuMeter": "EU-NovaPro-output-tokens-batch", "ConsumedUnit": "1M tokens"},
     ("novapro", "output", 500_000_000, "batch", "regional", "base")),
    (BEDROCK | {"x_UsageType": "USE1-Claude4.6Sonnet-cache-write-input-token-count-1h"},
     ("claude4.6sonnet", "cache_write_1h", 500_000, "standard", "regional", "base")),
    (BEDROCK | {"x_UsageType": "USE1-Claude4.6Sonnet-cache-read-input-token-count-cross-region-global",
                "ResourceId": "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-6-v1:0"},
     ("claude-sonnet-4-6", "cache_read", 500_000, "standard", "global", "base")),
    (MARKET | {"x_UsageType": "USE1-MP:USE1_OutputTokenCount_Global-Units",
               "ChargeDescription": "AWS Marketplace software usage|us-east-1|Million Response Tokens Global"},
     ("claude sonnet 4.5", "output", 500_000_000, "standard", "global", "base")),
    (MARKET | {"x_UsageType": "USE1-MP:USE1_input_tokens_long_ctx_standard-Units",
               "ChargeDescription": "AWS Marketplace software usage|us-east-1|thousand Input Tokens Regional CRIS"},
     ("claude sonnet 4.5", "uncached_input", 500_000, "standard", "geo", "long")),
    # Azure OpenAI, by meter
    (AZURE | {"x_SkuMeterName": "gpt 4o 1120 cached Inp glbl Tokens"},
     ("gpt 4o 1120", "cache_read", 500_000, "standard", "global", "base")),
    (AZURE | {"x_SkuMeterName": "gpt-4o-0806-Outp-regnl Tokens"},
     ("gpt-4o-0806", "output", 500_000, "standard", "regional", "base")),
    (AZURE | {"x_SkuMeterName": "gpt 4.1 Inp Data Zone Tokens"},
     ("gpt 4.1", "uncached_input", 500_000, "standard", "geo", "base")),
    (AZURE | {"x_SkuMeterName": "gpt 4.1 mini Batch Outp glbl Tokens"},
     ("gpt 4.1 mini", "output", 500_000, "batch", "global", "base")),
    (AZURE | {"ChargeDescription": "Azure OpenAI - gpt-4o-0806-Inp-glbl - US East"},
     ("gpt-4o-0806", "uncached_input", 500_000, "standard", "global", "base")),
    # Google, by the description of the SKU
    (GOOGLE | {"ChargeDescription": "Gemini 2.5 Flash GA Text Input - Predictions tokens"},
     ("gemini 2.5 flash", "uncached_input", 500, "standard", None, "base")),
    (GOOGLE | {"ChargeDescription": "Gemini 3.7 Flash Global Text Output - Predictions tokens"},
     ("gemini 3.7 flash", "output", 500, "standard", "global", "base")),
    (GOOGLE | {"ChargeDescription": "Gemini 3 Flash Text Input Caching tokens"},
     ("gemini 3 flash", "cache_read", 500, "standard", None, "base")),
]  # fmt: skip


@pytest.mark.parametrize(("line", "expected"), LINES)
def test_what_a_token_metered_line_means(desk: Desk, line: dict[str, str], expected: tuple[object, ...]) -> None:
    desk.stage(charge(ConsumedQuantity="500", **line))
    assert desk.row("x_model, x_token_class, x_tokens, x_service_tier, x_scope, x_context_tier") == expected
    assert desk.row("x_charge_family") == ("model_api",)


@pytest.mark.parametrize(
    "line",
    [
        BEDROCK | {"x_UsageType": "USE1-NovaPro-ProvisionedThroughput-ModelUnits", "ConsumedUnit": "Hours"},
        BEDROCK | {"x_UsageType": "USE1-NovaCanvas-T2I-1024-Standard-image", "ConsumedUnit": "images"},
        BEDROCK | {"x_UsageType": "USE1-Guardrail-ContentPolicyUnitsConsumed"},
        GOOGLE | {"ChargeDescription": "Gemini 3.6 Flash Image Input Caching Storage tokens", "ConsumedUnit": "h"},
        AZURE | {"x_SkuMeterName": "Provisioned Managed Global Unit", "ConsumedUnit": "1 Hour"},
    ],
)
def test_what_is_no_text_token_is_a_model_api_without_a_class_and_is_counted(desk: Desk, line: dict[str, str]) -> None:
    staging = desk.stage(charge(ConsumedQuantity="5", **line))
    assert desk.row("x_charge_family, x_token_class, x_tokens, x_service_tier") == ("model_api", None, None, None)
    assert any(note.startswith("1 lines of a model API are of no token class") for note in staging.notes)


@pytest.mark.parametrize(
    ("unit", "tokens"),
    [
        ("Tokens", 2), ("Token", 2), ("1K Tokens", 2_000), ("1k tokens", 2_000), ("1000 Tokens", 2_000),
        ("1M tokens", 2_000_000), ("1000000 Tokens", 2_000_000), ("1,000,000 Tokens", 2_000_000),
        ("Million Tokens", 2_000_000), ("MTok", 2_000_000), ("Thousand Tokens", 2_000),
        ("bushels", None), ("Requests", None), ("Token-Hours", None),
    ],
)  # fmt: skip
def test_how_many_tokens_a_unit_holds(desk: Desk, unit: str, tokens: int | None) -> None:
    line = OPENAI | {"SkuPriceDetails": details("Output"), "ConsumedUnit": unit}
    staging = desk.stage(charge(ConsumedQuantity="2", **line))
    assert desk.row("x_token_class, x_tokens") == ("output", tokens)
    assert any("in a unit that is not known" in note for note in staging.notes) is (tokens is None)


def test_the_priced_quantity_counts_tokens_where_the_consumed_one_does_not(desk: Desk) -> None:
    line = OPENAI | {"SkuPriceDetails": details("Output"), "ConsumedUnit": "Requests", "PricingUnit": "1M Tokens"}
    desk.stage(charge(ConsumedQuantity="7", PricingQuantity="2.5", ListUnitPrice="4", **(line | {"ListCost": "10"})))
    assert desk.row("x_tokens") == (2_500_000,)


def test_a_priced_quantity_that_is_not_what_the_price_was_paid_for_counts_nothing(desk: Desk) -> None:
    """Microsoft's exports divided quantities by the unit once more (the FOCUS sample of 2024 has such lines)."""
    line = AZURE | {"x_SkuMeterName": "gpt 4.1 Inp glbl Tokens", "ConsumedUnit": "Units", "PricingUnit": "1K Tokens"}
    desk.stage(
        charge(ConsumedQuantity="2.5", PricingQuantity="0.0025", ListUnitPrice="4", **(line | {"ListCost": "10"}))
    )
    assert desk.row("x_token_class, x_tokens") == ("uncached_input", None)


def test_a_line_that_names_no_model_has_none_and_is_counted(desk: Desk) -> None:
    staging = desk.stage(charge(ConsumedQuantity="500", SkuMeter="Input Tokens", **OPENAI))
    assert desk.row("x_model, x_token_class, x_tokens") == (None, "uncached_input", 500)
    assert "1 lines of a model API name no model" in staging.notes


def test_a_correction_takes_tokens_back(desk: Desk) -> None:
    line = OPENAI | {"SkuPriceDetails": details("Output"), "ChargeClass": "Correction"}
    desk.stage(charge(ConsumedQuantity="-1500", **line))
    assert desk.row("x_tokens, charge_class") == (-1500, "Correction")


def test_tokens_that_are_a_currency_are_no_tokens_of_a_model(desk: Desk) -> None:
    desk.stage(charge(ServiceName="ACME SERVICE", ServiceCategory="-", ConsumedUnit="Token", ConsumedQuantity="9"))
    assert desk.row("x_charge_family, x_token_class, x_tokens, x_model") == ("other", None, None, None)


def test_an_own_inference_profile_stays_as_a_dimension_and_names_no_model(desk: Desk) -> None:
    profile = "arn:aws:bedrock:us-east-1:2:application-inference-profile/ab12"
    desk.stage(charge(ConsumedQuantity="1", x_UsageType="USE1-NovaPro-input-tokens", ResourceId=profile, **BEDROCK))
    assert desk.row("x_inference_profile, x_model") == (profile, "novapro")
