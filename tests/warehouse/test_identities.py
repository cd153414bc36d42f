"""The two identities, for any bill and any usage: sum over kinds = sum over owners = the bill, to the last decimal."""

import tempfile
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.world import World
from warehouse import measures
from warehouse.engine import writing
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot

START = datetime(2026, 10, 30, 20)
MODELS = ("nova-pro", "opus")
CLASSES = ("uncached_input", "cache_read", "output")
ACCOUNTS = ("111122223333", "444455556666")
RULES = [
    {"when": {"key_alias": "a*"}, "set": {"team": "alpha"}},
    {"when": {"key_alias": "b*"}, "set": {"team": "beta"}, "from": "2026-10-31"},
]


def numbered(rows):
    """Rows with their number: what a record or line is called does not depend on the order in which it is loaded."""
    return [{**row, "number": number} for number, row in enumerate(rows)]


hours = st.integers(0, 30)
money = st.decimals("-50", "50", places=12) | st.sampled_from(
    [Decimal(0), Decimal("0.000000000000000001"), Decimal("9999999.5")]
)

calls = st.lists(
    st.fixed_dictionaries(
        {
            "hour": hours,
            "minute": st.integers(0, 59),
            "model": st.sampled_from(MODELS),
            "account_id": st.sampled_from(ACCOUNTS),
            "key": st.sampled_from(["a1", "b1", "c1"]),
            "uncached_input": st.none() | st.integers(0, 1000),
            "cache_read": st.none() | st.just(0) | st.integers(0, 10**9),
            "output": st.none() | st.integers(0, 500),
            "task": st.none() | st.sampled_from(["t1", "t2"]),
            "user": st.none() | st.just("u1"),
            "again": st.integers(0, 3),
        }
    ),
    max_size=12,
).map(numbered)
lines = st.lists(
    st.fixed_dictionaries(
        {
            "hour": hours,
            "length": st.sampled_from([1, 1, 1, 24, 240, 0]),
            "model": st.sampled_from([*MODELS, None]),
            "account_id": st.sampled_from(ACCOUNTS),
            "token_class": st.sampled_from([*CLASSES, None]),
            "tokens": st.none() | st.integers(-100, 2000) | st.just(0),
            "family": st.sampled_from(
                ["model_api", "model_api", "model_api", "support", "tax", "credit", "discount", "commitment", "other"]
            ),
            "billed": money,
            "effective": money,
            "currency": st.sampled_from(["USD", "USD", "EUR"]),
            "invoice": st.booleans(),
            "scope": st.sampled_from(["regional", "global", None]),
            "period": st.sampled_from(["2026-10", "2026-11"]),
            "service": st.sampled_from(["Amazon Bedrock", "AWS Support", "Amazon EC2"]),
        }
    ),
    max_size=12,
).map(numbered)


def fill(world: World, some_calls, some_lines) -> None:
    """Add calls and lines in bulk."""
    with world.connected():
        _fill(world, some_calls, some_lines)


def _fill(world: World, some_calls, some_lines) -> None:
    for call in some_calls:
        at = START + timedelta(hours=call["hour"], minutes=call["minute"])
        name = f"{call['hour']}-{call['minute']}-{call['key']}-{call['again']}"
        world.call(
            at.isoformat(),
            {"key_alias": call["key"]},
            event_key=f"r:{name}",
            model=call["model"],
            account_id=call["account_id"],
            uncached_input=call["uncached_input"],
            cache_read=call["cache_read"],
            output=call["output"],
            task_id=call["task"],
            user_id=call["user"],
            record_id=f"{name}-{call['number']}",
            record_digest=f"{name}-{call['number']}",
        )
    for line in some_lines:
        at = START + timedelta(hours=line["hour"])
        world.line(
            at.isoformat(),
            "0",
            end=(at + timedelta(hours=line["length"])).isoformat(),
            billed_cost=line["billed"],
            effective_cost=line["effective"],
            billing_currency=line["currency"],
            x_charge_family=line["family"],
            x_model=line["model"],
            x_token_class=line["token_class"],
            x_tokens=line["tokens"],
            sub_account_id=line["account_id"],
            x_scope=line["scope"],
            invoice_id="INV" if line["invoice"] else None,
            billing_period=line["period"],
            service_name=line["service"],
            line_digest=f"line-{line['number']}",
        )


def check(world: World, some_lines) -> None:
    """Both identities against sums taken from the lines in Python's own decimals."""
    snapshot = world.snapshot()
    assert snapshot.held == ()
    for row in snapshot.sql("SELECT * FROM balance").to_pylist():
        assert row["difference_usd"] == 0
    for currency in ("USD", "EUR"):
        for basis in ("billed", "effective"):
            rows = snapshot.sql(
                "SELECT bill_usd, rounding_usd FROM balance WHERE currency = ? AND cost_basis = ?", [currency, basis]
            ).to_pylist()
            bill = sum((line[basis] for line in some_lines if line["currency"] == currency), Decimal(0))
            assert sum((row["bill_usd"] for row in rows), Decimal(0)) == bill
            expected = bill - sum((row["rounding_usd"] for row in rows), Decimal(0))
            for by in ("kind", "team", "claim_set_id", "model", "day"):
                table = measures.table(snapshot, [f"{basis}_cost_usd"], [by], measures.Filters(currency=currency))
                assert sum((row[f"{basis}_cost_usd"] for row in table.to_pylist()), Decimal(0)) == expected, (by, basis)
    usage = measures.table(snapshot, ["usage_cost_usd"]).to_pylist()[0]["usage_cost_usd"] or Decimal(0)
    for measure, by in (("task_day", "task_id"), ("user_day", "user_id")):
        total = snapshot.sql(
            "SELECT sum(effective_nano) + coalesce(sum(estimated_nano), 0) AS nano "
            f"FROM {measure} WHERE currency = 'USD'"
        ).to_pylist()[0]["nano"]
        assert Decimal(total or 0).scaleb(-9) == usage, by
    snapshot.close()


def world_in(folder: str) -> World:
    world = World(
        Path(folder),
        WarehouseSettings.model_validate({"owners": RULES, "zone": "Asia/Kolkata"}),
        as_of="2026-11-02 00:00",
    )
    world.price(uncached_input="3", output="15", cache_read="0.3")
    return world


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls, lines)
def test_kinds_and_owners_and_the_bill_are_one_sum(some_calls, some_lines):
    with tempfile.TemporaryDirectory() as folder:
        world = world_in(folder)
        fill(world, some_calls, some_lines)
        check(world, some_lines)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(calls, lines, st.data())
def test_late_evidence_in_any_order_publishes_the_same_bytes(some_calls, some_lines, data):
    with tempfile.TemporaryDirectory() as folder:
        whole = world_in(f"{folder}/whole")
        fill(whole, some_calls, some_lines)
        check(whole, some_lines)
        parts = world_in(f"{folder}/parts")
        order_of_calls = data.draw(st.permutations(some_calls))
        order_of_lines = data.draw(st.permutations(some_lines))
        middle = data.draw(st.integers(0, len(order_of_calls)))
        fill(parts, order_of_calls[:middle], [])
        parts.publish()
        fill(parts, [], order_of_lines[:1])
        parts.publish()
        fill(parts, order_of_calls[middle:], order_of_lines[1:])
        check(parts, some_lines)
        assert ledger_of(parts) == ledger_of(whole)


def ledger_of(world: World) -> list[tuple]:
    snapshot = Snapshot.open(world.layout.published, Scope.everything("test"))
    rows = [
        row
        for mart in ("cost_day", "cost_hour", "usage_day", "task_day", "match_day", "balance")
        for row in snapshot.sql(f"SELECT '{mart}', * FROM {mart} ORDER BY ALL").to_pylist()
    ]
    return [tuple(row.values()) for row in rows]


def test_an_organisation_without_anything_has_an_empty_ledger_that_balances(tmp_path):
    world = world_in(str(tmp_path))
    check(world, [])


def test_publishing_twice_changes_nothing(tmp_path):
    world = world_in(str(tmp_path))
    world.call("2026-10-31 10:10", {"key_alias": "a1"}, output=5)
    world.line("2026-10-31 10:00", "1", token_class="output", tokens=5)
    first, second = world.publish(), world.publish()
    assert first.manifest == second.manifest
    assert second.previous == first.manifest


def test_a_failed_control_keeps_the_last_good_snapshot(tmp_path):
    world = world_in(str(tmp_path))
    world.call("2026-10-31 10:10", {"key_alias": "a1"}, output=5)
    good = world.publish()
    with writing(world.layout, "test") as c:
        c.execute("INSERT INTO control_hour VALUES ('planted', TIMESTAMP '2026-10-31 10:00:00', 1, 2)")
    world.as_of = "2026-11-03 00:00"
    held = world.publish()
    assert held.held == ("planted at 2026-10-31 10:00",)
    snapshot = Snapshot.open(world.layout.published, Scope.everything("test"))
    assert (snapshot.manifest_id, snapshot.held) == (good.manifest, held.held)
