-- The two identities: bill = ledger + rounding, per billing period, currency and cost basis. Exact decimals.
-- inputs: billing_line, ledger_hour, ledger_overlay, ledger_rounding
WITH bill AS (
    SELECT billing_period, billing_currency AS currency, 'billed' AS cost_basis, sum(billed_cost) AS amount,
        CASE WHEN count(*) = count(invoice_id) THEN 'final' ELSE 'open' END AS status
    FROM billing_line GROUP BY ALL
    UNION ALL
    SELECT billing_period, billing_currency, 'effective', sum(effective_cost),
        CASE WHEN count(*) = count(invoice_id) THEN 'final' ELSE 'open' END
    FROM billing_line GROUP BY ALL
),
posting AS (
    SELECT billing_period, currency, sum(billed_nano) AS billed, sum(effective_nano) AS effective FROM (
        SELECT billing_period, currency, billed_nano, effective_nano FROM ledger_hour WHERE basis = 'billed'
        UNION ALL SELECT billing_period, currency, billed_nano, effective_nano FROM ledger_overlay)
    GROUP BY ALL
),
ledger AS (
    SELECT billing_period, currency, 'billed' AS cost_basis, billed AS nano FROM posting
    UNION ALL SELECT billing_period, currency, 'effective', effective FROM posting
),
rounding AS (
    SELECT billing_period, currency, cost_basis, sum(amount) AS amount FROM ledger_rounding GROUP BY ALL
)
SELECT
    'all' AS partition, NULL AS partition_team,
    b.billing_period, b.currency, b.cost_basis, b.status,
    CAST(b.amount AS DECIMAL(38, 18)) AS bill_usd,
    CAST(CAST(coalesce(l.nano, 0) AS DECIMAL(28, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS DECIMAL(38, 18)) AS ledger_usd,
    CAST(coalesce(r.amount, 0) AS DECIMAL(38, 18)) AS rounding_usd,
    CAST(b.amount - coalesce(r.amount, 0)
        - CAST(coalesce(l.nano, 0) AS DECIMAL(28, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS DECIMAL(38, 18))
        AS difference_usd
FROM bill AS b
LEFT JOIN ledger AS l USING (billing_period, currency, cost_basis)
LEFT JOIN rounding AS r USING (billing_period, currency, cost_basis)
