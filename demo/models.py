"""Models, where they are deployed, what AWS charges for them and how the bill names them.

All prices are whole nano-dollars per token ($3.30 per million tokens = 3300): every cost in the demonstration is an
exact integer. Prices are those of AWS on demand as pydantic/genai-prices lists them (provider `aws`): `global.*` for
the global profile, `regional.*` for in-region and geo (billing.md 5.3: geo is about 10 % above global). Usage types
follow billing.md 5.1 and the public AWS price list.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np

UNCACHED, READ, WRITE_5M, WRITE_1H, OUTPUT = range(5)
TOKEN_CLASSES = ("uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")

REGIONS = {"us-east-1": ("USE1", "US East (N. Virginia)", "us"), "eu-west-1": ("EU", "EU (Ireland)", "eu")}
"""region: (usage type prefix, location, prefix of the geo inference profile)."""

LONG_CONTEXT_THRESHOLD = 200_000
"""A request with more input tokens than this pays the long-context rate on all its tokens, where the model has one."""


@dataclass(frozen=True)
class Account:
    id: str
    name: str
    environment: str


PAYER = Account("100000000001", "acme-payer", "management")
ACCOUNTS = {
    "ai-prod": Account("210000000012", "ai-prod", "production"),
    "ai-dev": Account("210000000023", "ai-dev", "development"),
    "data-platform": Account("210000000034", "data-platform", "production"),
    "web-prod": Account("210000000045", "web-prod", "production"),
}
"""`web-prod` holds no AI at all; Bedrock is used in the other three."""

Prices = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Model:
    """One foundation model.

    `prices`: by scope, nano-dollars per token in the order of `TOKEN_CLASSES`; 0 where the model has no such class.
    `family`: how the bill names it (billing.md 5.1), C in the older camel or the newer snake spelling.
    """

    slug: str
    model_id: str
    group: str
    family: str
    bill_name: str
    unit: str
    prices: dict[str, Prices]
    scope: str = "regional"
    long_context: tuple[float, float] | None = None
    product_code: str = "AmazonBedrock"
    product_name: str = "Amazon Bedrock"
    fallback: str | None = None
    known_to_gateway: bool = True


def _claude(input_nano: int, output_nano: int) -> Prices:
    """Anthropic's ratios: cache read 0.1x, 5-minute write 1.25x, 1-hour write 2x the input price."""
    return input_nano, input_nano // 10, input_nano * 5 // 4, input_nano * 2, output_nano


MODELS = {
    model.slug: model
    for model in (
        Model(
            "sonnet-4-5",
            "anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5",
            "C-snake",
            "Claude Sonnet 4.5",
            "Units",
            {"geo": _claude(3300, 16500), "global": _claude(3000, 15000)},
            scope="geo",
            long_context=(2.0, 1.5),
            product_code="7h2kq9v4m1x8c3d6p0w5z2n4b",  # opaque, as Marketplace's are; invented
            product_name="Claude Sonnet 4.5 (Amazon Bedrock Edition)",
            fallback="sonnet-4-6",
        ),
        Model(
            "haiku-4-5",
            "anthropic.claude-haiku-4-5-20251001-v1:0",
            "claude-haiku-4-5",
            "C-camel",
            "Claude Haiku 4.5",
            "Units",
            {"geo": _claude(1100, 5500), "global": _claude(1000, 5000)},
            scope="geo",
            product_code="b3t8y1r6f0j5s9g2l7e4u8a1k",
            product_name="Claude Haiku 4.5 (Amazon Bedrock Edition)",
        ),
        Model(
            "opus-4-6",
            "anthropic.claude-opus-4-6-v1:0",
            "claude-opus-4-6",
            "B",
            "Claude4.6Opus",
            "1M tokens",
            {"geo": _claude(5500, 27500), "global": _claude(5000, 25000)},
            scope="geo",
            product_code="AmazonBedrockService",
            product_name="Amazon Bedrock Service",
            fallback="sonnet-4-6",
        ),
        Model(
            "sonnet-4-6",
            "anthropic.claude-sonnet-4-6-v1:0",
            "claude-sonnet-4-6",
            "B",
            "Claude4.6Sonnet",
            "1M tokens",
            {"geo": _claude(3300, 16500), "global": _claude(3000, 15000)},
            scope="geo",
            product_code="AmazonBedrockService",
            product_name="Amazon Bedrock Service",
        ),
        Model(
            "nova-pro",
            "amazon.nova-pro-v1:0",
            "nova-pro",
            "A",
            "NovaPro",
            "1K tokens",
            {"regional": (800, 200, 0, 0, 3200), "geo": (800, 200, 0, 0, 3200)},
        ),
        Model(
            "nova-lite",
            "amazon.nova-lite-v1:0",
            "nova-lite",
            "A",
            "NovaLite",
            "1K tokens",
            {"regional": (60, 15, 0, 0, 240)},
        ),
        Model(
            "gpt-oss-120b",
            "openai.gpt-oss-120b-1:0",
            "gpt-oss-120b",
            "A",
            "gpt-oss-120b",
            "1K tokens",
            {"regional": (150, 0, 0, 0, 600)},
        ),
        Model(
            "titan-embed-v2",
            "amazon.titan-embed-text-v2:0",
            "text-embedding",
            "A",
            "TitanEmbeddingV2-Text",
            "1K tokens",
            {"regional": (20, 0, 0, 0, 0)},
        ),
        Model(
            "nova-ultra-2",  # invented: a model that no public price list knows yet
            "amazon.nova-ultra-2-v1:0",
            "nova-ultra-2",
            "A",
            "NovaUltra2",
            "1M tokens",
            {"regional": (4000, 0, 0, 0, 16000)},
            known_to_gateway=False,
        ),
    )
}


@dataclass(frozen=True)
class Deployment:
    """One entry of the gateway's model list: a model as reached in one account and region by one kind of routing."""

    model: Model
    region: str
    account: str
    scope: str

    @property
    def name(self) -> str:
        """The gateway's `model_id`: `sonnet-4-5-us-east-1-ai-prod`; names the scope where it is not the usual one."""
        scope = "" if self.scope == self.model.scope else f"{self.scope}-"
        return f"{self.model.slug}-{scope}{self.region}-{self.account}"

    @property
    def inference_id(self) -> str:
        """The id that is called: `us.anthropic...`, `global.anthropic...`, or the bare model id within the region."""
        prefix = {"regional": "", "geo": f"{REGIONS[self.region][2]}.", "global": "global."}[self.scope]
        return prefix + self.model.model_id

    @property
    def resource_id(self) -> str:
        """The resource of the bill line: the foundation model, or the system inference profile that was called."""
        if self.scope == "regional":
            return f"arn:aws:bedrock:{self.region}::foundation-model/{self.model.model_id}"
        # assumption: cross-region calls are billed on the profile's ARN, in the source region and the caller's account
        return f"arn:aws:bedrock:{self.region}:{ACCOUNTS[self.account].id}:inference-profile/{self.inference_id}"

    @property
    def api_base(self) -> str:
        return f"https://bedrock-runtime.{self.region}.amazonaws.com"


def _deployments() -> list[Deployment]:
    places = {
        "sonnet-4-5": [("us-east-1", "ai-prod", "geo"), ("us-east-1", "ai-prod", "global")],
        "haiku-4-5": [
            ("us-east-1", "ai-prod", "geo"),
            ("us-east-1", "ai-dev", "geo"),
            ("eu-west-1", "ai-prod", "geo"),
            ("eu-west-1", "ai-dev", "global"),
            ("us-east-1", "data-platform", "geo"),
        ],
        "opus-4-6": [
            ("us-east-1", "ai-prod", "geo"),
            ("us-east-1", "ai-dev", "geo"),
            ("eu-west-1", "ai-dev", "global"),
        ],
        "sonnet-4-6": [
            ("us-east-1", "ai-prod", "geo"),
            ("us-east-1", "ai-prod", "global"),
            ("eu-west-1", "ai-prod", "geo"),
            ("us-east-1", "ai-dev", "geo"),
            ("eu-west-1", "ai-dev", "global"),
            ("us-east-1", "data-platform", "geo"),
        ],
        "nova-pro": [
            ("us-east-1", "ai-prod", "regional"),
            ("us-east-1", "data-platform", "geo"),
            ("us-east-1", "data-platform", "regional"),
            ("eu-west-1", "ai-prod", "geo"),
        ],
        "nova-lite": [("us-east-1", "ai-prod", "regional"), ("us-east-1", "data-platform", "regional")],
        "gpt-oss-120b": [("us-east-1", "ai-dev", "regional")],
        "titan-embed-v2": [("us-east-1", "ai-prod", "regional"), ("eu-west-1", "ai-prod", "regional")],
        "nova-ultra-2": [("us-east-1", "ai-prod", "regional")],
    }
    return [Deployment(MODELS[slug], *place) for slug, found in places.items() for place in found]


DEPLOYMENTS = _deployments()
INDEX = {deployment.name: number for number, deployment in enumerate(DEPLOYMENTS)}


def fallback_of(number: int) -> int:
    """The deployment the gateway falls back to: the fallback model in the same account, region and scope; or -1."""
    origin = DEPLOYMENTS[number]
    for candidate, deployment in enumerate(DEPLOYMENTS):
        same_place = (deployment.region, deployment.account) == (origin.region, origin.account)
        if same_place and deployment.scope == origin.scope and deployment.model.slug == origin.model.fallback:
            return candidate
    return -1


@cache
def rates() -> np.ndarray:
    """Nano-dollars per token: int64 [deployment, on demand | batch, standard | long context, token class]."""
    table = np.zeros((len(DEPLOYMENTS), 2, 2, len(TOKEN_CLASSES)), dtype=np.int64)
    for number, deployment in enumerate(DEPLOYMENTS):
        base = np.array(deployment.model.prices[deployment.scope], dtype=np.int64)
        times = np.ones(len(TOKEN_CLASSES))
        if deployment.model.long_context:
            times[:OUTPUT], times[OUTPUT] = deployment.model.long_context
        table[number, 0, 0] = base
        table[number, 0, 1] = np.rint(base * times).astype(np.int64)
        table[number, 1] = table[number, 0] // 2  # AWS: batch is half the on-demand price
    return table


@cache
def has_long_context() -> np.ndarray:
    """bool [deployment]."""
    return np.array([deployment.model.long_context is not None for deployment in DEPLOYMENTS])


@dataclass(frozen=True)
class BillName:
    """How one bill line names a token class of a deployment."""

    usage_type: str
    operation: str
    description: str
    unit: str
    tokens_per_unit: int


_FAMILY_AB = {
    UNCACHED: "input-tokens",
    READ: "cache-read-input-token-count",
    WRITE_5M: "cache-write-input-token-count",
    WRITE_1H: "cache-write-input-token-count-1h",
    OUTPUT: "output-tokens",
}
_CAMEL = {
    UNCACHED: "InputTokenCount",
    READ: "CacheReadInputTokenCount",
    WRITE_5M: "CacheWriteInputTokenCount",
    WRITE_1H: "CacheWrite1hInputTokenCount",
    OUTPUT: "OutputTokenCount",
}
_SNAKE = {
    UNCACHED: "input_tokens",
    READ: "cache_read_tokens",
    WRITE_5M: "cache_write_tokens",
    WRITE_1H: "cache_write_tokens_1h",
    OUTPUT: "output_tokens",
}
_WORDS = {
    UNCACHED: "Input Tokens",
    READ: "Cache Read Input Tokens",
    WRITE_5M: "Cache Write Input Tokens",
    WRITE_1H: "Cache Write 1h Input Tokens",
    OUTPUT: "Response Tokens",
}


def bill_name(deployment: Deployment, token_class: int, batch: bool, long_context: bool) -> BillName:
    """Usage type, operation, description and unit of one bill line (billing.md 5.1)."""
    prefix, location, _ = REGIONS[deployment.region]
    model = deployment.model
    if model.family in ("A", "B"):
        # assumption: the geo profile has no suffix of its own; AWS's price list has one price for both
        scope = "-cross-region-global" if deployment.scope == "global" else ""
        usage_type = f"{prefix}-{model.bill_name}-{_FAMILY_AB[token_class]}{'-batch' if batch else ''}{scope}"
        words = _WORDS[token_class].lower().replace("response", "output")
        tail = f"per {model.unit.split()[0]} {words} for {model.bill_name} in {location}"
        tokens_per_unit = {"1K tokens": 1_000, "1M tokens": 1_000_000}[model.unit]
        return BillName(usage_type, "InvokeModelInference", tail, model.unit, tokens_per_unit)
    is_global = deployment.scope == "global"
    if model.family == "C-camel":
        name = f"{_CAMEL[token_class]}{'_Global' if is_global else ''}{'_Batch' if batch else ''}"
        scope_words = "Global" if is_global else "Regional CRIS"
        words = f"Million {_WORDS[token_class]} {scope_words}{' Batch' if batch else ''}"
    else:
        # assumption: cache classes take the same `_long_ctx` infix that is known for input and output
        tier = "batch" if batch else "standard"
        name = f"{_SNAKE[token_class]}{'_long_ctx' if long_context else ''}{'_global' if is_global else ''}_{tier}"
        scope_words = "Global" if is_global else "Regional"
        context = " Long Context" if long_context else ""
        kind = _WORDS[token_class].replace("Response", "Output")
        words = f"Million {kind}{context} - {tier.title()}, {scope_words}"
    usage_type = f"{prefix}-MP:{prefix}_{name}-Units"
    description = f"AWS Marketplace software usage|{deployment.region}|{words}"
    return BillName(usage_type, "Usage", description, "Units", 1_000_000)
