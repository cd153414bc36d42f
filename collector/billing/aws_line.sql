-- AWS's own bills, of either generation, to FOCUS-named billing lines.
-- grain: one line item; input: view `export_line` (aws_files.py): the files in CUR 2.0 names, absent columns NULL, numbers
-- as text; session variables billing_period (NULL: each line is of its own), net_months (first
-- days of the billing months whose discounts are read from net columns)
-- invariant: every line that is not split-cost data becomes one line; money is cast once, by money()
-- sources: reference/billing.md 3.1 (columns), 3.3 (FOCUS), 4.1-4.6 (amortisation, net, discounts, split), 5.1-5.3 (Bedrock)

-- :columns
-- What the mapping reads; numbers as VARCHAR so that a DOUBLE arrives as the shortest text that is it.
identity_line_item_id VARCHAR, bill_bill_type VARCHAR, bill_billing_entity VARCHAR,
bill_billing_period_start_date TIMESTAMP, bill_billing_period_end_date TIMESTAMP, bill_invoice_id VARCHAR,
bill_invoicing_entity VARCHAR, bill_payer_account_id VARCHAR, line_item_availability_zone VARCHAR,
line_item_currency_code VARCHAR, line_item_iam_principal VARCHAR, line_item_legal_entity VARCHAR,
line_item_line_item_description VARCHAR, line_item_line_item_type VARCHAR, line_item_net_unblended_cost VARCHAR,
line_item_operation VARCHAR, line_item_product_code VARCHAR, line_item_resource_id VARCHAR,
line_item_unblended_cost VARCHAR, line_item_usage_account_id VARCHAR, line_item_usage_amount VARCHAR,
line_item_usage_start_date TIMESTAMP, line_item_usage_end_date TIMESTAMP, line_item_usage_type VARCHAR,
pricing_public_on_demand_cost VARCHAR, pricing_unit VARCHAR, product MAP(VARCHAR, VARCHAR), product_region_code VARCHAR,
product_servicecode VARCHAR, product_sku VARCHAR, reservation_effective_cost VARCHAR,
reservation_net_effective_cost VARCHAR, reservation_unused_amortized_upfront_fee_for_billing_period VARCHAR,
reservation_unused_recurring_fee VARCHAR, reservation_net_unused_amortized_upfront_fee_for_billing_period VARCHAR,
reservation_net_unused_recurring_fee VARCHAR, reservation_reservation_a_r_n VARCHAR,
savings_plan_amortized_upfront_commitment_for_billing_period VARCHAR,
savings_plan_recurring_commitment_for_billing_period VARCHAR, savings_plan_savings_plan_effective_cost VARCHAR,
savings_plan_total_commitment_to_date VARCHAR, savings_plan_used_commitment VARCHAR,
savings_plan_net_amortized_upfront_commitment_for_billing_period VARCHAR,
savings_plan_net_recurring_commitment_for_billing_period VARCHAR, savings_plan_net_savings_plan_effective_cost VARCHAR,
savings_plan_savings_plan_a_r_n VARCHAR, reservation_amortized_upfront_fee_for_billing_period VARCHAR,
reservation_net_amortized_upfront_fee_for_billing_period VARCHAR, split_line_item_net_split_cost VARCHAR,
split_line_item_net_unused_cost VARCHAR, split_line_item_parent_resource_id VARCHAR, split_line_item_split_cost VARCHAR,
split_line_item_unused_cost VARCHAR,
resource_tags MAP(VARCHAR, VARCHAR), tags MAP(VARCHAR, VARCHAR)

-- :macros
-- Usage of model APIs that is metered in something else than tokens (5.3): units of models, images, requests, searches.
CREATE OR REPLACE TEMP MACRO counts_no_tokens(usage) AS regexp_matches(usage,
    'modelunit|custommodel|customization|rft-training|guardrail|evaluation|invokeflow|bedrockflow|optimizeprompt|prompt-routing|grounding|generatesql|structuredretrieve|search_?unit|dataautomation|image|video|sonic|speech|tpm|provisionedthroughput');

-- Whether discounts of a line's billing month are read from its net columns.
CREATE OR REPLACE TEMP MACRO is_net(month) AS list_contains(CAST(getvariable('net_months') AS TIMESTAMP[]), CAST(date_trunc('month', month) AS TIMESTAMP));

-- Machines and calls of SageMaker that answer requests, and not those that train or try out.
CREATE OR REPLACE TEMP MACRO is_endpoint(usage) AS regexp_matches(usage, '(^|-)(host|asyncinf|tsform|serverless-?inf)');

-- :check
-- grain: one row for the delivery
SELECT
    count(*) AS lines,
    count(*) FILTER (WHERE line_item_operation IN ('EKSPod-EC2', 'ECSTask-EC2')
        OR coalesce(split_line_item_parent_resource_id, '') <> '') AS split_lines,
    count(*) FILTER (WHERE bill_billing_period_start_date IS NULL
        OR strftime(bill_billing_period_start_date, '%Y-%m') <> getvariable('billing_period')) AS lines_of_another_period,
    count(*) FILTER (WHERE line_item_usage_start_date IS NULL OR line_item_usage_end_date IS NULL
        OR line_item_usage_end_date < line_item_usage_start_date) AS lines_without_time,
    count(*) FILTER (WHERE coalesce(line_item_currency_code, '') = '') AS lines_without_currency,
    count(*) FILTER (WHERE coalesce(line_item_line_item_type, '') = '') AS lines_without_type,
    count(*) FILTER (WHERE TRY_CAST(line_item_unblended_cost AS DOUBLE) IS NULL
        OR NOT isfinite(TRY_CAST(line_item_unblended_cost AS DOUBLE))) AS lines_without_cost,
    min(nullif(bill_payer_account_id, '')) AS payer_account_id
FROM export_line;

-- :basis
-- grain: one billing month; its total by discount lines and by net columns, and whether it has either
SELECT CAST(date_trunc('month', bill_billing_period_start_date) AS TIMESTAMP) AS month,
    -- Net columns count as there when one of them is not 0 (AWS writes 0 where an account has no discount).
    coalesce(bool_or(TRY_CAST(line_item_net_unblended_cost AS DOUBLE) <> 0), FALSE) AS has_net,
    count(*) FILTER (WHERE line_item_line_item_type LIKE '%Discount' AND TRY_CAST(line_item_unblended_cost AS DOUBLE) <> 0)
        > 0 AS has_lines,
    sum(money(line_item_unblended_cost)) AS unblended,
    sum(CASE WHEN line_item_line_item_type LIKE '%Discount' THEN 0
             WHEN isfinite(TRY_CAST(line_item_net_unblended_cost AS DOUBLE)) THEN money(line_item_net_unblended_cost)
             ELSE money(line_item_unblended_cost) END) AS net
FROM export_line
GROUP BY month
ORDER BY month;

-- :line
-- The delivery's lines, read once; split-cost lines (4.6) repeat what the instance's own line says and stay out.
SELECT columns(c -> c IN ({{shape}})), x_file_path,
    coalesce(nullif(product['product_name'], ''), '') AS product_name, coalesce(product['gpu'], '') AS gpus, nullif(product['region'], '') AS product_region,
    coalesce(regexp_extract(line_item_resource_id, '(foundation-model|inference-profile)/(.+)$', 2), '') AS resource_model,
    {{other}} AS x_other
FROM export_line
WHERE NOT coalesce(line_item_operation IN ('EKSPod-EC2', 'ECSTask-EC2'), FALSE)
  AND coalesce(split_line_item_parent_resource_id, '') = '';

-- :tags
-- grain: one different set of tags, normalised once; keys in lower case, `_` for signs; of two keys alike the first counts
CREATE OR REPLACE TEMP TABLE aws_tags AS
WITH said AS (
    SELECT resource_tags, tags, {{tag_list}} AS tag_list FROM (SELECT DISTINCT resource_tags, tags FROM aws_line)
),
kept AS (
    SELECT resource_tags, tags, list_filter(tag_list, lambda tag, place: coalesce(tag.v, '') <> ''
        AND list_position(list_transform(tag_list, lambda other: other.k), tag.k) = place) AS tag_list
    FROM said
)
SELECT resource_tags, tags, CASE WHEN len(tag_list) > 0 THEN map_from_entries(list_sort(tag_list)) END AS normal FROM kept;

-- :class
-- grain: one different way that a line names what it charges; what that way means, worked out once
CREATE OR REPLACE TEMP TABLE aws_class AS
WITH way AS (
    SELECT DISTINCT line_item_product_code, bill_billing_entity, line_item_line_item_type, line_item_usage_type,
        pricing_unit, product_name, resource_model,
        split_part(coalesce(line_item_line_item_description, ''), '|', 3) AS meter,
        contains(coalesce(line_item_resource_id, ''), 'application-inference-profile/') AS is_own_profile,
        contains(coalesce(reservation_reservation_a_r_n, ''), 'cr-') AS is_capacity_block,
        coalesce(reservation_reservation_a_r_n, '') <> '' AS has_reservation,
        coalesce(savings_plan_savings_plan_a_r_n, '') <> '' AS has_plan, gpus
    FROM aws_line
),
family AS MATERIALIZED (
    SELECT *,
        lower(coalesce(line_item_usage_type, '')) AS usage,
        line_item_line_item_type IN ('Usage', 'DiscountedUsage', 'SavingsPlanCoveredUsage') AS is_usage,
        -- An up-front fee of a reserved instance; a Capacity Block's (cr-) is spread over its hours later.
        line_item_line_item_type = 'Fee' AND has_reservation AND NOT is_capacity_block AS is_reservation_fee,
        CASE
            WHEN line_item_line_item_type = 'Tax' THEN 'tax'
            WHEN line_item_line_item_type IN ('Credit', 'Refund') THEN 'credit'
            WHEN line_item_line_item_type LIKE '%Discount' THEN 'discount'
            WHEN line_item_line_item_type IN ('SavingsPlanNegation', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee', 'RIFee')
                OR (line_item_line_item_type = 'Fee' AND has_reservation) THEN 'commitment'
            WHEN line_item_product_code IN ('AmazonBedrock', 'AmazonBedrockService', 'AmazonBedrockFoundationModels',
                                            'AmazonBedrockAgentCore')
                OR (bill_billing_entity = 'AWS Marketplace' AND contains(product_name, 'Bedrock')) THEN 'model_api'
            WHEN starts_with(line_item_product_code, 'AWSSupport') OR starts_with(product_name, 'AWS Support')
                OR line_item_product_code IN ('AWSDeveloperSupport', 'OCBPremiumSupport') THEN 'support'
            WHEN line_item_product_code = 'AmazonSageMaker' AND is_endpoint(lower(line_item_usage_type)) THEN 'model_endpoint'
            ELSE 'other'
        END AS charge_family,
        -- What a unit holds: Marketplace says it in the description's third part, the others in the unit.
        CASE
            WHEN lower(pricing_unit) IN ('1k tokens', '1k token', '1000 tokens') THEN 1000
            WHEN lower(pricing_unit) IN ('1m tokens', '1m token', '1000000 tokens', 'million tokens') THEN 1000000
            WHEN lower(pricing_unit) IN ('tokens', 'token') THEN 1
            WHEN lower(pricing_unit) IN ('units', 'unit') AND contains(lower(meter), 'thousand') THEN 1000
            WHEN lower(pricing_unit) IN ('units', 'unit') THEN 1000000
        END AS tokens_per_unit
    FROM way
),
classed AS MATERIALIZED (
    SELECT *,
        CASE
            WHEN charge_family <> 'model_api' OR NOT is_usage OR line_item_product_code = 'AmazonBedrockAgentCore' THEN NULL
            WHEN counts_no_tokens(usage) THEN NULL
            WHEN regexp_matches(usage, 'cache[-_]?read') THEN 'cache_read'
            WHEN regexp_matches(usage, 'cache[-_]?write') THEN
                CASE WHEN regexp_matches(usage, '1h') THEN 'cache_write_1h' ELSE 'cache_write_5m' END
            WHEN contains(usage, 'output') OR contains(usage, 'response') THEN 'output'
            WHEN contains(usage, 'input') THEN 'uncached_input'
        END AS token_class,
        -- The part of the usage type that names the model: between the region and the class.
        nullif(regexp_extract(line_item_usage_type,
            '^(?:[A-Z]{2,3}[A-Z0-9]{0,2}-)?(.+?)(?:-mantle)?-(?:input|output|cache-read|cache-write|response)-', 1), '') AS usage_model
    FROM family
)
SELECT classed.*,
    prefix.region AS usage_region,
    CASE WHEN charge_family = 'model_api' THEN model_slug(coalesce(
        CASE WHEN NOT is_own_profile THEN nullif(resource_model, '') END,
        CASE WHEN bill_billing_entity = 'AWS Marketplace' THEN nullif(product_name, '') ELSE usage_model END)) END AS model,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN contains(usage, 'batch') THEN 'batch'
         WHEN regexp_matches(usage, '[-_]flex') THEN 'flex'
         WHEN regexp_matches(usage, '[-_]priority') THEN 'priority'
         WHEN regexp_matches(usage, 'latency[-_]?optimized') THEN 'latency_optimized'
         ELSE 'standard' END AS service_tier,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN regexp_matches(usage, '[-_]global') OR model_scope(resource_model) = 'global' THEN 'global'
         WHEN model_scope(resource_model) = 'geo' OR contains(meter, 'Regional CRIS') OR regexp_matches(usage, '[-_]geo') THEN 'geo'
         ELSE 'regional' END AS scope,
    CASE WHEN token_class IS NULL THEN NULL
         WHEN regexp_matches(usage, 'long[-_]?(ctx|context)') THEN 'long' ELSE 'base' END AS context_tier,
    -- 4.5, in this order; what is not time of a machine and no commitment has no purchase option
    CASE WHEN has_plan OR line_item_line_item_type LIKE 'SavingsPlan%' THEN 'savings_plan'
         WHEN is_capacity_block OR contains(usage, 'capacityblock') THEN 'capacity_block'
         WHEN has_reservation THEN 'reserved'
         WHEN regexp_matches(usage, 'spotusage|(^|-)trspt:') THEN 'spot'
         WHEN regexp_matches(usage, 'unused(box|ded)|reservation:') THEN 'unused_reservation'
         WHEN is_machine THEN 'on_demand' END AS purchase_option,
    CASE WHEN is_machine AND (coalesce(TRY_CAST(gpus AS INTEGER), 0) > 0 OR family.family IS NOT NULL) THEN 'accelerator'
         WHEN is_machine OR regexp_matches(usage, 'fargate|lambda-gb-second') THEN 'compute'
         WHEN regexp_matches(usage, 'natgateway') THEN 'network_nat'
         WHEN regexp_matches(usage, 'datatransfer-regional-bytes|datatransfer-xaz|vpcpeering') THEN 'network_cross_zone'
         WHEN regexp_matches(usage, '-aws-(out|in)-bytes|interregion') THEN 'network_cross_region'
         WHEN regexp_matches(usage, 'datatransfer-(out|in)-bytes|cloudfront|publicipv4') THEN 'network_internet'
         WHEN regexp_matches(usage, 'loadbalancer|lcuusage|vpcendpoint|transitgateway|vpn') THEN 'network'
         WHEN regexp_matches(usage, 'ebs:|timedstorage|requests-tier|volumeusage|snapshotusage|storage') THEN 'storage'
         WHEN line_item_usage_type IS NOT NULL AND is_usage THEN 'other' END AS cost_class
FROM (
    SELECT *, regexp_matches(usage, '(box|spot|ded|dedicated|host|capacityblock)usage|unused(box|ded|capacityblock)|reservation:|[-:]ml\.') AS is_machine,
        -- us-east-1's have no prefix: BoxUsage:p5.48xlarge, EUW1-SpotUsage:g6e.xlarge, USE1-Host:ml.g5.xlarge
        regexp_extract(usage, '[:-](?:ml\.)?([a-z0-9-]+)\.[a-z0-9-]+$', 1) AS machine_family
    FROM classed
) AS classed
LEFT JOIN accelerator_family AS family ON family.family = classed.machine_family
LEFT JOIN (VALUES
    ('USE1', 'us-east-1'), ('USE2', 'us-east-2'), ('USW1', 'us-west-1'), ('USW2', 'us-west-2'), ('CAN1', 'ca-central-1'),
    ('CAN2', 'ca-west-1'), ('EU', 'eu-west-1'), ('EUW1', 'eu-west-1'), ('EUW2', 'eu-west-2'), ('EUW3', 'eu-west-3'),
    ('EUC1', 'eu-central-1'), ('EUC2', 'eu-central-2'), ('EUN1', 'eu-north-1'), ('EUS1', 'eu-south-1'),
    ('EUS2', 'eu-south-2'), ('APN1', 'ap-northeast-1'), ('APN2', 'ap-northeast-2'), ('APN3', 'ap-northeast-3'),
    ('APS1', 'ap-southeast-1'), ('APS2', 'ap-southeast-2'), ('APS3', 'ap-south-1'), ('APE1', 'ap-east-1'),
    ('SAE1', 'sa-east-1'), ('MES1', 'me-south-1'), ('MEC1', 'me-central-1'), ('AFS1', 'af-south-1'),
    ('ILC1', 'il-central-1'), ('MXC1', 'mx-central-1')
) AS prefix(code, region) ON prefix.code = split_part(line_item_usage_type, '-', 1);

-- :staged
-- grain: one line with its costs (4.2)
WITH known AS (
    SELECT line.* EXCLUDE (resource_tags, tags), is_net(line.bill_billing_period_start_date) AS is_net, tag.normal AS tags, class.* EXCLUDE (line_item_product_code, bill_billing_entity, line_item_line_item_type,
        line_item_usage_type, pricing_unit, product_name, resource_model, gpus), line.line_item_line_item_type AS item_type
    FROM aws_line AS line
    LEFT JOIN aws_tags AS tag
        ON tag.resource_tags IS NOT DISTINCT FROM line.resource_tags AND tag.tags IS NOT DISTINCT FROM line.tags
    JOIN aws_class AS class
        ON class.line_item_product_code IS NOT DISTINCT FROM line.line_item_product_code
        AND class.bill_billing_entity IS NOT DISTINCT FROM line.bill_billing_entity
        AND class.line_item_line_item_type = line.line_item_line_item_type
        AND class.line_item_usage_type IS NOT DISTINCT FROM line.line_item_usage_type
        AND class.pricing_unit IS NOT DISTINCT FROM line.pricing_unit
        AND class.product_name = line.product_name
        AND class.resource_model = line.resource_model
        AND class.meter = split_part(coalesce(line.line_item_line_item_description, ''), '|', 3)
        AND class.is_own_profile = contains(coalesce(line.line_item_resource_id, ''), 'application-inference-profile/')
        AND class.is_capacity_block = contains(coalesce(line.reservation_reservation_a_r_n, ''), 'cr-')
        AND class.has_reservation = (coalesce(line.reservation_reservation_a_r_n, '') <> '')
        AND class.has_plan = (coalesce(line.savings_plan_savings_plan_a_r_n, '') <> '')
        AND class.gpus = line.gpus
),
counted AS (
    SELECT *,
        money(line_item_unblended_cost) AS unblended,
        CASE WHEN is_net THEN money(line_item_net_unblended_cost) END AS net_unblended,
        CASE WHEN is_usage OR item_type = 'FlatRateSubscription' THEN money(line_item_usage_amount) END AS quantity,
        money(pricing_public_on_demand_cost) AS list_cost
    FROM known
),
billed AS (
    SELECT *,
        -- On the net basis a discount is inside the net costs of the lines it belongs to; its own line adds nothing.
        CASE WHEN NOT is_net THEN unblended
             WHEN charge_family = 'discount' THEN coalesce(net_unblended, 0)
             ELSE coalesce(net_unblended, unblended) END AS billed_cost
    FROM counted
),
amortised AS (
    SELECT *,
        CASE
            WHEN item_type IN ('Usage', 'Tax', 'Credit') THEN billed_cost
            WHEN item_type = 'DiscountedUsage'
                THEN coalesce(CASE WHEN is_net THEN money(reservation_net_effective_cost) END,
                              money(reservation_effective_cost), 0)
            WHEN item_type = 'SavingsPlanCoveredUsage'
                THEN coalesce(CASE WHEN is_net THEN money(savings_plan_net_savings_plan_effective_cost) END,
                              money(savings_plan_savings_plan_effective_cost), 0)
            WHEN item_type IN ('SavingsPlanNegation', 'SavingsPlanUpfrontFee') OR is_reservation_fee THEN 0
            -- The commitment that this hour did not use; on the net basis scaled by the plan's own net share, which is
            -- a quotient and so has no exact decimal: it is worked out as DOUBLE, to twelve places.
            WHEN item_type = 'SavingsPlanRecurringFee' THEN
                CASE WHEN is_net AND savings_plan_net_recurring_commitment_for_billing_period IS NOT NULL
                          AND coalesce(CAST(savings_plan_amortized_upfront_commitment_for_billing_period AS DOUBLE), 0)
                            + coalesce(CAST(savings_plan_recurring_commitment_for_billing_period AS DOUBLE), 0) <> 0
                     -- the ratio alone is a fraction, to 15 digits; money is multiplied as a decimal
                     THEN CAST(
                         CAST(coalesce(money(savings_plan_total_commitment_to_date), 0)
                              - coalesce(money(savings_plan_used_commitment), 0) AS DECIMAL(20, 12))
                         * CAST(
                         (coalesce(CAST(savings_plan_net_amortized_upfront_commitment_for_billing_period AS DOUBLE), 0)
                            + coalesce(CAST(savings_plan_net_recurring_commitment_for_billing_period AS DOUBLE), 0))
                         / (coalesce(CAST(savings_plan_amortized_upfront_commitment_for_billing_period AS DOUBLE), 0)
                            + coalesce(CAST(savings_plan_recurring_commitment_for_billing_period AS DOUBLE), 0))
                         AS DECIMAL(17, 15)) AS DECIMAL(38, 18))
                     ELSE coalesce(money(savings_plan_total_commitment_to_date), 0)
                          - coalesce(money(savings_plan_used_commitment), 0) END
            WHEN item_type = 'RIFee' THEN
                coalesce(CASE WHEN is_net
                              THEN money(reservation_net_unused_amortized_upfront_fee_for_billing_period) END,
                         money(reservation_unused_amortized_upfront_fee_for_billing_period), 0)
                + coalesce(CASE WHEN is_net THEN money(reservation_net_unused_recurring_fee) END,
                           money(reservation_unused_recurring_fee), 0)
            WHEN item_type = 'Refund' AND line_item_product_code = 'ComputeSavingsPlans'
                 AND starts_with(line_item_line_item_description, 'Refund for one-time fee for Savings Plan ID') THEN 0
            ELSE billed_cost
        END AS effective_cost
    FROM billed
)
SELECT
    nullif(identity_line_item_id, '') AS x_line_item_id,
    parse_filename(x_file_path) AS x_file,
    'aws' AS provider_name,
    coalesce(nullif(bill_invoicing_entity, ''), nullif(line_item_legal_entity, ''), 'AWS') AS invoice_issuer_name,
    nullif(bill_billing_entity, '') AS publisher_name,
    coalesce(nullif(bill_payer_account_id, ''), nullif(line_item_usage_account_id, ''), '-') AS billing_account_id,
    nullif(line_item_usage_account_id, '') AS sub_account_id,
    nullif(bill_invoice_id, '') AS invoice_id,
    line_item_currency_code AS billing_currency,
    CAST(bill_billing_period_start_date AS TIMESTAMP) AS billing_period_start,
    CAST(coalesce(bill_billing_period_end_date, bill_billing_period_start_date + INTERVAL 1 MONTH) AS TIMESTAMP) AS billing_period_end,
    CAST(line_item_usage_start_date AS TIMESTAMP) AS charge_period_start,
    CAST(line_item_usage_end_date AS TIMESTAMP) AS charge_period_end,
    CASE WHEN is_usage OR item_type = 'FlatRateSubscription' THEN 'Usage'
         WHEN charge_family IN ('tax', 'credit') THEN CASE charge_family WHEN 'tax' THEN 'Tax' ELSE 'Credit' END
         WHEN item_type IN ('Fee', 'RIFee', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee') THEN 'Purchase'
         ELSE 'Adjustment' END AS charge_category,
    CASE WHEN item_type = 'Refund' THEN 'Correction' END AS charge_class,
    CASE WHEN item_type IN ('RIFee', 'SavingsPlanRecurringFee', 'FlatRateSubscription') THEN 'Recurring'
         WHEN is_usage OR item_type = 'SavingsPlanNegation' THEN 'Usage-Based'
         ELSE 'One-Time' END AS charge_frequency,
    nullif(line_item_line_item_description, '') AS charge_description,
    coalesce(nullif(product_name, ''), nullif(product_servicecode, ''), nullif(line_item_product_code, ''), 'unknown') AS service_name,
    nullif(line_item_product_code, '') AS x_service_code,
    item_type AS x_line_item_type,
    nullif(line_item_usage_type, '') AS x_usage_type,
    nullif(line_item_operation, '') AS x_operation,
    coalesce(nullif(product_region_code, ''), product_region, usage_region) AS region_id,
    nullif(line_item_availability_zone, '') AS availability_zone,
    -- the payment for a Capacity Block names its reservation here only; its hours name it as their resource
    coalesce(nullif(line_item_resource_id, ''),
             CASE WHEN is_capacity_block THEN reservation_reservation_a_r_n END) AS resource_id,
    nullif(product_sku, '') AS sku_id,
    nullif(pricing_unit, '') AS pricing_unit,
    quantity AS consumed_quantity,
    coalesce(nullif(savings_plan_savings_plan_a_r_n, ''),
             CASE WHEN NOT is_capacity_block THEN nullif(reservation_reservation_a_r_n, '') END) AS commitment_discount_id,
    CASE WHEN item_type IN ('DiscountedUsage', 'SavingsPlanCoveredUsage') THEN 'Used'
         WHEN item_type IN ('RIFee', 'SavingsPlanRecurringFee') AND effective_cost <> 0 THEN 'Unused' END AS commitment_discount_status,
    CAST(billed_cost AS DECIMAL(38, 18)) AS billed_cost,
    CAST(effective_cost AS DECIMAL(38, 18)) AS effective_cost,
    list_cost,
    -- at negotiated prices before commitments; AWS does not tell them for what a reserved instance covers
    CASE WHEN item_type = 'DiscountedUsage' THEN NULL
         WHEN item_type IN ('SavingsPlanNegation', 'SavingsPlanRecurringFee', 'SavingsPlanUpfrontFee', 'RIFee')
             OR is_reservation_fee THEN 0
         ELSE CAST(billed_cost AS DECIMAL(38, 18)) END AS contracted_cost,
    tags,
    nullif(line_item_iam_principal, '') AS x_principal,
    CASE WHEN contains(line_item_resource_id, 'inference-profile/') THEN line_item_resource_id END AS x_inference_profile,
    charge_family AS x_charge_family,
    model AS x_model,
    token_class AS x_token_class,
    CASE WHEN token_class IS NOT NULL
         THEN TRY_CAST(round(CAST(quantity AS DECIMAL(29, 11)) * CAST(tokens_per_unit AS DECIMAL(7, 0))) AS BIGINT) END AS x_tokens,
    service_tier AS x_service_tier,
    scope AS x_scope,
    context_tier AS x_context_tier,
    x_other,
    purchase_option AS x_purchase_option,
    cost_class AS x_cost_class
FROM amortised;

-- :filled
-- grain: one row; how many lines fill each column
SELECT {{counts}} FROM export_line;

-- :unknown
-- grain: one row; lines of model APIs whose tokens nobody can count, or whose model nobody can name
SELECT
    count(*) FILTER (WHERE x_charge_family = 'model_api' AND x_token_class IS NULL AND charge_category = 'Usage'
        AND x_service_code <> 'AmazonBedrockAgentCore' AND NOT counts_no_tokens(lower(x_usage_type))) AS of_no_class,
    count(*) FILTER (WHERE x_token_class IS NOT NULL AND x_model IS NULL) AS of_no_model
FROM staged_line;
