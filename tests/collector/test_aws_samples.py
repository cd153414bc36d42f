"""Public samples of AWS's bills: what goes in comes out to the last digit, or the file is refused whole and why.

The sums of a file are added up here, by Python's decimals from its text, apart from anything that InferLedger does.
"""

import csv
import gzip
import io
import shutil
import tarfile
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import House

Sums = dict[str, tuple[Decimal, Decimal | None, Decimal]]
"""Billed, list and effective cost by billing period; list is None where the file has no such column."""


@pytest.fixture(autouse=True)
def _needs_the_samples() -> None:
    needs.samples("billing")


def bill(place: Path) -> dict[str, Any]:
    return {"name": "bill", "kind": "bill", "location": str(place)}


def rows_of(path: Path) -> list[dict[str, str]]:
    """Rows by the header's names, without case, slashes and underscores."""
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    header, *rows = csv.reader(io.StringIO(content.decode(), newline=""))
    names = [name.lower().replace("/", "").replace("_", "") for name in header]
    return [dict(zip(names, row, strict=True)) for row in rows]


def sums_in(path: Path) -> Sums:
    found: dict[str, list[tuple[Decimal, Decimal | None, Decimal]]] = defaultdict(list)
    for row in rows_of(path):
        billed = amount(row["lineitemunblendedcost"])
        effective = {
            "SavingsPlanCoveredUsage": amount(row.get("savingsplansavingsplaneffectivecost", "")),
            "SavingsPlanNegation": Decimal(0),
            "Usage": billed,
        }[row["lineitemlineitemtype"]]
        listed = row.get("pricingpublicondemandcost")
        period = row["billbillingperiodstartdate"][:7]
        found[period].append((billed, None if listed is None else amount(listed), effective))
    return {period: totals(rows) for period, rows in found.items()}


def amount(text: str) -> Decimal:
    return Decimal(text or 0).quantize(Decimal("1e-18"))


def totals(rows: list[tuple[Decimal, Decimal | None, Decimal]]) -> tuple[Decimal, Decimal | None, Decimal]:
    listed = [row[1] for row in rows if row[1] is not None]
    nothing = Decimal(0)
    return (
        sum((row[0] for row in rows), nothing),
        sum(listed, nothing) if listed else None,
        sum((row[2] for row in rows), nothing),
    )


def sums_out(house: House) -> Sums:
    return {
        period: (billed, listed, effective)
        for period, billed, listed, effective in house.rows(
            "SELECT billing_period, sum(billed_cost), sum(list_cost), sum(effective_cost) FROM billing_line GROUP BY 1"
        )
    }


READABLE = [
    "legacy_cur_koku/2023-06-01.csv",
    "legacy_cur_koku/2023-06-01-not-final.csv",
    "nise_generated/cur/demo/20260601-20260701/da42911d-8d21-4a3e-86cf-5ed623eee852/June-2026-demo.csv.gz",
    "cur_keboola/cur_2_0/MockTestReportV2-00001.csv.gz",
    "cur_keboola/cur_2_0/sample_billing_data_v2.csv",
]


@pytest.mark.parametrize("name", READABLE)
def test_a_file_without_a_manifest_comes_out_as_it_went_in(house: House, tmp_path: Path, name: str) -> None:
    sample = needs.samples("billing", *name.split("/"))
    (tmp_path / "bill").mkdir()
    path = Path(shutil.copy(sample, tmp_path / "bill"))
    report = house.collect(bill(tmp_path / "bill"))
    assert report.ok, report.findings
    assert sums_out(house) == sums_in(path)
    assert report.total("rows_loaded") == len(rows_of(path))
    assert house.rows("SELECT DISTINCT export_name FROM billing_line") == [(f"bill/{path.name}",)]

    before = house.evidence()
    assert house.collect(bill(tmp_path / "bill")).loaded == ()
    assert house.evidence() == before


def test_a_report_in_the_legacy_layout_comes_out_as_it_went_in(house: House) -> None:
    folder = needs.samples("billing", "nise_generated")
    report = house.collect(bill(folder))
    assert report.ok, report.findings
    assert sums_out(house) == sums_in(next(folder.rglob("*.csv.gz")))
    assert sums_out(house) == {"2026-06": (Decimal("1320.96"), Decimal("1541.76"), Decimal("1395.36"))}
    assert house.rows("SELECT DISTINCT export_name FROM billing_line") == [("999999999999/demo",)]


def test_two_machines_of_a_report_say_how_they_were_bought_and_what_they_are(house: House) -> None:
    house.collect(bill(needs.samples("billing", "nise_generated")))
    assert house.rows(
        "SELECT x_purchase_option, x_cost_class, x_usage_type, count(*), sum(billed_cost), map_values(any_value(tags)) "
        "FROM billing_line GROUP BY ALL ORDER BY ALL"
    ) == [
        ("on_demand", "accelerator", "BoxUsage:p5.48xlarge", 24, Decimal("1320.96"), ["llama-3-70b", "search"]),
        ("savings_plan", "accelerator", "BoxUsage:g6.12xlarge", 48, Decimal(0), ["mistral-7b", "chat"]),
    ]


def test_a_bill_in_another_currency_keeps_it_and_its_plan(house: House, tmp_path: Path) -> None:
    """Three hours at NOK 10 on demand that cost NOK 0.10 under a plan."""
    shutil.copy(needs.samples("billing", "legacy_cur_koku", "2023-06-01.csv"), tmp_path / "june.csv")
    house.collect(bill(tmp_path / "june.csv"))
    assert house.rows(
        "SELECT DISTINCT billing_currency, invoice_id, x_line_item_type, x_purchase_option, x_cost_class, "
        "commitment_discount_status, billed_cost, effective_cost FROM billing_line"
    ) == [
        ("NOK", "987654321", "SavingsPlanCoveredUsage", "savings_plan", "compute", "Used", Decimal(10), Decimal("0.1"))
    ]


def test_a_month_that_is_not_final_has_no_invoice(house: House, tmp_path: Path) -> None:
    shutil.copy(needs.samples("billing", "legacy_cur_koku", "2023-06-01-not-final.csv"), tmp_path / "june.csv")
    house.collect(bill(tmp_path / "june.csv"))
    assert house.rows("SELECT count(*), count(invoice_id) FROM billing_line") == [(3, 0)]


@pytest.fixture
def koku(tmp_path: Path) -> Path:
    """Koku's bucket of a legacy create-new report of August 2018, unpacked."""
    with tarfile.open(needs.samples("billing", "legacy_cur_koku", "test_local_bucket.tar.gz")) as packed:
        packed.extractall(tmp_path / "bucket", filter="data")
    return tmp_path / "bucket"


def test_a_report_of_august_that_holds_june_and_july_is_refused_whole(house: House, koku: Path) -> None:
    """Of its 13,380 lines only 776 are of August: the invented data does not fit its own manifest."""
    report = house.collect(bill(koku))
    (finding,) = report.findings
    assert "12,604 of 13,380 lines" in finding.what
    assert house.rows("SELECT * FROM billing_line") == []


def test_the_same_file_without_its_manifest_is_a_bill_of_three_months(house: House, koku: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(next(koku.rglob("*.csv.gz")), tmp_path))
    report = house.collect(bill(path))
    assert report.ok, report.findings
    assert sums_out(house) == sums_in(path)
    assert {period: row[0] for period, row in sums_out(house).items()} == {
        "2018-06": Decimal("34649.973272612318255145"),
        "2018-07": Decimal("100267.738649643334767684"),
        "2018-08": Decimal("8310.051755931961995159"),
    }


def test_a_packed_bucket_is_no_bill(house: House, tmp_path: Path) -> None:
    shutil.copy(needs.samples("billing", "legacy_cur_koku", "test_local_bucket.tar.gz"), tmp_path / "bucket.tar.gz")
    (tmp_path / "only").mkdir()
    shutil.move(tmp_path / "bucket.tar.gz", tmp_path / "only" / "bucket.tar.gz")
    report = house.collect(bill(tmp_path / "only"))
    assert "no bill is here" in report.findings[0].what


def test_rows_that_are_shorter_than_the_header_refuse_the_file(house: House, tmp_path: Path) -> None:
    """131 names, 130 values in every row: nobody can say which value belongs to which name."""
    shutil.copy(needs.samples("billing", "legacy_cur_koku", "test_cur.csv"), tmp_path / "test_cur.csv")
    report = house.collect(bill(tmp_path / "test_cur.csv"))
    (finding,) = report.findings
    assert "does not fit the header" in finding.what
    assert "2018" not in str(finding), "no text of the bill"
    assert house.rows("SELECT * FROM billing_line") == []


@pytest.mark.parametrize("name", ["sample-cur20.csv", "sample-legacy-csv.csv"])
def test_an_extract_without_core_columns_is_refused_with_their_names(house: House, tmp_path: Path, name: str) -> None:
    """13 columns in either generation's names; both lack the same five."""
    shutil.copy(needs.samples("billing", "cur_sbroenne", name), tmp_path / name)
    report = house.collect(bill(tmp_path / name))
    (finding,) = report.findings
    assert finding.what.endswith(
        "without: bill_billing_entity, bill_billing_period_start_date, line_item_currency_code, "
        "line_item_line_item_description, line_item_line_item_type"
    )


def test_a_folder_of_samples_loads_what_can_be_read_and_names_what_cannot(house: House) -> None:
    """The final and the open June are two files of one source: both count, for nobody said which one is right."""
    report = house.collect(bill(needs.samples("billing", "legacy_cur_koku")))
    assert [finding.where.rsplit("/", 1)[-1] for finding in report.findings] == ["test_cur.csv"]
    assert house.rows("SELECT export_name, count(*) FROM billing_line GROUP BY 1 ORDER BY 1") == [
        ("bill/2023-06-01-not-final.csv", 3),
        ("bill/2023-06-01.csv", 3),
    ]
