-- Step 3c: what a GPU-second of a route can do, from the week before.
-- grain:   week x route x role x engine version (NULL: any) x GPU type
-- inputs:  reference_window (replica_window of the weeks before those at hand)
-- rule:    the 95th percentile of five-minute work per GPU-second, over windows in which the replica was busy. Fewer
--          than twelve windows (an hour of one replica) are no reference.
WITH work AS (
    SELECT
        CAST(date_trunc('week', w.hour) AS TIMESTAMP) + INTERVAL 7 DAY AS week_start,
        w.route AS route, w.role AS role, w.version AS version, coalesce(w.gpu_type, '') AS gpu_type,
        CAST(floor(CAST(w.work AS DOUBLE) * 1000 / w.busy_gpu_ms) AS BIGINT) AS work_per_gpu_second
    FROM reference_window AS w
    WHERE w.route IS NOT NULL AND w.busy_gpu_ms > 0 AND w.sampled_minutes > 0
),
either AS (
    SELECT v.week_start AS week_start, v.route AS route, v.role AS role, v.version AS version,
        v.gpu_type AS gpu_type, v.work_per_gpu_second AS work_per_gpu_second
    FROM work AS v WHERE v.version IS NOT NULL
    UNION ALL
    SELECT v.week_start AS week_start, v.route AS route, v.role AS role, CAST(NULL AS VARCHAR) AS version,
        v.gpu_type AS gpu_type, v.work_per_gpu_second AS work_per_gpu_second
    FROM work AS v
),
ranked AS (
    SELECT
        e.*,
        row_number() OVER (
            PARTITION BY e.week_start, e.route, e.role, e.version, e.gpu_type ORDER BY e.work_per_gpu_second
        ) AS place,
        count(*) OVER (PARTITION BY e.week_start, e.route, e.role, e.version, e.gpu_type) AS windows
    FROM either AS e
)
SELECT
    r.week_start AS week_start, r.route AS route, r.role AS role, r.version AS version, r.gpu_type AS gpu_type,
    max(r.windows) AS windows, min(r.work_per_gpu_second) AS work_per_gpu_second
FROM ranked AS r
WHERE r.windows >= 12 AND r.place * 100 >= r.windows * 95
GROUP BY r.week_start, r.route, r.role, r.version, r.gpu_type
HAVING min(r.work_per_gpu_second) > 0
