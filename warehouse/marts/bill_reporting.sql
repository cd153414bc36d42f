-- Every bill beside itself in the reporting currency, by the dated exchange rates of the configuration.
-- inputs: billing_line, fx_rate, publish_parameter
-- rule:   a day is converted by the latest rate of its day or before; days without any are counted and not converted.
WITH daily AS (
    SELECT billing_period, billing_currency AS currency, CAST(charge_period_start AS DATE) AS day,
        sum(billed_cost) AS billed, sum(effective_cost) AS effective
    FROM billing_line GROUP BY ALL
),
rated AS (
    SELECT d.*, p.currency AS reporting_currency,
        CASE WHEN d.currency = p.currency THEN CAST(1 AS DECIMAL(38, 18)) ELSE r.rate END AS rate
    FROM daily AS d
    CROSS JOIN publish_parameter AS p
    ASOF LEFT JOIN (
        SELECT f.currency, f.day, f.rate FROM fx_rate AS f
        SEMI JOIN publish_parameter AS p ON p.currency = f.reporting_currency
    ) AS r ON r.currency = d.currency AND r.day <= d.day
)
SELECT
    'all' AS partition, NULL AS partition_team,
    billing_period, currency, reporting_currency,
    CAST(sum(billed) AS DECIMAL(38, 18)) AS billed, CAST(sum(effective) AS DECIMAL(38, 18)) AS effective,
    -- ten decimals of amount and eight of rate: a product of both is exact
    CAST(sum(CAST(round(billed, 10) AS DECIMAL(20, 10)) * CAST(round(rate, 8) AS DECIMAL(18, 8))) AS DECIMAL(38, 18))
        AS billed_reporting,
    CAST(sum(CAST(round(effective, 10) AS DECIMAL(20, 10)) * CAST(round(rate, 8) AS DECIMAL(18, 8))) AS DECIMAL(38, 18))
        AS effective_reporting,
    min(rate) AS lowest_rate, max(rate) AS highest_rate,
    count(*) AS days, count(*) FILTER (rate IS NULL) AS days_without_rate
FROM rated
GROUP BY billing_period, currency, reporting_currency
