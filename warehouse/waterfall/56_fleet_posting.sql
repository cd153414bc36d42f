-- Step 5f: the money of the own fleet to kinds and to those who used it.
-- grain:   hour x bill dimensions x cluster x region x route x pool x role x state x token class x claim set x task x user
-- inputs:  pool_class, node_share, cluster_share, fleet_cell, fleet_match, run_parameter
-- rule:    productive, under-used and shared money of a class goes by tokens; those that no call explains are a weight
--          too, without an owner. Everything else is idle or unmeasured and belongs to its pool. Tokens are carried by
--          the first productive row of a class, so that they are counted once; calls in hours that the bill has not
--          reached, or in which no pool of their route held anything (no_pool), have an amount that nobody knows.
-- control: sum of billed nanos = sum of nanos of lines on the routes node and cluster.
WITH weight AS (
    SELECT
        c.hour AS hour, c.route AS route, c.group_region AS group_region, c.token_class AS token_class,
        c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id, c.tokens AS tokens, 0 AS is_rest
    FROM fleet_cell AS c
    UNION ALL
    SELECT
        m.hour AS hour, m.route AS route, m.group_region AS group_region, m.token_class AS token_class,
        CAST(NULL AS VARCHAR) AS claim_set_id, CAST(NULL AS VARCHAR) AS task_id, CAST(NULL AS VARCHAR) AS user_id,
        m.rest_tokens AS tokens, 1 AS is_rest
    FROM fleet_match AS m
    WHERE m.rest_tokens > 0
),
running AS (
    SELECT
        w.*,
        CAST(sum(w.tokens) OVER (
            PARTITION BY w.hour, w.route, w.group_region, w.token_class
            ORDER BY w.is_rest, coalesce(w.claim_set_id, ''), coalesce(w.task_id, ''), coalesce(w.user_id, '')
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS upto,
        CAST(sum(w.tokens) OVER (PARTITION BY w.hour, w.route, w.group_region, w.token_class) AS BIGINT) AS total
    FROM weight AS w
),
ranked AS (
    SELECT
        p.*,
        row_number() OVER (
            PARTITION BY p.hour, p.route, p.group_region, p.token_class
            ORDER BY CASE WHEN p.weight > 0 THEN 0 ELSE 1 END,
                CASE WHEN p.state = 'productive' THEN 0 WHEN p.state = 'under_used' THEN 1 ELSE 2 END,
                p.cluster, coalesce(p.region, ''), p.pool, p.role, p.billing_period, p.currency, p.status,
                coalesce(p.account_id, ''), coalesce(p.region_id, ''), p.service_name, p.line_class
        ) AS amount_rank
    FROM pool_class AS p
)
SELECT
    a.hour AS hour, a.billing_period AS billing_period, a.currency AS currency, a.account_id AS account_id,
    a.region_id AS region_id, a.service_name AS service_name, a.line_class AS line_class, a.cluster AS cluster,
    a.region AS region, a.route AS route, a.pool AS pool, a.role AS role, a.state AS state, a.token_class AS token_class,
    CASE WHEN a.state = 'shared' THEN 'shared'
         WHEN a.state = 'under_used' THEN 'under_used'
         WHEN r.total IS NULL OR r.is_rest = 1 THEN 'unattributed'
         ELSE 'usage' END AS kind,
    'billed' AS basis, a.status AS status, coalesce(a.method, 'gpu_time') AS method,
    CASE WHEN r.total IS NULL THEN 'no_tokens' WHEN r.is_rest = 1 THEN 'no_log' END AS reason,
    r.claim_set_id AS claim_set_id, r.task_id AS task_id, r.user_id AS user_id,
    CASE WHEN a.amount_rank = 1 THEN coalesce(r.tokens, 0) ELSE 0 END AS tokens,
    CAST(CASE WHEN r.total IS NULL THEN a.effective_nano
              ELSE share(a.effective_nano, r.upto, r.tokens, r.total) END AS BIGINT) AS effective_nano,
    CAST(CASE WHEN r.total IS NULL THEN a.billed_nano
              ELSE share(a.billed_nano, r.upto, r.tokens, r.total) END AS BIGINT) AS billed_nano,
    CAST(CASE WHEN r.total IS NULL THEN a.at_low_nano
              ELSE share(a.at_low_nano, r.upto, r.tokens, r.total) END AS BIGINT) AS at_low_nano,
    CAST(CASE WHEN r.total IS NULL THEN a.at_high_nano
              ELSE share(a.at_high_nano, r.upto, r.tokens, r.total) END AS BIGINT) AS at_high_nano
FROM ranked AS a
LEFT JOIN running AS r
    ON r.hour = a.hour AND r.route = a.route AND r.group_region = a.group_region AND r.token_class = a.token_class
WHERE r.total IS NOT NULL OR a.effective_nano <> 0 OR a.billed_nano <> 0
UNION ALL
SELECT
    s.hour AS hour, s.billing_period AS billing_period, s.currency AS currency, s.account_id AS account_id,
    s.region_id AS region_id, s.service_name AS service_name, s.line_class AS line_class, s.cluster AS cluster,
    s.region AS region, s.route AS route, s.pool AS pool, s.role AS role, s.state AS state, CAST(NULL AS VARCHAR) AS token_class,
    CASE WHEN s.state = 'unmeasured' THEN 'unmeasured' ELSE 'idle' END AS kind,
    'billed' AS basis, s.status AS status, 'gpu_time' AS method, s.state AS reason,
    CAST(NULL AS VARCHAR) AS claim_set_id, CAST(NULL AS VARCHAR) AS task_id, CAST(NULL AS VARCHAR) AS user_id,
    CAST(0 AS BIGINT) AS tokens, s.effective_nano AS effective_nano, s.billed_nano AS billed_nano,
    s.effective_nano AS at_low_nano, s.effective_nano AS at_high_nano
FROM node_share AS s
WHERE s.state NOT IN ('productive', 'under_used')
UNION ALL
SELECT
    s.hour AS hour, s.billing_period AS billing_period, s.currency AS currency, s.account_id AS account_id,
    s.region_id AS region_id, s.service_name AS service_name, s.line_class AS line_class, s.cluster AS cluster,
    s.region AS region, s.route AS route, s.pool AS pool, s.role AS role, s.state AS state, CAST(NULL AS VARCHAR) AS token_class,
    'shared' AS kind, 'billed' AS basis, s.status AS status, 'gpu_time' AS method, s.state AS reason,
    CAST(NULL AS VARCHAR) AS claim_set_id, CAST(NULL AS VARCHAR) AS task_id, CAST(NULL AS VARCHAR) AS user_id,
    CAST(0 AS BIGINT) AS tokens, s.effective_nano AS effective_nano, s.billed_nano AS billed_nano,
    s.effective_nano AS at_low_nano, s.effective_nano AS at_high_nano
FROM cluster_share AS s
WHERE s.state <> 'shared'
UNION ALL
SELECT
    r.hour AS hour, CAST(NULL AS VARCHAR) AS billing_period, p.currency AS currency,
    CAST(NULL AS VARCHAR) AS account_id, nullif(r.group_region, '') AS region_id,
    CAST(NULL AS VARCHAR) AS service_name, 'accelerator' AS line_class, CAST(NULL AS VARCHAR) AS cluster,
    nullif(r.group_region, '') AS region, r.route AS route, CAST(NULL AS VARCHAR) AS pool,
    CAST(NULL AS VARCHAR) AS role, 'productive' AS state, r.token_class AS token_class,
    'usage' AS kind, 'estimated' AS basis, 'open' AS status, 'gpu_time' AS method,
    CASE WHEN b.hour IS NULL THEN 'not_billed_yet' ELSE 'no_pool' END AS reason,
    r.claim_set_id AS claim_set_id, r.task_id AS task_id, r.user_id AS user_id, r.tokens AS tokens,
    CAST(NULL AS BIGINT) AS effective_nano, CAST(NULL AS BIGINT) AS billed_nano,
    CAST(NULL AS BIGINT) AS at_low_nano, CAST(NULL AS BIGINT) AS at_high_nano
FROM running AS r
CROSS JOIN run_parameter AS p
LEFT JOIN ranked AS a
    ON a.hour = r.hour AND a.route = r.route AND a.group_region = r.group_region AND a.token_class = r.token_class
    AND a.amount_rank = 1
LEFT JOIN (SELECT DISTINCT s.hour AS hour FROM node_share AS s) AS b ON b.hour = r.hour
WHERE r.is_rest = 0 AND a.hour IS NULL
