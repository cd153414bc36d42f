-- Step 2b: which pod held how many GPUs of which node, minute by minute.
-- grain:   pod x node x minute
-- inputs:  work_pod_sample (a pod's GPU requests as kube-state-metrics showed them, with the minutes around the hours
--          at hand), fleet_node (node lives), member_hour (hand-written pool table,
--          hours in which the bill knows the resource), minute_step (n = 0 .. 59), work_hour
-- rule:    a sample holds until the next one if that comes within five minutes. A resource in the pool table is there
--          whole minutes from valid_from to valid_to.
WITH followed AS (
    SELECT
        s.cluster AS cluster, s.namespace AS namespace, s.pod AS pod, s.node AS node, s.minute AS minute,
        s.gpus AS gpus,
        lead(s.minute) OVER (
            PARTITION BY s.cluster, s.namespace, s.pod, s.node ORDER BY s.minute
        ) AS next_minute
    FROM work_pod_sample AS s
),
held AS (
    SELECT
        f.cluster AS cluster, f.namespace AS namespace, f.pod AS pod, f.node AS node, f.gpus AS gpus,
        f.minute + m.n * INTERVAL 1 MINUTE AS minute
    FROM followed AS f
    CROSS JOIN minute_step AS m
    WHERE m.n < 5
      AND (m.n = 0
           OR (f.next_minute <= f.minute + INTERVAL 5 MINUTE
               AND f.minute + m.n * INTERVAL 1 MINUTE < f.next_minute))
)
SELECT
    h.cluster AS cluster, h.namespace AS namespace, h.pod AS pod, h.node AS node, n.instance_id AS instance_id,
    h.minute AS minute, w.hour AS hour, h.gpus AS gpus, 0 AS is_table
FROM held AS h
INNER JOIN work_hour AS w ON w.hour = CAST(date_trunc('hour', h.minute) AS TIMESTAMP)
INNER JOIN fleet_node AS n
    ON n.cluster = h.cluster AND n.node = h.node AND n.first_minute <= h.minute AND h.minute <= n.last_minute
UNION ALL
SELECT
    p.cluster AS cluster, '' AS namespace, p.member_id AS pod, p.resource_id AS node, p.resource_id AS instance_id,
    p.hour + m.n * INTERVAL 1 MINUTE AS minute, p.hour AS hour, p.gpus AS gpus, 1 AS is_table
FROM member_hour AS p
CROSS JOIN minute_step AS m
WHERE p.hour + m.n * INTERVAL 1 MINUTE >= p.valid_from AND p.hour + m.n * INTERVAL 1 MINUTE < p.valid_to
