"""model_slug, model_scope and money: what bills, logs and price books are normalised by."""

from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.queries import HERE


@pytest.fixture(scope="module")
def engine() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        for name in ("model_name.sql", "money.sql"):
            connection.execute((HERE / name).read_text())
        yield connection


NAMES = [
    # as found, normalised, scope
    ("bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5", "geo"),
    ("bedrock/converse/global.anthropic.claude-opus-4-6-v1", "claude-opus-4-6", "global"),
    ("regional.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5", "regional"),
    ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet", None),
    ("arn:aws:bedrock:us-east-1::foundation-model/amazon.nova-pro-v1:0", "nova-pro", None),
    ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.amazon.nova-lite-v1:0", "nova-lite", "geo"),
    ("arn:aws:bedrock:us-east-1:1:application-inference-profile/ab12cd34", "ab12cd34", None),
    ("amazon.nova-lite-v1:0:300k", "nova-lite", None),
    ("meta.llama3-3-70b-instruct-v1:0", "llama3-3-70b-instruct", None),
    ("vertex_ai/claude-3-haiku@20240307", "claude-3-haiku", None),
    ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", None),
    ("azure/gpt-4o", "gpt-4o", None),
    ("Claude Sonnet 4.5 (Amazon Bedrock Edition)", "claude sonnet 4.5", None),
    # what must stay apart
    ("amazon.titan-embed-text-v1", "titan-embed-text-v1", None),
    ("amazon.titan-embed-text-v2:0", "titan-embed-text-v2", None),
    ("anthropic.claude-v2:1", "claude-v2", None),
    ("deepseek.r1-v1:0", "deepseek.r1", None),
    ("claude-opus-4-8", "claude-opus-4-8", None),
    ("gpt-5.4-mini", "gpt-5.4-mini", None),
    ("", None, None),
    (None, None, None),
]


@pytest.mark.parametrize(("found", "slug", "scope"), NAMES)
def test_a_model_has_one_name_whoever_spells_it(
    engine: duckdb.DuckDBPyConnection, found: str | None, slug: str | None, scope: str | None
) -> None:
    assert engine.execute("SELECT model_slug($n), model_scope($n)", {"n": found}).fetchone() == (slug, scope)


@pytest.mark.parametrize(("found", "slug", "scope"), NAMES)
def test_a_normalised_name_is_not_changed_again(
    engine: duckdb.DuckDBPyConnection, found: str | None, slug: str | None, scope: str | None
) -> None:
    assert engine.execute("SELECT model_slug(model_slug(?))", [found]).fetchone() == (slug,)


def test_every_built_in_alias_leads_to_a_name_that_is_no_alias(engine: duckdb.DuckDBPyConnection) -> None:
    path = str(HERE / "model_alias.csv")
    assert (
        engine.execute(
            "SELECT alias FROM read_csv($p) WHERE alias <> model_slug(alias) OR model <> model_slug(model) "
            "OR model IN (SELECT alias FROM read_csv($p))",
            {"p": path},
        ).fetchall()
        == []
    )


AMOUNTS = st.floats(min_value=-1e9, max_value=1e9, allow_nan=False, allow_infinity=False)


@settings(deadline=None)
@given(st.lists(AMOUNTS, min_size=1, max_size=20))
def test_money_is_the_shortest_decimal_of_a_double_rounded_half_even_at_the_18th_digit(amounts: list[float]) -> None:
    with duckdb.connect() as connection, localcontext() as context:
        context.prec = 60
        connection.execute((HERE / "money.sql").read_text())
        rows = connection.execute("SELECT money(CAST(x AS VARCHAR)) FROM (SELECT unnest(?::DOUBLE[]) AS x)", [amounts])
        expected = [Decimal(repr(x)).quantize(Decimal("1e-18"), ROUND_HALF_EVEN) for x in amounts]
        assert [row[0] for row in rows.fetchall()] == expected


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("0.0012345678901234565", "0.001234567890123456"),  # a tie goes to the even digit
        ("0.0012345678901234575", "0.001234567890123458"),
        ("-0.0012345678901234565", "-0.001234567890123456"),
        ("1.25e-07", "0.000000125000000000"),
        ("5e-19", "0"),
        ("1.5e-18", "0.000000000000000002"),
        ("3", "3"),
        ("1e+16", "10000000000000000"),
        ("-0.0", "0"),
    ],
)
def test_money_of_a_written_number(engine: duckdb.DuckDBPyConnection, written: str, amount: str) -> None:
    assert engine.execute("SELECT money(?)", [written]).fetchone() == (Decimal(amount),)


def test_no_amount_is_no_money(engine: duckdb.DuckDBPyConnection) -> None:
    assert engine.execute("SELECT money(NULL), money(''), money(' ')").fetchone() == (None, None, None)
