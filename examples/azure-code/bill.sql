-- A day of one p5.48xlarge and one g6.12xlarge under a savings plan, made by `nise` in the legacy layout, under CUR 2.0
-- names. The collector reads legacy exports itself once issue "every export" is done; until then this is the mapping.
SELECT
    "bill/BillType" AS bill_bill_type, "bill/BillingEntity" AS bill_billing_entity,
    CAST("bill/BillingPeriodStartDate" AS TIMESTAMP) AS bill_billing_period_start_date,
    CAST("bill/BillingPeriodEndDate" AS TIMESTAMP) AS bill_billing_period_end_date,
    "bill/InvoiceId" AS bill_invoice_id, "bill/PayerAccountId" AS bill_payer_account_id,
    "lineItem/UsageAccountId" AS line_item_usage_account_id, "lineItem/LineItemType" AS line_item_line_item_type,
    "lineItem/CurrencyCode" AS line_item_currency_code, "lineItem/ProductCode" AS line_item_product_code,
    "lineItem/UsageType" AS line_item_usage_type, "lineItem/Operation" AS line_item_operation,
    "lineItem/AvailabilityZone" AS line_item_availability_zone, "lineItem/ResourceId" AS line_item_resource_id,
    "lineItem/UsageAmount" AS line_item_usage_amount, "lineItem/UnblendedCost" AS line_item_unblended_cost,
    "lineItem/LineItemDescription" AS line_item_line_item_description,
    CAST("lineItem/UsageStartDate" AS TIMESTAMP) AS line_item_usage_start_date,
    CAST("lineItem/UsageEndDate" AS TIMESTAMP) AS line_item_usage_end_date,
    "pricing/unit" AS pricing_unit, "pricing/publicOnDemandCost" AS pricing_public_on_demand_cost,
    'us-east-1' AS product_region_code,
    "savingsPlan/SavingsPlanARN" AS savings_plan_savings_plan_a_r_n,
    "savingsPlan/SavingsPlanEffectiveCost" AS savings_plan_savings_plan_effective_cost
FROM read_csv(
    '../../../shared/samples/billing/nise_generated/cur/demo/20260601-20260701/*/June-2026-demo.csv.gz',
    all_varchar = true)
