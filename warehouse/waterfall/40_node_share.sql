-- Step 2d and 3d: what every instance cost to what its GPUs did in that hour.
-- grain:   hour x bill dimensions x cluster x region x route x pool x role x state
-- inputs:  bill_line (route node), node_hour, work_window (replica_window of the hours at hand), work_reference
-- rule:    GPU time of the hour = GPUs x the longer of billed time and known life. Busy time is productive as far as
--          its work reaches the reference of the week before, the rest is under-used; without a reference all of it
--          is productive. What no pod requested is `not_requested`, billed time outside the node's known life
--          `not_in_cluster`, life that nothing saw `unmeasured`. Pods that together held more than the node has share
--          by what they held.
-- control: sum of nanos = sum of nanos of lines on the route node.
WITH judged AS (
    SELECT
        w.hour AS hour, w.instance_id AS instance_id, w.cluster AS cluster, w.region AS region,
        w.gpu_type AS gpu_type, w.route AS route, w.pool AS pool, w.role AS role,
        w.busy_gpu_ms AS busy_gpu_ms, w.no_traffic_gpu_ms AS no_traffic_gpu_ms,
        w.starting_gpu_ms AS starting_gpu_ms, w.stopping_gpu_ms AS stopping_gpu_ms,
        w.unmeasured_gpu_ms AS unmeasured_gpu_ms,
        CASE
            WHEN coalesce(v.work_per_gpu_second, a.work_per_gpu_second) IS NULL OR w.sampled_minutes = 0
                THEN w.busy_gpu_ms
            WHEN floor(CAST(w.work AS DOUBLE) * 1000 / coalesce(v.work_per_gpu_second, a.work_per_gpu_second))
                < w.busy_gpu_ms
                THEN CAST(floor(CAST(w.work AS DOUBLE) * 1000
                    / coalesce(v.work_per_gpu_second, a.work_per_gpu_second)) AS BIGINT)
            ELSE w.busy_gpu_ms
        END AS productive_gpu_ms
    FROM work_window AS w
    LEFT JOIN work_reference AS v
        ON v.week_start = CAST(date_trunc('week', w.hour) AS TIMESTAMP) AND v.route = w.route AND v.role = w.role
        AND v.version = w.version AND v.gpu_type = coalesce(w.gpu_type, '')
    LEFT JOIN work_reference AS a
        ON a.week_start = CAST(date_trunc('week', w.hour) AS TIMESTAMP) AND a.route = w.route AND a.role = w.role
        AND a.version IS NULL AND a.gpu_type = coalesce(w.gpu_type, '')
),
pod_part AS (
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'productive' AS state, j.productive_gpu_ms AS gpu_ms
    FROM judged AS j
    UNION ALL
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'under_used' AS state, j.busy_gpu_ms - j.productive_gpu_ms AS gpu_ms
    FROM judged AS j
    UNION ALL
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'no_traffic' AS state, j.no_traffic_gpu_ms AS gpu_ms
    FROM judged AS j
    UNION ALL
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'starting' AS state, j.starting_gpu_ms AS gpu_ms
    FROM judged AS j
    UNION ALL
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'stopping' AS state, j.stopping_gpu_ms AS gpu_ms
    FROM judged AS j
    UNION ALL
    SELECT j.hour AS hour, j.instance_id AS instance_id, j.cluster AS cluster, j.region AS region, j.route AS route,
        j.pool AS pool, j.role AS role, 'unmeasured' AS state, j.unmeasured_gpu_ms AS gpu_ms
    FROM judged AS j
),
held AS (
    SELECT p.hour AS hour, p.instance_id AS instance_id, CAST(sum(p.gpu_ms) AS BIGINT) AS gpu_ms
    FROM pod_part AS p
    GROUP BY p.hour, p.instance_id
),
line AS (
    -- software on the instance is billed by its hours too, by another service; an hour has no more than an hour
    SELECT
        s.hour AS hour, s.instance_id AS instance_id, max(s.cluster) AS cluster, max(s.gpus) AS gpus,
        max(CASE WHEN s.billed_ms > 3600000 THEN 3600000 ELSE s.billed_ms END) AS billed_ms
    FROM (
        SELECT
            l.charge_hour AS hour, l.resource_id AS instance_id, max(l.cluster) AS cluster,
            max(l.fleet_gpus) AS gpus, CAST(sum(coalesce(l.usage_ms, 0)) AS BIGINT) AS billed_ms
        FROM bill_line AS l
        WHERE l.line_route = 'node'
        GROUP BY l.charge_hour, l.resource_id, l.service_name, l.currency, l.billing_period
    ) AS s
    GROUP BY s.hour, s.instance_id
),
one_node AS (
    -- an instance may have two names or clusters within an hour; it has one life
    SELECT
        n.hour AS hour, n.instance_id AS instance_id, min(n.cluster) AS cluster, min(n.region) AS region,
        max(n.is_table) AS is_table,
        CAST(CASE WHEN sum(n.life_ms) > 3600000 THEN 3600000 ELSE sum(n.life_ms) END AS BIGINT) AS life_ms,
        CAST(CASE WHEN sum(n.seen_ms) > 3600000 THEN 3600000 ELSE sum(n.seen_ms) END AS BIGINT) AS seen_ms
    FROM node_hour AS n
    GROUP BY n.hour, n.instance_id
),
node AS (
    SELECT
        l.hour AS hour, l.instance_id AS instance_id, coalesce(n.cluster, l.cluster) AS cluster, n.region AS region,
        -- what is not billed was stopped, whatever nobody saw of it
        CASE WHEN l.billed_ms > 0 AND l.billed_ms < n.life_ms
             THEN CASE WHEN l.billed_ms > n.seen_ms THEN l.billed_ms ELSE n.seen_ms END
             ELSE coalesce(n.life_ms, 0) END * l.gpus AS life_gpu_ms,
        coalesce(n.seen_ms, 0) * l.gpus AS seen_gpu_ms,
        CASE WHEN n.is_table = 1 THEN 0
             WHEN l.billed_ms > coalesce(n.life_ms, 0) THEN (l.billed_ms - coalesce(n.life_ms, 0)) * l.gpus
             ELSE 0 END AS outside_gpu_ms,
        coalesce(h.gpu_ms, 0) AS held_gpu_ms
    FROM line AS l
    LEFT JOIN one_node AS n ON n.hour = l.hour AND n.instance_id = l.instance_id
    LEFT JOIN held AS h ON h.hour = l.hour AND h.instance_id = l.instance_id
),
part AS (
    SELECT
        p.hour AS hour, p.instance_id AS instance_id, p.cluster AS cluster, p.region AS region, p.route AS route,
        p.pool AS pool, p.role AS role, p.state AS state, CAST(sum(p.gpu_ms) AS BIGINT) AS gpu_ms
    FROM pod_part AS p
    WHERE p.gpu_ms > 0
    GROUP BY p.hour, p.instance_id, p.cluster, p.region, p.route, p.pool, p.role, p.state
    UNION ALL
    SELECT n.hour AS hour, n.instance_id AS instance_id, n.cluster AS cluster, n.region AS region,
        CAST(NULL AS VARCHAR) AS route, CAST(NULL AS VARCHAR) AS pool, CAST(NULL AS VARCHAR) AS role,
        'not_requested' AS state, n.seen_gpu_ms - n.held_gpu_ms AS gpu_ms
    FROM node AS n
    WHERE n.seen_gpu_ms > n.held_gpu_ms
    UNION ALL
    SELECT n.hour AS hour, n.instance_id AS instance_id, n.cluster AS cluster, n.region AS region,
        CAST(NULL AS VARCHAR) AS route, CAST(NULL AS VARCHAR) AS pool, CAST(NULL AS VARCHAR) AS role,
        'unmeasured' AS state, n.life_gpu_ms - n.seen_gpu_ms AS gpu_ms
    FROM node AS n
    WHERE n.life_gpu_ms > n.seen_gpu_ms
    UNION ALL
    SELECT n.hour AS hour, n.instance_id AS instance_id, n.cluster AS cluster, n.region AS region,
        CAST(NULL AS VARCHAR) AS route, CAST(NULL AS VARCHAR) AS pool, CAST(NULL AS VARCHAR) AS role,
        'not_in_cluster' AS state,
        -- an instance that is on the bill and nowhere else costs something all the same
        CASE WHEN n.outside_gpu_ms > 0 THEN n.outside_gpu_ms ELSE 1 END AS gpu_ms
    FROM node AS n
    WHERE n.outside_gpu_ms > 0 OR (n.life_gpu_ms = 0 AND n.held_gpu_ms = 0)
),
running AS (
    SELECT
        p.*,
        CAST(sum(p.gpu_ms) OVER (
            PARTITION BY p.hour, p.instance_id
            ORDER BY p.state, coalesce(p.cluster, ''), coalesce(p.region, ''), coalesce(p.route, ''),
                coalesce(p.pool, ''), coalesce(p.role, '')
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS upto,
        CAST(sum(p.gpu_ms) OVER (PARTITION BY p.hour, p.instance_id) AS BIGINT) AS total
    FROM part AS p
),
amount AS (
    SELECT
        l.charge_hour AS hour, l.resource_id AS instance_id, l.billing_period AS billing_period,
        l.currency AS currency, l.status AS status, l.account_id AS account_id, l.region_id AS region_id,
        l.service_name AS service_name, l.line_class AS line_class,
        CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano,
        CAST(sum(l.billed_nano) AS BIGINT) AS billed_nano
    FROM bill_line AS l
    WHERE l.line_route = 'node'
    GROUP BY l.charge_hour, l.resource_id, l.billing_period, l.currency, l.status, l.account_id, l.region_id,
        l.service_name, l.line_class
)
SELECT
    a.hour AS hour, a.billing_period AS billing_period, a.currency AS currency, a.status AS status,
    a.account_id AS account_id, a.region_id AS region_id, a.service_name AS service_name,
    a.line_class AS line_class, r.cluster AS cluster, r.region AS region, r.route AS route, r.pool AS pool,
    r.role AS role, r.state AS state,
    CAST(sum(share(a.effective_nano, r.upto, r.gpu_ms, r.total)) AS BIGINT) AS effective_nano,
    CAST(sum(share(a.billed_nano, r.upto, r.gpu_ms, r.total)) AS BIGINT) AS billed_nano
FROM amount AS a
INNER JOIN running AS r ON r.hour = a.hour AND r.instance_id = a.instance_id
GROUP BY a.hour, a.billing_period, a.currency, a.status, a.account_id, a.region_id, a.service_name, a.line_class,
    r.cluster, r.region, r.route, r.pool, r.role, r.state
