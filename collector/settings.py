"""What the collector reads from the configuration: sources, prices, exchange rates, model aliases.

Validate with ``CollectorSettings.model_validate(data, context={"base": folder of the configuration file})``: relative
locations are resolved against that folder.
"""

import functools
import operator
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, field_validator, model_validator

from collector.registry import kinds
from collector.source import SourceSettings
from warehouse.settings import Settings

if TYPE_CHECKING:
    AnySource = SourceSettings
else:
    AnySource = Annotated[
        functools.reduce(operator.or_, (kind.settings for kind in kinds().values())), Field(discriminator="kind")
    ]

ServiceTier = Literal["standard", "batch", "flex", "priority", "latency_optimized"]
Price = Annotated[Decimal, Field(ge=0, le=100_000, decimal_places=18)]


class ClassPrices(Settings):
    """Prices per million tokens, one per token class; a class that is left out stays unpriced."""

    input: Price | None = Field(default=None, description="uncached input")
    cache_read: Price | None = None
    cache_write_5m: Price | None = None
    cache_write_1h: Price | None = None
    output: Price | None = None


class LongContextPrices(ClassPrices):
    """Prices of *all* tokens of a request whose whole prompt exceeds `input_tokens`."""

    input_tokens: int = Field(gt=0)


class ContractPrice(ClassPrices):
    """One negotiated price, effective-dated; it comes before the catalogue's."""

    provider: str = Field(min_length=1, description="as OpenTelemetry names it: anthropic, openai, aws.bedrock, ...")
    model: str = Field(min_length=1, description="any spelling of the model; normalised like the logs'")
    above: tuple[LongContextPrices, ...] = Field(default=(), description="one tier, or a list of them")
    scope: Literal["regional", "geo", "global"] | None = None
    service_tier: ServiceTier = "standard"
    valid_from: date = Field(default=date(1970, 1, 1), alias="from")
    valid_to: date | None = Field(default=None, alias="to", description="exclusive")
    currency: str = Field(default="USD", pattern=r"^[A-Z]{3}$")

    @field_validator("above", mode="before")
    @classmethod
    def _one_tier_or_several(cls, value: object) -> object:
        return (value,) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _sensible(self) -> "ContractPrice":
        if self.valid_to is not None and self.valid_from >= self.valid_to:
            raise ValueError(f"`from` {self.valid_from} is not before `to` {self.valid_to}")
        classes = (self.input, self.cache_read, self.cache_write_5m, self.cache_write_1h, self.output)
        if all(price is None for price in classes):
            raise ValueError(f"no price for {self.model}; give at least one of {', '.join(ClassPrices.model_fields)}")
        return self


class PriceSettings(Settings):
    """Where prices come from. Contract prices win over the catalogue."""

    catalogue: Literal["genai-prices", "none"] = "genai-prices"
    contract: tuple[ContractPrice, ...] = ()


class ExchangeRate(Settings):
    """What one unit of `currency` is worth in the reporting currency, from `day` until the next given day."""

    day: date
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    rate: Annotated[Decimal, Field(gt=0, le=1_000_000_000, decimal_places=18)]


class ModelSettings(Settings):
    """Names of models that the built-in list does not know."""

    aliases: dict[str, str] = Field(default={}, description="name as bills or logs spell it: name used in the ledger")


class CollectorSettings(Settings):
    """Everything the collector reads from the configuration."""

    sources: tuple[AnySource, ...] = ()
    prices: PriceSettings = PriceSettings()
    exchange_rates: tuple[ExchangeRate, ...] = ()
    models: ModelSettings = ModelSettings()

    @field_validator("sources")
    @classmethod
    def _names_are_unique(cls, value: tuple[SourceSettings, ...]) -> tuple[SourceSettings, ...]:
        names = [source.name for source in value]
        doubled = sorted({name for name in names if names.count(name) > 1})
        if doubled:
            raise ValueError(f"two sources are called {', '.join(doubled)}; give each its own `name`")
        return value
