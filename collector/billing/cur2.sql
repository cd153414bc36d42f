-- AWS Cost and Usage Report 2.0 -> billing_line.
-- grain:     one row per line of the export, split-cost rows left out (they repeat their parents)
-- inputs:    read_parquet of the delivery's files as `raw_line`, with every known column present
-- invariant: sum of billed_cost = sum of line_item_unblended_cost (net columns: of the net cost), each value cast once
-- source:    reference of the CUR 2.0 table dictionary; line types and formulas as AWS documents them

-- :known the columns this mapping knows, with the types they are read as when an export has them or not
SELECT
    CAST(NULL AS VARCHAR) AS identity_line_item_id,
    CAST(NULL AS VARCHAR) AS bill_billing_entity,
    CAST(NULL AS TIMESTAMP) AS bill_billing_period_start_date,
    CAST(NULL AS TIMESTAMP) AS bill_billing_period_end_date,
    CAST(NULL AS VARCHAR) AS bill_invoice_id,
    CAST(NULL AS VARCHAR) AS bill_invoicing_entity,
    CAST(NULL AS VARCHAR) AS bill_payer_account_id,
    CAST(NULL AS VARCHAR) AS line_item_availability_zone,
    CAST(NULL AS VARCHAR) AS line_item_currency_code,
    CAST(NULL AS VARCHAR) AS line_item_iam_principal,
    CAST(NULL AS VARCHAR) AS line_item_legal_entity,
    CAST(NULL AS VARCHAR) AS line_item_line_item_description,
    CAST(NULL AS VARCHAR) AS line_item_line_item_type,
    CAST(NULL AS DOUBLE) AS line_item_net_unblended_cost,
    CAST(NULL AS VARCHAR) AS line_item_operation,
    CAST(NULL AS VARCHAR) AS line_item_product_code,
    CAST(NULL AS VARCHAR) AS line_item_resource_id,
    CAST(NULL AS DOUBLE) AS line_item_unblended_cost,
    CAST(NULL AS VARCHAR) AS line_item_usage_account_id,
    CAST(NULL AS DOUBLE) AS line_item_usage_amount,
    CAST(NULL AS TIMESTAMP) AS line_item_usage_start_date,
    CAST(NULL AS TIMESTAMP) AS line_item_usage_end_date,
    CAST(NULL AS VARCHAR) AS line_item_usage_type,
    CAST(NULL AS DOUBLE) AS pricing_public_on_demand_cost,
    CAST(NULL AS VARCHAR) AS pricing_unit,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS product,
    CAST(NULL AS VARCHAR) AS product_product_family,
    CAST(NULL AS VARCHAR) AS product_region_code,
    CAST(NULL AS VARCHAR) AS product_sku,
    CAST(NULL AS DOUBLE) AS reservation_effective_cost,
    CAST(NULL AS DOUBLE) AS reservation_net_effective_cost,
    CAST(NULL AS DOUBLE) AS reservation_unused_amortized_upfront_fee_for_billing_period,
    CAST(NULL AS DOUBLE) AS reservation_net_unused_amortized_upfront_fee_for_billing_period,
    CAST(NULL AS DOUBLE) AS reservation_unused_recurring_fee,
    CAST(NULL AS DOUBLE) AS reservation_net_unused_recurring_fee,
    CAST(NULL AS VARCHAR) AS reservation_reservation_a_r_n,
    CAST(NULL AS DOUBLE) AS savings_plan_amortized_upfront_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_net_amortized_upfront_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_recurring_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_net_recurring_commitment_for_billing_period,
    CAST(NULL AS DOUBLE) AS savings_plan_savings_plan_effective_cost,
    CAST(NULL AS DOUBLE) AS savings_plan_net_savings_plan_effective_cost,
    CAST(NULL AS DOUBLE) AS savings_plan_total_commitment_to_date,
    CAST(NULL AS DOUBLE) AS savings_plan_used_commitment,
    CAST(NULL AS VARCHAR) AS savings_plan_savings_plan_a_r_n,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS resource_tags,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS tags,
    CAST(NULL AS VARCHAR) AS split_line_item_parent_resource_id

-- :macros the parts of a Bedrock line that are only in its usage type, description and resource
-- The order of the classes matters: the names of cache classes contain "input".
CREATE OR REPLACE TEMP MACRO bedrock_class(usage_type) AS
    CASE
        WHEN regexp_matches(lower(usage_type), 'modelunits|provisionedthroughput|reserved_|custommodelimport|customization|rft-training|guardrail|evaluations|invokeflow|bedrockflows|optimizeprompt|prompt-routing|nova-grounding|generatesql|structuredretrieve|search_units|dataautomation|image|video|sonic') THEN NULL
        WHEN regexp_matches(lower(usage_type), 'cache[-_]?read') THEN 'cache_read'
        WHEN regexp_matches(lower(usage_type), 'cache[-_]?write') AND contains(lower(usage_type), '1h') THEN 'cache_write_1h'
        WHEN regexp_matches(lower(usage_type), 'cache[-_]?write') THEN 'cache_write_5m'
        WHEN regexp_matches(lower(usage_type), 'output[-_]?token') THEN 'output'
        WHEN regexp_matches(lower(usage_type), 'input[-_]?token') THEN 'uncached_input'
    END;

-- Tokens in one usage unit. AWS changed its unit from 1K to 1M tokens: read it off the row, never assume. An unknown
-- unit gives NULL, and the line stays visible as `unit_unknown`.
CREATE OR REPLACE TEMP MACRO tokens_per_unit(unit, description) AS
    CASE
        WHEN lower(unit) IN ('1k tokens', '1000 tokens') THEN 1000
        WHEN lower(unit) IN ('1m tokens', '1000000 tokens') THEN 1000000
        WHEN lower(unit) IN ('tokens', 'token') THEN 1
        WHEN lower(unit) = 'units' AND contains(lower(split_part(description, '|', 3)), 'thousand') THEN 1000
        WHEN lower(unit) = 'units' THEN 1000000
    END;

CREATE OR REPLACE TEMP MACRO bedrock_tier(usage_type) AS
    CASE
        WHEN regexp_matches(lower(usage_type), '[-_]batch') THEN 'batch'
        WHEN regexp_matches(lower(usage_type), '[-_]flex') THEN 'flex'
        WHEN regexp_matches(lower(usage_type), '[-_]priority') THEN 'priority'
        WHEN regexp_matches(lower(usage_type), 'latency[-_]optimized') THEN 'latency_optimized'
        ELSE 'standard'
    END;

CREATE OR REPLACE TEMP MACRO bedrock_scope(usage_type, description, resource_id) AS
    CASE
        WHEN regexp_matches(lower(usage_type), 'cross-region-global|[-_]global([-_]|$)') OR contains(lower(description), 'global') THEN 'global'
        WHEN regexp_matches(lower(usage_type), '[-_]geo([-_]|$)') OR contains(lower(description), 'regional cris') THEN 'geo'
        WHEN contains(resource_id, 'inference-profile/') THEN coalesce(model_scope(resource_id), 'regional')
        ELSE 'regional'
    END;

-- The model: a foundation model or system profile names it; else the product; else the usage type's own slug.
CREATE OR REPLACE TEMP MACRO bedrock_model(usage_type, product_name, resource_id) AS
    coalesce(
        CASE WHEN regexp_matches(resource_id, 'foundation-model/') OR regexp_matches(resource_id, ':inference-profile/')
             THEN model_slug(resource_id) END,
        CASE WHEN contains(lower(product_name), 'bedrock edition') THEN model_slug(product_name) END,
        model_slug(nullif(regexp_extract(
            usage_type,
            '^(?:[A-Z]{2,4}[0-9]*-)?(.+?)-(?:mantle-)?(?:input|output|cache-read|cache-write)', 1), '')));

-- The region prefix of a usage type, for lines that name no region.
CREATE OR REPLACE TEMP MACRO prefix_region(usage_type) AS
    CASE regexp_extract(usage_type, '^([A-Z]{2,4}[0-9]*)-', 1)
        WHEN 'USE1' THEN 'us-east-1' WHEN 'USE2' THEN 'us-east-2' WHEN 'USW1' THEN 'us-west-1'
        WHEN 'USW2' THEN 'us-west-2' WHEN 'CAN1' THEN 'ca-central-1' WHEN 'EU' THEN 'eu-west-1'
        WHEN 'EUW1' THEN 'eu-west-1' WHEN 'EUW2' THEN 'eu-west-2' WHEN 'EUW3' THEN 'eu-west-3'
        WHEN 'EUC1' THEN 'eu-central-1' WHEN 'EUC2' THEN 'eu-central-2' WHEN 'EUN1' THEN 'eu-north-1'
        WHEN 'EUS1' THEN 'eu-south-1' WHEN 'EUS2' THEN 'eu-south-2' WHEN 'APN1' THEN 'ap-northeast-1'
        WHEN 'APN2' THEN 'ap-northeast-2' WHEN 'APN3' THEN 'ap-northeast-3' WHEN 'APS1' THEN 'ap-southeast-1'
        WHEN 'APS2' THEN 'ap-southeast-2' WHEN 'APS3' THEN 'ap-south-1' WHEN 'SAE1' THEN 'sa-east-1'
    END;

CREATE OR REPLACE TEMP MACRO cost(amount) AS money(CAST(amount AS VARCHAR));

-- :product names of product codes, and which of them are Bedrock; tax and credit lines only have the code
CREATE OR REPLACE TEMP TABLE product_name AS
SELECT
    line_item_product_code AS product_code,
    max(nullif(product['product_name'], '')) AS product_name,
    coalesce(max(CASE
        WHEN line_item_product_code IN ('AmazonBedrock', 'AmazonBedrockService', 'AmazonBedrockFoundationModels',
                                        'AmazonBedrockAgentCore') THEN 1
        WHEN bill_billing_entity = 'AWS Marketplace'
             AND (contains(lower(product['product_name']), 'bedrock') OR contains(line_item_resource_id, ':bedrock:'))
            THEN 1
        ELSE 0 END), 0) = 1 AS is_bedrock
FROM raw_line
GROUP BY ALL

-- :basis whether this period's net columns are filled, and what the discount rows hold (one basis per period)
SELECT
    coalesce(bool_or(line_item_net_unblended_cost IS NOT NULL AND line_item_net_unblended_cost <> 0), false) AS has_net,
    coalesce(sum(line_item_unblended_cost), 0) AS unblended,
    coalesce(sum(line_item_unblended_cost) FILTER (line_item_line_item_type LIKE '%Discount'
        AND line_item_line_item_type <> 'DiscountedUsage'), 0) AS discounts,
    coalesce(sum(coalesce(line_item_net_unblended_cost, line_item_unblended_cost))
        FILTER (NOT (line_item_line_item_type LIKE '%Discount')), 0) AS net
FROM raw_line

-- :mapped the lines
CREATE OR REPLACE TEMP TABLE new_line AS
WITH typed AS (
    SELECT
        r.*,
        p.product_name AS known_name,
        p.is_bedrock AS is_bedrock,
        r.line_item_line_item_type AS line_type,
        r.line_item_line_item_type LIKE '%Discount' AS is_discount,
        CASE WHEN getvariable('use_net') AND r.line_item_line_item_type LIKE '%Discount'
             THEN coalesce(r.line_item_net_unblended_cost, 0)
             WHEN getvariable('use_net') THEN coalesce(r.line_item_net_unblended_cost, r.line_item_unblended_cost)
             ELSE r.line_item_unblended_cost END AS paid
    FROM raw_line AS r
    LEFT JOIN product_name AS p ON p.product_code IS NOT DISTINCT FROM r.line_item_product_code
),
costed AS (
    SELECT
        t.*,
        cost(paid) AS billed_cost,
        CASE
            WHEN line_type = 'DiscountedUsage' THEN cost(CASE WHEN getvariable('use_net')
                THEN coalesce(reservation_net_effective_cost, reservation_effective_cost, 0)
                ELSE coalesce(reservation_effective_cost, 0) END)
            WHEN line_type = 'SavingsPlanCoveredUsage' THEN cost(CASE WHEN getvariable('use_net')
                THEN coalesce(savings_plan_net_savings_plan_effective_cost, savings_plan_savings_plan_effective_cost, 0)
                ELSE coalesce(savings_plan_savings_plan_effective_cost, 0) END)
            WHEN line_type IN ('SavingsPlanNegation', 'SavingsPlanUpfrontFee') THEN 0
            WHEN line_type = 'SavingsPlanRecurringFee' THEN cost(
                (coalesce(savings_plan_total_commitment_to_date, 0) - coalesce(savings_plan_used_commitment, 0))
                * CASE WHEN getvariable('use_net') THEN coalesce(
                    (savings_plan_net_amortized_upfront_commitment_for_billing_period
                        + savings_plan_net_recurring_commitment_for_billing_period)
                    / nullif(savings_plan_amortized_upfront_commitment_for_billing_period
                        + savings_plan_recurring_commitment_for_billing_period, 0), 1) ELSE 1 END)
            WHEN line_type = 'RIFee' THEN
                cost(CASE WHEN getvariable('use_net')
                    THEN coalesce(reservation_net_unused_amortized_upfront_fee_for_billing_period,
                                  reservation_unused_amortized_upfront_fee_for_billing_period, 0)
                    ELSE coalesce(reservation_unused_amortized_upfront_fee_for_billing_period, 0) END)
                + cost(CASE WHEN getvariable('use_net')
                    THEN coalesce(reservation_net_unused_recurring_fee, reservation_unused_recurring_fee, 0)
                    ELSE coalesce(reservation_unused_recurring_fee, 0) END)
            -- the upfront fee of a reservation is amortised elsewhere; a Capacity Block's (cr-) is paid here and nowhere else
            WHEN line_type = 'Fee' AND reservation_reservation_a_r_n <> ''
                 AND NOT contains(reservation_reservation_a_r_n, '/cr-') AND NOT starts_with(reservation_reservation_a_r_n, 'cr-')
                THEN 0
            WHEN line_type = 'Refund' AND line_item_product_code = 'ComputeSavingsPlans'
                 AND line_item_line_item_description LIKE 'Refund for one-time fee for Savings Plan ID%' THEN 0
            ELSE cost(paid)
        END AS effective_cost
    FROM typed AS t
),
lines AS (
    SELECT
        parse_filename(filename) AS x_file,
        nullif(identity_line_item_id, '') AS x_line_item_id,
        'aws' AS provider_name,
        nullif(coalesce(line_item_legal_entity, bill_invoicing_entity), '') AS invoice_issuer_name,
        nullif(bill_billing_entity, '') AS publisher_name,
        bill_payer_account_id AS billing_account_id,
        nullif(line_item_usage_account_id, '') AS sub_account_id,
        nullif(bill_invoice_id, '') AS invoice_id,
        line_item_currency_code AS billing_currency,
        bill_billing_period_start_date AS billing_period_start,
        coalesce(bill_billing_period_end_date, bill_billing_period_start_date + INTERVAL 1 MONTH) AS billing_period_end,
        line_item_usage_start_date AS charge_period_start,
        line_item_usage_end_date AS charge_period_end,
        CASE
            WHEN line_type IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage', 'FlatRateSubscription') THEN 'Usage'
            WHEN line_type = 'Tax' THEN 'Tax'
            WHEN line_type = 'Credit' THEN 'Credit'
            WHEN line_type = 'Refund' OR line_type = 'SavingsPlanNegation' OR is_discount THEN 'Adjustment'
            ELSE 'Purchase'
        END AS charge_category,
        CAST(NULL AS VARCHAR) AS charge_class,
        CASE WHEN line_type IN ('Fee', 'SavingsPlanUpfrontFee') THEN 'One-Time'
             WHEN line_type IN ('RIFee', 'SavingsPlanRecurringFee', 'FlatRateSubscription') THEN 'Recurring'
             ELSE 'Usage-Based' END AS charge_frequency,
        nullif(line_item_line_item_description, '') AS charge_description,
        CASE
            WHEN line_item_product_code IN ('AmazonBedrock', 'AmazonBedrockService', 'AmazonBedrockFoundationModels')
                THEN 'Amazon Bedrock'
            WHEN line_item_product_code = 'AmazonBedrockAgentCore' THEN 'Amazon Bedrock AgentCore'
            ELSE coalesce(known_name, nullif(line_item_product_code, ''), 'unknown')
        END AS service_name,
        nullif(line_item_product_code, '') AS x_service_code,
        line_type AS x_line_item_type,
        nullif(line_item_usage_type, '') AS x_usage_type,
        nullif(line_item_operation, '') AS x_operation,
        coalesce(nullif(product_region_code, ''), nullif(product['region'], ''), prefix_region(line_item_usage_type)) AS region_id,
        nullif(line_item_availability_zone, '') AS availability_zone,
        nullif(line_item_resource_id, '') AS resource_id,
        nullif(product_sku, '') AS sku_id,
        nullif(pricing_unit, '') AS pricing_unit,
        CASE WHEN line_type IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage', 'FlatRateSubscription')
             THEN cost(line_item_usage_amount) END AS consumed_quantity,
        coalesce(nullif(savings_plan_savings_plan_a_r_n, ''), nullif(reservation_reservation_a_r_n, '')) AS commitment_discount_id,
        CASE WHEN line_type IN ('DiscountedUsage', 'SavingsPlanCoveredUsage') THEN 'Used'
             WHEN line_type IN ('RIFee', 'SavingsPlanRecurringFee') THEN 'Unused' END AS commitment_discount_status,
        billed_cost,
        CAST(effective_cost AS DECIMAL(38, 18)) AS effective_cost,
        cost(pricing_public_on_demand_cost) AS list_cost,
        CAST(NULL AS DECIMAL(38, 18)) AS contracted_cost,
        CASE WHEN cardinality(coalesce(tags, MAP {})) > 0 THEN tags ELSE resource_tags END AS tags,
        nullif(line_item_iam_principal, '') AS x_principal,
        CASE WHEN contains(line_item_resource_id, 'application-inference-profile/') THEN line_item_resource_id END AS x_inference_profile,
        CASE
            WHEN line_type = 'Tax' THEN 'tax'
            WHEN line_type IN ('Credit', 'Refund') THEN 'credit'
            WHEN is_discount THEN 'discount'
            WHEN line_type IN ('SavingsPlanNegation', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee', 'RIFee') THEN 'commitment'
            WHEN line_type = 'Fee' AND reservation_reservation_a_r_n <> '' THEN 'commitment'
            WHEN is_bedrock THEN 'model_api'
            WHEN starts_with(line_item_product_code, 'AWSSupport') OR product_product_family = 'AWS Support' THEN 'support'
            ELSE 'other'
        END AS x_charge_family,
        CASE WHEN is_bedrock AND line_type IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage')
             THEN bedrock_class(line_item_usage_type) END AS x_token_class,
        line_item_usage_amount AS usage_amount,
        known_name,
        filename
        {{other}} AS x_other
    FROM costed
)
SELECT
    getvariable('load_id') AS load_id,
    getvariable('export_name') AS export_name,
    getvariable('billing_period') AS billing_period,
    md5(concat_ws('|', x_line_item_id, billing_account_id, coalesce(sub_account_id, '-'), coalesce(invoice_id, '-'),
        billing_currency, charge_period_start, charge_period_end, x_line_item_type, coalesce(x_service_code, '-'),
        coalesce(x_usage_type, '-'), coalesce(x_operation, '-'), coalesce(region_id, '-'), coalesce(resource_id, '-'),
        coalesce(CAST(consumed_quantity AS VARCHAR), '-'), billed_cost, effective_cost, coalesce(CAST(list_cost AS VARCHAR), '-'),
        coalesce(x_principal, '-'), coalesce(charge_description, '-'), coalesce(pricing_unit, '-'),
        coalesce(CAST(tags AS VARCHAR), '-'))) AS line_digest,
    * EXCLUDE (usage_amount, known_name, filename),
    CASE WHEN x_charge_family = 'model_api' THEN bedrock_model(x_usage_type, known_name, resource_id) END AS x_model,
    CASE WHEN x_token_class IS NOT NULL
         THEN CAST(round(usage_amount * tokens_per_unit(pricing_unit, charge_description)) AS BIGINT) END AS x_tokens,
    CASE WHEN x_token_class IS NOT NULL THEN bedrock_tier(x_usage_type) END AS x_service_tier,
    CASE WHEN x_token_class IS NOT NULL THEN bedrock_scope(x_usage_type, charge_description, resource_id) END AS x_scope,
    CASE WHEN x_token_class IS NOT NULL
         THEN CASE WHEN regexp_matches(lower(x_usage_type), 'long[-_]?(ctx|context)') THEN 'long' ELSE 'base' END
    END AS x_context_tier
FROM lines

-- :touched hours (or, for what is shared by day, billing periods) whose lines differ between two deliveries
INSERT INTO touched_hour
WITH side AS (
    SELECT
        CAST(date_trunc('hour', charge_period_start) AS TIMESTAMP) AS hour,
        x_token_class IS NULL AND (charge_period_end > charge_period_start + INTERVAL 1 DAY
            OR x_charge_family IN ('support', 'tax', 'credit', 'discount', 'commitment')) AS is_overlay,
        hash(line_digest)::HUGEINT AS digest, 1 AS is_new
    FROM new_line
    UNION ALL
    SELECT
        CAST(date_trunc('hour', charge_period_start) AS TIMESTAMP),
        x_token_class IS NULL AND (charge_period_end > charge_period_start + INTERVAL 1 DAY
            OR x_charge_family IN ('support', 'tax', 'credit', 'discount', 'commitment')),
        hash(line_digest)::HUGEINT, 0
    FROM billing_line
    WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period')
)
SELECT DISTINCT
    CASE WHEN is_overlay THEN CAST(getvariable('billing_period') || '-01' AS TIMESTAMP) ELSE hour END,
    CASE WHEN is_overlay THEN 'overlay' ELSE 'billing' END
FROM (
    SELECT hour, is_overlay, sum(digest) FILTER (is_new = 1) AS new_digest, sum(digest) FILTER (is_new = 0) AS old_digest,
        count(*) FILTER (is_new = 1) AS new_count, count(*) FILTER (is_new = 0) AS old_count
    FROM side GROUP BY hour, is_overlay
)
WHERE new_digest IS DISTINCT FROM old_digest OR new_count <> old_count

-- :version the delivery's totals by day and service, kept when the lines are replaced
INSERT INTO bill_version BY NAME
SELECT
    getvariable('load_id') AS load_id, export_name, billing_period,
    (SELECT coalesce(max(delivery), 0) + 1 FROM bill_version AS v
     WHERE v.export_name = getvariable('export_name') AND v.billing_period = getvariable('billing_period')) AS delivery,
    strptime(left(getvariable('delivered'), 15), '%Y%m%dT%H%M%S') AS delivered_at,
    getvariable('identity') AS identity,
    CAST(charge_period_start AS DATE) AS charge_day, service_name, billing_currency,
    count(*) AS line_count, sum(billed_cost) AS billed_cost, sum(effective_cost) AS effective_cost
FROM new_line GROUP BY ALL
