-- Deliveries of a bill and what each changed, per day and service.
-- inputs: bill_version
WITH delivered AS (
    SELECT export_name, billing_period, delivery, delivered_at, charge_day, service_name, billing_currency AS currency,
        sum(billed_cost) AS billed_usd, sum(effective_cost) AS effective_usd
    FROM bill_version GROUP BY ALL
),
cell AS (
    SELECT d.export_name, d.billing_period, d.delivery, d.delivered_at, d.is_newest, k.charge_day, k.service_name, k.currency
    FROM (
        SELECT DISTINCT export_name, billing_period, delivery, delivered_at,
            delivery = max(delivery) OVER (PARTITION BY export_name, billing_period) AS is_newest
        FROM delivered
    ) AS d
    INNER JOIN (SELECT DISTINCT export_name, billing_period, charge_day, service_name, currency FROM delivered) AS k
        USING (export_name, billing_period)
),
changed AS (
    SELECT
        c.export_name, c.billing_period, c.delivery, c.delivered_at, c.is_newest, c.charge_day, c.service_name, c.currency,
        CAST(coalesce(d.billed_usd, 0) AS DECIMAL(38, 18)) AS billed_usd,
        CAST(coalesce(d.effective_usd, 0) AS DECIMAL(38, 18)) AS effective_usd,
        CAST(coalesce(d.billed_usd, 0) - coalesce(b.billed_usd, 0) AS DECIMAL(38, 18)) AS billed_change_usd,
        CAST(coalesce(d.effective_usd, 0) - coalesce(b.effective_usd, 0) AS DECIMAL(38, 18)) AS effective_change_usd
    FROM cell AS c
    LEFT JOIN delivered AS d USING (export_name, billing_period, delivery, charge_day, service_name, currency)
    LEFT JOIN delivered AS b
        ON b.export_name = c.export_name AND b.billing_period = c.billing_period AND b.delivery = c.delivery - 1
        AND b.charge_day = c.charge_day AND b.service_name = c.service_name AND b.currency = c.currency
    WHERE d.billed_usd IS NOT NULL OR b.billed_usd IS NOT NULL
)
SELECT
    'all' AS partition, NULL AS partition_team, *,
    -- a day that had been over for three days when it was told otherwise
    is_newest AND delivery > 1 AND charge_day < CAST(delivered_at AS DATE) - 3 AND effective_change_usd <> 0 AS is_restated,
    strftime(charge_day, '%-d %B') || CASE WHEN effective_change_usd < 0 THEN ' fell' ELSE ' rose' END || ', ' || service_name
        || ', delivery ' || delivery || ' of ' || billing_period AS name
FROM changed
