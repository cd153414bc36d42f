-- Every check of the bills, both sides: what a delivery says twice, and what of it is said elsewhere too.
-- inputs: bill_check, bill_version, billing_line, cross_check_line, model_name, price, match_hour
-- rule:   a check holds if its sides differ by no more than its tolerance.
WITH version AS (
    SELECT *, max(delivery) OVER (PARTITION BY export_name, billing_period) AS newest
    FROM (
        SELECT export_name, billing_period, delivery, delivered_at, charge_day, billing_currency AS currency,
            sum(billed_cost) AS billed, sum(effective_cost) AS effective
        FROM bill_version GROUP BY ALL)
),
line AS (
    SELECT *, TRUE AS is_record FROM billing_line UNION ALL BY NAME SELECT *, FALSE AS is_record FROM cross_check_line
),
stored AS (
    SELECT export_name, billing_period, provider_name, billing_account_id, billing_currency AS currency, is_record,
        sum(billed_cost) AS billed, sum(effective_cost) AS effective,
        -- AWS's own formats leave a Capacity Block's payment whole and its hours at nothing; it is spread once it is here
        sum(CASE WHEN x_purchase_option = 'capacity_block' AND x_line_item_type IS NOT NULL THEN billed_cost
                 ELSE effective_cost END) AS effective_read
    FROM line GROUP BY ALL
),
kept AS (
    SELECT export_name, billing_period, currency, sum(billed) AS billed, sum(effective_read) AS effective
    FROM stored GROUP BY ALL
),
as_read AS (
    SELECT v.export_name, v.billing_period, v.currency, sum(v.billed) AS billed, sum(v.effective) AS effective
    FROM version AS v WHERE v.delivery = v.newest GROUP BY ALL
),
record AS (
    SELECT billing_period, provider_name, billing_account_id, currency, sum(billed) AS billed, sum(effective) AS effective
    FROM stored WHERE is_record GROUP BY ALL
),
moved AS (
    -- days that had been over for three days when the newest delivery was made
    SELECT n.export_name, n.billing_period, n.currency, n.delivery, n.charge_day,
        coalesce(o.effective, 0) AS before_usd, n.effective AS after_usd
    FROM version AS n
    LEFT JOIN version AS o
        ON o.export_name = n.export_name AND o.billing_period = n.billing_period AND o.delivery = n.delivery - 1
        AND o.charge_day = n.charge_day AND o.currency = n.currency
    WHERE n.delivery = n.newest AND n.delivery > 1 AND n.charge_day < CAST(n.delivered_at AS DATE) - 3
),
restated AS (
    SELECT export_name, billing_period, currency, delivery, sum(before_usd) AS before_usd,
        arg_max(charge_day, abs(after_usd - before_usd)) AS day,
        arg_max(after_usd - before_usd, abs(after_usd - before_usd)) AS change,
        sum(abs(after_usd - before_usd)) AS absolute
    FROM moved GROUP BY ALL
),
metered AS (
    SELECT l.billing_period, l.billing_currency AS currency, coalesce(n.model, l.x_model) AS model, l.x_token_class AS token_class,
        l.x_service_tier AS service_tier, l.x_context_tier AS context_tier, l.x_scope AS scope,
        sum(l.billed_cost) AS cost, sum(l.x_tokens) AS tokens
    FROM billing_line AS l LEFT JOIN model_name AS n ON n.alias = l.x_model
    WHERE l.x_token_class IS NOT NULL AND l.x_tokens > 0 AND l.billed_cost > 0 AND l.provider_name = 'aws'
    GROUP BY ALL
),
priced AS (
    SELECT m.*, CAST(m.cost AS DOUBLE) * 1e6 / CAST(m.tokens AS DOUBLE) AS implied,
        CAST(min(p.per_mtok) AS DOUBLE) AS lowest, CAST(max(p.per_mtok) AS DOUBLE) AS highest
    FROM metered AS m
    INNER JOIN price AS p
        ON p.provider = 'aws.bedrock' AND p.model = m.model AND p.token_class = m.token_class
        AND p.service_tier = m.service_tier AND p.currency = m.currency AND (p.scope IS NULL OR p.scope = m.scope)
        AND p.valid_from < CAST(m.billing_period || '-01' AS TIMESTAMP) + INTERVAL 1 MONTH
        AND p.valid_to > CAST(m.billing_period || '-01' AS TIMESTAMP)
    GROUP BY ALL
),
banded AS (
    SELECT billing_period, currency, count(*) AS cells,
        count(*) FILTER (implied < 0.2 * lowest OR implied > 5 * highest) AS outside,
        arg_max(model || ' ' || token_class || ' at ' || printf('%.4f', implied) || ' per million',
            greatest(implied / nullif(highest, 0), lowest / nullif(implied, 0))) AS worst
    FROM priced GROUP BY ALL
),
told AS (
    SELECT billing_period, check_name AS name, export_name || ', ' || subject AS subject, currency, lhs, rhs, tolerance,
        NULL AS explanation
    FROM bill_check
    UNION ALL
    SELECT r.billing_period, 'billed cost stored = as read', r.export_name, r.currency, coalesce(k.billed, 0), r.billed, 0, NULL
    FROM as_read AS r LEFT JOIN kept AS k USING (export_name, billing_period, currency)
    UNION ALL
    SELECT r.billing_period, 'effective cost stored = as read', r.export_name, r.currency, coalesce(k.effective, 0), r.effective,
        0, NULL
    FROM as_read AS r LEFT JOIN kept AS k USING (export_name, billing_period, currency)
    UNION ALL
    SELECT s.billing_period, 'record = cross-check, billed', s.export_name || ', account ' || s.billing_account_id, s.currency,
        coalesce(r.billed, 0), s.billed, 0.01, NULL
    FROM stored AS s LEFT JOIN record AS r USING (billing_period, provider_name, billing_account_id, currency)
    WHERE NOT s.is_record
    UNION ALL
    SELECT s.billing_period, 'record = cross-check, effective', s.export_name || ', account ' || s.billing_account_id, s.currency,
        coalesce(r.effective, 0), s.effective, 0.01, NULL
    FROM stored AS s LEFT JOIN record AS r USING (billing_period, provider_name, billing_account_id, currency)
    WHERE NOT s.is_record
    UNION ALL
    SELECT billing_period, 'days long past are as they were', export_name || ', delivery ' || delivery, currency,
        absolute, 0, greatest(1, abs(before_usd) / 1000),
        CASE WHEN absolute > 0 THEN 'most on ' || day || ': ' || printf('%+.2f', change) END
    FROM restated
    UNION ALL
    SELECT billing_period, 'unit prices within 0.2 and 5 times the price book',
        cells || ' models and classes', currency, outside, 0, 0, CASE WHEN outside > 0 THEN 'the furthest is ' || worst END
    FROM banded
    UNION ALL
    SELECT strftime(hour, '%Y-%m'), 'tokens in the log = tokens on the bill', 'all models', 'tokens',
        sum(event_tokens - missing_tokens - variance_tokens), sum(bill_tokens), floor(sum(bill_tokens) / 50), NULL
    FROM match_hour GROUP BY ALL HAVING sum(bill_tokens) > 0
    UNION ALL
    SELECT billing_period, 'units of token charges are known', count(*) || ' lines', billing_currency,
        count(*) FILTER (x_tokens IS NULL), 0, 0, any_value(pricing_unit) FILTER (x_tokens IS NULL)
    FROM billing_line WHERE x_token_class IS NOT NULL GROUP BY ALL
    UNION ALL
    SELECT billing_period, 'models of token charges are known', count(*) || ' lines', billing_currency,
        count(*) FILTER (x_model IS NULL), 0, 0, any_value(x_usage_type) FILTER (x_model IS NULL)
    FROM billing_line WHERE x_token_class IS NOT NULL GROUP BY ALL
)
SELECT
    'all' AS partition, NULL AS partition_team,
    billing_period, name, subject, currency,
    CAST(lhs AS DECIMAL(38, 18)) AS lhs, CAST(rhs AS DECIMAL(38, 18)) AS rhs,
    CAST(CAST(lhs AS DECIMAL(38, 18)) - CAST(rhs AS DECIMAL(38, 18)) AS DECIMAL(38, 18)) AS difference,
    CAST(tolerance AS DECIMAL(38, 18)) AS tolerance,
    abs(CAST(lhs AS DECIMAL(38, 18)) - CAST(rhs AS DECIMAL(38, 18))) <= CAST(tolerance AS DECIMAL(38, 18)) AS ok,
    explanation
FROM told
