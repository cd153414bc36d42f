"""FOCUS as it is published: anonymised exports of providers and the worked examples of the specification."""

import csv
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from collector.billing.focus import FORMAT
from collector.source import CollectError
from tests import needs
from tests.collector.focus_bills import Desk, write

pytestmark = pytest.mark.samples

COSTS = ("BilledCost", "EffectiveCost", "ListCost", "ContractedCost")
SAAS = "focus_spec_1_2_examples/saas_examples/"
SIMPLE = SAAS + "simple_agreements/simple_saas_agreements_"
SPEND = SAAS + "spend_agreements/saas_spend_agreements_"
TOKENS = SAAS + "virtual_currency_pricing_model_"
FLEXIBLE = "focus_spec_1_2_examples/commitment_discount_flexibility/"
SCENARIO = "focus_spec_1_2_examples/commitment_discount_scenarios/commitment_discount_"
LATE = "focus_1_5_ai_examples/scenario_2_late_arriving_usage_delta.csv"

# Lines, and the sums of billed, effective, list and contracted cost: by hand, those of the 1,000 lines by adding them
READ = {
    "focus_1_0_finops/focus_sample.csv": (1000, "20.52022672899", "14.97651418586", "20.39090575119", "14.97626039326"),
    "focus_1_5_ai_examples/multi_model_usage.csv": (4, "104.5", "104.5", "104.5", "104.5"),
    # licences paid up front: nothing says that the payment covers later charges, so it is effective at once
    SIMPLE + "a1.csv": (1, "10000", "10000", "10000", "10000"),
    SIMPLE + "a2.csv": (1, "50000", "50000", "50000", "50000"),
    SIMPLE + "a3.csv": (1, "1000", "1000", "1000", "1000"),
    SIMPLE + "b.csv": (1, "50000", "50000", "50000", "50000"),
    SIMPLE + "c.csv": (3, "35800", "35800", "35800", "35800"),
    # $1,200 a year are agreed: billed as used and the rest at the end (a), or up front (b)
    SPEND + "a1.csv": (4, "1200", "1200", "1257", "1200"),
    SPEND + "a2.csv": (13, "1200", "1200", "1257", "1200"),
    SPEND + "b1.csv": (5, "1200", "1200", "2457", "2400"),
    SPEND + "b2.csv": (14, "1200", "1200", "2457", "2400"),
    # tokens are bought for money (a1, c) and used for none; their use carries the effective cost (a2)
    TOKENS + "a1.csv": (1, "200000", "0", "200000", "200000"),
    TOKENS + "a2.csv": (3, "0", "1230", "1230", "1230"),
    TOKENS + "c.csv": (2, "53000", "0", "53000", "53000"),
}

# Excerpts of the specification without the mandatory BillingCurrency. With one, lines and billed and effective sums.
EXCERPTS = {
    FLEXIBLE + "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_1_resource.csv":
        (3, "2.75", "2.75"),
    FLEXIBLE + "one_hundred_percent_utilization_with_commitment_discount_flexibility_with_2_resources.csv":
        (3, "2", "2"),
    FLEXIBLE + "one_hundred_percent_utilization_without_commitment_discount_flexibility.csv": (2, "1.5", "1.5"),
    FLEXIBLE + "zero_percent_utilization_without_commitment_discount_flexibility.csv": (3, "3.5", "3.5"),
    SCENARIO + "purchase_scenario_1.csv": (1, "8760", "0"),
    SCENARIO + "usage_scenario_1.csv": (1, "0", "1"),
    SCENARIO + "usage_scenario_2.csv": (1, "0", "1"),
    LATE: (1, "1500", "1500"),
}  # fmt: skip

# Even with a currency: their charge periods end at 30 o'clock.
UNREADABLE = [SCENARIO + "purchase_scenario_2.csv", SCENARIO + "purchase_scenario_3.csv"]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    return Desk(tmp_path_factory.mktemp("desk"))


def sample(name: str) -> Path:
    return needs.samples("billing", *name.split("/"))


def content(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from csv.DictReader(file)


def amount(written: str) -> Decimal:
    plain = written.replace("$", "").replace(",", "").strip()
    return Decimal(0) if plain in ("", "NULL", "null") else Decimal(plain)


def test_every_sample_is_known_here() -> None:
    names = {str(path) for folder in ("focus_1_0_finops", "focus_spec_1_2_examples", "focus_1_5_ai_examples")
             for path in needs.samples("billing", folder).rglob("*.csv")}  # fmt: skip
    assert names == {str(sample(name)) for name in [*READ, *EXCERPTS, *UNREADABLE]}


@pytest.mark.parametrize("name", [*READ, *EXCERPTS, *UNREADABLE])
def test_a_sample_is_recognised_by_its_header(name: str) -> None:
    with sample(name).open(encoding="utf-8-sig", newline="") as file:
        assert FORMAT.recognises(frozenset(next(csv.reader(file))))


@pytest.mark.parametrize("name", READ)
def test_every_cost_column_adds_up_to_what_is_in_the_file(desk: Desk, name: str) -> None:
    staging = desk.stage_files([sample(name)])

    lines, *sums = READ[name]
    assert (staging.lines, staging.left_out) == (lines, 0)
    (staged,) = desk.rows("count(*), sum(billed_cost), sum(effective_cost), sum(list_cost), sum(contracted_cost)")
    assert staged == (lines, *map(Decimal, sums))
    assert [
        Decimal(staging.sums[column]) for column in ("billed_cost", "effective_cost", "list_cost", "contracted_cost")
    ] == [Decimal(each) for each in sums]


@pytest.mark.parametrize("name", READ)
def test_every_billing_period_adds_up_to_its_rows_in_the_file(desk: Desk, name: str) -> None:
    desk.stage_files([sample(name)])

    expected: dict[tuple[int, int], list[Decimal]] = {}
    for row in content(sample(name)):
        start = row["BillingPeriodStart"]
        period = (
            (2000 + int(start.split("/")[2]), int(start.split("/")[0]))
            if "/" in start
            else (int(start[:4]), int(start[5:7]))
        )
        sums = expected.setdefault(period, [Decimal(0)] * 4)
        for place, column in enumerate(COSTS):
            sums[place] += amount(row[column])
    staged = desk.rows(
        "year(billing_period_start), month(billing_period_start), sum(billed_cost), sum(effective_cost), "
        "coalesce(sum(list_cost), 0), coalesce(sum(contracted_cost), 0)",
        "GROUP BY ALL ORDER BY ALL",
    )
    assert {(year, month): list(sums) for year, month, *sums in staged} == expected


@pytest.mark.parametrize("name", [*EXCERPTS, *UNREADABLE])
def test_a_file_without_a_currency_is_refused_whole(desk: Desk, name: str) -> None:
    with pytest.raises(CollectError, match=r"lacks columns .*: BillingCurrency"):
        desk.stage_files([sample(name)])


@pytest.mark.parametrize("name", EXCERPTS)
def test_the_worked_examples_add_up_once_they_have_a_currency(desk: Desk, tmp_path: Path, name: str) -> None:
    rows = [{**row, "BillingCurrency": "USD"} for row in content(sample(name))]
    desk.stage_files([write(tmp_path / "with-currency.csv", rows)])

    lines, billed, effective = EXCERPTS[name]
    assert desk.rows("count(*), sum(billed_cost), sum(effective_cost)") == [
        (lines, Decimal(billed), Decimal(effective))
    ]


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_time_that_does_not_exist_refuses_the_file_whole(desk: Desk, tmp_path: Path, name: str) -> None:
    rows = [{**row, "BillingCurrency": "USD"} for row in content(sample(name))]
    with pytest.raises(CollectError, match=r"1 of . lines have no charge period, one that is no time"):
        desk.stage_files([write(tmp_path / "with-currency.csv", rows)])


def test_models_classes_and_tokens_of_an_ai_provider(desk: Desk) -> None:
    desk.stage_files([sample("focus_1_5_ai_examples/multi_model_usage.csv")])
    assert desk.rows(
        "provider_name, x_charge_family, x_model, x_token_class, x_tokens, x_service_tier, x_scope, x_context_tier, "
        "billed_cost / x_tokens * 1000000"
    ) == [
        ("solora_ai", "model_api", "solora-atlas-5.5", "uncached_input", 10_000_000, "standard", None, "base", 5.0),
        ("solora_ai", "model_api", "solora-atlas-5.5", "output", 2_000_000, "standard", None, "base", 25.0),
        (
            "solora_ai",
            "model_api",
            "solora-atlas-5.4-mini",
            "uncached_input",
            3_000_000,
            "standard",
            None,
            "base",
            0.75,
        ),
        ("solora_ai", "model_api", "solora-atlas-5.4-mini", "output", 500_000, "standard", None, "base", 4.5),
    ]
    assert desk.rows(
        "DISTINCT x_principal, x_other['CredentialId'], x_other['SkuMeter'], pricing_unit", "ORDER BY 3"
    ) == [
        ("c10a4f89-72b3-4f24-b196-857189f78315", "key_02SOLORAATLAS", "Input Tokens", "Tokens"),
        ("c10a4f89-72b3-4f24-b196-857189f78315", "key_02SOLORAATLAS", "Output Tokens", "Tokens"),
    ]


def test_late_usage_stays_on_its_bill_and_on_its_day(desk: Desk, tmp_path: Path) -> None:
    rows = [{**row, "BillingCurrency": "USD"} for row in content(sample(LATE))]
    staging = desk.stage_files([write(tmp_path / "late.csv", rows)])
    assert desk.rows(
        "charge_class, CAST(billing_period_start AS VARCHAR), CAST(charge_period_start AS VARCHAR), invoice_id"
    ) == [("Correction", "2025-06-01 00:00:00", "2025-05-01 00:00:00", "INV-20250601-20250701")]
    assert (
        "1 lines correct an earlier bill (ChargeClass Correction): they count in the bill they are on" in staging.notes
    )
    assert any(note.startswith("1 lines charge for a time before their billing period") for note in staging.notes)


def test_unused_commitment_is_told_from_used(desk: Desk, tmp_path: Path) -> None:
    name = FLEXIBLE + "zero_percent_utilization_without_commitment_discount_flexibility.csv"
    rows = [{**row, "BillingCurrency": "USD"} for row in content(sample(name))]
    desk.stage_files([write(tmp_path / "bill.csv", rows)])
    assert desk.rows("charge_category, commitment_discount_status, x_charge_family, billed_cost, effective_cost") == [
        ("Purchase", None, "commitment", Decimal("1.5"), Decimal(0)),
        ("Usage", "Unused", "commitment", Decimal(0), Decimal("1.5")),
        ("Usage", None, "other", Decimal(2), Decimal(2)),
    ]


def test_tokens_that_are_bought_ahead_are_a_commitment_and_priced_in_tokens_beside(desk: Desk) -> None:
    desk.stage_files([sample(TOKENS + "a1.csv"), sample(TOKENS + "a2.csv")])
    assert desk.rows(
        "charge_category, billing_currency, x_charge_family, billed_cost, effective_cost, x_other['PricingCurrency'], "
        "x_other['PricingCurrencyEffectiveCost'], x_tokens",
        "ORDER BY charge_category, effective_cost",
    ) == [
        ("Purchase", "USD", "commitment", Decimal(200000), Decimal(0), "USD", "0", None),
        ("Usage", "USD", "other", Decimal(0), Decimal(20), "Token", "10", None),
        ("Usage", "USD", "other", Decimal(0), Decimal(490), "Token", "245", None),
        ("Usage", "USD", "other", Decimal(0), Decimal(720), "Token", "360", None),
    ]


def test_three_providers_in_one_file_keep_their_names_accounts_and_tags(desk: Desk) -> None:
    desk.stage_files([sample("focus_1_0_finops/focus_sample.csv")])
    assert desk.rows("provider_name, count(*), count(DISTINCT billing_account_id)", "GROUP BY ALL ORDER BY ALL") == [
        ("aws", 942, 1), ("azure", 51, 1), ("oracle_cloud", 7, 1),
    ]  # fmt: skip
    tags = desk.rows("count(tags), count(*) FILTER (tags['business_unit'] IS NOT NULL)")
    with_tags = [
        row["Tags"] for row in content(sample("focus_1_0_finops/focus_sample.csv")) if row["Tags"] not in ("NULL", "")
    ]
    assert tags == [(sum(each != "{}" for each in with_tags), sum('"business_unit"' in each for each in with_tags))]


def test_amortised_cost_of_a_machine_under_a_savings_plan(desk: Desk) -> None:
    desk.stage_files([sample("focus_1_0_finops/focus_sample.csv")])
    assert desk.rows(
        "x_cost_class, x_purchase_option, count(*)",
        "WHERE provider_name = 'aws' AND x_purchase_option IS NOT NULL GROUP BY ALL ORDER BY ALL",
    ) == [("accelerator", "on_demand", 8), ("compute", "on_demand", 15), ("compute", "savings_plan", 3)]
