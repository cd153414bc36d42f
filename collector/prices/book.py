"""The price book and what goes with it: catalogue, contract prices, exchange rates, model aliases.

Each is a source of its own (names `prices.catalogue`, `prices.contract`, `exchange-rates`, `models`), replaced as a
whole when its content changes, and unchanged otherwise.
"""

import csv
import importlib.metadata
import json
from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import TYPE_CHECKING

from collector.prices.replaced import Replaced
from collector.queries import HERE
from collector.source import Source

if TYPE_CHECKING:
    from collector.settings import ClassPrices, CollectorSettings

CLASSES = {
    "input": "uncached_input",
    "cache_read": "cache_read",
    "cache_write_5m": "cache_write_5m",
    "cache_write_1h": "cache_write_1h",
    "output": "output",
}
"""Word in the configuration: token class."""


def price_sources(settings: "CollectorSettings", currency: str) -> Sequence[Source]:
    """Sources that are always there, in the order they are collected; an empty one that never was costs nothing."""
    catalogue = settings.prices.catalogue != "none"
    version = f"genai-prices {importlib.metadata.version('genai-prices')}" if catalogue else "no catalogue"
    return [
        Replaced("models", "prices/model_alias.sql", lambda: _aliases(settings), "model aliases", "model"),
        Replaced("prices.catalogue", "prices/catalogue.sql", _catalogue if catalogue else _nothing, version, "price"),
        Replaced("prices.contract", "prices/contract.sql", lambda: _contract(settings), "configuration", "price"),
        Replaced(
            "exchange-rates", "prices/fx_rate.sql", lambda: _rates(settings, currency), "configuration", "exchange_rate"
        ),
    ]


def _nothing() -> bytes:
    return b""


def _catalogue() -> bytes:
    """The genai-prices package's own data as JSON; SQL takes it apart."""
    from genai_prices.data import providers

    return json.dumps(providers, default=_plain, separators=(",", ":")).encode()


def _plain(value: object) -> object:
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, date | time):
        return value.isoformat()
    return {key: part for key, part in vars(value).items() if key not in ("extractors", "_registry", "description")}


def _contract(settings: "CollectorSettings") -> bytes:
    given = [
        {
            "provider": price.provider,
            "model": price.model,
            "scope": price.scope,
            "service_tier": price.service_tier,
            "currency": price.currency,
            "valid_from": price.valid_from.isoformat(),
            "valid_to": price.valid_to and price.valid_to.isoformat(),
            "classes": _classes(price),
            "tiers": [{"input_tokens": tier.input_tokens, "classes": _classes(tier)} for tier in price.above],
        }
        for price in settings.prices.contract
    ]
    return json.dumps(given).encode() if given else b""


def _classes(prices: "ClassPrices") -> dict[str, str]:
    found = {name: getattr(prices, word) for word, name in CLASSES.items()}
    return {name: f"{price:f}" for name, price in found.items() if price is not None}


def _rates(settings: "CollectorSettings", currency: str) -> bytes:
    given = [
        {
            "day": rate.day.isoformat(),
            "currency": rate.currency,
            "reporting_currency": currency,
            "rate": f"{rate.rate:f}",
        }
        for rate in settings.exchange_rates
    ]
    return json.dumps(given).encode() if given else b""


def _aliases(settings: "CollectorSettings") -> bytes:
    with (HERE / "model_alias.csv").open(newline="") as file:
        built_in = [{**row, "origin": "built-in"} for row in csv.DictReader(file)]
    configured = [
        {"alias": alias, "model": model, "origin": "configuration"} for alias, model in settings.models.aliases.items()
    ]
    return json.dumps([*built_in, *configured]).encode()
