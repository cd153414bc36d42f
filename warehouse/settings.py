"""What the warehouse can be told: engine limits, zone, attribution choices, owner rules."""

import re
import zoneinfo
from datetime import date
from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

OWNER_DIMENSIONS = ("team", "app", "cost_center", "agent", "environment")
OwnerDimension = Literal["team", "app", "cost_center", "agent", "environment"]


class Settings(BaseModel):
    """Base of every settings model: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineSettings(Settings):
    """Limits of the DuckDB engine."""

    memory_limit: str = Field(
        "1500MB",
        description="as DuckDB spells it; more than this spills to disk. The process takes some hundred MB more",
    )
    threads: int | None = Field(None, ge=1, description="default: the machine's cores")
    lock_wait_seconds: float = Field(60, ge=0, description="how long a job waits for another one to finish")


class OwnerRule(Settings):
    """One ordered, effective-dated rule on claim sets.

    `when` maps a claim name to a glob (`*`, `?`); all must match. `set` gives owner dimensions; a value may name
    claims in braces, e.g. `"{tag.app}"`. For each dimension the first rule that matches and yields a value wins;
    rules that rest on a credential claim come before rules that rest only on what the payload says.
    """

    when: dict[str, str] = Field(min_length=1)
    set: dict[OwnerDimension, str] = Field(min_length=1)
    valid_from: date = Field(date(1970, 1, 1), alias="from")
    valid_to: date = Field(date(9999, 12, 31), alias="to", description="exclusive")

    @field_validator("set")
    @classmethod
    def _templates_are_closed(cls, value: dict[str, str]) -> dict[str, str]:
        for dimension, template in value.items():
            if not re.fullmatch(r"[^{}]*(\{[\w.\-]+\}[^{}]*)?", template):
                raise ValueError(f"`{dimension}: {template}` may name one claim in braces, such as {{tag.app}}")
        return value

    @model_validator(mode="after")
    def _dates_in_order(self) -> "OwnerRule":
        if self.valid_from >= self.valid_to:
            raise ValueError(f"`from` {self.valid_from} is not before `to` {self.valid_to}")
        return self


class ScopeSettings(Settings):
    """Which bill lines belong to inference beside the model APIs that are recognised by themselves."""

    services: tuple[str, ...] = Field((), description="service names or codes, exact")
    accounts: tuple[str, ...] = Field((), description="whole sub-accounts that serve models")


class AttributionSettings(Settings):
    """Choices the waterfall makes; every figure that rests on one says so."""

    settle_after_hours: int = Field(24, ge=0, description="a bucket is billed once the bill is this far past it")
    scope: ScopeSettings = ScopeSettings()
    long_context_tokens: int = Field(
        200_000,
        gt=0,
        description="whole prompt above which a bill with a long-context class charges it, where the "
        "price book knows no threshold",
    )
    clock_tolerance_minutes: int = Field(15, ge=0, description="usage later than as_of by more than this is refused")


class WorkWeights(Settings):
    """How much work a token is, an uncached input token being 1; used where neither roles nor exact seconds exist.

    An engine step costs something whatever its batch, because it reads all weights: about as much as computing
    (peak FLOP/s x share of it that prefill reaches) / (memory bandwidth in bytes/s) prompt tokens in 16 bit, some 150
    on an H100 and 105 on an L40S at one half. `output` is an output token in a step of `reference_batch` sequences;
    what steps of smaller batches cost beyond that is under-used, not a token's cost.
    """

    cache_read: Decimal = Field(
        Decimal("0.05"), ge=0, le=1, decimal_places=3, description="a stated prior: it cannot be measured from outside"
    )
    output: Decimal = Field(Decimal(4), gt=0, le=1000, decimal_places=3, description="at the reference batch")
    output_low: Decimal = Field(Decimal(2), gt=0, le=1000, decimal_places=3, description="lower end of the interval")
    output_high: Decimal = Field(Decimal(8), gt=0, le=1000, decimal_places=3, description="upper end of the interval")
    step: Decimal = Field(
        Decimal(150),
        ge=0,
        le=100_000,
        decimal_places=3,
        description="one engine step, whatever its batch; as uncertain as `output`",
    )
    reference_batch: int = Field(128, ge=1, le=100_000, description="sequences in a step that is well used")

    @model_validator(mode="after")
    def _interval_holds_the_ratio(self) -> "WorkWeights":
        if not self.output_low <= self.output <= self.output_high:
            raise ValueError(
                f"`output` {self.output} is not between `output_low` {self.output_low} "
                f"and `output_high` {self.output_high}"
            )
        return self


class RouteSettings(Settings):
    """One model that the own fleet serves, and the names by which calls ask for it (LoRA adapters among them)."""

    name: str = Field(min_length=1, description="as pods are labelled, or as the engine calls the model")
    models: tuple[str, ...] = Field((), description="further names in the usage log, e.g. LoRA adapters")
    workloads: tuple[str, ...] = Field(
        (),
        description="Kubernetes workloads (Deployments, ...) that serve it, as split costs of the bill name them; used "
        "for instances that neither metrics nor a pool table tell of",
    )
    weights: WorkWeights | None = Field(None, description="default: those of the fleet")


class PodLabels(Settings):
    """Pod labels, as kube-state-metrics spells them, that tell what a pod serves; the first that is there counts."""

    route: tuple[str, ...] = ("label_llm_d_ai_model", "label_inference_model", "label_model", "label_app")
    role: tuple[str, ...] = ("label_llm_d_ai_role", "label_role")
    pool: tuple[str, ...] = ("label_inference_pool",)
    version: tuple[str, ...] = ("label_app_kubernetes_io_version", "label_version")


class FleetSettings(Settings):
    """The own GPU fleet: what its pods serve and how work is weighed."""

    labels: PodLabels = PodLabels()
    routes: tuple[RouteSettings, ...] = ()
    weights: WorkWeights = WorkWeights.model_validate({})

    @field_validator("routes")
    @classmethod
    def _names_are_clear(cls, value: tuple[RouteSettings, ...]) -> tuple[RouteSettings, ...]:
        owner: dict[str, str] = {}
        for route in value:
            for name in {route.name, *route.models, *route.workloads}:
                if owner.setdefault(name, route.name) != route.name:
                    raise ValueError(f"`{name}` is named by the routes {owner[name]} and {route.name}; keep one")
        return value


class WarehouseSettings(Settings):
    """Everything the warehouse room reads from the configuration."""

    engine: EngineSettings = EngineSettings()
    attribution: AttributionSettings = AttributionSettings()
    fleet: FleetSettings = FleetSettings()
    owners: tuple[OwnerRule, ...] = ()
    zone: str = Field("UTC", description="IANA zone in which reporting days are cut")
    currency: str = Field("USD", pattern=r"^[A-Z]{3}$")

    @field_validator("zone")
    @classmethod
    def _zone_exists(cls, value: str) -> str:
        if value not in zoneinfo.available_timezones():
            raise ValueError(f"`{value}` is no IANA zone; write one such as Europe/Paris or UTC")
        return value
