"""One bill in every export of AWS: where its files lie, what its manifests say, and the same money in all."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from demo.billing import every_shape, export, legacy_names
from demo.billing.delivery import Delivery, Export, Format, Layout, layouts
from demo.billing.discounts import Discounts
from demo.clock import HOUR
from tests.demo.bill_files import BILLS, EVERY, LATER, NOVEMBER, TABLES, Written, name_in, number, write
from tests.demo.conftest import Company


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[Format, Layout], Written]:
    """November in every export."""
    return {
        (of, layout): write(tmp_path_factory.mktemp(f"{of.name}-{layout.name}"), of, layout) for of, layout in EVERY
    }


@pytest.mark.parametrize(("of", "layout"), EVERY)
def test_the_money_is_the_same_in_every_export(
    written: dict[tuple[Format, Layout], Written], of: Format, layout: Layout
) -> None:
    truth = NOVEMBER.truth(Discounts.COLUMNS)
    one = written[of, layout]
    if of.table.startswith("focus"):
        assert one.sql(
            f"SELECT sum({number('BilledCost')}), sum({number('EffectiveCost')}), "
            f"sum({number('ListCost')}) FILTER (ChargeCategory = 'Usage') FROM file"
        ) == [(truth.billed, truth.effective, truth.listed)]
        return
    names = {
        "line_item_unblended_cost": truth.billed + truth.discount,
        "line_item_net_unblended_cost": truth.billed,
        "pricing_public_on_demand_cost": truth.listed,
    }
    sums = ", ".join(f"sum({number(name_in(of, name))})" for name in names)
    whole = name_in(of, "split_line_item_parent_resource_id")
    assert one.sql(f"SELECT {sums} FROM file WHERE coalesce({whole}, '') = ''") == [tuple(names.values())]


CUR = [(of, layout) for of, layout in EVERY if not of.table.startswith("focus")]


@pytest.mark.parametrize(("of", "layout"), CUR)
def test_every_line_says_the_same_in_every_form_of_the_cur(
    written: dict[tuple[Format, Layout], Written], of: Format, layout: Layout
) -> None:
    """Of every kind of column one or more: text, amounts of every size, instants, tags, attributes of the product."""
    texts = [
        "identity_line_item_id", "bill_invoice_id", "line_item_line_item_description", "line_item_usage_type",
        "line_item_resource_id", "pricing_unit", "reservation_reservation_a_r_n", "savings_plan_savings_plan_a_r_n",
        "product_instance_type", "capacity_reservation_capacity_reservation_status",
    ]  # fmt: skip
    amounts = [
        "line_item_unblended_cost", "line_item_net_unblended_cost", "line_item_usage_amount",
        "pricing_public_on_demand_cost", "reservation_net_effective_cost", "savings_plan_used_commitment",
        "split_line_item_unused_cost", "discount_total_discount",
    ]  # fmt: skip
    in_maps = {
        "resource_tags": ("user_team", "user_owner", "aws_eks_cluster_name"),
        "cost_category": ("environment",),
        "product": ("product_name", "gpu"),
    }
    keys = [(column, key) for column, names in in_maps.items() for key in names]

    def said(kind: Format) -> str:
        parts = [f"coalesce({name_in(kind, name)}, '')" for name in texts]
        parts += [number(name_in(kind, name)) for name in amounts]
        for column, key in keys:
            if not kind.legacy:
                of_map = "MAP(VARCHAR, VARCHAR)"
                parts.append(f"({column}::{of_map if kind.parquet else f'JSON::{of_map}'})['{key}']")
            else:
                name = legacy_names.key_name(column, key)
                parts.append(f'"{legacy_names.athena_name(name) if kind.parquet else name}"')
        parts.append(f"{name_in(kind, 'line_item_usage_start_date')}::TIMESTAMPTZ::TIMESTAMP")
        return ", ".join(parts)

    reference = written[Format.CUR2_PARQUET, Layout.CREATE_NEW]
    assert written[of, layout].sql(f"SELECT {said(of)} FROM file ORDER BY 1") == reference.sql(
        f"SELECT {said(Format.CUR2_PARQUET)} FROM file ORDER BY 1"
    )


def keys_of(one: Written) -> list[str]:
    """Every file below the bucket, the execution replaced by a word."""
    run = one.delivery.execution(one.export)
    return sorted(str(path.relative_to(one.root)).replace(run, "RUN") for path in one.files)


@pytest.mark.parametrize(
    ("of", "layout", "keys"),
    [
        (Format.LEGACY_CSV_GZIP, Layout.CREATE_NEW, [
            "exports/bill/20261101-20261201/RUN/bill-1.csv.gz",
            "exports/bill/20261101-20261201/RUN/bill-2.csv.gz",
            "exports/bill/20261101-20261201/RUN/bill-Manifest.json",
            "exports/bill/20261101-20261201/bill-Manifest.json",
        ]),
        (Format.LEGACY_CSV_ZIP, Layout.OVERWRITE, [
            "exports/bill/20261101-20261201/bill-1.csv.zip",
            "exports/bill/20261101-20261201/bill-2.csv.zip",
            "exports/bill/20261101-20261201/bill-Manifest.json",
        ]),
        (Format.LEGACY_PARQUET, Layout.OVERWRITE, [
            "exports/bill/20261101-20261201/bill-Manifest.json",
            "exports/bill/bill/year=2026/month=11/bill-00001.snappy.parquet",
            "exports/bill/bill/year=2026/month=11/bill-00002.snappy.parquet",
            "exports/bill/cost_and_usage_data_status/cost_and_usage_data_status.parquet",
        ]),
        (Format.CUR2_CSV, Layout.OVERWRITE, [
            "exports/bill/data/BILLING_PERIOD=2026-11/bill-00001.csv.gz",
            "exports/bill/data/BILLING_PERIOD=2026-11/bill-00002.csv.gz",
            "exports/bill/metadata/BILLING_PERIOD=2026-11/bill-Manifest.json",
        ]),
        (Format.FOCUS_1_2_PARQUET, Layout.CREATE_NEW, [
            "exports/bill/data/BILLING_PERIOD=2026-11/20261210T000000Z-RUN/bill-00001.snappy.parquet",
            "exports/bill/data/BILLING_PERIOD=2026-11/20261210T000000Z-RUN/bill-00002.snappy.parquet",
            "exports/bill/metadata/BILLING_PERIOD=2026-11/20261210T000000Z-RUN/bill-Manifest.json",
            "exports/bill/metadata/BILLING_PERIOD=2026-11/bill-Manifest.json",
        ]),
    ],
)  # fmt: skip
def test_where_the_files_lie(
    written: dict[tuple[Format, Layout], Written], of: Format, layout: Layout, keys: list[str]
) -> None:
    assert keys_of(written[of, layout]) == keys


def test_a_month_of_one_digit_is_not_padded_unless_asked(tmp_path: Path) -> None:
    period = every_shape.period(2026, 7, final=True)
    for padded, folder in ((False, "month=7"), (True, "month=07")):
        wanted = Export("bill", "1", Format.LEGACY_PARQUET, Layout.OVERWRITE, month_padded=padded)
        files = export.write(tmp_path / folder, TABLES[0], wanted, Delivery(period, LATER))
        assert files[0].parent.name == folder


def test_legacy_parquet_is_never_delivered_beside_what_is_there() -> None:
    with pytest.raises(ValueError, match="LEGACY_PARQUET is never delivered"):
        Export("bill", "1", Format.LEGACY_PARQUET, Layout.CREATE_NEW)


@pytest.mark.parametrize(("of", "layout"), EVERY)
def test_a_manifest_lists_the_columns_of_its_files_in_order(
    written: dict[tuple[Format, Layout], Written], of: Format, layout: Layout
) -> None:
    one = written[of, layout]
    separator = "_" if of.parquet else "/"
    told = [
        f"{column['category']}{separator}{column['name']}" if of.legacy else column["name"]
        for column in one.manifest["columns"]
    ]
    assert told == one.header


@pytest.mark.parametrize(("of", "layout"), [(of, layout) for of, layout in EVERY if layout is Layout.OVERWRITE])
def test_a_bill_that_shrinks_leaves_emptied_files(tmp_path: Path, of: Format, layout: Layout) -> None:
    few = every_shape.Bill(NOVEMBER.month, NOVEMBER.shapes[3:4]).table(Discounts.COLUMNS)
    wanted = Export("bill", NOVEMBER.month.payer.id, of, layout, chunks=3)
    delivery = Delivery(NOVEMBER.month.period, LATER)
    files = export.write(tmp_path, few, wanted, delivery)
    one = Written(tmp_path, wanted, delivery, json.loads(files[-1].read_text()), files)
    assert len(one.data) == 3
    assert one.sql("SELECT count(*) FROM file") == [(2,)]


def test_two_deliveries_have_executions_of_their_own(tmp_path: Path) -> None:
    first = write(tmp_path, Format.CUR2_CSV, Layout.CREATE_NEW)
    second = write(tmp_path, Format.CUR2_CSV, Layout.CREATE_NEW, made_us=LATER + HOUR)
    assert first.manifest["executionId"] != second.manifest["executionId"]
    assert all(path.exists() for path in first.data + second.data)


def test_the_same_arguments_write_the_same_bytes(tmp_path: Path) -> None:
    for of, layout in EVERY:
        if of is Format.LEGACY_CSV_ZIP:
            continue  # a ZIP holds the time at which it was written
        one, two = (write(tmp_path / of.name / layout.name / again, of, layout) for again in ("a", "b"))
        assert [path.read_bytes() for path in one.files] == [path.read_bytes() for path in two.files], of


def test_legacy_columns_come_and_go_with_what_the_month_holds(tmp_path: Path) -> None:
    plain = every_shape.Bill(BILLS.europe.month, BILLS.europe.shapes[2:]).table(Discounts.NONE)
    wanted = Export("bill", "1", Format.LEGACY_CSV_GZIP)
    delivery = Delivery(BILLS.europe.month.period, LATER)
    files = export.write(tmp_path, plain, wanted, delivery)
    few = Written(tmp_path, wanted, delivery, json.loads(files[-1].read_text()), files).header
    many = write(tmp_path / "many", Format.LEGACY_CSV_GZIP, Layout.CREATE_NEW).header
    some_months = {
        "lineItem/NetUnblendedCost", "discount/TotalDiscount", "discount/EdpDiscount", "resourceTags/user:team",
        "resourceTags/aws:eks:cluster-name", "savingsPlan/SavingsPlanARN", "savingsPlan/NetSavingsPlanEffectiveCost",
        "splitLineItem/ParentResourceId", "product/gpu", "capacityReservation/CapacityReservationArn",
    }  # fmt: skip
    every_month = {
        "identity/LineItemId", "identity/TimeInterval", "bill/InvoiceId", "lineItem/UnblendedCost",
        "pricing/publicOnDemandCost", "pricing/RateCode", "product/ProductName", "reservation/ReservationARN",
    }  # fmt: skip
    assert every_month <= set(few)
    assert some_months.isdisjoint(few)
    assert every_month | some_months <= set(many)


@pytest.mark.parametrize(
    ("column", "slash", "athena"),
    [
        ("identity_line_item_id", "identity/LineItemId", "identity_line_item_id"),
        ("line_item_line_item_type", "lineItem/LineItemType", "line_item_line_item_type"),
        ("pricing_public_on_demand_cost", "pricing/publicOnDemandCost", "pricing_public_on_demand_cost"),
        ("pricing_rate_code", "pricing/RateCode", "pricing_rate_code"),
        ("product_instance_type", "product/instanceType", "product_instance_type"),
        ("reservation_reservation_a_r_n", "reservation/ReservationARN", "reservation_reservation_a_r_n"),
        (
            "savings_plan_savings_plan_effective_cost",
            "savingsPlan/SavingsPlanEffectiveCost",
            "savings_plan_savings_plan_effective_cost",
        ),
        ("split_line_item_split_cost", "splitLineItem/SplitCost", "split_line_item_split_cost"),
    ],
)
def test_names_of_the_legacy_cur(column: str, slash: str, athena: str) -> None:
    assert legacy_names.slash_name(column) == slash
    assert legacy_names.athena_name(slash) == athena


def test_the_demonstrations_own_bill_is_the_same_money_in_every_export(company: Company, tmp_path: Path) -> None:
    """The demonstration writes CUR 2.0 Parquet; its lines can be written as any other export."""
    ledger = pq.ParquetDataset(sorted((company.out / "cur").rglob("*.parquet"))).read()
    (delivery,) = [one for one in company.truth["deliveries"] if one["edition"] == "first"]
    wrong = []
    for of, layout in EVERY:
        if layout is not layouts(of)[0]:
            continue
        wanted = Export("bill", "100000000001", of, layout)
        run = Delivery(NOVEMBER.month.period, LATER)
        files = export.write(tmp_path / of.name, ledger, wanted, run)
        one = Written(tmp_path / of.name, wanted, run, json.loads(files[-1].read_text()), files)
        cost = "BilledCost" if of.table.startswith("focus") else name_in(of, "line_item_unblended_cost")
        if one.sql(f"SELECT (sum({number(cost)}) * 1000000000)::BIGINT FROM file") != [(delivery["total_nano_usd"],)]:
            wrong.append(of)
    assert wrong == []
