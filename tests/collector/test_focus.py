"""FOCUS bills of any provider: what becomes of each line, what is unavailable, and what refuses a file."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from collector.billing.focus import FORMAT
from collector.billing.format import formats
from collector.source import CollectError
from tests.collector.focus_bills import Desk, charge, write
from warehouse.schema import metadata


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


def test_focus_is_one_of_the_formats() -> None:
    assert FORMAT in formats()


@pytest.mark.parametrize(
    ("columns", "is_focus"),
    [
        ({"BilledCost", "EffectiveCost", "ChargePeriodStart", "Tags"}, True),
        ({"billedcost", "effectivecost", "chargeperiodstart"}, True),
        ({"BilledCost", "ChargePeriodStart"}, False),
        ({"line_item_unblended_cost", "bill_payer_account_id"}, False),
        ({"lineItem/UnblendedCost"}, False),
    ],
)
def test_a_header_is_recognised_in_any_case_of_letters(columns: set[str], is_focus: bool) -> None:
    assert FORMAT.recognises(frozenset(columns)) is is_focus


def test_a_line_in_full(desk: Desk) -> None:
    staging = desk.stage(
        charge(
            InvoiceId="inv-1", InvoiceIssuerName="Amazon Web Services, Inc.", PublisherName="Amazon Web Services, Inc.",
            ChargeFrequency="Usage-based", ChargeDescription="$1.00 per On Demand Linux p5.48xlarge Instance Hour",
            RegionId="us-east-1", AvailabilityZone="us-east-1a", ResourceId="i-1", SkuId="SKU", PricingUnit="Hours",
            ConsumedQuantity="1.5", ConsumedUnit="Hours", PricingCategory="Standard", x_ServiceCode="AmazonEC2",
            x_UsageType="BoxUsage:p5.48xlarge", x_Operation="RunInstances", Tags='{"user:Team": "search"}',
            ResourceName="trainer",
        )
    )  # fmt: skip
    assert (staging.lines, staging.left_out, staging.account) == (1, 0, "acct-1")
    assert desk.row(
        "provider_name, invoice_issuer_name, publisher_name, billing_account_id, sub_account_id, invoice_id, "
        "billing_currency, charge_category, charge_class, charge_frequency"
    ) == (
        "aws", "Amazon Web Services, Inc.", "Amazon Web Services, Inc.", "acct-1", "sub-1", "inv-1", "USD", "Usage",
        None, "Usage-Based",
    )  # fmt: skip
    assert desk.row(
        "service_name, x_service_code, x_usage_type, x_operation, region_id, availability_zone, resource_id, sku_id, "
        "pricing_unit, consumed_quantity, billed_cost, effective_cost, list_cost, contracted_cost, tags, "
        "x_charge_family, x_purchase_option, x_cost_class, x_file"
    ) == (
        "Amazon Elastic Compute Cloud", "AmazonEC2", "BoxUsage:p5.48xlarge", "RunInstances", "us-east-1", "us-east-1a",
        "i-1", "SKU", "Hours", Decimal("1.5"), Decimal("10.5"), Decimal("10.5"), Decimal(12), Decimal(11),
        {"user_team": "search"}, "other", "on_demand", "accelerator", "bill.csv",
    )  # fmt: skip
    assert desk.row("billing_period_start, billing_period_end, charge_period_start, charge_period_end") == (
        datetime(2026, 11, 1), datetime(2026, 12, 1), datetime(2026, 11, 2, 10), datetime(2026, 11, 2, 11),
    )  # fmt: skip
    # what has no column of its own is kept as it is written
    assert desk.row("x_other['ResourceName'], x_other['ServiceCategory'], x_other['ProviderName']") == (
        "trainer", "Compute", "AWS",
    )  # fmt: skip


def test_staged_lines_have_exactly_the_columns_of_billing_line(desk: Desk) -> None:
    desk.stage(charge())
    wanted = [column.name for column in metadata.tables["billing_line"].columns]
    staged = desk.connection.execute("SELECT column_name FROM (DESCRIBE staged_line)").fetchall()
    assert sorted(name for (name,) in staged) == sorted(wanted[wanted.index("x_line_item_id") :])


def test_costs_are_the_written_decimals_and_rounded_half_even_once(desk: Desk) -> None:
    desk.stage(
        charge(BilledCost="0.1"), charge(BilledCost="0.2"), charge(BilledCost="8E-7"), charge(BilledCost="-1e-05"),
        charge(BilledCost="0.0000000000000000005"), charge(BilledCost="0.0000000000000000015"),
    )  # fmt: skip
    assert [row[0] for row in desk.rows("billed_cost")] == [
        Decimal("0.1"), Decimal("0.2"), Decimal("0.0000008"), Decimal("-0.00001"), Decimal(0), Decimal("2E-18"),
    ]  # fmt: skip


def test_nothing_is_written_in_three_ways(desk: Desk) -> None:
    desk.stage(charge(ListCost=""), charge(ListCost="NULL"), charge(ListCost="null"))
    assert desk.rows("list_cost, x_other['RegionName']") == [(None, None)] * 3


@pytest.mark.parametrize(
    ("written", "instant"),
    [
        ("2026-11-02T10:00:00Z", datetime(2026, 11, 2, 10)),
        ("2026-11-02T10:00:00.000Z", datetime(2026, 11, 2, 10)),
        ("2026-11-02T10:00Z", datetime(2026, 11, 2, 10)),
        ("2026-11-02T10:00", datetime(2026, 11, 2, 10)),
        ("2026-11-02 10:00:00", datetime(2026, 11, 2, 10)),
        ("2026-11-02 10:00:00.000", datetime(2026, 11, 2, 10)),
        ("2026-11-02 10:00:00 UTC", datetime(2026, 11, 2, 10)),
        ("2026-11-02 10:00:00+00:00", datetime(2026, 11, 2, 10)),
        ("2026-11-02T11:00:00+01:00", datetime(2026, 11, 2, 10)),
        ("2026-11-02", datetime(2026, 11, 2)),
        ("11/2/26", datetime(2026, 11, 2)),
        ("11/02/2026", datetime(2026, 11, 2)),
        ("11/2/2026 10:00", datetime(2026, 11, 2, 10)),
    ],
)
def test_instants_of_every_spelling_are_utc(desk: Desk, written: str, instant: datetime) -> None:
    desk.stage(charge(ChargePeriodStart=written, ChargePeriodEnd="2026-12-01T00:00:00Z"))
    assert desk.row("charge_period_start") == (instant,)


def test_amounts_that_a_spreadsheet_wrote_are_read_and_told(desk: Desk) -> None:
    staging = desk.stage(charge(BilledCost="$10,000.00 "), charge(BilledCost="-$5"), charge(BilledCost="1,234.5"))
    assert desk.rows("billed_cost") == [(Decimal(10000),), (Decimal(-5),), (Decimal("1234.5"),)]
    assert any("the signs were left out" in note for note in staging.notes)


REFUSED = [
    # what is wrong with one of two lines -> what the refusal says
    ({"EffectiveCost": ""}, "1 of 2 lines have no EffectiveCost"),
    ({"BilledCost": "NULL"}, "1 of 2 lines have no BilledCost"),
    ({"BilledCost": "eleven"}, "1 of 2 lines have no BilledCost, or one that is no number"),
    ({"BilledCost": "1,234"}, "1 of 2 lines have no BilledCost, or one that is no number"),  # 1234 or 1.234?
    ({"BilledCost": "NaN"}, "1 of 2 lines have no BilledCost, or one that is no number"),
    ({"ListCost": "?"}, "1 of 2 lines have a ListCost or ContractedCost that is no number"),
    ({"BillingCurrency": ""}, "1 of 2 lines have a cost and no national currency"),
    ({"BillingCurrency": "DBU"}, "1 of 2 lines have a cost and no national currency"),
    ({"ChargePeriodStart": "yesterday"}, "1 of 2 lines have no charge period"),
    ({"ChargePeriodStart": "2026-11-02T30:00:00Z"}, "1 of 2 lines have no charge period"),
    ({"ChargePeriodEnd": "2026-11-02T09:00:00Z"}, "1 of 2 lines have no charge period"),
    ({"BillingPeriodStart": ""}, "1 of 2 lines have no billing period"),
    (
        {"BillingPeriodStart": "1/11/26", "BillingPeriodEnd": "1/12/26"},
        "1 of 2 lines have a billing period that is written",
    ),
    ({"ChargeCategory": ""}, "1 of 2 lines have no ChargeCategory"),
]


@pytest.mark.parametrize(("changes", "reason"), REFUSED)
def test_a_line_that_cannot_stand_in_a_bill_refuses_the_file_whole(
    desk: Desk, changes: dict[str, str], reason: str
) -> None:
    with pytest.raises(CollectError) as refusal:
        desk.stage(charge(), charge(**changes))
    assert reason in refusal.value.what
    assert not any(value in refusal.value.what for value in ("eleven", "DBU", "yesterday"))


@pytest.mark.parametrize(
    "column",
    ["BilledCost", "EffectiveCost", "BillingCurrency", "BillingPeriodStart", "ChargePeriodStart", "ChargePeriodEnd",
     "ChargeCategory"],
)  # fmt: skip
def test_a_required_column_that_is_missing_is_named(desk: Desk, column: str) -> None:
    with pytest.raises(
        CollectError, match=rf"lacks columns that the bill cannot be understood without: {column}\."
    ) as it:
        desk.stage(charge(**{column: "-"}))
    assert "FOCUS demands them" in it.value.remedy


def test_a_row_that_does_not_fit_the_header_refuses_the_file_with_its_line(desk: Desk, tmp_path: Path) -> None:
    path = write(tmp_path / "ragged.csv", [charge(), charge()])
    path.write_text(path.read_text() + "secret,1\n")
    with pytest.raises(CollectError, match="cannot be read at line 4") as refusal:
        desk.stage_files([path])
    assert "secret" not in str(refusal.value)


def test_a_number_too_large_for_money_refuses_the_file(desk: Desk) -> None:
    with pytest.raises(CollectError, match="a number too large"):
        desk.stage(charge(BilledCost="123456789012345678901"))


@pytest.mark.parametrize("content", [b"\xff\xfeB\x00i\x00", b"PAR1 and no more", b"\x1f\x8bno gzip"])
def test_a_damaged_file_is_refused(desk: Desk, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(CollectError):
        desk.stage_files([tmp_path / "bad"])


def test_files_without_one_line_are_refused_and_no_files_are_an_empty_bill(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text(",".join(charge()) + "\n")
    with pytest.raises(CollectError, match="not one line"):
        desk.stage_files([tmp_path / "empty.csv"])
    assert desk.stage_files([]).lines == 0
    assert desk.rows("*") == []


def test_a_chunk_that_the_export_emptied_is_legal_beside_others(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "2.csv").write_bytes(b"")
    assert desk.stage_files([write(tmp_path / "1.csv", [charge()]), tmp_path / "2.csv"]).lines == 1


def test_what_a_file_cannot_tell_is_named_with_its_column(desk: Desk) -> None:
    notes = desk.stage(charge(BillingAccountId="-", ProviderName="-", ListCost="-", BillingPeriodEnd="-")).notes
    assert "there is no column ListCost, so list cost is unavailable" in notes
    assert (
        "there is no column BillingPeriodEnd, so the end of a billing period (a month is taken) is unavailable" in notes
    )
    assert any(note.startswith("there is no column ServiceProviderName or ProviderName") for note in notes)
    assert desk.row("provider_name, billing_account_id, list_cost, billing_period_end") == (
        "unknown", "-", None, datetime(2026, 12, 1),
    )  # fmt: skip


def test_lines_in_tokens_that_hold_no_money_are_counted_and_left_out(desk: Desk) -> None:
    nothing = {"BilledCost": "", "EffectiveCost": "", "ListCost": "", "ContractedCost": ""}
    staging = desk.stage(
        charge(PricingCurrency="USD"),
        charge(BillingCurrency="Token", BilledCost="0", EffectiveCost="0.00", ListCost="", ContractedCost=""),
        charge(BillingCurrency="", **nothing),
        charge(PricingCurrency="DBU", **nothing),
        charge(PricingCurrency="DBU", BilledCost="0", EffectiveCost="3"),  # priced in units, billed in dollars
    )
    assert (staging.lines, staging.left_out) == (5, 3)
    assert desk.rows("billed_cost, effective_cost") == [(Decimal("10.5"), Decimal("10.5")), (Decimal(0), Decimal(3))]
    assert any(note.startswith("3 lines are only in a virtual currency (tokens, credits)") for note in staging.notes)


def test_currencies_are_never_added(desk: Desk) -> None:
    staging = desk.stage(charge(), charge(BillingCurrency="eur", BilledCost="2"))
    assert staging.sums["billed_cost EUR"] == "2.000000000000000000"
    assert staging.sums["billed_cost USD"] == "10.500000000000000000"
    assert "billed_cost" not in staging.sums


def test_lines_of_another_period_than_the_manifest_says_are_refused_and_several_are_legal_without(desk: Desk) -> None:
    other = {"BillingPeriodStart": "2026-10-01T00:00:00Z", "BillingPeriodEnd": "2026-11-01T00:00:00Z"}
    with pytest.raises(CollectError, match="1 of 2 lines are of another billing period"):
        desk.stage(charge(), charge(**other), period="2026-11")
    desk.stage(charge(), charge(**other))
    assert desk.rows("month(billing_period_start)", "ORDER BY 1") == [(10,), (11,)]


def test_files_of_different_headers_are_one_bill(desk: Desk, tmp_path: Path) -> None:
    files = [
        write(tmp_path / "1.csv", [charge(RegionId="eu-1")]),
        write(tmp_path / "2.csv.gz", [dict(reversed(charge(x_New="n").items()))]),
        write(tmp_path / "3.csv", [{name.lower(): value for name, value in charge(RegionId="eu-3").items()}]),
    ]
    desk.stage_files(files)
    assert desk.rows("x_file, region_id, billed_cost, x_other['x_New']", "ORDER BY x_file") == [
        ("1.csv", "eu-1", Decimal("10.5"), None),
        ("2.csv.gz", None, Decimal("10.5"), "n"),
        ("3.csv", "eu-3", Decimal("10.5"), None),
    ]


def test_parquet_of_any_types_in_lower_case_is_the_same_bill(desk: Desk, tmp_path: Path) -> None:
    """As AWS writes it (doubles, maps, Glue's lower case) and as Microsoft does (decimals, instants with a zone)."""
    csv_rows = [charge(Tags='{"Team": "a"}', BilledCost="0.1", EffectiveCost="0.25")]
    desk.stage(*csv_rows)
    columns = (
        "billed_cost, effective_cost, charge_period_start, charge_period_end, billing_period_start, tags, "
        "service_name, x_other['skupricedetails']"
    )
    expected = (*desk.row(columns)[:-1], '{"TokenDirection":"Input"}')
    start, end = datetime(2026, 11, 2, 10, tzinfo=UTC), datetime(2026, 11, 2, 11, tzinfo=UTC)
    table = {name.lower(): pa.array([value]) for name, value in csv_rows[0].items()}
    table |= {
        "billedcost": pa.array([0.1], pa.float64()),
        "effectivecost": pa.array([Decimal("0.25")], pa.decimal128(38, 12)),
        "chargeperiodstart": pa.array([start], pa.timestamp("ms", tz="UTC")),
        "chargeperiodend": pa.array([end.replace(tzinfo=None)], pa.timestamp("ms")),
        "billingperiodstart": pa.array([datetime(2026, 11, 1).date()], pa.date32()),
        "tags": pa.array([[("Team", "a")]], pa.map_(pa.string(), pa.string())),
        "skupricedetails": pa.array([[("TokenDirection", "Input")]], pa.map_(pa.string(), pa.string())),
    }
    pq.write_table(pa.table(table), tmp_path / "bill.parquet")
    desk.stage_files([tmp_path / "bill.parquet"])
    assert desk.row(columns) == expected


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ('{"user:Team": "a", "cost-centre": "7"}', {"user_team": "a", "cost_centre": "7"}),
        ('"env":"prod","org":"x"', {"env": "prod", "org": "x"}),  # Microsoft, without the braces
        ('[{"key": "Team", "value": "a"}, {"value": "b"}, 7]', {"team": "a"}),  # Google's labels
        ('{"Team": "a", "team": "b"}', {"team": "a"}),
        ('{"a": null, "b": 1, "c": true}', {"b": "1", "c": "true"}),
        ('{"a\\"$.b": "x", "n": {"m": 1}}', {"a_b": "x", "n": '{"m":1}'}),
        ("{}", None),
        ("", None),
    ],
)
def test_tags_of_every_spelling(desk: Desk, written: str, tags: dict[str, str] | None) -> None:
    staging = desk.stage(charge(Tags=written))
    assert desk.row("tags") == (tags,)
    assert not any("no JSON" in note for note in staging.notes)


def test_tags_that_cannot_be_read_are_counted_and_never_refuse_a_bill(desk: Desk) -> None:
    staging = desk.stage(charge(Tags="team=a;env=b"), charge(Tags='{"team": "a"}'))
    assert desk.rows("tags") == [(None,), ({"team": "a"},)]
    assert "1 lines have tags that are no JSON; they are not read" in staging.notes


PROVIDERS: list[tuple[dict[str, str], str]] = [
    ({"ProviderName": "AWS"}, "aws"),
    ({"ProviderName": "Amazon Web Services, Inc."}, "aws"),
    ({"ProviderName": "Microsoft"}, "azure"),
    ({"ProviderName": "Google Cloud"}, "gcp"),
    ({"ProviderName": "Oracle"}, "oracle_cloud"),
    ({"ProviderName": "OpenAI, LLC"}, "openai"),
    ({"ProviderName": "Acme Co"}, "acme_co"),
    # 1.3: who serves, who hosts, who bills; the names before it are gone
    ({"ProviderName": "-", "ServiceProviderName": "Anthropic", "HostProviderName": "Anthropic"}, "anthropic"),
    ({"ProviderName": "-", "ServiceProviderName": "Snowflake", "HostProviderName": "AWS",
      "InvoiceIssuerName": "Snowflake"}, "snowflake"),
    ({"ProviderName": "-", "ServiceProviderName": "Anthropic", "HostProviderName": "AWS",
      "InvoiceIssuerName": "AWS"}, "aws"),
    ({"ProviderName": "-", "InvoiceIssuerName": "Microsoft"}, "azure"),
]  # fmt: skip


@pytest.mark.parametrize(("names", "provider"), PROVIDERS)
def test_the_provider_by_the_name_the_project_knows(desk: Desk, names: dict[str, str], provider: str) -> None:
    desk.stage(charge(**names))
    assert desk.row("provider_name") == (provider,)


FAMILIES: list[tuple[dict[str, str], tuple[Any, ...]]] = [
    # line -> category, family
    ({"ChargeCategory": "Tax"}, ("Tax", "tax")),
    ({"ChargeCategory": "Credit", "BilledCost": "-1"}, ("Credit", "credit")),
    ({"ChargeCategory": "Adjustment", "ChargeDescription": "Enterprise discount"}, ("Adjustment", "discount")),
    ({"ChargeCategory": "Adjustment", "ChargeDescription": "Rounding error"}, ("Adjustment", "other")),
    ({"ChargeCategory": "Purchase", "CommitmentDiscountId": "cd-1", "EffectiveCost": "0"}, ("Purchase", "commitment")),
    ({"ChargeCategory": "Purchase", "EffectiveCost": "0"}, ("Purchase", "commitment")),
    ({"ChargeCategory": "Purchase"}, ("Purchase", "other")),
    ({"ChargeCategory": "Purchase", "ServiceName": "AWS Support (Business)"}, ("Purchase", "support")),
    ({"CommitmentDiscountId": "cd-1", "CommitmentDiscountStatus": "Used"}, ("Usage", "other")),
    ({"CommitmentDiscountId": "cd-1", "CommitmentDiscountStatus": "Unused"}, ("Usage", "commitment")),
    ({"ServiceName": "Amazon Bedrock", "ServiceCategory": "AI and Machine Learning"}, ("Usage", "model_api")),
    ({"ServiceName": "Amazon Bedrock", "ChargeCategory": "Tax"}, ("Tax", "tax")),
    ({"ServiceName": "Amazon SageMaker", "ServiceCategory": "AI and Machine Learning"}, ("Usage", "other")),
    ({"ServiceName": "Amazon SageMaker", "x_UsageType": "USE1-Host:ml.g5.xlarge"}, ("Usage", "model_endpoint")),
    ({"ChargeCategory": "usage"}, ("Usage", "other")),
]


@pytest.mark.parametrize(("changes", "expected"), FAMILIES)
def test_the_family_of_a_charge(desk: Desk, changes: dict[str, str], expected: tuple[Any, ...]) -> None:
    desk.stage(charge(**changes))
    assert desk.row("charge_category, x_charge_family") == expected


MACHINE = {"ConsumedUnit": "Hours", "ConsumedQuantity": "1"}
OPTIONS: list[tuple[dict[str, str], tuple[str | None, str | None]]] = [
    # line -> purchase option, cost class
    (MACHINE, ("on_demand", "compute")),
    (MACHINE | {"PricingCategory": "Dynamic"}, ("spot", "compute")),
    (MACHINE | {"CommitmentDiscountId": "c", "CommitmentDiscountType": "Savings Plan"}, ("savings_plan", "compute")),
    (MACHINE | {"CommitmentDiscountId": "c", "CommitmentDiscountCategory": "Usage"}, ("reserved", "compute")),
    (MACHINE | {"CapacityReservationStatus": "Unused"}, ("unused_reservation", "compute")),
    (MACHINE | {"x_UsageType": "USE2-BoxUsage:g6e.12xlarge"}, ("on_demand", "accelerator")),
    (MACHINE | {"x_UsageType": "CapacityBlockUsage:p5.48xlarge"}, ("capacity_block", "accelerator")),
    (MACHINE | {"x_UsageType": "USE2-UnusedBox:p5.48xlarge"}, ("unused_reservation", "accelerator")),
    (MACHINE | {"x_UsageType": "Host:ml.g5.2xlarge", "ServiceCategory": "AI and Machine Learning"},
     ("on_demand", "accelerator")),
    (MACHINE | {"ServiceName": "Amazon Elastic Container Service for Kubernetes"}, (None, "compute")),
    (MACHINE | {"CommitmentDiscountId": "c", "CommitmentDiscountStatus": "Unused"}, (None, None)),
    (MACHINE | {"ChargeDescription": "Nvidia H100 80GB GPU running in Iowa"}, ("on_demand", "accelerator")),
    (MACHINE | {"x_SkuMeterName": "Standard_ND96isr_H100_v5"}, ("on_demand", "accelerator")),
    ({"ConsumedUnit": "GB", "ChargeDescription": "$0.01 per GB - regional data transfer - in/out/between EC2 AZs"},
     (None, "network_cross_zone")),
    ({"ConsumedUnit": "GB", "ChargeDescription": "US West (Oregon) data transfer to EU (Ireland)"},
     (None, "network_cross_region")),
    ({"ConsumedUnit": "GB", "ChargeDescription": "data transfer out beyond the free tier"}, (None, "network_internet")),
    (MACHINE | {"ChargeDescription": "$0.045 per NAT Gateway Hour"}, (None, "network_nat")),
    ({"ServiceCategory": "Storage"}, (None, "storage")),
    ({"ServiceCategory": "Databases"}, (None, "other")),
    ({"ServiceCategory": "-"}, (None, None)),
    ({"ChargeCategory": "Tax"}, (None, None)),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "expected"), OPTIONS)
def test_how_a_machine_was_bought_and_what_class_a_cost_is_of(
    desk: Desk, changes: dict[str, str], expected: tuple[str | None, str | None]
) -> None:
    desk.stage(charge(**changes))
    assert desk.row("x_purchase_option, x_cost_class") == expected


def test_of_a_replaced_delivery_only_the_totals_are_worked_out(desk: Desk) -> None:
    desk.connection.execute("SET VARIABLE totals_only = TRUE")
    desk.stage(charge(Tags='{"team": "a"}', x_New="n"))
    desk.connection.execute("RESET VARIABLE totals_only")
    assert desk.row("billed_cost, tags, x_other") == (Decimal("10.5"), None, None)
