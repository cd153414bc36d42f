-- Step 2e: what a cluster costs as a whole to the pools it serves.
-- grain:   hour x bill dimensions x cluster x region x route x pool x role
-- inputs:  bill_line (route cluster), work_window (replica_window of the hours at hand)
-- rule:    by the GPU time that pools held in that hour; a cluster in which nothing was held keeps it, with the reason.
-- control: sum of nanos = sum of nanos of lines on the route cluster.
WITH held AS (
    SELECT
        w.hour AS hour, w.cluster AS cluster, w.region AS region, w.route AS route, w.pool AS pool, w.role AS role,
        CAST(sum(w.busy_gpu_ms + w.no_traffic_gpu_ms + w.starting_gpu_ms + w.stopping_gpu_ms + w.unmeasured_gpu_ms)
            AS BIGINT) AS gpu_ms
    FROM work_window AS w
    GROUP BY w.hour, w.cluster, w.region, w.route, w.pool, w.role
),
running AS (
    SELECT
        h.*,
        CAST(sum(h.gpu_ms) OVER (
            PARTITION BY h.hour, h.cluster
            ORDER BY coalesce(h.region, ''), coalesce(h.route, ''), h.pool, h.role
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS upto,
        CAST(sum(h.gpu_ms) OVER (PARTITION BY h.hour, h.cluster) AS BIGINT) AS total
    FROM held AS h
    WHERE h.gpu_ms > 0
),
amount AS (
    SELECT
        l.charge_hour AS hour, l.cluster AS cluster, l.billing_period AS billing_period, l.currency AS currency,
        l.status AS status, l.account_id AS account_id, l.region_id AS region_id, l.service_name AS service_name,
        l.line_class AS line_class,
        CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano,
        CAST(sum(l.billed_nano) AS BIGINT) AS billed_nano
    FROM bill_line AS l
    WHERE l.line_route = 'cluster'
    GROUP BY l.charge_hour, l.cluster, l.billing_period, l.currency, l.status, l.account_id, l.region_id,
        l.service_name, l.line_class
)
SELECT
    a.hour AS hour, a.billing_period AS billing_period, a.currency AS currency, a.status AS status,
    a.account_id AS account_id, a.region_id AS region_id, a.service_name AS service_name,
    a.line_class AS line_class, a.cluster AS cluster, r.region AS region, r.route AS route, r.pool AS pool,
    r.role AS role,
    CASE WHEN r.total IS NULL THEN 'nothing_held' ELSE 'shared' END AS state,
    CAST(CASE WHEN r.total IS NULL THEN a.effective_nano
              ELSE share(a.effective_nano, r.upto, r.gpu_ms, r.total) END AS BIGINT) AS effective_nano,
    CAST(CASE WHEN r.total IS NULL THEN a.billed_nano
              ELSE share(a.billed_nano, r.upto, r.gpu_ms, r.total) END AS BIGINT) AS billed_nano
FROM amount AS a
LEFT JOIN running AS r ON r.hour = a.hour AND r.cluster = a.cluster
