"""The same bill in every AWS format and layout: the same curated rows, and the truth to the last decimal."""

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from collector.billing import bill, waiting
from collector.run import CollectReport
from demo.billing import every_shape, export
from demo.billing.delivery import Delivery, Export, Format, Layout, layouts
from demo.billing.discounts import Discounts
from demo.billing.every_shape import Bill
from demo.billing.line import Month
from demo.clock import DAY, HOUR
from tests.collector.conftest import Builder, House

BILLS = every_shape.bills()
NOVEMBER, DECEMBER, EUROPE = BILLS.november, BILLS.december, BILLS.europe
MADE = DECEMBER.month.period.start_us + 9 * DAY
KIND = "bill"

CUR = [(of, layout) for of in Format if not of.table.startswith("focus") for layout in layouts(of)]
FOCUS = [(of, layout) for of in Format if of.table.startswith("focus") for layout in layouts(of)]

ONLY_IN_CUR_2 = {"x_principal"}
"""What the legacy CUR cannot tell: who called."""

ONE_A_LAYOUT = list({(of.table.split()[0], layout): (of, layout) for of, layout in CUR + FOCUS}.values())
"""Layouts are read apart from formats: one format of each generation is enough."""

TAGS = """coalesce(list_filter(list_sort(map_entries(tags)),
    lambda each: NOT regexp_matches(each.key, '^(iamprincipal|accounttag)_')), [])"""
"""Tags in one order, without those of callers and accounts, which the legacy CUR has not."""

OF_THE_DELIVERY = {"load_id", "export_name", "x_line_item_id", "x_file", "x_other"}
"""What differs between exports of the same bill; x_other keeps whatever a format has beside."""


def deliver(
    root: Path,
    of: Format,
    layout: Layout = Layout.CREATE_NEW,
    bill: Bill = NOVEMBER,
    how: Discounts = Discounts.COLUMNS,
    made_us: int = MADE,
    **more: Any,
) -> None:
    """Write a delivery of a bill under a bucket."""
    payer = bill.month.payer.id
    wanted = Export(more.pop("name", "bill"), payer, of, layout, **more)
    others = [one.table(Discounts.COLUMNS) for one in (NOVEMBER, DECEMBER) if of.table.startswith("focus")]
    export.write(root, bill.table(how, delivery=str(made_us)), wanted, Delivery(bill.month.period, made_us), others)


def source(root: Path, **more: Any) -> dict[str, Any]:
    return {"name": "bill", "kind": KIND, "location": str(root), **more}


@dataclass(frozen=True)
class Loaded:
    """A house with one delivery of November."""

    house: House
    report: CollectReport


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> "Loader":
    return Loader(tmp_path_factory.mktemp("formats"), {})


@dataclass(frozen=True)
class Loader:
    """November loaded from each export, once a module."""

    folder: Path
    found: dict[tuple[Format, Layout], Loaded]

    def __call__(self, of: Format, layout: Layout) -> Loaded:
        if (of, layout) not in self.found:
            root = self.folder / of.name / layout.name
            deliver(root / "bucket", of, layout)
            house = House(root / "data")
            self.found[of, layout] = Loaded(house, house.collect(source(root / "bucket")))
        return self.found[of, layout]


def columns_of(house: House, *without: str) -> list[str]:
    names = house.rows("SELECT column_name FROM duckdb_columns() WHERE table_name = 'billing_line'")
    return [name for (name,) in names if name not in without]


def totals(house: House, where: str = "true") -> tuple[Any, ...]:
    return house.row(f"SELECT sum(billed_cost), sum(effective_cost) FROM billing_line WHERE {where}")


@pytest.mark.parametrize(("of", "layout"), CUR + FOCUS)
def test_the_totals_are_the_truth(loaded: Loader, of: Format, layout: Layout) -> None:
    """Capacity Blocks too: the one that runs into December has spent only this month's hours of its fee."""
    one, truth = loaded(of, layout), NOVEMBER.truth(Discounts.COLUMNS)
    assert one.report.ok, one.report.findings
    assert totals(one.house) == (truth.billed, truth.effective)
    usage = "charge_category = 'Usage' AND commitment_discount_status IS DISTINCT FROM 'Unused'"
    assert one.house.row(f"SELECT sum(list_cost) FROM billing_line WHERE {usage}") == (truth.listed,)


@pytest.mark.parametrize(("of", "layout"), CUR)
def test_every_format_of_the_cur_gives_the_same_lines(loaded: Loader, of: Format, layout: Layout) -> None:
    reference, one = loaded(Format.CUR2_PARQUET, Layout.CREATE_NEW), loaded(of, layout)
    names = columns_of(one.house, *OF_THE_DELIVERY, *((*ONLY_IN_CUR_2, "line_digest") if of.legacy else ()))
    said = ", ".join(TAGS if name == "tags" else name for name in names)
    question = f"SELECT {said} FROM billing_line ORDER BY ALL"
    theirs, ours = reference.house.rows(question), one.house.rows(question)
    assert len(ours) == len(theirs)
    differing = [
        {name: (a, b) for name, a, b in zip(names, left, right, strict=True) if a != b}
        for left, right in zip(theirs, ours, strict=True)
        if left != right
    ]
    assert differing == []


@pytest.mark.parametrize(("of", "layout"), CUR)
def test_split_lines_are_evidence_of_pods_and_never_of_money(loaded: Loader, of: Format, layout: Layout) -> None:
    """Three hours of a node of two pods and one of a task."""
    one = loaded(of, layout)
    assert one.house.row("SELECT sum(split_cost + unused_cost), count(*) FROM split_cost_line") == (
        3 * Decimal("4.92") + Decimal("0.208"),
        3 * 2 * 3 + 2,
    )
    assert one.house.row(
        "SELECT cluster, namespace, workload, count(*) FROM split_cost_line WHERE workload = 'reranker' GROUP BY ALL"
    ) == ("inference", "serving", "reranker", 9)


@pytest.mark.parametrize(("of", "layout"), FOCUS)
def test_focus_costs_the_same_per_service_and_month(loaded: Loader, of: Format, layout: Layout) -> None:
    """Billed cost by service and period; what a commitment covers and its negation are one in FOCUS."""
    question = (
        "SELECT x_service_code, billing_period, sum(billed_cost) FROM billing_line "
        "GROUP BY ALL HAVING sum(billed_cost) <> 0 ORDER BY ALL"
    )
    reference, one = loaded(Format.CUR2_PARQUET, Layout.CREATE_NEW), loaded(of, layout)
    assert one.house.rows(question) == reference.house.rows(question)


@pytest.mark.parametrize(("of", "layout"), FOCUS)
def test_focus_costs_the_same_per_category(loaded: Loader, of: Format, layout: Layout) -> None:
    """Effective cost of taxes, credits and other charges that no commitment touches."""
    question = (
        "SELECT charge_category, x_service_code, sum(billed_cost), sum(effective_cost) FROM billing_line "
        "WHERE charge_category IN ('Tax', 'Credit') GROUP BY ALL ORDER BY ALL"
    )
    reference, one = loaded(Format.CUR2_PARQUET, Layout.CREATE_NEW), loaded(of, layout)
    assert one.house.rows(question) == reference.house.rows(question)


@pytest.mark.parametrize("how", list(Discounts))
@pytest.mark.parametrize("of", [Format.CUR2_PARQUET, Format.LEGACY_CSV_GZIP])
def test_discounts_count_once_however_they_are_told(house: House, tmp_path: Path, of: Format, how: Discounts) -> None:
    deliver(tmp_path / "bucket", of, how=how)
    report = house.collect(source(tmp_path / "bucket"))
    assert report.ok, report.findings
    truth = NOVEMBER.truth(how)
    assert totals(house) == (truth.billed, truth.effective)


@pytest.mark.parametrize(("of", "layout"), ONE_A_LAYOUT)
def test_a_second_delivery_replaces_the_first_and_a_third_look_changes_nothing(
    house: House, tmp_path: Path, of: Format, layout: Layout
) -> None:
    bucket = tmp_path / "bucket"
    deliver(bucket, of, layout)
    assert house.collect(source(bucket)).ok
    before = totals(house)
    deliver(bucket, of, layout, NOVEMBER.restated(), made_us=MADE + HOUR)
    assert house.collect(source(bucket)).ok
    # an hour at 20 instead of 21.50, and another hour at 21.50; less a tenth
    assert totals(house) == tuple(amount + 18 for amount in before)
    evidence = house.evidence()
    assert house.collect(source(bucket)).ok
    assert house.evidence() == evidence


@pytest.mark.parametrize("of", [Format.CUR2_PARQUET, Format.LEGACY_CSV_ZIP, Format.FOCUS_1_2_CSV])
def test_two_payers_and_two_currencies_lie_beside_each_other(house: House, tmp_path: Path, of: Format) -> None:
    deliver(tmp_path / "bucket", of, prefix="us")
    deliver(tmp_path / "bucket", of, bill=EUROPE, prefix="europe", name="europe")
    assert house.collect(source(tmp_path / "bucket")).ok
    assert house.rows("SELECT billing_currency, sum(billed_cost) FROM billing_line GROUP BY ALL ORDER BY ALL") == [
        ("EUR", EUROPE.truth(Discounts.COLUMNS).billed),
        ("USD", NOVEMBER.truth(Discounts.COLUMNS).billed),
    ]


@pytest.mark.parametrize("of", list(Format))
def test_months_are_apart_and_only_the_final_one_has_an_invoice(house: House, tmp_path: Path, of: Format) -> None:
    layout = layouts(of)[0]
    deliver(tmp_path / "bucket", of, layout)
    deliver(tmp_path / "bucket", of, layout, DECEMBER)
    assert house.collect(source(tmp_path / "bucket")).ok
    invoiced = of.table != "focus 1.0"  # which has no column for it
    assert house.rows(
        "SELECT billing_period, sum(billed_cost), count(invoice_id) > 0 FROM billing_line GROUP BY ALL ORDER BY ALL"
    ) == [
        ("2026-11", NOVEMBER.truth(Discounts.COLUMNS).billed, invoiced),
        ("2026-12", DECEMBER.truth(Discounts.COLUMNS).billed, False),
    ]


def test_a_month_that_is_padded_and_one_that_is_not_are_one(house: House, tmp_path: Path) -> None:
    """Athena's partitions of an export that was written by two tools."""
    bill = every_shape.small(Month(every_shape.period(2026, 7, final=True), NOVEMBER.month.payer))
    for padded in (False, True):
        deliver(tmp_path / "bucket", Format.LEGACY_PARQUET, Layout.OVERWRITE, bill, month_padded=padded)
    assert house.collect(source(tmp_path / "bucket")).ok
    assert totals(house)[0] == bill.truth(Discounts.COLUMNS).billed


@pytest.mark.parametrize("of", [Format.CUR2_CSV, Format.FOCUS_1_2_PARQUET])
def test_lines_that_wait_in_a_file_and_are_sorted_in_chunks_are_the_same(
    build: Builder, tmp_path: Path, of: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As those of a bill with millions of lines do; a second delivery and one of another format come after it."""
    deliver(tmp_path / "bucket", of)
    expected = build()
    expected.collect(source(tmp_path / "bucket"))
    monkeypatch.setattr(waiting, "LARGE", 0)
    monkeypatch.setattr(bill, "CHUNK", 40)
    house = build()
    assert house.collect(source(tmp_path / "bucket")).ok
    assert house.evidence() == expected.evidence()
    deliver(tmp_path / "bucket", of, bill=NOVEMBER.restated(), made_us=MADE + HOUR)
    deliver(tmp_path / "bucket", Format.LEGACY_CSV_GZIP, bill=EUROPE, prefix="europe", name="europe")
    for each in (house, expected):
        assert each.collect(source(tmp_path / "bucket")).ok
        monkeypatch.setattr(waiting, "LARGE", 1 << 40)
    assert house.evidence() == expected.evidence()


def test_an_export_that_changes_its_files_touches_no_hour(house: House, tmp_path: Path) -> None:
    deliver(tmp_path / "bucket", Format.CUR2_CSV)
    house.collect(source(tmp_path / "bucket"))
    house.attributed()
    deliver(tmp_path / "bucket", Format.CUR2_PARQUET, made_us=MADE + HOUR)
    assert house.collect(source(tmp_path / "bucket")).ok
    assert house.rows("SELECT hour FROM touched_hour") == []
