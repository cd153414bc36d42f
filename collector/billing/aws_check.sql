-- What a delivery of AWS says twice: both sides, as they were read. Into `staged_check` and `staged_split`.
-- inputs: view `export_line` (the delivery in CUR 2.0 names, numbers as text, absent columns NULL), table `staged_line`;
-- macro is_net (aws_line.sql); each billing period of the files is told apart
-- sources: reference/billing.md 4.2 (true-up), 4.4 (discounts), 4.6 (split costs), 10 (checks)

-- :split
-- grain: one split-cost line; it repeats a part of its parent's cost and is never added to it
CREATE OR REPLACE TEMP TABLE staged_split AS
SELECT strftime(bill_billing_period_start_date, '%Y-%m') AS billing_period, line_item_currency_code AS currency,
    CAST(line_item_usage_start_date AS TIMESTAMP) AS charge_period_start,
    CAST(line_item_usage_end_date AS TIMESTAMP) AS charge_period_end,
    coalesce(nullif(split_line_item_parent_resource_id, ''), '-') AS parent_resource_id,
    nullif(line_item_resource_id, '') AS resource_id,
    tag(said, 'aws_eks_cluster_name') AS cluster, tag(said, 'aws_eks_namespace') AS namespace,
    coalesce(tag(said, 'aws_eks_workload_name'), tag(said, 'aws_eks_deployment')) AS workload,
    tag(said, 'aws_eks_node') AS node,
    nullif(line_item_usage_type, '') AS usage_type,
    coalesce(CASE WHEN is_net(bill_billing_period_start_date) THEN money(split_line_item_net_split_cost) END,
             money(split_line_item_split_cost)) AS split_cost,
    coalesce(CASE WHEN is_net(bill_billing_period_start_date) THEN money(split_line_item_net_unused_cost) END,
             money(split_line_item_unused_cost)) AS unused_cost,
    money(line_item_usage_amount) AS quantity
FROM (
    SELECT *, list_transform(list_concat(coalesce(map_entries(resource_tags), []), coalesce(map_entries(tags), [])),
        lambda entry: struct_pack(k := regexp_replace(lower(entry.key), '[^a-z0-9]+', '_', 'g'), v := entry.value)) AS said
    FROM export_line
    WHERE line_item_operation IN ('EKSPod-EC2', 'ECSTask-EC2') OR coalesce(split_line_item_parent_resource_id, '') <> ''
);

-- :macros
CREATE OR REPLACE TEMP MACRO tag(said, name) AS
    nullif(list_filter(said, lambda entry: entry.k = name OR ends_with(entry.k, '_' || name))[1].v, '');

-- :check
-- grain: one check of the delivery and what of it
CREATE OR REPLACE TEMP TABLE staged_check AS
WITH line AS (
    SELECT strftime(billing_period_start, '%Y-%m') AS period, billing_currency AS currency, x_line_item_type AS item_type, charge_period_start, commitment_discount_id,
        x_service_code, charge_description, resource_id, x_usage_type, invoice_id, billed_cost, effective_cost, list_cost
    FROM staged_line
),
amortised AS (
    SELECT strftime(bill_billing_period_start_date, '%Y-%m') AS period, line_item_currency_code AS currency,
        sum(coalesce(CASE WHEN is_net(bill_billing_period_start_date)
                          THEN money(savings_plan_net_amortized_upfront_commitment_for_billing_period) END,
                     money(savings_plan_amortized_upfront_commitment_for_billing_period), 0))
            FILTER (line_item_line_item_type = 'SavingsPlanRecurringFee') AS savings_plans,
        sum(coalesce(CASE WHEN is_net(bill_billing_period_start_date)
                          THEN money(reservation_net_amortized_upfront_fee_for_billing_period) END,
                     money(reservation_amortized_upfront_fee_for_billing_period), 0))
            FILTER (line_item_line_item_type = 'RIFee') AS reservations
    FROM export_line GROUP BY ALL
),
covered AS (
    SELECT period, currency, commitment_discount_id, abs(sum(billed_cost)) AS difference
    FROM line WHERE item_type IN ('SavingsPlanCoveredUsage', 'SavingsPlanNegation')
    GROUP BY period, currency, commitment_discount_id, charge_period_start
),
trued_up AS (
    SELECT l.period, l.currency, sum(l.effective_cost) AS effective,
        sum(l.billed_cost)
            - coalesce(sum(l.billed_cost) FILTER (l.effective_cost = 0 AND (l.item_type IN ('SavingsPlanUpfrontFee')
                OR (l.item_type = 'Fee' AND l.commitment_discount_id IS NOT NULL)
                OR (l.item_type = 'Refund' AND l.x_service_code = 'ComputeSavingsPlans'))), 0)
            + coalesce(any_value(a.savings_plans), 0) + coalesce(any_value(a.reservations), 0) AS billed
    FROM line AS l LEFT JOIN amortised AS a USING (period, currency)
    GROUP BY l.period, l.currency
    -- a reservation's monthly fee stands against the usage of a whole month
    HAVING count(*) = count(l.invoice_id) OR count(*) FILTER (l.item_type = 'RIFee') = 0
),
stated AS (
    -- discounts as lines and as net columns: each way tells the same total
    SELECT strftime(bill_billing_period_start_date, '%Y-%m') AS period, line_item_currency_code AS currency,
        sum(money(line_item_unblended_cost)) AS in_lines,
        sum(CASE WHEN line_item_line_item_type LIKE '%Discount' THEN 0
                 ELSE coalesce(money(line_item_net_unblended_cost), money(line_item_unblended_cost)) END) AS in_columns
    FROM export_line GROUP BY ALL
    HAVING count(*) FILTER (line_item_line_item_type LIKE '%Discount' AND money(line_item_unblended_cost) <> 0) > 0
       AND bool_or(money(line_item_net_unblended_cost) <> 0)
),
parent AS (
    SELECT s.billing_period AS period, s.currency, s.charge_period_start, s.parent_resource_id,
        sum(coalesce(s.split_cost, 0) + coalesce(s.unused_cost, 0)) AS split,
        (SELECT sum(l.effective_cost) FROM line AS l
         WHERE l.resource_id = s.parent_resource_id AND l.charge_period_start = s.charge_period_start
           AND l.period = s.billing_period AND l.currency = s.currency
           AND regexp_matches(l.x_usage_type, '(Box|Spot|Dedicated|Host)Usage')) AS cost
    FROM staged_split AS s GROUP BY ALL
),
told AS (
    SELECT period, 'savings plans: covered + negated = 0' AS check_name,
        coalesce(commitment_discount_id, '-') AS subject, currency, sum(difference) AS lhs, 0 AS rhs, 0.01 AS tolerance
    FROM covered GROUP BY ALL
    UNION ALL
    SELECT period, 'effective = billed - fees paid ahead + their part of the month', 'all commitments', currency,
        effective, billed, 0.01
    FROM trued_up
    UNION ALL
    SELECT period, 'split costs = cost of the instance', count(*) || ' instance-hours', currency,
        count(*) FILTER (cost IS NULL OR abs(split - cost) > 0.01), 0, 0
    FROM parent GROUP BY ALL
    UNION ALL
    SELECT period, 'discounts in columns = discounts in lines', 'all lines', currency, in_columns, in_lines,
        greatest(0.01, abs(in_lines) / 1000000)
    FROM stated
)
SELECT period AS billing_period, check_name, subject, currency, CAST(lhs AS DECIMAL(38, 18)) AS lhs,
    CAST(rhs AS DECIMAL(38, 18)) AS rhs, CAST(tolerance AS DECIMAL(38, 18)) AS tolerance
FROM told;
