"""The bill: CUR 2.0 in form, equal to the truth in every nano-dollar and token."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from demo.clock import FINAL_AFTER_DAYS
from demo.cur_schema import SCHEMA
from tests.demo.conftest import Company

LINE = "line_item_usage_account_id, line_item_usage_type, line_item_resource_id, line_item_usage_start_date"
# a batch line names no resource
TRUE_LINE = """
    account_id, usage_type, hour,
    CASE WHEN tier = 'batch' THEN ''
         WHEN scope = 'regional' THEN 'arn:aws:bedrock:' || region || '::foundation-model/' || model
         ELSE 'arn:aws:bedrock:' || region || ':' || account_id || ':inference-profile/'
              || CASE scope WHEN 'global' THEN 'global' ELSE left(region, 2) END || '.' || model END AS resource_id
"""


def test_every_line_equals_the_truth(company: Company) -> None:
    """Cost and tokens, line by line, with nothing left over on either side."""
    differing = company.sql(
        f"""
        WITH bill AS (
            SELECT line_item_usage_account_id AS account_id, line_item_usage_type AS usage_type,
                   line_item_usage_start_date AS hour, line_item_resource_id AS resource_id,
                   nano, round(line_item_usage_amount
                       * CASE pricing_unit WHEN '1K tokens' THEN 1e3 ELSE 1e6 END)::BIGINT AS tokens
            FROM cur WHERE of_model
        ), truth AS (
            SELECT {TRUE_LINE}, sum(cost_nano_usd)::BIGINT AS nano, sum(tokens)::BIGINT AS tokens
            FROM (SELECT * REPLACE (hour::TIMESTAMP AS hour) FROM by_hour) WHERE in_bill GROUP BY ALL
        )
        SELECT * FROM bill FULL JOIN truth USING (account_id, usage_type, hour, resource_id)
        WHERE bill.nano IS DISTINCT FROM truth.nano OR bill.tokens IS DISTINCT FROM truth.tokens
        """
    )
    assert differing == []


def test_totals_equal_the_truth_to_the_nano(turn_of_month: Company) -> None:
    for delivery in turn_of_month.truth["deliveries"]:
        if delivery["edition"] != "first":
            continue
        month = f"bill_billing_period_start_date = TIMESTAMP '{delivery['billing_period']}-01'"
        assert turn_of_month.sql(
            f"SELECT count(*), sum(nano)::BIGINT, sum(nano) FILTER (of_model)::BIGINT FROM cur WHERE {month}"
        ) == [(delivery["lines"], delivery["total_nano_usd"], delivery["model_usage_nano_usd"])]


def test_a_line_is_unique_by_account_region_usage_type_resource_and_hour(company: Company) -> None:
    assert company.sql(f"SELECT {LINE} FROM cur WHERE of_model GROUP BY ALL HAVING count(*) > 1") == []
    assert company.sql("SELECT count(*) - count(DISTINCT identity_line_item_id) FROM cur") == [(0,)]


def test_cost_is_usage_times_rate(company: Company) -> None:
    off = company.sql(
        """
        SELECT line_item_usage_type, line_item_usage_amount, line_item_unblended_rate, line_item_unblended_cost
        FROM cur WHERE line_item_line_item_type = 'Usage'
          AND abs(line_item_usage_amount * line_item_unblended_rate::DOUBLE - line_item_unblended_cost) > 1e-6
        """
    )
    assert off == []


def test_marketplace_lines_have_no_list_price_and_others_do(company: Company) -> None:
    assert company.sql(
        """
        SELECT bill_billing_entity, pricing_unit, bool_and(pricing_public_on_demand_cost = 0),
               bool_and(pricing_public_on_demand_cost = line_item_unblended_cost)
        FROM cur WHERE of_model GROUP BY ALL ORDER BY ALL
        """
    ) == [
        ("AWS", "1K tokens", False, True),
        ("AWS", "1M tokens", False, True),
        ("AWS Marketplace", "Units", True, False),
    ]


def test_all_families_classes_tiers_and_scopes_are_in_the_bill(company: Company) -> None:
    usage_types = {usage_type for (usage_type,) in company.sql("SELECT DISTINCT line_item_usage_type FROM cur")}
    assert usage_types >= {
        "USE1-NovaPro-input-tokens",
        "USE1-NovaPro-output-tokens-batch",
        "USE1-NovaLite-cache-read-input-token-count",
        "USE1-TitanEmbeddingV2-Text-input-tokens",
        "USE1-gpt-oss-120b-output-tokens",
        "USE1-NovaUltra2-input-tokens",
        "USE1-Claude4.6Opus-cache-read-input-token-count",
        "USE1-Claude4.6Opus-cache-write-input-token-count-1h",
        "EU-Claude4.6Opus-output-tokens-cross-region-global",
        "USE1-Claude4.6Sonnet-input-tokens-batch",
        "EU-MP:EU_InputTokenCount-Units",
        "EU-MP:EU_OutputTokenCount_Global-Units",
        "USE1-MP:USE1_InputTokenCount_Batch-Units",
        "USE1-MP:USE1_input_tokens_global_standard-Units",
        "USE1-MP:USE1_cache_write_tokens_standard-Units",
        "USE1-MP:USE1_cache_read_tokens_long_ctx_standard-Units",
    }


def test_usage_stops_twenty_hours_before_the_end(company: Company) -> None:
    assert company.sql(
        "SELECT max(line_item_usage_end_date)::VARCHAR FROM cur WHERE line_item_line_item_type = 'Usage'"
    ) == [("2026-11-14 04:00:00",)]


def test_the_rest_of_the_bill(company: Company) -> None:
    kinds = dict(company.sql("SELECT line_item_line_item_type, sum(nano)::BIGINT FROM cur GROUP BY 1"))
    plan = {"SavingsPlanCoveredUsage", "SavingsPlanNegation", "SavingsPlanRecurringFee"}
    assert set(kinds) == {"Usage", "Fee", "Tax", "Credit"} | plan
    assert kinds["SavingsPlanCoveredUsage"] == -kinds["SavingsPlanNegation"]
    assert kinds["Credit"] < 0 < min(kinds["Fee"], kinds["Tax"])
    products = {code for (code,) in company.sql("SELECT DISTINCT line_item_product_code FROM cur")}
    assert products >= {"AmazonEC2", "AmazonS3", "AmazonRDS", "AmazonCloudWatch", "AWSSupportBusiness"}
    taxed = company.sql(
        """
        SELECT count(*) FROM (
            SELECT line_item_product_code, line_item_usage_account_id,
                   sum(nano) FILTER (line_item_line_item_type <> 'Tax') AS net,
                   sum(nano) FILTER (line_item_line_item_type = 'Tax') AS tax
            FROM cur GROUP BY ALL
        ) WHERE tax <> net * 625 // 10000
        """
    )
    assert taxed == [(0,)]


def test_only_the_open_month_lacks_an_invoice(turn_of_month: Company) -> None:
    assert FINAL_AFTER_DAYS <= 7
    assert turn_of_month.sql(
        """
        SELECT strftime(bill_billing_period_start_date, '%Y-%m') AS month, bool_and(bill_invoice_id = ''),
               bool_or(bill_invoice_id = '') FROM cur GROUP BY 1 ORDER BY 1
        """
    ) == [("2026-10", False, False), ("2026-11", True, True)]


def test_layout_and_manifest(turn_of_month: Company) -> None:
    export = turn_of_month.out / "cur" / "inferledger-cur2"
    for month in ("2026-10", "2026-11"):
        metadata = export / "metadata" / f"BILLING_PERIOD={month}"
        manifest = json.loads((metadata / "inferledger-cur2-Manifest.json").read_text())
        kept = list(metadata.glob("*/inferledger-cur2-Manifest.json"))
        assert [json.loads(file.read_text()) for file in kept] == [manifest]
        assert kept[0].parent.name.endswith(manifest["executionId"])
        assert len(manifest["dataFiles"]) >= 2
        for url in manifest["dataFiles"]:
            file = turn_of_month.out / url.removeprefix("s3://acme-billing-exports/")
            assert file.parent.name == kept[0].parent.name
            assert pq.read_schema(file).names == [column["name"] for column in manifest["columns"]]
        assert manifest["billingPeriod"]["start"] == f"{month}-01T00:00:00Z"


def test_columns_have_the_types_of_cur_2(company: Company) -> None:
    file = next((company.out / "cur").rglob("*.parquet"))
    schema = pq.read_schema(file)
    assert schema.equals(SCHEMA)
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "SNAPPY"
    assert str(schema.field("line_item_usage_start_date").type) == "timestamp[ms]"
    assert str(schema.field("resource_tags").type).startswith("map<string, string")
    assert str(schema.field("pricing_public_on_demand_rate").type) == "string"
    assert company.sql("SELECT count(line_item_net_unblended_cost) FROM cur") == [(0,)]


@pytest.mark.parametrize("name", ["cost_by_hour_first", "cost_by_hour_restated", "cost_by_call", "cost_by_task"])
def test_the_truth_has_no_floats(company: Company, name: str) -> None:
    schema = pq.read_schema(Path(company.out, "truth", f"{name}.parquet"))
    assert not [field.name for field in schema if str(field.type) in ("double", "float")]
