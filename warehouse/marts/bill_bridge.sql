-- From billed to effective cost of a billing period: what was paid ahead, and what was used of what had been paid.
-- inputs: billing_line
-- rule:    a fee leaves when it is billed and comes back as the part of the commitment that nobody used; usage brings
--          back the part that it used.
-- control: billed + sum of all terms = effective, line by line.
WITH line AS (
    SELECT billing_period, billing_currency AS currency, billed_cost, effective_cost,
        CASE
            WHEN x_purchase_option = 'capacity_block' THEN 'capacity blocks'
            WHEN x_line_item_type LIKE 'SavingsPlan%' THEN 'savings plans'
            WHEN x_line_item_type IN ('DiscountedUsage', 'RIFee')
                OR (x_line_item_type = 'Fee' AND commitment_discount_id IS NOT NULL) THEN 'reservations'
            WHEN x_line_item_type = 'Refund' OR charge_category IN ('Credit', 'Adjustment') THEN 'refunds and adjustments'
            WHEN commitment_discount_id IS NOT NULL THEN 'commitments'
            ELSE 'other'
        END AS family,
        charge_category = 'Purchase' OR x_line_item_type = 'Refund' AS is_fee
    FROM billing_line
    WHERE billed_cost <> effective_cost
),
part AS (
    SELECT billing_period, currency, family, 'fees' AS part, -billed_cost AS amount FROM line WHERE is_fee
    UNION ALL
    SELECT billing_period, currency, family, 'unused', effective_cost FROM line WHERE is_fee
    UNION ALL
    SELECT billing_period, currency, family, 'used', effective_cost - billed_cost FROM line WHERE NOT coalesce(is_fee, FALSE)
)
SELECT
    'all' AS partition, NULL AS partition_team,
    billing_period, currency, family, part, CAST(sum(amount) AS DECIMAL(38, 18)) AS amount_usd
FROM part
GROUP BY ALL
HAVING sum(amount) <> 0
