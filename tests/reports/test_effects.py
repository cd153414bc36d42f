"""A change of cost is taken apart into volume, mix, cache and price, exactly."""

from datetime import date
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reports import queries

BASE, DAY = date(2026, 10, 1), date(2026, 10, 2)
COLUMNS = "day DATE, team VARCHAR, app VARCHAR, model VARCHAR, token_class VARCHAR, kind VARCHAR, currency VARCHAR, tokens BIGINT, effective_nano BIGINT"  # noqa: E501


class Ledger:
    """A cost_day of a few rows behind the reader's interface."""

    currency = "USD"

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._connection = duckdb.connect()
        self._connection.execute(f"CREATE TABLE cost_day ({COLUMNS})")
        if rows:
            self._connection.executemany("INSERT INTO cost_day VALUES (?, ?, ?, ?, ?, 'usage', 'USD', ?, ?)", rows)

    def sql(self, query: str, parameters: Any = ()) -> pa.Table:
        return self._connection.execute(query, list(parameters)).to_arrow_table()


def cells(day: date, *parts: tuple[str, str, int, int | None]) -> list[tuple[Any, ...]]:
    return [(day, "search", "bot", model, token_class, tokens, nano) for model, token_class, tokens, nano in parts]


def parts(*rows: list[tuple[Any, ...]]) -> dict[str, int]:
    found = queries.effects(Ledger([cell for each in rows for cell in each]), DAY, BASE, ("team", "app"))
    assert len(found) == 1
    assert found[0].volume + found[0].mix + found[0].cache + found[0].price == found[0].change
    return {
        name: int(amount.scaleb(9))
        for name in ("volume", "mix", "cache", "price")
        if (amount := getattr(found[0], name))
    }


def test_more_of_the_same_is_volume():
    before = cells(BASE, ("m", "uncached_input", 100, 300), ("m", "output", 10, 150))
    after = cells(DAY, ("m", "uncached_input", 150, 450), ("m", "output", 15, 225))
    assert parts(before, after) == {"volume": 225}


def test_a_dearer_token_is_price():
    before = cells(BASE, ("m", "uncached_input", 100, 300), ("m", "output", 10, 150))
    after = cells(DAY, ("m", "uncached_input", 100, 360), ("m", "output", 10, 180))
    assert parts(before, after) == {"price": 90}


def test_a_cache_that_stops_hitting_is_cache():
    before = cells(BASE, ("m", "uncached_input", 20, 60), ("m", "cache_read", 80, 24), ("m", "output", 10, 150))
    after = cells(DAY, ("m", "uncached_input", 100, 300), ("m", "output", 10, 150))
    assert parts(before, after) == {"cache": 216}


def test_more_output_for_the_same_tokens_is_mix():
    before = cells(BASE, ("m", "uncached_input", 100, 300), ("m", "output", 10, 150))
    after = cells(DAY, ("m", "uncached_input", 90, 270), ("m", "output", 20, 300))
    assert parts(before, after) == {"mix": 120}


def test_another_model_is_mix_at_its_own_price():
    before = cells(BASE, ("cheap", "output", 100, 100))
    after = cells(DAY, ("dear", "output", 100, 700))
    assert parts(before, after) == {"mix": 600}


def test_what_is_new_or_gone_is_volume():
    assert parts(cells(DAY, ("m", "output", 10, 150))) == {"volume": 150}
    assert parts(cells(BASE, ("m", "output", 10, 150))) == {"volume": -150}


def test_tokens_of_unknown_cost_move_nothing_and_are_counted():
    before = cells(BASE, ("m", "output", 10, 150))
    after = cells(DAY, ("m", "output", 10, 150), ("new", "output", 1_000, None))
    assert parts(before, after) == {}
    assert queries.effects(Ledger([*before, *after]), DAY, BASE, ("team",))[0].unknown_tokens == 1_000


def test_a_credit_without_tokens_still_adds_up():
    assert parts(cells(BASE, ("m", "output", 0, -7)), cells(DAY, ("m", "output", 0, 5), ("m", "output", 3, 9))) != {}


def test_only_known_splits_are_asked_for():
    with pytest.raises(ValueError, match="team, app, model"):
        queries.effects(Ledger([]), DAY, BASE, ("user_id",))
    with pytest.raises(ValueError, match="nothing"):
        queries.effects(Ledger([]), DAY, BASE, ())


cell = st.tuples(
    st.sampled_from([BASE, DAY]),
    st.sampled_from(["search", "data", None]),
    st.sampled_from(["bot", None]),
    st.sampled_from(["m", "n", None]),
    st.sampled_from(["uncached_input", "cache_read", "cache_write_5m", "output", None]),
    st.integers(0, 10**12),
    st.none() | st.integers(-(10**15), 10**15),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(cell, max_size=30))
def test_the_parts_add_up_to_the_change_and_the_costs_to_the_ledger(rows):
    found = queries.effects(Ledger(rows), DAY, BASE, ("team", "app"))
    for each in found:
        assert each.volume + each.mix + each.cache + each.price == each.cost - each.base
    whole = queries.together(found)
    assert whole.volume + whole.mix + whole.cache + whole.price == whole.change
    for day, amount in ((DAY, whole.cost), (BASE, whole.base)):
        assert amount == Decimal(sum(row[-1] or 0 for row in rows if row[0] == day)).scaleb(-9)
    assert [abs(each.change) for each in found] == sorted((abs(each.change) for each in found), reverse=True)
