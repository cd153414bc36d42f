"""What the fleet consists of: clusters, instance types, engines, pools of replicas, and the models they serve.

Prices are AWS's public on-demand prices in nano-dollars an hour (2026), spot about 0.44 of them; the Savings Plan rate
is that of one year without upfront payment. Speeds of engines follow from the GPUs' bandwidth and arithmetic rate.
"""

from dataclasses import dataclass, replace

from demo.fleet.steps import EngineSpec
from demo.models import ACCOUNTS, Account

ACCOUNT: Account = ACCOUNTS["ai-prod"]
NAMESPACE = "llm-serving"
DAYS = 10
"""The fleet went live so many days before the end of the window."""


@dataclass(frozen=True)
class Cluster:
    """One EKS cluster with a Prometheus of its own."""

    name: str
    region: str
    zones: tuple[str, ...]
    billing_prefix: str  # of usage types
    domain: str
    subnet: str


CLUSTERS = {
    cluster.name: cluster
    for cluster in (
        Cluster("llm-us-east-1", "us-east-1", ("us-east-1a", "us-east-1b"), "", "ec2.internal", "10.20"),
        Cluster(
            "llm-eu-west-1", "eu-west-1", ("eu-west-1a", "eu-west-1b"), "EU-", "eu-west-1.compute.internal", "10.40"
        ),
    )
}


@dataclass(frozen=True)
class InstanceType:
    """An EC2 instance type. Memory per GPU in MiB, power per GPU in watts, idle and at most."""

    name: str
    gpus: int
    gpu_model: str
    gpu_memory_mib: int
    idle_watts: int
    most_watts: int
    on_demand_nano: dict[str, int]  # by region, an hour
    vcpu: int
    memory: str
    savings_plan_nano: int | None = None


INSTANCE_TYPES = {
    kind.name: kind
    for kind in (
        InstanceType(
            "p5.48xlarge", 8, "NVIDIA H100 80GB HBM3", 81559, 72, 690, {"us-east-1": 55_040_000_000}, 192, "2048 GiB",
            savings_plan_nano=37_845_000_000,
        ),
        InstanceType(
            "g6e.12xlarge", 4, "NVIDIA L40S", 46068, 34, 345,
            {"us-east-1": 10_492_640_000, "eu-west-1": 11_751_760_000}, 48, "384 GiB",
        ),
        InstanceType(
            "g6e.2xlarge", 1, "NVIDIA L40S", 46068, 34, 345,
            {"us-east-1": 2_242_080_000, "eu-west-1": 2_511_130_000}, 8, "64 GiB",
        ),
        InstanceType("m6i.large", 0, "", 0, 0, 0, {"us-east-1": 96_000_000, "eu-west-1": 107_000_000}, 2, "8 GiB"),
    )
}  # fmt: skip

QWEN_32B_L40S = EngineSpec(
    gpus=4,
    step_ns=16_400_000,
    prompt_token_ns=172_000,
    cached_token_ns=900,
    sequence_ns=95_000,
    context_token_ns=62,
    attention_ps=5_200,
    adapter_ns=650_000,
    host_ns=900_000,
    token_budget=2048,
    max_sequences=64,
    kv_tokens=331_520,
)
GPT_OSS_PREFILL_H100 = EngineSpec(
    gpus=4,
    step_ns=5_300_000,
    prompt_token_ns=21_500,
    cached_token_ns=240,
    sequence_ns=40_000,
    context_token_ns=9,
    attention_ps=1_100,
    adapter_ns=0,
    host_ns=700_000,
    token_budget=2048,
    max_sequences=128,
    kv_tokens=2_410_000,
)
GPT_OSS_DECODE_H100 = replace(GPT_OSS_PREFILL_H100, caches_prefixes=False)
QWEN_14B_L40S = EngineSpec(
    gpus=1,
    step_ns=19_800_000,
    prompt_token_ns=128_000,
    cached_token_ns=600,
    sequence_ns=70_000,
    context_token_ns=240,
    attention_ps=6_000,
    adapter_ns=0,
    host_ns=800_000,
    token_budget=2048,
    max_sequences=32,
    kv_tokens=98_304,
)

OLD_VERSION, NEW_VERSION, BATCH_VERSION = "0.19.1", "0.33.0", "0.13.0"


@dataclass(frozen=True)
class Pool:
    """Replicas of one engine on one kind of node. `least`, `most`: replicas; `concurrency`: running requests that one
    replica is meant to have before another is added; `purchase`: OnDemand or Spot."""

    name: str  # of the Deployment
    route: str
    role: str  # mixed, prefill, decode, batch
    cluster: str
    instance_type: str
    spec: EngineSpec
    version: str
    least: int
    most: int
    concurrency: float = 0.0
    purchase: str = "OnDemand"

    @property
    def key(self) -> str:
        return f"{self.cluster}/{self.name}"

    @property
    def role_label(self) -> str:
        """The value of the label llm-d.ai/role."""
        return self.role if self.role in ("prefill", "decode") else "both"


ADAPTERS = ("qwen3-32b-support", "qwen3-32b-marketing")
"""LoRA adapters on qwen3-32b, by number."""

ROUTES: dict[str, tuple[str, ...]] = {
    "qwen3-32b": ("qwen3-32b", *ADAPTERS),
    "gpt-oss-120b": ("gpt-oss-120b",),
    "qwen3-14b": ("qwen3-14b",),
}
"""route: names under which callers ask for it."""

POOLS = {
    pool.key: pool
    for pool in (
        Pool("qwen3-32b", "qwen3-32b", "mixed", "llm-us-east-1", "g6e.12xlarge", QWEN_32B_L40S, OLD_VERSION, 1, 3, 2.0),
        Pool("qwen3-32b-canary", "qwen3-32b", "mixed", "llm-us-east-1", "g6e.12xlarge", QWEN_32B_L40S, NEW_VERSION,
             0, 1),
        Pool("qwen3-32b", "qwen3-32b", "mixed", "llm-eu-west-1", "g6e.12xlarge", QWEN_32B_L40S, OLD_VERSION, 1, 2, 1.0),
        Pool("gpt-oss-120b-prefill", "gpt-oss-120b", "prefill", "llm-us-east-1", "p5.48xlarge", GPT_OSS_PREFILL_H100,
             NEW_VERSION, 1, 1),
        Pool("gpt-oss-120b-decode", "gpt-oss-120b", "decode", "llm-us-east-1", "p5.48xlarge", GPT_OSS_DECODE_H100,
             NEW_VERSION, 1, 2),
        Pool("qwen3-14b-batch", "qwen3-14b", "batch", "llm-us-east-1", "g6e.2xlarge", QWEN_14B_L40S, BATCH_VERSION,
             0, 3, purchase="Spot"),
        Pool("qwen3-14b-batch", "qwen3-14b", "batch", "llm-eu-west-1", "g6e.2xlarge", QWEN_14B_L40S, BATCH_VERSION,
             0, 1, purchase="Spot"),
    )
}  # fmt: skip


def deployment_name(route: str, cluster: str) -> str:
    """The gateway's `model_id` of a route on a cluster: `qwen3-32b-us-east-1`."""
    return f"{route}-{CLUSTERS[cluster].region}"


DEPLOYMENTS = {
    deployment_name(pool.route, pool.cluster): {"account": ACCOUNT.id, "region": CLUSTERS[pool.cluster].region}
    for pool in POOLS.values()
}
"""The gateway's self-hosted deployments and where they are."""
