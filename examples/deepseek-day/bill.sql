-- A day of node-hours: 226.75 nodes on average, 8 GPUs each, $2 a GPU-hour, in two pools of constant size.
-- source: deepseek-ai/open-infra-index, "Day 6: One More Thing" (CC0). The published throughputs (73.7 k input tokens
--         per second and node in prefill, 14.8 k output tokens in decode) imply 95.48 and 131.38 nodes for the day's
--         608 and 168 billion tokens; scaled to the published 226.75 that is 95.433 and 131.317.
SELECT
    'Anniversary' AS bill_bill_type, 'AWS' AS bill_billing_entity,
    TIMESTAMP '2025-02-01' AS bill_billing_period_start_date, TIMESTAMP '2025-03-01' AS bill_billing_period_end_date,
    'DEEPSEEK-DAY' AS bill_invoice_id, 'Example Cloud' AS bill_invoicing_entity,
    '999999999999' AS bill_payer_account_id, '999999999999' AS line_item_usage_account_id,
    'Usage' AS line_item_line_item_type, 'USD' AS line_item_currency_code,
    'node-hours of 8 H800' AS line_item_line_item_description, 'RunInstances' AS line_item_operation,
    'AmazonEC2' AS line_item_product_code, 'BoxUsage:8xH800' AS line_item_usage_type, 'Hrs' AS pricing_unit,
    pool.resource AS line_item_resource_id,
    CAST(pool.nodes AS VARCHAR) AS line_item_usage_amount,
    CAST(pool.nodes * 8 * 2 AS VARCHAR) AS line_item_unblended_cost,
    hour.start AS line_item_usage_start_date, hour.start + INTERVAL 1 HOUR AS line_item_usage_end_date,
    'us-east-1' AS product_region_code
FROM (VALUES ('nodes/prefill', 95.433), ('nodes/decode', 131.317)) AS pool(resource, nodes)
CROSS JOIN (
    SELECT unnest(generate_series(TIMESTAMP '2025-02-27 04:00', TIMESTAMP '2025-02-28 03:00', INTERVAL 1 HOUR)) AS start
) AS hour
