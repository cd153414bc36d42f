-- Step 2a: what every counter rose by, minute by minute, the seams between minutes included.
-- grain:   series x minute, and a second row for what was moved into an hour's last minute
-- inputs:  work_counter (counter minutes of the hours at hand, and of a quarter of an hour around them),
--          process_birth (target_id, started_at: when the process behind a target said it started), work_hour,
--          told_twice (series and hours in which another scrape of the same counter has more minutes)
-- rule:    a seam is the difference to the last sample within a quarter of an hour; a lower value is a reset and
--          counts whole.
--          A series without one counts from zero if its process started within five minutes before, or if its target
--          already showed the same metric under other labels; else the first value is unknown, counted, not booked.
--          A counter that two jobs scrape is counted once, in every hour by the series that has more of its minutes.
--          No engine counts 10 ** 12 in a minute: a broken counter is unknown, not money.
--          What rose across the start of an hour is divided by time: `moved` is the part of the hour before, told on
--          either side; `risen` is what the counter itself shows in its minute.
-- control: the sum over all minutes does not depend on how samples were split into loads.
WITH followed AS (
    SELECT
        w.series_id AS series_id, w.target_id AS target_id, w.metric AS metric, w.concept AS concept,
        w.category AS category, w.cluster AS cluster, w.namespace AS namespace, w.pod AS pod,
        w.minute AS minute, w.first_at AS first_at, w.first_value AS first_value, w.increase AS increase,
        lag(w.last_at) OVER (PARTITION BY w.series_id ORDER BY w.minute) AS previous_at,
        lag(w.last_value) OVER (PARTITION BY w.series_id ORDER BY w.minute) AS previous_value
    FROM work_counter AS w
),
shown AS (
    -- when a target showed a metric last, whatever the labels
    SELECT
        t.target_id AS target_id, t.metric AS metric, t.minute AS minute, t.first_at AS first_at,
        lag(t.last_at) OVER (PARTITION BY t.target_id, t.metric ORDER BY t.minute) AS shown_at
    FROM (
        SELECT w.target_id AS target_id, w.metric AS metric, w.minute AS minute, min(w.first_at) AS first_at,
            max(w.last_at) AS last_at
        FROM work_counter AS w
        GROUP BY w.target_id, w.metric, w.minute
    ) AS t
),
born AS (
    SELECT f.series_id AS series_id, f.minute AS minute, max(b.started_at) AS started_at
    FROM followed AS f
    INNER JOIN process_birth AS b
        ON b.target_id = f.target_id AND b.started_at <= f.first_at
        AND b.started_at > f.first_at - INTERVAL 5 MINUTE
        AND b.minute >= f.minute - INTERVAL 15 MINUTE AND b.minute <= f.minute + INTERVAL 15 MINUTE
    GROUP BY f.series_id, f.minute
),
seam AS (
    SELECT
        f.*,
        CASE
            WHEN f.previous_at >= f.first_at - INTERVAL 15 MINUTE
                THEN CASE WHEN f.first_value >= f.previous_value THEN f.first_value - f.previous_value
                          ELSE f.first_value END
            WHEN n.started_at IS NOT NULL THEN f.first_value
            -- whether there was an older one beyond reach depends on the hours at hand and is not asked
            WHEN (s.first_at < f.first_at OR s.shown_at >= f.first_at - INTERVAL 5 MINUTE) THEN f.first_value
        END AS seam
    FROM followed AS f
    LEFT JOIN shown AS s ON s.target_id = f.target_id AND s.metric = f.metric AND s.minute = f.minute
    LEFT JOIN born AS n ON n.series_id = f.series_id AND n.minute = f.minute
),
plausible AS (
    SELECT
        s.series_id AS series_id, s.concept AS concept, s.category AS category, s.cluster AS cluster,
        s.namespace AS namespace, s.pod AS pod, s.minute AS minute, s.first_at AS first_at,
        s.previous_at AS previous_at,
        CASE WHEN s.increase <= 1000000000000 THEN s.increase ELSE 0 END AS increase,
        CASE WHEN s.increase <= 1000000000000 AND s.seam <= 1000000000000 THEN s.seam END AS seam
    FROM seam AS s
),
divided AS (
    SELECT
        s.*,
        CASE WHEN s.seam > 0 AND s.previous_at < CAST(date_trunc('hour', s.minute) AS TIMESTAMP)
                  AND s.previous_at >= s.first_at - INTERVAL 15 MINUTE
             THEN CAST(floor(CAST(s.seam AS DOUBLE)
                 * date_diff('microsecond', s.previous_at, CAST(date_trunc('hour', s.minute) AS TIMESTAMP))
                 / date_diff('microsecond', s.previous_at, s.first_at)) AS BIGINT) ELSE 0 END AS moved
    FROM plausible AS s
),
booked AS (
    SELECT
        d.series_id AS series_id, d.concept AS concept, d.category AS category, d.cluster AS cluster,
        d.namespace AS namespace, d.pod AS pod, d.minute AS minute,
        d.increase + coalesce(d.seam, 0) - d.moved AS increase, d.increase + coalesce(d.seam, 0) AS risen,
        d.moved AS moved, CASE WHEN d.seam IS NULL THEN 1 ELSE 0 END AS is_unknown,
        CAST(date_trunc('hour', d.minute) AS TIMESTAMP) AS told_hour
    FROM divided AS d
    UNION ALL
    SELECT
        d.series_id AS series_id, d.concept AS concept, d.category AS category, d.cluster AS cluster,
        d.namespace AS namespace, d.pod AS pod,
        CAST(date_trunc('hour', d.minute) AS TIMESTAMP) - INTERVAL 1 MINUTE AS minute,
        d.moved AS increase, 0 AS risen, d.moved AS moved, 0 AS is_unknown,
        CAST(date_trunc('hour', d.minute) AS TIMESTAMP) AS told_hour
    FROM divided AS d
    WHERE d.moved > 0
)
SELECT
    b.series_id AS series_id, b.concept AS concept, b.category AS category, b.cluster AS cluster,
    b.namespace AS namespace, b.pod AS pod, b.minute AS minute, b.increase AS increase, b.risen AS risen,
    b.moved AS moved, b.is_unknown AS is_unknown
FROM booked AS b
INNER JOIN work_hour AS h ON h.hour = CAST(date_trunc('hour', b.minute) AS TIMESTAMP)
LEFT JOIN told_twice AS t ON t.series_id = b.series_id AND t.hour = b.told_hour
WHERE t.hour IS NULL
