"""The price book: genai-prices' own data, contract prices, exchange rates and model aliases as rows."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pytest
from genai_prices import Usage
from genai_prices.data import providers
from pydantic import ValidationError

from collector.queries import HERE
from collector.settings import CollectorSettings
from tests.collector.conftest import House
from tests.collector.writing import lines, payload

OTEL = {
    "anthropic": "anthropic",
    "openai": "openai",
    "aws": "aws.bedrock",
    "google": "gcp.gemini",
    "deepseek": "deepseek",
}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> House:
    house = House(tmp_path_factory.mktemp("catalogue") / "data")
    house.settings = CollectorSettings.model_validate({})
    house.collect(only={"prices.catalogue", "models"})
    return house


def price(house: House, where: str) -> dict[str, Decimal]:
    return dict(
        house.rows(f"SELECT token_class, per_mtok FROM price WHERE {where} AND valid_to > TIMESTAMP '2026-12-01'")
    )


def test_a_price_per_class(catalogue: House) -> None:
    assert price(catalogue, "provider = 'anthropic' AND model = 'claude-haiku-4-5' AND service_tier = 'standard'") == {
        "uncached_input": Decimal(1),
        "cache_read": Decimal("0.1"),
        "cache_write_5m": Decimal("1.25"),
        "cache_write_1h": Decimal(2),
        "output": Decimal(5),
        "web_searches": Decimal(10_000),  # 10 dollars a thousand; a million units here
    }


def test_bedrock_prices_by_scope(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT scope, per_mtok FROM price WHERE provider = 'aws.bedrock' AND model = 'claude-sonnet-4-6' "
        "AND token_class = 'output' AND service_tier = 'standard' ORDER BY scope"
    )
    assert rows == [("geo", Decimal("16.5")), ("global", Decimal(15)), ("regional", Decimal("16.5"))]


def test_a_bedrock_model_without_scopes_has_one_price_for_all(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT scope, "
        "per_mtok FROM price WHERE provider = 'aws.bedrock' AND model = 'nova-pro' AND token_class = 'output'"
    )
    assert rows == [(None, Decimal("3.2"))]


def test_long_context_tiers_are_rows_of_their_own(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT token_class, from_input_tokens, per_mtok FROM price WHERE provider = 'anthropic' "
        "AND model = 'claude-sonnet-4-5' AND service_tier = 'standard' AND token_class IN ('cache_read', "
        "'output') ORDER BY ALL"
    )
    assert rows == [
        ("cache_read", 0, Decimal("0.3")),
        ("cache_read", 200_000, Decimal("0.6")),
        ("output", 0, Decimal(15)),
        ("output", 200_000, Decimal("22.5")),
    ]


def test_a_price_cut_ends_the_old_price(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT CAST(valid_from AS DATE), CAST(valid_to AS DATE), per_mtok FROM price WHERE provider = 'openai' "
        "AND model = 'o3' AND token_class = 'uncached_input' AND service_tier = 'standard' ORDER BY ALL"
    )
    assert rows == [
        (date(1970, 1, 1), date(2025, 6, 10), Decimal(10)),
        (date(2025, 6, 10), date(9999, 12, 31), Decimal(2)),
    ]


def test_a_price_for_hours_of_the_day_stands_beside_the_usual_one(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT day_start_second, day_end_second, per_mtok FROM price WHERE provider = 'deepseek' "
        "AND model = 'deepseek-reasoner' AND token_class = 'output' ORDER BY ALL NULLS FIRST"
    )
    assert [row[:2] for row in rows] == [(None, None), (1800, 59400)]  # 00:30 to 16:30 UTC


def test_batch_prices_are_a_service_tier(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT service_tier, per_mtok, CAST(valid_from AS DATE) FROM price WHERE provider = 'anthropic' "
        "AND model = 'claude-haiku-4-5' AND token_class = 'output' ORDER BY 1"
    )
    assert rows == [("batch", Decimal("2.5"), date(2026, 10, 14)), ("standard", Decimal(5), date(1970, 1, 1))]


def test_a_name_is_one_that_the_catalogue_states_and_never_a_part_of_another(catalogue: House) -> None:
    reasons = {row[0] for row in catalogue.rows("SELECT DISTINCT split_part(match_reason, ' ', 1) FROM price")}
    assert reasons <= {"id", "equals", "starts_with", "contains"}
    assert (
        catalogue.rows("SELECT * FROM price WHERE model IN ('gpt-5.4-min', 'claude-opus-4-99', 'gpt', 'claude')") == []
    )
    mini, whole = (
        price(catalogue, f"provider = 'openai' AND model = '{name}' AND service_tier = 'standard'")["output"]
        for name in ("gpt-5.4-mini", "gpt-5.4")
    )
    assert mini < whole


def test_a_provider_that_says_it_sells_at_anothers_prices_has_them_with_that_reason(catalogue: House) -> None:
    rows = catalogue.rows(
        "SELECT DISTINCT match_reason FROM price WHERE provider = 'azure.ai.openai' AND model = 'gpt-4o-2024-08-06'"
    )
    assert rows == [("equals (openai)",)]


def test_no_two_rows_are_in_force_for_one_thing_at_once(catalogue: House) -> None:
    assert (
        catalogue.rows(
            """
        SELECT a.provider, a.model FROM price AS a JOIN price AS b
            ON a.provider = b.provider AND a.model = b.model AND a.scope IS NOT DISTINCT FROM b.scope
            AND a.service_tier = b.service_tier AND a.token_class = b.token_class
            AND a.from_input_tokens = b.from_input_tokens
            AND a.day_start_second IS NOT DISTINCT FROM b.day_start_second
            AND (a.valid_from, a.per_mtok, a.valid_to) < (b.valid_from, b.per_mtok, b.valid_to)
            AND a.valid_from < b.valid_to AND b.valid_from < a.valid_to
        """
        )
        == []
    )


INSTANTS = [
    datetime(2025, 1, 1, 20, tzinfo=UTC),
    datetime(2026, 7, 1, 20, tzinfo=UTC),
    datetime(2026, 11, 20, 20, tzinfo=UTC),
]


@pytest.mark.parametrize("provider", sorted(OTEL))
@pytest.mark.parametrize("prompt", [10_000, 900_000])
def test_rows_price_a_call_as_the_package_itself_does(catalogue: House, provider: str, prompt: int) -> None:
    """Every text model of a provider at three instants, by its id; fresh input and output tokens."""
    found = next(each for each in providers if each.id == provider)
    names = slugs([model.id for model in found.models])
    rows = catalogue.rows(
        "SELECT model, scope, token_class, from_input_tokens, per_mtok, valid_from, valid_to FROM price "
        "WHERE provider = ? AND service_tier = 'standard' AND day_start_second IS NULL AND match_reason = 'id' "
        "AND token_class IN ('uncached_input', 'output') AND from_input_tokens < ? ORDER BY from_input_tokens",
        [OTEL[provider], prompt],
    )
    priced, wrong = 0, []
    for model in found.models:
        scope = model.id.split(".", 1)[0]
        scopes = {None, scope if scope in ("regional", "global") else None}
        for at in INSTANTS:
            prices = model.get_prices(at)
            if any(getattr(prices, key, None) is None for key in ("input_mtok", "output_mtok")):
                continue
            usage = Usage(input_tokens=prompt, output_tokens=1000)
            expected = model.calc_price(usage, found, genai_request_timestamp=at).total_price
            when = at.replace(tzinfo=None)
            last = {
                row[2]: row[4]
                for row in rows
                if row[0] == names[model.id] and row[1] in scopes and row[5] <= when < row[6]
            }
            if not last:
                continue  # another entry of the catalogue has this name as its id
            priced += 1
            actual = (last["uncached_input"] * prompt + last["output"] * 1000) / 1_000_000
            if actual != expected:
                wrong.append((model.id, at, actual, expected))
    assert not wrong
    assert priced >= 20


def slugs(names: list[str]) -> dict[str, str]:
    with duckdb.connect() as connection:
        connection.execute((HERE / "model_name.sql").read_text())
        return dict(
            connection.execute("SELECT n, model_slug(n) FROM (SELECT unnest(?::VARCHAR[]) AS n)", [names]).fetchall()
        )


def contract(**more: Any) -> dict[str, Any]:
    given = {"provider": "anthropic", "model": "claude-sonnet-4-5-20250929", "input": 3, "output": 15, **more}
    return {"catalogue": "none", "contract": [given]}


def collected(house: House, **given: Any) -> House:
    house.settings = CollectorSettings.model_validate({"prices": {"catalogue": "none"}, **given})
    house.collect(only={"models", "prices.catalogue", "prices.contract", "exchange-rates"})
    return house


def test_a_contract_price_with_a_tier(house: House) -> None:
    above = {"input_tokens": 200_000, "input": 6}
    collected(house, prices=contract(above=above, scope="geo", to=date(2027, 1, 1), currency="EUR"))
    assert house.rows(
        "SELECT book, model, scope, token_class, from_input_tokens, per_mtok, currency, "
        "CAST(valid_to AS DATE) FROM price "
        "ORDER BY token_class, from_input_tokens"
    ) == [
        ("contract", "claude-sonnet-4-5", "geo", "output", 0, Decimal(15), "EUR", date(2027, 1, 1)),
        ("contract", "claude-sonnet-4-5", "geo", "output", 200_000, Decimal(15), "EUR", date(2027, 1, 1)),
        ("contract", "claude-sonnet-4-5", "geo", "uncached_input", 0, Decimal(3), "EUR", date(2027, 1, 1)),
        ("contract", "claude-sonnet-4-5", "geo", "uncached_input", 200_000, Decimal(6), "EUR", date(2027, 1, 1)),
    ]


def test_a_class_that_the_contract_leaves_out_has_no_price(house: House) -> None:
    collected(house, prices=contract())
    assert house.rows("SELECT DISTINCT token_class FROM price ORDER BY 1") == [("output",), ("uncached_input",)]


def test_prices_stay_exact(house: House) -> None:
    collected(house, prices=contract(input="0.123456789012345678"))
    assert house.row("SELECT per_mtok FROM price WHERE token_class = 'uncached_input'") == (
        Decimal("0.123456789012345678"),
    )


def test_the_same_configuration_again_changes_nothing(house: House) -> None:
    collected(house, prices=contract())
    before = house.rows("SELECT * FROM load ORDER BY load_id")
    collected(house, prices=contract())
    assert house.rows("SELECT * FROM load ORDER BY load_id") == before


def test_a_changed_price_replaces_the_old_one_and_touches_the_hours_of_usage(house: House, tmp_path: Any) -> None:
    lines(tmp_path / "log" / "a.jsonl", [payload(1)])
    log = {"name": "gateway", "kind": "litellm", "location": str(tmp_path / "log")}
    house.collect(log)
    collected(house, sources=[log], prices=contract())
    assert house.rows("SELECT DISTINCT reason FROM touched_hour ORDER BY 1") == [("model",), ("price",), ("usage",)]
    collected(house, sources=[log], prices=contract(input=4))
    assert house.rows("SELECT per_mtok FROM price ORDER BY 1") == [(Decimal(4),), (Decimal(15),)]


def test_a_price_that_goes_back_is_loaded_again(house: House) -> None:
    for amount in (3, 4, 3):
        collected(house, prices=contract(input=amount))
    assert house.row("SELECT per_mtok FROM price WHERE token_class = 'uncached_input'") == (Decimal(3),)


def test_a_contract_that_is_taken_out_is_gone(house: House) -> None:
    collected(house, prices=contract())
    collected(house)
    assert house.rows("SELECT * FROM price") == []


def test_a_catalogue_that_is_switched_off_is_gone(house: House) -> None:
    house.settings = CollectorSettings.model_validate({})
    house.collect(only={"prices.catalogue"})
    assert house.row("SELECT count(*) > 1000 FROM price") == (True,)
    collected(house)
    assert house.row("SELECT count(*) FROM price") == (0,)


def test_exchange_rates(house: House) -> None:
    collected(house, exchange_rates=[{"day": date(2026, 11, 1), "currency": "EUR", "rate": "1.08"}])
    assert house.rows("SELECT day, currency, reporting_currency, rate FROM fx_rate") == [
        (date(2026, 11, 1), "EUR", "USD", Decimal("1.08"))
    ]


def test_configured_aliases_win_and_lead_to_the_last_name(house: House) -> None:
    collected(
        house, models={"aliases": {"NovaUltra2": "amazon.nova-ultra-2-v1:0", "NovaPro": "my-nova", "x": "NovaLite"}}
    )
    assert dict(house.rows("SELECT alias, model FROM model_alias WHERE alias IN ('novaultra2', 'novapro', 'x')")) == {
        "novaultra2": "nova-ultra-2",
        "novapro": "my-nova",
        "x": "nova-lite",
    }
    assert house.row("SELECT origin FROM model_alias WHERE alias = 'novapro'") == ("configuration",)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"prices": contract(input=-1)}, "greater than or equal to 0"),
        ({"prices": contract(input=1_000_000)}, "less than or equal to 100000"),
        ({"prices": {"contract": [{"provider": "x", "model": "y"}]}}, "no price for y"),
        ({"prices": contract(to=date(1960, 1, 1))}, "is not before `to`"),
        ({"prices": contract(servise_tier="batch")}, "Extra inputs are not permitted"),
        ({"prices": {"catalogue": "litellm"}}, "genai-prices"),
        ({"exchange_rates": [{"day": "2026-11-01", "currency": "EUR", "rate": 0}]}, "greater than 0"),
    ],
)
def test_a_wrong_price_is_refused_when_the_configuration_is_read(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        CollectorSettings.model_validate(given)
    assert says in str(caught.value)
