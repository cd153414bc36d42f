-- One row per charge, and one more per commitment and hour (or month) for what of it nobody used.
-- Costs become the decimal that their double stands for before anything is added.
WITH line AS (
    SELECT
        bill.*,
        line_item_line_item_type AS line_type,
        CAST(line_item_unblended_cost::VARCHAR AS DECIMAL(38, 18)) AS gross,
        CAST(coalesce(line_item_net_unblended_cost, line_item_unblended_cost)::VARCHAR AS DECIMAL(38, 18)) AS net,
        CAST(pricing_public_on_demand_cost::VARCHAR AS DECIMAL(38, 18)) AS public_cost,
        nullif(coalesce(savings_plan_savings_plan_a_r_n, reservation_reservation_a_r_n), '') AS commitment,
        coalesce(reservation_reservation_a_r_n, '') LIKE '%/cr-%' AS of_block_fee,
        coalesce(capacity_reservation_capacity_reservation_type, '') = 'capacity-block' AS of_block
    FROM bill
    WHERE line_item_line_item_type <> 'SavingsPlanNegation'
        AND coalesce(split_line_item_parent_resource_id, '') = ''
),
block AS (
    -- what an hour of a Capacity Block costs: the fee over its hours, in whichever month it was paid
    SELECT DISTINCT
        reservation_reservation_a_r_n AS arn,
        CAST(coalesce(line_item_net_unblended_cost, line_item_unblended_cost)::VARCHAR AS DECIMAL(38, 18)) AS fee,
        date_diff(
            'hour',
            strptime(reservation_start_time, '%Y-%m-%dT%H:%M:%SZ'),
            strptime(reservation_end_time, '%Y-%m-%dT%H:%M:%SZ')
        ) AS hours
    FROM all_bills AS every
    WHERE every.line_item_line_item_type = 'Fee' AND every.reservation_reservation_a_r_n LIKE '%/cr-%'
),
costed AS (
    SELECT
        line.*,
        CASE
            WHEN line_type IN ('SavingsPlanCoveredUsage', 'DiscountedUsage') THEN 0
            ELSE net
        END::DECIMAL(38, 18) AS billed,
        CASE
            WHEN line_type = 'DiscountedUsage' THEN CAST(
                coalesce(reservation_net_effective_cost, reservation_effective_cost)::VARCHAR AS DECIMAL(38, 18))
            WHEN line_type = 'SavingsPlanCoveredUsage' THEN CAST(coalesce(
                savings_plan_net_savings_plan_effective_cost, savings_plan_savings_plan_effective_cost
            )::VARCHAR AS DECIMAL(38, 18))
            WHEN line_type IN ('SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee', 'RIFee') THEN 0
            WHEN line_type = 'Fee' AND commitment IS NOT NULL THEN 0
            WHEN line_type = 'Refund' AND commitment IS NOT NULL THEN 0
            -- block usage is zero-priced hours, whole ones: fee / hours is finite for the blocks that are sold
            WHEN of_block THEN CAST(round(block.fee / block.hours, 9) AS DECIMAL(38, 18))
            ELSE net
        END::DECIMAL(38, 18) AS effective,
        CASE
            WHEN line_type IN ('SavingsPlanCoveredUsage', 'DiscountedUsage') OR of_block THEN 'Used'
        END AS status,
        CASE
            WHEN line_type = 'Tax' THEN 'Tax'
            -- assumption: refunds are credits, and so is an up-front fee that is given back
            WHEN line_type IN ('Credit', 'Refund') THEN 'Credit'
            WHEN line_type LIKE '%Fee' THEN 'Purchase'
            ELSE 'Usage'
        END AS category,
        -- assumption: what has no public price lists at its gross cost, but for usage, where it lists at what AWS shows
        CASE WHEN category = 'Usage' THEN coalesce(public_cost, 0) ELSE gross END AS listed,
        line_item_usage_amount AS quantity
    FROM line LEFT JOIN block ON of_block AND block.arn = line.capacity_reservation_capacity_reservation_arn
),
unused AS (
    SELECT
        costed.* REPLACE (
            0::DECIMAL(38, 18) AS billed,
            CASE
                WHEN line_type = 'RIFee' THEN
                    CAST(coalesce(
                        reservation_net_unused_amortized_upfront_fee_for_billing_period,
                        reservation_unused_amortized_upfront_fee_for_billing_period, 0
                    )::VARCHAR AS DECIMAL(38, 18))
                    + CAST(coalesce(reservation_net_unused_recurring_fee, reservation_unused_recurring_fee, 0)::VARCHAR
                        AS DECIMAL(38, 18))
                ELSE (
                    CAST(savings_plan_total_commitment_to_date::VARCHAR AS DECIMAL(38, 18))
                    - CAST(savings_plan_used_commitment::VARCHAR AS DECIMAL(38, 18))
                ) * CAST(coalesce(
                    -- of a commitment that is net of discounts, the same part
                    (savings_plan_net_amortized_upfront_commitment_for_billing_period
                        + savings_plan_net_recurring_commitment_for_billing_period)
                    / nullif(savings_plan_amortized_upfront_commitment_for_billing_period
                        + savings_plan_recurring_commitment_for_billing_period, 0), 1) AS DECIMAL(18, 9))
            END::DECIMAL(38, 18) AS effective,
            'Unused' AS status,
            'Usage' AS category,
            0::DECIMAL(38, 18) AS listed,
            NULL::DOUBLE AS quantity
        )
    FROM costed
    WHERE line_type IN ('RIFee', 'SavingsPlanRecurringFee')
),
row AS (
    SELECT *, false AS nobody_used FROM costed
    UNION ALL
    SELECT *, true FROM unused WHERE effective <> 0
)
SELECT
    line_item_availability_zone AS AvailabilityZone,
    billed AS BilledCost,
    bill_payer_account_id AS BillingAccountId,
    bill_payer_account_name AS BillingAccountName,
    'Payer' AS BillingAccountType,  -- assumption
    line_item_currency_code AS BillingCurrency,
    bill_billing_period_end_date AS BillingPeriodEnd,
    bill_billing_period_start_date AS BillingPeriodStart,
    nullif(capacity_reservation_capacity_reservation_arn, '') AS CapacityReservationId,
    CASE capacity_reservation_capacity_reservation_status
        WHEN 'used' THEN 'Used' WHEN 'unused' THEN 'Unused'
    END AS CapacityReservationStatus,
    category AS ChargeCategory,
    NULL AS ChargeClass,
    line_item_line_item_description AS ChargeDescription,
    CASE
        WHEN nobody_used OR category = 'Usage' THEN 'Usage-Based'
        WHEN line_type IN ('SavingsPlanRecurringFee', 'RIFee') OR line_item_product_code LIKE 'AWSSupport%'
            THEN 'Recurring'
        ELSE 'One-Time'
    END AS ChargeFrequency,
    line_item_usage_end_date AS ChargePeriodEnd,
    line_item_usage_start_date AS ChargePeriodStart,
    CASE
        WHEN savings_plan_savings_plan_a_r_n <> '' THEN 'Spend' WHEN commitment IS NOT NULL THEN 'Usage'
    END AS CommitmentDiscountCategory,
    commitment AS CommitmentDiscountId,
    NULL AS CommitmentDiscountName,
    NULL AS CommitmentDiscountQuantity,
    CASE
        WHEN savings_plan_savings_plan_a_r_n <> '' THEN savings_plan_offering_type
        WHEN of_block_fee THEN 'Capacity Block'
        WHEN commitment IS NOT NULL THEN 'Reserved'
    END AS CommitmentDiscountType,
    NULL AS CommitmentDiscountUnit,
    CASE WHEN commitment IS NOT NULL AND category = 'Usage' THEN status END AS CommitmentDiscountStatus,
    CASE WHEN category = 'Usage' THEN quantity END AS ConsumedQuantity,
    CASE WHEN category = 'Usage' AND NOT nobody_used THEN pricing_unit END AS ConsumedUnit,
    -- assumption: negotiated on-demand price for what a commitment covers
    CASE WHEN nobody_used THEN 0 WHEN line_type = 'DiscountedUsage' THEN public_cost ELSE net END AS ContractedCost,
    NULL AS ContractedUnitPrice,
    effective AS EffectiveCost,
    nullif(bill_invoice_id, '') AS InvoiceId,
    bill_invoicing_entity AS InvoiceIssuerName,
    listed AS ListCost,
    TRY_CAST(pricing_public_on_demand_rate AS DOUBLE) AS ListUnitPrice,
    CASE
        WHEN category NOT IN ('Usage', 'Purchase') THEN NULL
        WHEN commitment IS NOT NULL THEN 'Committed'
        WHEN line_item_usage_type LIKE '%SpotUsage%' THEN 'Dynamic'
        ELSE 'Standard'
    END AS PricingCategory,
    line_item_currency_code AS PricingCurrency,
    NULL AS PricingCurrencyContractedUnitPrice,
    NULL AS PricingCurrencyEffectiveCost,
    NULL AS PricingCurrencyListUnitPrice,
    CASE WHEN category = 'Usage' AND nobody_used THEN NULL ELSE line_item_usage_amount END AS PricingQuantity,
    pricing_unit AS PricingUnit,
    'AWS' AS ProviderName,
    coalesce(line_item_legal_entity, bill_invoicing_entity) AS PublisherName,
    nullif(product_region_code, '') AS RegionId,
    nullif(product_location, '') AS RegionName,
    nullif(line_item_resource_id, '') AS ResourceId,
    NULL AS ResourceName,
    NULL AS ResourceType,
    CASE
        WHEN line_item_product_code LIKE 'AmazonBedrock%' OR product['product_name'] LIKE '%Bedrock%'
            OR line_item_product_code = 'AmazonSageMaker' THEN 'AI and Machine Learning'
        WHEN line_item_product_code LIKE 'AmazonS3%' THEN 'Storage'
        WHEN line_item_product_code IN ('AWSDataTransfer', 'AmazonVPC') THEN 'Networking'
        WHEN line_item_product_code IN ('AmazonEC2', 'AmazonEKS', 'ComputeSavingsPlans') THEN 'Compute'
        ELSE 'Other'
    END AS ServiceCategory,
    product['product_name'] AS ServiceName,
    NULL AS ServiceSubcategory,
    nullif(product_sku, '') AS SkuId,
    line_item_usage_type AS SkuMeter,  -- assumption: FOCUS 1.2 has no other place for AWS's usage type
    nullif(pricing_rate_code, '') AS SkuPriceId,
    NULL AS SkuPriceDetails,
    line_item_usage_account_id AS SubAccountId,
    line_item_usage_account_name AS SubAccountName,
    'Linked' AS SubAccountType,  -- assumption
    resource_tags AS Tags,
    discount AS x_Discounts,
    line_item_operation AS x_Operation,
    line_item_product_code AS x_ServiceCode,
    cost_category AS x_CostCategories,
    line_item_usage_type AS x_UsageType
FROM row
