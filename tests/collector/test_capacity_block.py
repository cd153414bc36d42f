"""Capacity Blocks: one payment ahead is the cost of the block's hours, whichever bill they are on."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from demo.billing.delivery import Format
from demo.billing.discounts import Discounts
from tests.collector.conftest import House
from tests.collector.test_bill_formats import DECEMBER, NOVEMBER, deliver, source
from tests.collector.test_cur2 import bill
from tests.collector.writing import Export, line
from tests.world import World

ARN = "arn:aws:ec2:us-east-1:1:capacity-reservation/cr-0abc"


def fee(amount: float, **changes: Any) -> dict[str, Any]:
    """The payment for four hours of the third."""
    said = {
        "reservation_reservation_a_r_n": ARN,
        "reservation_start_time": "2026-11-03T00:00:00.000Z",
        "reservation_end_time": "2026-11-03T04:00:00.000Z",
        "line_item_resource_id": None,
        "line_item_usage_start_date": datetime(2026, 11, 1, 9),
        "line_item_usage_end_date": datetime(2026, 11, 1, 9),
    }
    return line("Fee", amount, "AmazonEC2", **said | changes)


def hour(number: int, day: int = 3, **changes: Any) -> dict[str, Any]:
    """One hour of the block, of one machine."""
    said = {
        "line_item_resource_id": ARN,
        "line_item_usage_type": "CapacityBlockUsage:p5.48xlarge",
        "line_item_usage_amount": 1.0,
        "line_item_usage_start_date": datetime(2026, 11, day, number),
        "line_item_usage_end_date": datetime(2026, 11, day, number + 1),
        "capacity_reservation_capacity_reservation_type": "capacity-block",
    }
    return line("Usage", 0.0, "AmazonEC2", **said | changes)


def elsewhere(day: int) -> Mapping[str, Any]:
    """Another machine, by which the bill is known to have come to a day."""
    start = datetime(2026, 11, day)
    end = start + timedelta(hours=1)
    return line("Usage", 0.0, "AmazonEC2", line_item_usage_start_date=start, line_item_usage_end_date=end)


def costs(house: House) -> list[tuple[Any, ...]]:
    return house.rows(
        "SELECT x_line_item_type, effective_cost FROM billing_line WHERE resource_id LIKE '%cr-0abc' "
        "ORDER BY charge_period_start, effective_cost"
    )


@pytest.fixture
def export(tmp_path: Path) -> Export:
    return Export(tmp_path / "bucket")


def test_a_payment_is_spread_over_its_hours_and_to_its_last_nano(house: House, export: Export) -> None:
    export.deliver([fee(100.01), *map(hour, range(4)), elsewhere(20)])
    assert house.collect(bill(export.root)).ok
    assert costs(house) == [("Fee", 0), *[("Usage", Decimal("25.0025"))] * 4]
    export.deliver([fee(0.000000001), *map(hour, range(4)), elsewhere(20)], made="20261104T040000Z")
    assert house.collect(bill(export.root)).ok
    assert house.row("SELECT sum(effective_cost), sum(billed_cost) FROM billing_line") == (Decimal("1e-9"),) * 2


def test_machines_of_one_hour_share_it_by_their_time(house: House, export: Export) -> None:
    two = [hour(0, line_item_usage_amount=0.25), hour(0, line_item_usage_amount=0.75)]
    export.deliver([fee(100.0), *two, *map(hour, (1, 2, 3)), elsewhere(20)])
    house.collect(bill(export.root))
    assert [cost for _, cost in costs(house)] == [0, Decimal("6.25"), Decimal("18.75"), 25, 25, 25]


def test_hours_that_a_bill_passed_without_a_word_stay_on_the_payment(house: House, export: Export) -> None:
    export.deliver([fee(100.0), hour(0), elsewhere(3)])
    house.collect(bill(export.root))
    assert costs(house) == [("Fee", 0), ("Usage", 25)], "the bill is not two days past them yet"
    export.deliver([fee(100.0), hour(0), elsewhere(20)], made="20261104T040000Z")
    house.collect(bill(export.root))
    assert costs(house) == [("Fee", 75), ("Usage", 25)]


def test_what_was_spread_is_told_apart_from_what_was_read(house: House, export: Export) -> None:
    """The checks hold, the bridge names it, and an hour of an unknown usage type is one of the block all the same."""
    hours = [hour(number, line_item_usage_type="USE1-NewName:p5.48xlarge") for number in range(4)]
    export.deliver([fee(100.0), *hours, elsewhere(20)])
    house.collect(bill(export.root))
    assert house.rows("SELECT DISTINCT x_purchase_option FROM billing_line WHERE resource_id IS NOT NULL") == [
        ("capacity_block",)
    ]
    snapshot = World(house.data, as_of="2026-12-01 00:00").snapshot()
    assert [row for row in snapshot.sql("SELECT name, ok FROM bill_check").to_pylist() if not row["ok"]] == []
    assert {
        (row["family"], row["part"]): row["amount_usd"] for row in snapshot.sql("FROM bill_bridge").to_pylist()
    } == {("capacity blocks", "fees"): -100, ("capacity blocks", "used"): 100}


def test_a_block_to_come_is_paid_and_no_cost_yet(house: House, export: Export) -> None:
    export.deliver([fee(100.0)])
    house.collect(bill(export.root))
    assert house.row("SELECT billed_cost, effective_cost FROM billing_line") == (100, 0)


@pytest.mark.parametrize("time", [None, "", "soon", "2026-11-03T04:00:00.000Z"])
def test_a_payment_that_does_not_say_when_its_block_runs_stays_whole(
    house: House, export: Export, time: str | None
) -> None:
    export.deliver([fee(100.0, reservation_start_time=time), *map(hour, range(4)), elsewhere(20)])
    house.collect(bill(export.root))
    assert [cost for _, cost in costs(house)] == [100, 0, 0, 0, 0]


@pytest.mark.parametrize("order", [(NOVEMBER, DECEMBER), (DECEMBER, NOVEMBER)], ids=["as they come", "backwards"])
@pytest.mark.parametrize("of", [Format.CUR2_PARQUET, Format.LEGACY_CSV_GZIP])
def test_a_block_over_the_months_end_costs_each_month_its_hours(
    house: House, tmp_path: Path, of: Format, order: tuple[Any, Any]
) -> None:
    for month in order:
        deliver(tmp_path / "bucket", of, bill=month)
        assert house.collect(source(tmp_path / "bucket")).ok
        if month is order[0]:
            house.attributed()
    assert house.rows("SELECT billing_period, sum(effective_cost) FROM billing_line GROUP BY ALL ORDER BY ALL") == [
        ("2026-11", NOVEMBER.truth(Discounts.COLUMNS).effective),
        ("2026-12", DECEMBER.truth(Discounts.COLUMNS).effective),
    ]
    if order[0] is DECEMBER:
        touched = "SELECT count(*) FROM touched_hour WHERE reason = 'billing' AND hour >= '2026-12-01'"
        assert house.row(touched) == (36,), "November's payment made those hours dear"
    evidence = house.evidence()
    house.collect(source(tmp_path / "bucket"))
    assert house.evidence() == evidence
