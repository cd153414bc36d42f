-- Step 2c: how long every node of a cluster is known to have been there, and how long it was seen.
-- grain:   node x hour
-- inputs:  work_node_sample (node x minute as kube-state-metrics showed it), fleet_node, member_hour, minute_step,
--          work_hour
-- rule:    from the first minute a node was ever seen to the last it lives; minutes of its life that no sample within
--          five minutes tells of are unseen.
WITH followed AS (
    SELECT
        s.cluster AS cluster, s.node AS node, s.instance_id AS instance_id, s.minute AS minute,
        lead(s.minute) OVER (PARTITION BY s.cluster, s.node, s.instance_id ORDER BY s.minute) AS next_minute
    FROM work_node_sample AS s
),
seen AS (
    SELECT
        f.cluster AS cluster, f.node AS node, f.instance_id AS instance_id,
        CAST(date_trunc('hour', f.minute + m.n * INTERVAL 1 MINUTE) AS TIMESTAMP) AS hour,
        CAST(count(*) AS BIGINT) AS minutes
    FROM followed AS f
    CROSS JOIN minute_step AS m
    WHERE m.n < 5
      AND (m.n = 0
           OR (f.next_minute <= f.minute + INTERVAL 5 MINUTE
               AND f.minute + m.n * INTERVAL 1 MINUTE < f.next_minute))
    GROUP BY f.cluster, f.node, f.instance_id,
        CAST(date_trunc('hour', f.minute + m.n * INTERVAL 1 MINUTE) AS TIMESTAMP)
),
lived AS (
    SELECT
        n.cluster AS cluster, n.node AS node, n.instance_id AS instance_id, n.region AS region,
        n.gpu_type AS gpu_type, n.gpus AS gpus, w.hour AS hour,
        date_diff('microsecond',
            CASE WHEN n.first_minute > w.hour THEN n.first_minute ELSE w.hour END,
            CASE WHEN n.last_minute + INTERVAL 1 MINUTE < w.hour + INTERVAL 1 HOUR
                 THEN n.last_minute + INTERVAL 1 MINUTE ELSE w.hour + INTERVAL 1 HOUR END) AS life_us
    FROM fleet_node AS n
    INNER JOIN work_hour AS w
        ON n.first_minute < w.hour + INTERVAL 1 HOUR AND n.last_minute >= w.hour
)
SELECT
    l.cluster AS cluster, l.node AS node, l.instance_id AS instance_id, l.region AS region, l.gpu_type AS gpu_type,
    l.gpus AS gpus, l.hour AS hour, 0 AS is_table,
    CAST(floor(l.life_us / 1000) AS BIGINT) AS life_ms,
    coalesce(s.minutes, 0) * 60000 AS seen_ms
FROM lived AS l
LEFT JOIN seen AS s
    ON s.cluster = l.cluster AND s.node = l.node AND s.instance_id = l.instance_id AND s.hour = l.hour
UNION ALL
SELECT
    p.cluster AS cluster, p.resource_id AS node, p.resource_id AS instance_id, p.region_id AS region,
    max(p.gpu_type) AS gpu_type, max(p.gpus) AS gpus, p.hour AS hour, 1 AS is_table,
    CAST(3600000 AS BIGINT) AS life_ms, CAST(3600000 AS BIGINT) AS seen_ms
FROM member_hour AS p
GROUP BY p.cluster, p.resource_id, p.region_id, p.hour
