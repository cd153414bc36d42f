-- Step 1 (overlay): period amounts to the days of their charge period, by hours; days to come are future.
-- grain:   overlay_scope row x local day
-- inputs:  overlay_scope, hour_calendar (hour, local_day), run_parameter
-- control: sum of nanos = overlay_scope.
WITH numbered AS (
    SELECT
        o.billing_period AS billing_period, o.currency AS currency, o.payer_id AS payer_id,
        o.account_id AS account_id, o.provider AS provider, o.service_name AS service_name,
        o.line_class AS line_class, o.charge_category AS charge_category, o.status AS status, o.part AS part,
        o.effective_nano AS effective_nano, o.billed_nano AS billed_nano,
        o.charge_period_start AS charge_period_start, o.charge_period_end AS charge_period_end,
        CAST(date_trunc('hour', o.charge_period_start) AS TIMESTAMP) AS first_hour,
        row_number() OVER (
            ORDER BY o.billing_period, o.currency, o.payer_id, coalesce(o.account_id, ''), o.provider,
                o.service_name, o.line_class, o.charge_category, o.status, o.charge_period_start,
                o.charge_period_end, o.part
        ) AS line_number
    FROM overlay_scope AS o
),
day_weight AS (
    SELECT
        n.line_number AS line_number, h.local_day AS day,
        CASE WHEN min(h.hour) >= max(p.as_of) THEN 1 ELSE 0 END AS is_future,
        CAST(count(*) AS BIGINT) AS hours
    FROM numbered AS n
    CROSS JOIN run_parameter AS p
    INNER JOIN hour_calendar AS h
        ON h.hour >= n.first_hour AND (h.hour < n.charge_period_end OR h.hour = n.first_hour)
    GROUP BY n.line_number, h.local_day
),
running AS (
    SELECT
        d.line_number AS line_number, d.day AS day, d.is_future AS is_future, d.hours AS hours,
        CAST(sum(d.hours) OVER (PARTITION BY d.line_number ORDER BY d.day
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS upto,
        CAST(sum(d.hours) OVER (PARTITION BY d.line_number) AS BIGINT) AS total
    FROM day_weight AS d
)
SELECT
    n.billing_period AS billing_period, n.currency AS currency, n.account_id AS account_id, n.provider AS provider,
    n.service_name AS service_name, n.line_class AS line_class, n.charge_category AS charge_category,
    n.status AS status, n.part AS part, r.day AS day, r.is_future AS is_future,
    CAST(sum(share(n.effective_nano, r.upto, r.hours, r.total)) AS BIGINT) AS effective_nano,
    CAST(sum(share(n.billed_nano, r.upto, r.hours, r.total)) AS BIGINT) AS billed_nano
FROM numbered AS n
INNER JOIN running AS r ON r.line_number = n.line_number
GROUP BY n.billing_period, n.currency, n.account_id, n.provider, n.service_name, n.line_class, n.charge_category,
    n.status, n.part, r.day, r.is_future
