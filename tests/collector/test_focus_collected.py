"""FOCUS through the collector: files without a manifest become bills, month by month, and load again with no effect."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House
from tests.collector.focus_bills import charge, write

OCTOBER = {
    "BillingPeriodStart": "2026-10-01T00:00:00Z",
    "BillingPeriodEnd": "2026-11-01T00:00:00Z",
    "ChargePeriodStart": "2026-10-02T10:00:00Z",
    "ChargePeriodEnd": "2026-10-02T11:00:00Z",
}


def bill(folder: Path) -> dict[str, Any]:
    return {"name": "openai", "kind": "bill", "location": str(folder)}


def test_each_month_of_a_file_is_delivered_and_again_changes_nothing(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    write(folder / "autumn.csv", [charge(), charge(**OCTOBER, BilledCost="4"), charge(BilledCost="2")])

    assert house.collect(bill(folder)).ok
    months = house.rows(
        "SELECT billing_period, count(*), sum(billed_cost) FROM billing_line GROUP BY ALL ORDER BY billing_period"
    )
    assert months == [("2026-10", 1, Decimal(4)), ("2026-11", 2, Decimal("12.5"))]
    before = house.evidence()
    house.collect(bill(folder))
    assert house.evidence() == before


def test_a_refused_file_says_why_and_another_one_still_lands(house: House, tmp_path: Path) -> None:
    folder = tmp_path / "bills"
    folder.mkdir()
    write(folder / "bad.csv", [charge(EffectiveCost="")])
    write(folder / "good.csv.gz", [charge()])

    report = house.collect(bill(folder))
    assert not report.ok
    assert any("have no EffectiveCost" in finding.what for finding in report.findings)
    assert house.row("SELECT count(*), sum(billed_cost) FROM billing_line") == (1, Decimal("10.5"))


@pytest.mark.samples
def test_the_foundations_sample_lands_to_the_last_decimal(house: House) -> None:
    report = house.collect(bill(needs.samples("billing", "focus_1_0_finops")))
    assert report.ok, report.findings
    assert house.row("SELECT count(*), sum(billed_cost), sum(effective_cost) FROM billing_line") == (
        1000, Decimal("20.52022672899"), Decimal("14.97651418586"),
    )  # fmt: skip
