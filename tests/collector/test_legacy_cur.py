"""AWS's legacy Cost and Usage Report: headers of every spelling, its layouts and manifests, and what is refused."""

import csv
import gzip
import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.collector.conftest import House

Row = dict[str, str]
REPORT = "acme"


def used(cost: str, **more: str) -> Row:
    """An hour of a p5.48xlarge on 2 November, under AWS's own names; `more` by column, `__` for the slash."""
    return {
        "identity/LineItemId": "abc",
        "identity/TimeInterval": "2026-11-02T05:00:00Z/2026-11-02T06:00:00Z",
        "bill/BillingEntity": "AWS",
        "bill/BillType": "Anniversary",
        "bill/PayerAccountId": "100000000001",
        "bill/BillingPeriodStartDate": "2026-11-01T00:00:00Z",
        "bill/BillingPeriodEndDate": "2026-12-01T00:00:00Z",
        "lineItem/UsageAccountId": "210000000012",
        "lineItem/LineItemType": "Usage",
        "lineItem/UsageStartDate": "2026-11-02T05:00:00Z",
        "lineItem/UsageEndDate": "2026-11-02T06:00:00Z",
        "lineItem/ProductCode": "AmazonEC2",
        "lineItem/UsageType": "BoxUsage:p5.48xlarge",
        "lineItem/Operation": "RunInstances",
        "lineItem/UsageAmount": "1.0",
        "lineItem/CurrencyCode": "USD",
        "lineItem/UnblendedCost": cost,
        "lineItem/LineItemDescription": "$55.04 per On Demand Linux p5.48xlarge Instance Hour",
    } | {name.replace("__", "/"): value for name, value in more.items()}


def text(rows: Sequence[Mapping[str, str]], newline: str = "\n") -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    written = io.StringIO()
    writer = csv.writer(written, lineterminator=newline)
    writer.writerow(names)
    writer.writerows([[row.get(name, "") for name in names] for row in rows])
    return written.getvalue()


def bill(place: Path) -> dict[str, Any]:
    return {"name": "bill", "kind": "bill", "location": str(place)}


def collected(house: House, folder: Path, content: bytes, name: str = "report.csv") -> House:
    """One file without a manifest, read without a finding."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(content)
    report = house.collect(bill(folder))
    assert report.ok, report.findings
    return house


def the_finding(house: House, folder: Path) -> str:
    (finding,) = house.collect(bill(folder)).findings
    return str(finding)


# --- Headers ---


def test_names_are_read_in_any_case_and_rest_goes_where_cur_2_has_it(house: House, tmp_path: Path) -> None:
    row = used(
        "55.04", product__ProductName="Amazon Elastic Compute Cloud", product__instanceType="p5.48xlarge",
        product__regionCode="us-east-1", product__sku="SKU1", product__servicecode="AmazonEC2", pricing__unit="Hrs",
        pricing__publicOnDemandCost="98.32", savingsPlan__SavingsPlanArn="arn:aws:savingsplans::1:savingsplan/sp-1",
        resourceTags__aws_createdBy="root", **{"resourceTags/user:Cost Centre": "42", "costCategory/Team": "search"},
    )  # fmt: skip
    lower = {name.lower(): value for name, value in row.items()}
    for number, each in enumerate((row, lower)):
        collected(house, tmp_path / "bill", text([each]).encode(), f"{number}.csv")
    assert house.rows(
        "SELECT DISTINCT service_name, region_id, sku_id, pricing_unit, list_cost, commitment_discount_id, "
        "x_purchase_option, x_cost_class, tags, x_other['product_instance_type'] FROM billing_line"
    ) == [
        (
            "Amazon Elastic Compute Cloud", "us-east-1", "SKU1", "Hrs", Decimal("98.32"),
            "arn:aws:savingsplans::1:savingsplan/sp-1", "savings_plan", "accelerator",
            {"aws_createdby": "root", "user_cost_centre": "42"}, "p5.48xlarge",
        )
    ]  # fmt: skip


def test_two_tags_whose_names_differ_in_case_are_one(house: House, tmp_path: Path) -> None:
    rows = [
        used("1.0", **{"resourceTags/user:Team": "a", "resourceTags/user:team": ""}),
        used("2.0", **{"resourceTags/user:Team": "", "resourceTags/user:team": "b"}),
        used("3.0", **{"resourceTags/user:Team": "a", "resourceTags/user:team": "b"}),
        used("4.0"),
    ]
    collected(house, tmp_path / "bill", text(rows).encode())
    assert house.rows("SELECT tags FROM billing_line ORDER BY billed_cost") == [
        ({"user_team": "a"},), ({"user_team": "b"},), ({"user_team": "a"},), (None,),
    ]  # fmt: skip


def test_text_with_commas_quotes_and_line_ends_stays_in_its_column(house: House, tmp_path: Path) -> None:
    said = 'Tax, "reduced",\nfor all'
    row = used("1.0", lineItem__LineItemDescription=said)
    collected(house, tmp_path / "bill", b"\xef\xbb\xbf" + text([row, used("2.0")], "\r\n").encode())
    assert house.rows("SELECT charge_description, billed_cost FROM billing_line ORDER BY 2") == [
        (said, Decimal(1)),
        ("$55.04 per On Demand Linux p5.48xlarge Instance Hour", Decimal(2)),
    ]


@pytest.mark.parametrize(
    "written",
    [
        "2026-11-02T05:00:00Z", "2026-11-02T05:00:00.000Z", "2026-11-02 05:00:00.000", "2026-11-02 05:00:00+00:00",
        "2026-11-02 05:00:00", "2026-11-02 07:00:00+02:00",
    ],
)  # fmt: skip
def test_times_in_every_form_that_was_seen_are_utc(house: House, tmp_path: Path, written: str) -> None:
    collected(house, tmp_path / "bill", text([used("1.0", lineItem__UsageStartDate=written)]).encode())
    assert house.row("SELECT charge_period_start FROM billing_line") == (datetime(2026, 11, 2, 5),)


def test_costs_are_decimal_text_and_never_binary_fractions(house: House, tmp_path: Path) -> None:
    costs = ["0.1000000000", "0.2", "1E-7", "123456789.123456789123456789", "-0.0000000001"]
    collected(house, tmp_path / "bill", text([used(cost) for cost in costs]).encode())
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (sum(map(Decimal, costs)),)


# --- Files that are refused whole ---


def damaged_zip(content: bytes) -> bytes:
    packed = bytearray(zipped({"report.csv": content}))
    packed[len(packed) // 3] ^= 255
    return bytes(packed)


def zipped(members: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


def cut_at_a_line(content: bytes) -> bytes:
    """A gzip stream that ends after whole lines: DuckDB alone reads it without a word."""
    half = content.index(b"\n", len(content) // 2) + 1
    whole = gzip.compress(content[:half]) + gzip.compress(content[half:])
    return whole[:-6]


BROKEN = [
    ("report.csv.gz", lambda content: gzip.compress(content)[:-300], "truncated"),
    ("report.csv.gz", cut_at_a_line, "truncated"),
    ("report.csv.zip", damaged_zip, "truncated"),
    ("report.csv.zip", lambda content: zipped({"a.csv": content, "b.csv": content}), "holds 2 files, not one"),
    ("report.csv", lambda content: content + b"one,two\n", "does not fit the header"),
    ("report.csv", lambda content: content.replace(b",1.0,USD", b",1.0"), "does not fit the header"),
    ("report.csv", lambda content: content.replace(b"2026-11-02T05:00:00Z", b"yesterday", 2), "no number or time"),
    ("report.csv", lambda content: content.replace(b"USD,7.5", b"USD,seven"), "have no cost, or one that is no number"),
    ("report.csv", lambda content: content.replace(b",", b";"), "no bill that is known"),
    ("report.csv", lambda content: content.replace(b"lineItem/CurrencyCode", b"x"), "line_item_currency_code"),
]


@pytest.mark.parametrize(("name", "broken", "says"), BROKEN)
def test_a_broken_file_is_refused_whole_without_a_word_of_it(
    house: House, tmp_path: Path, name: str, broken: Any, says: str
) -> None:
    (tmp_path / "bill").mkdir()
    (tmp_path / "bill" / name).write_bytes(broken(text([used(f"{n % 9}.5") for n in range(200)]).encode()))
    said = the_finding(house, tmp_path / "bill")
    assert says in said
    assert "p5.48xlarge" not in said
    assert "seven" not in said
    assert house.rows("SELECT * FROM billing_line") == []


def test_a_zip_is_read_whatever_its_member_is_called(house: House, tmp_path: Path) -> None:
    content = zipped({"../elsewhere/another-name": text([used("1.5")]).encode()})
    collected(house, tmp_path / "bill", content, "report-1.csv.zip")
    assert house.row("SELECT billed_cost FROM billing_line") == (Decimal("1.5"),)
    assert [path.name for path in tmp_path.rglob("*another*")] == []


# --- Layouts and manifests ---


def deliver(
    root: Path,
    rows: Sequence[Row],
    assembly: str = "16e57707-f9e3",
    layout: str = "create-new",
    files: int = 1,
    period: str = "20261101-20261201",
    lead: str = "/",
) -> Path:
    """A delivery under the report's folder, manifests last; answers the month's manifest."""
    folder = root / REPORT / period
    data = folder / assembly if layout == "create-new" else folder
    data.mkdir(parents=True, exist_ok=True)
    names = [f"{REPORT}-{number + 1}.csv.gz" for number in range(files)]
    for number, name in enumerate(names):
        (data / name).write_bytes(gzip.compress(text(rows[number::files]).encode()))
    manifest = {
        "assemblyId": assembly,
        "account": "100000000001",
        "bucket": "",
        "compression": "GZIP",
        "contentType": "text/csv",
        "reportName": REPORT,
        "reportKeys": [f"{lead}prefix/{(data / name).relative_to(root)}" for name in names],
    }
    for place in {data, folder}:
        (place / f"{REPORT}-Manifest.json").write_text(json.dumps(manifest))
    return folder / f"{REPORT}-Manifest.json"


@pytest.mark.parametrize("layout", ["create-new", "overwrite"])
@pytest.mark.parametrize("lead", ["/", ""])
def test_both_layouts_are_read_with_keys_of_the_bucket(house: House, tmp_path: Path, layout: str, lead: str) -> None:
    deliver(tmp_path / "bucket", [used("1.0"), used("2.0")], layout=layout, files=2, lead=lead)
    report = house.collect(bill(tmp_path / "bucket"))
    assert report.ok, report.findings
    assert house.rows("SELECT export_name, billing_period, sum(billed_cost) FROM billing_line GROUP BY ALL") == [
        ("100000000001/acme", "2026-11", Decimal(3))
    ]


@pytest.mark.parametrize("place", ["", REPORT, f"{REPORT}/20261101-20261201"])
def test_a_location_anywhere_above_the_month_finds_the_report(house: House, tmp_path: Path, place: str) -> None:
    deliver(tmp_path / "bucket", [used("1.0")])
    report = house.collect(bill(tmp_path / "bucket" / place))
    if place.endswith("20261201"):
        # a month's folder alone does not tell its month: its file counts as one without a manifest
        assert report.ok, report.findings
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(1),)


def test_a_later_assembly_replaces_the_month_and_the_one_before_is_kept_as_totals(house: House, tmp_path: Path) -> None:
    deliver(tmp_path / "bucket", [used("1.0")], "assembly-1")
    made = datetime(2026, 11, 3).timestamp()
    for path in (tmp_path / "bucket").rglob("*.json"):
        os.utime(path, (made, made))
    deliver(tmp_path / "bucket", [used("1.0"), used("4.0")], "assembly-0")
    report = house.collect(bill(tmp_path / "bucket"))
    assert report.ok, report.findings
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(5),)
    assert house.rows("SELECT delivery, sum(billed_cost) FROM bill_version GROUP BY 1 ORDER BY 1") == [
        (1, Decimal(1)),
        (2, Decimal(5)),
    ]


def test_an_emptied_chunk_of_an_overwritten_report_is_legal(house: House, tmp_path: Path) -> None:
    deliver(tmp_path / "bucket", [used("1.0")], layout="overwrite", files=3)
    for number, content in ((2, b""), (3, gzip.compress(b""))):
        (tmp_path / "bucket" / REPORT / "20261101-20261201" / f"{REPORT}-{number}.csv.gz").write_bytes(content)
    report = house.collect(bill(tmp_path / "bucket"))
    assert report.ok, report.findings
    assert house.row("SELECT count(*) FROM billing_line") == (1,)


def test_chunks_whose_headers_differ_are_one_bill(house: House, tmp_path: Path) -> None:
    """A tag that was activated while the report was written has a column in the later chunk only."""
    deliver(tmp_path / "bucket", [used("1.0"), used("2.0", **{"resourceTags/user:team": "search"})], files=2)
    report = house.collect(bill(tmp_path / "bucket"))
    assert report.ok, report.findings
    assert house.rows("SELECT billed_cost, tags FROM billing_line ORDER BY 1") == [
        (Decimal(1), None),
        (Decimal(2), {"user_team": "search"}),
    ]


def test_a_month_without_its_manifest_is_not_read_file_by_file(house: House, tmp_path: Path) -> None:
    deliver(tmp_path / "bucket", [used("1.0"), used("2.0")], files=2)
    for path in (tmp_path / "bucket").rglob("*.json"):
        path.unlink()
    said = the_finding(house, tmp_path / "bucket")
    assert "has no manifest" in said
    assert house.rows("SELECT * FROM billing_line") == []


def test_a_file_that_the_manifest_names_and_is_not_there(house: House, tmp_path: Path) -> None:
    deliver(tmp_path / "bucket", [used("1.0"), used("2.0")], files=2)
    next((tmp_path / "bucket").rglob("*-2.csv.gz")).unlink()
    assert "1 of the 2 data files that the manifest names are not there" in the_finding(house, tmp_path / "bucket")
    assert house.rows("SELECT * FROM billing_line") == []


def test_a_half_written_manifest_keeps_the_month_out_until_it_is_whole(house: House, tmp_path: Path) -> None:
    manifest = deliver(tmp_path / "bucket", [used("1.0")], layout="overwrite")
    whole = manifest.read_text()
    manifest.write_text(whole[:50])
    assert "half-written" in the_finding(house, tmp_path / "bucket")
    manifest.write_text(whole)
    assert house.collect(bill(tmp_path / "bucket")).ok
    assert house.row("SELECT sum(billed_cost) FROM billing_line") == (Decimal(1),)
