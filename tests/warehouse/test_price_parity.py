"""What a call costs by the price book is what `genai-prices` itself says, to 1e-12 of a dollar."""

import csv
import json
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from genai_prices import Usage
from genai_prices.data import providers
from genai_prices.types import ModelInfo, Provider

from collector.queries import HERE
from collector.settings import CollectorSettings
from tests import needs
from tests.collector.conftest import House
from warehouse import waterfall
from warehouse.engine import MACROS
from warehouse.work import UNITS

CLASSES = {
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_5m_tokens",
    "cache_write_1h_tokens", "output_reasoning_tokens",
}  # fmt: skip
PROVIDERS = {provider.id: provider for provider in providers}
NAMES = {
    row["name"]: row["provider"]
    for row in reversed(list(csv.DictReader((HERE / "provider_name.csv").open())))
    if row["system"] == "genai-prices"
}
AUGUST = datetime(2026, 8, 21, 20, tzinfo=UTC)


@dataclass
class Call:
    """One call as the package counts it, and what the package says it costs."""

    provider: str
    model: str
    at: datetime
    usage: Mapping[str, int]
    expected: Decimal
    entry: ModelInfo
    tier: str = "standard"
    scope: str | None = None
    got: Decimal | None = field(default=None, init=False)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = House(tmp_path_factory.mktemp("book") / "data")
    house.settings = CollectorSettings.model_validate({})
    house.collect(only={"prices.catalogue", "models"})
    return house


def priced(book: House, calls: list[Call]) -> list[Call]:
    """Price calls by the steps of the waterfall themselves."""
    with duckdb.connect(str(book.layout.warehouse), read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute((HERE / "model_name.sql").read_text())
        connection.execute(MACROS.read_text())
        rows = [_row(number, call) for number, call in enumerate(calls)]
        connection.execute(
            """
            CREATE TEMP TABLE work_event AS
            SELECT e.* EXCLUDE (units), model_slug(raw) AS model, date_trunc('hour', slot) AS hour, '' AS account_id,
                '' AS region_id, '' AS claim_set_id, 'success' AS status, NULL AS task_id, NULL AS user_id,
                0 AS is_fleet,
                CAST(units AS MAP(VARCHAR, VARCHAR)) AS other_units
            FROM (SELECT unnest(from_json(CAST(? AS JSON), '[{"event_key": "VARCHAR", "provider": "VARCHAR",
                "raw": "VARCHAR", "slot": "TIMESTAMP", "scope": "VARCHAR", "service_tier": "VARCHAR",
                "input_tokens": "BIGINT", "uncached_input_tokens": "BIGINT", "cache_read_tokens": "BIGINT",
                "cache_write_5m_tokens": "BIGINT", "cache_write_1h_tokens": "BIGINT", "output_tokens": "BIGINT",
                "units": "JSON"}]'), recursive := true)) AS e
            """,
            [json.dumps(rows)],
        )
        connection.execute(UNITS)
        for step in ("10_rate", "11_event_class"):
            connection.execute(f"CREATE TEMP TABLE {waterfall.table(step)} AS {waterfall.text(step)}")
        found = connection.execute(
            "SELECT event_key, sum(pico), count(*) FILTER (pico IS NULL) FROM event_class GROUP BY event_key"
        ).fetchall()
    for key, pico, unknown in found:
        calls[int(key)].got = None if unknown else Decimal(pico) / 10**12
    return calls


def _row(number: int, call: Call) -> dict[str, Any]:
    usage = call.usage
    read, written = usage.get("cache_read_tokens", 0), usage.get("cache_write_tokens", 0)
    long = usage.get("cache_write_1h_tokens", 0)
    return {
        "event_key": str(number), "provider": NAMES.get(call.provider, call.provider), "raw": call.model,
        "slot": f"{call.at:%Y-%m-%d %H:%M}", "scope": call.scope, "service_tier": call.tier,
        "input_tokens": usage.get("input_tokens", 0),
        "uncached_input_tokens": usage.get("input_tokens", 0) - read - written,
        "cache_read_tokens": read, "cache_write_5m_tokens": written - long, "cache_write_1h_tokens": long,
        "output_tokens": usage.get("output_tokens", 0),
        "units": {name: str(count) for name, count in usage.items() if name not in CLASSES},
    }  # fmt: skip


def differing(calls: Iterable[Call]) -> list[tuple[Any, ...]]:
    return [
        (call.provider, call.model, call.at, dict(call.usage), call.expected, call.got)
        for call in calls
        if call.got is not None and abs(call.got - call.expected) > Decimal("1e-12")
    ]


def why_unknown(call: Call) -> str:
    """Why a call has no price here though the package gives it one."""
    prices = call.entry.get_prices(call.at)
    for unit in ("cache_read", "cache_write"):
        if call.usage.get(f"{unit}_tokens") and getattr(prices, f"{unit}_mtok", None) is None:
            return f"the package charges {unit} as fresh input where the provider publishes no price for it"
    if not call.usage:
        return "the package says that a body without counts costs nothing; unknown is not nothing"
    return "the package takes a part of the name, or a rule, for the model; the book wants a name that it states"


@pytest.mark.samples
def test_every_recorded_usage_costs_what_the_package_says(book: House) -> None:
    """789 bodies, each by every provider that the package can price it at."""
    bodies = json.loads(needs.samples("usage", "provider_usage", "usages.json").read_text())
    assert len(bodies) == 789
    calls = []
    for body in bodies:
        for extracted in body["extracted"]:
            for extractor in extracted["extractors"]:
                if "input_price" not in extractor:
                    continue
                provider = PROVIDERS[extractor["provider_id"]]
                entry = provider.find_model(body["model"], all_providers=providers)
                assert entry is not None
                usage = extracted["usage"]
                cost = entry.calc_price(Usage(**usage), provider, genai_request_timestamp=AUGUST).total_price
                scope = "regional" if provider.id == "aws" else None
                calls.append(Call(provider.id, body["model"], AUGUST, usage, cost, entry, scope=scope))
    priced(book, calls)
    assert differing(calls) == []
    unknown = Counter(why_unknown(call) for call in calls if call.got is None)
    assert (len(calls), sum(unknown.values())) == (1731, 21), unknown
    assert len(unknown) == 3


def test_ten_thousand_random_usages_cost_what_the_package_says(book: House) -> None:
    """Every provider, tiers of long prompts, cuts of prices, hours of the day, searches and requests."""
    chance = random.Random(20261201)
    # a provider that lists one name twice, with its maker and without, at two prices: the book takes the first
    listed = Counter((provider.id, model.id.rsplit("/", 1)[-1]) for provider in providers for model in provider.models)
    known: list[tuple[Provider, ModelInfo]] = [
        (provider, model)
        for provider in providers
        for model in provider.models
        if provider.id != "aws" and listed[provider.id, model.id.rsplit("/", 1)[-1]] == 1
    ]
    calls = []
    while len(calls) < 10_000:
        provider, model = chance.choice(known)
        at = datetime(2025, 1, 1, tzinfo=UTC) + timedelta(minutes=30 * chance.randrange(2 * 24 * 690))
        prices = model.get_prices(at)
        if prices.input_mtok is None or prices.output_mtok is None:
            continue
        fresh = chance.choice([0, chance.randrange(5_000), chance.randrange(1_200_000)])
        read = chance.randrange(300_000) if prices.cache_read_mtok is not None and chance.random() < 0.5 else 0
        written = chance.randrange(100_000) if prices.cache_write_mtok is not None and chance.random() < 0.5 else 0
        usage = {
            "input_tokens": fresh + read + written,
            "cache_read_tokens": read,
            "cache_write_tokens": written,
            "output_tokens": chance.randrange(1, 60_000),
        }
        if getattr(prices, "web_searches_kcount", None) is not None and chance.random() < 0.3:
            usage["web_searches"] = chance.randrange(1, 20)
        cost = model.calc_price(Usage(**usage), provider, genai_request_timestamp=at).total_price
        calls.append(Call(provider.id, model.id, at, usage, cost, model))
    priced(book, calls)
    wrong = differing(calls)
    assert wrong == [], (len(wrong), wrong[:5])
    assert [(call.provider, call.model) for call in calls if call.got is None] == []
