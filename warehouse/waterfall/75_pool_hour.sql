-- Step 7g: every pool, hour by hour: what it held, what that did, what it cost.
-- grain:   hour x cluster x region x route x pool x role x currency (pool NULL: of nodes, not of pools)
-- inputs:  work_window, node_hour, pool_token, fleet_posting, work_gpu (hour x cluster x namespace x pod: sums and
--          counts of DCGM samples)
-- rule:    GPU time in milliseconds; engine tokens as in step 4a; money by state in whole nanos of effective cost.
WITH held AS (
    SELECT
        w.hour AS hour, w.cluster AS cluster, w.region AS region, w.route AS route, w.pool AS pool, w.role AS role,
        CAST(sum(w.busy_gpu_ms) AS BIGINT) AS busy_gpu_ms,
        CAST(sum(w.no_traffic_gpu_ms) AS BIGINT) AS no_traffic_gpu_ms,
        CAST(sum(w.starting_gpu_ms) AS BIGINT) AS starting_gpu_ms,
        CAST(sum(w.stopping_gpu_ms) AS BIGINT) AS stopping_gpu_ms,
        CAST(sum(w.unmeasured_gpu_ms) AS BIGINT) AS unmeasured_gpu_ms,
        CAST(sum(w.unknown_series) AS BIGINT) AS unknown_series
    FROM work_window AS w
    GROUP BY w.hour, w.cluster, w.region, w.route, w.pool, w.role
),
node_held AS (
    SELECT w.hour AS hour, w.instance_id AS instance_id,
        CAST(sum(w.busy_gpu_ms + w.no_traffic_gpu_ms + w.starting_gpu_ms + w.stopping_gpu_ms + w.unmeasured_gpu_ms)
            AS BIGINT) AS gpu_ms
    FROM work_window AS w
    GROUP BY w.hour, w.instance_id
),
free AS (
    SELECT
        n.hour AS hour, n.cluster AS cluster, n.region AS region,
        CAST(sum(CASE WHEN n.seen_ms * n.gpus > coalesce(h.gpu_ms, 0)
                      THEN n.seen_ms * n.gpus - coalesce(h.gpu_ms, 0) ELSE 0 END) AS BIGINT) AS not_requested_gpu_ms,
        CAST(sum((n.life_ms - CASE WHEN n.seen_ms > n.life_ms THEN n.life_ms ELSE n.seen_ms END) * n.gpus) AS BIGINT)
            AS unmeasured_gpu_ms
    FROM node_hour AS n
    LEFT JOIN node_held AS h ON h.hour = n.hour AND h.instance_id = n.instance_id
    WHERE n.gpus > 0
    GROUP BY n.hour, n.cluster, n.region
),
gpu AS (
    SELECT
        w.hour AS hour, w.cluster AS cluster, w.region AS region, w.route AS route, w.pool AS pool, w.role AS role,
        CAST(sum(g.active_ppm_sum) AS BIGINT) AS active_ppm_sum, CAST(sum(g.active_samples) AS BIGINT) AS active_samples,
        CAST(sum(g.memory_used_sum) AS BIGINT) AS memory_used_sum,
        CAST(sum(g.memory_total_sum) AS BIGINT) AS memory_total_sum
    FROM work_gpu AS g
    INNER JOIN (
        SELECT DISTINCT v.hour AS hour, v.cluster AS cluster, v.namespace AS namespace, v.pod AS pod,
            v.region AS region, v.route AS route, v.pool AS pool, v.role AS role
        FROM work_window AS v
    ) AS w ON w.hour = g.hour AND w.cluster = g.cluster AND w.namespace = g.namespace AND w.pod = g.pod
    GROUP BY w.hour, w.cluster, w.region, w.route, w.pool, w.role
),
fact AS (
    SELECT
        h.hour AS hour, h.cluster AS cluster, h.region AS region, h.route AS route, h.pool AS pool, h.role AS role,
        h.busy_gpu_ms AS busy_gpu_ms, h.no_traffic_gpu_ms AS no_traffic_gpu_ms,
        h.starting_gpu_ms AS starting_gpu_ms, h.stopping_gpu_ms AS stopping_gpu_ms,
        h.unmeasured_gpu_ms AS unmeasured_gpu_ms, CAST(0 AS BIGINT) AS not_requested_gpu_ms,
        coalesce(t.uncached_input_tokens, 0) AS uncached_input_tokens,
        coalesce(t.cache_read_tokens, 0) AS cache_read_tokens, coalesce(t.output_tokens, 0) AS output_tokens,
        h.unknown_series AS unknown_series, g.active_ppm_sum AS active_ppm_sum, g.active_samples AS active_samples,
        g.memory_used_sum AS memory_used_sum, g.memory_total_sum AS memory_total_sum
    FROM held AS h
    LEFT JOIN pool_token AS t
        ON t.hour = h.hour AND t.cluster = h.cluster AND coalesce(t.region, '') = coalesce(h.region, '')
        AND t.route = h.route AND t.pool = h.pool AND t.role = h.role
    LEFT JOIN gpu AS g
        ON g.hour = h.hour AND g.cluster = h.cluster AND coalesce(g.region, '') = coalesce(h.region, '')
        AND coalesce(g.route, '') = coalesce(h.route, '') AND g.pool = h.pool AND g.role = h.role
    UNION ALL
    SELECT
        f.hour AS hour, f.cluster AS cluster, f.region AS region, CAST(NULL AS VARCHAR) AS route,
        CAST(NULL AS VARCHAR) AS pool, CAST(NULL AS VARCHAR) AS role, CAST(0 AS BIGINT) AS busy_gpu_ms,
        CAST(0 AS BIGINT) AS no_traffic_gpu_ms, CAST(0 AS BIGINT) AS starting_gpu_ms,
        CAST(0 AS BIGINT) AS stopping_gpu_ms, f.unmeasured_gpu_ms AS unmeasured_gpu_ms,
        f.not_requested_gpu_ms AS not_requested_gpu_ms, CAST(0 AS BIGINT) AS uncached_input_tokens,
        CAST(0 AS BIGINT) AS cache_read_tokens, CAST(0 AS BIGINT) AS output_tokens,
        CAST(0 AS BIGINT) AS unknown_series, CAST(NULL AS BIGINT) AS active_ppm_sum,
        CAST(NULL AS BIGINT) AS active_samples, CAST(NULL AS BIGINT) AS memory_used_sum,
        CAST(NULL AS BIGINT) AS memory_total_sum
    FROM free AS f
    WHERE f.not_requested_gpu_ms > 0 OR f.unmeasured_gpu_ms > 0
),
money AS (
    SELECT
        p.hour AS hour, p.cluster AS cluster, p.region AS region, p.route AS route, p.pool AS pool, p.role AS role,
        p.currency AS currency,
        CAST(sum(CASE WHEN p.state = 'productive' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS productive_nano,
        CAST(sum(CASE WHEN p.state = 'under_used' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS under_used_nano,
        CAST(sum(CASE WHEN p.state IN ('shared', 'nothing_held') THEN p.effective_nano ELSE 0 END) AS BIGINT)
            AS shared_nano,
        CAST(sum(CASE WHEN p.state = 'no_traffic' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS no_traffic_nano,
        CAST(sum(CASE WHEN p.state = 'starting' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS starting_nano,
        CAST(sum(CASE WHEN p.state = 'stopping' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS stopping_nano,
        CAST(sum(CASE WHEN p.state = 'not_requested' THEN p.effective_nano ELSE 0 END) AS BIGINT)
            AS not_requested_nano,
        CAST(sum(CASE WHEN p.state = 'not_in_cluster' THEN p.effective_nano ELSE 0 END) AS BIGINT)
            AS not_in_cluster_nano,
        CAST(sum(CASE WHEN p.state = 'unmeasured' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS unmeasured_nano,
        CAST(sum(CASE WHEN p.kind = 'unattributed' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS unattributed_nano,
        CAST(sum(p.effective_nano) AS BIGINT) AS effective_nano
    FROM fleet_posting AS p
    WHERE p.basis = 'billed'
    GROUP BY p.hour, p.cluster, p.region, p.route, p.pool, p.role, p.currency
)
SELECT
    coalesce(f.hour, y.hour) AS hour, coalesce(f.cluster, y.cluster) AS cluster,
    coalesce(f.region, y.region) AS region, coalesce(f.route, y.route) AS route, coalesce(f.pool, y.pool) AS pool,
    coalesce(f.role, y.role) AS role, y.currency AS currency,
    f.busy_gpu_ms AS busy_gpu_ms, f.no_traffic_gpu_ms AS no_traffic_gpu_ms, f.starting_gpu_ms AS starting_gpu_ms,
    f.stopping_gpu_ms AS stopping_gpu_ms, f.unmeasured_gpu_ms AS unmeasured_gpu_ms,
    f.not_requested_gpu_ms AS not_requested_gpu_ms,
    f.uncached_input_tokens AS uncached_input_tokens, f.cache_read_tokens AS cache_read_tokens,
    f.output_tokens AS output_tokens, f.unknown_series AS unknown_series,
    f.active_ppm_sum AS active_ppm_sum, f.active_samples AS active_samples,
    f.memory_used_sum AS memory_used_sum, f.memory_total_sum AS memory_total_sum,
    y.productive_nano AS productive_nano, y.under_used_nano AS under_used_nano, y.shared_nano AS shared_nano,
    y.no_traffic_nano AS no_traffic_nano, y.starting_nano AS starting_nano, y.stopping_nano AS stopping_nano,
    y.not_requested_nano AS not_requested_nano, y.not_in_cluster_nano AS not_in_cluster_nano,
    y.unmeasured_nano AS unmeasured_nano, y.unattributed_nano AS unattributed_nano,
    y.effective_nano AS effective_nano
FROM fact AS f
FULL OUTER JOIN money AS y
    ON y.hour = f.hour AND y.cluster = f.cluster AND coalesce(y.region, '') = coalesce(f.region, '')
    AND coalesce(y.route, '') = coalesce(f.route, '') AND coalesce(y.pool, '') = coalesce(f.pool, '')
    AND coalesce(y.role, '') = coalesce(f.role, '')
