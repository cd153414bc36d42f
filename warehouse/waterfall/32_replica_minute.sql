-- Step 3a: what every replica did with the GPUs it held, minute by minute.
-- grain:   pod x minute
-- inputs:  pod_minute, fleet_pod, work_engine_sample (minutes in which a pod's engine was sampled, highest number of
--          running requests), counter_minute, event_minute (route x minutes with a call; pool table only), minute_step
-- rule:    busy if anything ran or any counter rose; an engine sample tells of the time since the one before it, up
--          to five minutes. No sample is `unmeasured`, except before the first one of a pod's life (`starting`) and
--          within five minutes after the last (`stopping`). Where a pool table stands for metrics, the log tells.
WITH risen AS (
    SELECT
        c.cluster AS cluster, c.namespace AS namespace, c.pod AS pod, c.minute AS minute,
        CAST(sum(CASE WHEN c.concept = 'prompt_tokens' THEN c.increase ELSE 0 END) AS BIGINT) AS prompt_tokens,
        CAST(sum(CASE WHEN c.concept = 'prompt_tokens_cached' THEN c.increase ELSE 0 END) AS BIGINT) AS cached_tokens,
        CAST(sum(CASE WHEN c.concept = 'generation_tokens' THEN c.increase ELSE 0 END) AS BIGINT) AS output_tokens,
        CAST(sum(CASE WHEN c.concept = 'forward_seconds' AND c.category = 'prefill' THEN c.increase ELSE 0 END)
            AS BIGINT) AS prefill_us,
        CAST(sum(CASE WHEN c.concept = 'forward_seconds' AND c.category = 'decode' THEN c.increase ELSE 0 END)
            AS BIGINT) AS decode_us,
        CAST(sum(CASE WHEN c.concept = 'engine_steps' THEN c.increase ELSE 0 END) AS BIGINT) AS engine_steps,
        CAST(sum(CASE WHEN c.concept = 'prompt_tokens' THEN c.moved ELSE 0 END) AS BIGINT) AS prompt_moved,
        CAST(sum(CASE WHEN c.concept = 'prompt_tokens_cached' THEN c.moved ELSE 0 END) AS BIGINT)
            AS cached_moved,
        CAST(sum(CASE WHEN c.concept = 'generation_tokens' THEN c.moved ELSE 0 END) AS BIGINT) AS output_moved,
        CAST(sum(c.risen) AS BIGINT) AS risen,
        CAST(sum(c.is_unknown) AS BIGINT) AS unknown_series
    FROM counter_minute AS c
    GROUP BY c.cluster, c.namespace, c.pod, c.minute
),
told AS (
    SELECT
        s.cluster AS cluster, s.namespace AS namespace, s.pod AS pod, s.minute AS minute,
        CASE WHEN s.running > 0 OR r.risen > 0 THEN 1 ELSE 0 END AS is_busy,
        lag(s.minute) OVER (PARTITION BY s.cluster, s.namespace, s.pod ORDER BY s.minute) AS previous_minute
    FROM work_engine_sample AS s
    LEFT JOIN risen AS r
        ON r.cluster = s.cluster AND r.namespace = s.namespace AND r.pod = s.pod AND r.minute = s.minute
),
covered AS (
    SELECT
        t.cluster AS cluster, t.namespace AS namespace, t.pod AS pod,
        t.minute - m.n * INTERVAL 1 MINUTE AS minute, t.is_busy AS is_busy
    FROM told AS t
    CROSS JOIN minute_step AS m
    WHERE m.n < 5
      AND (m.n = 0
           OR (t.previous_minute >= t.minute - INTERVAL 5 MINUTE
               AND t.minute - m.n * INTERVAL 1 MINUTE > t.previous_minute))
)
SELECT
    p.cluster AS cluster, p.namespace AS namespace, p.pod AS pod, p.node AS node, p.instance_id AS instance_id,
    p.minute AS minute, p.hour AS hour, p.gpus AS gpus, p.is_table AS is_table,
    CASE
        WHEN p.is_table = 1 THEN CASE WHEN e.minute IS NOT NULL THEN 'busy' ELSE 'no_traffic' END
        WHEN c.is_busy = 1 THEN 'busy'
        WHEN c.is_busy = 0 THEN 'no_traffic'
        WHEN p.minute < f.engine_first THEN 'starting'
        WHEN p.minute > f.engine_last AND p.minute <= f.engine_last + INTERVAL 5 MINUTE THEN 'stopping'
        ELSE 'unmeasured'
    END AS state,
    CASE WHEN c.is_busy IS NULL THEN 0 ELSE 1 END AS is_sampled,
    coalesce(r.prompt_tokens, 0) AS prompt_tokens,
    coalesce(r.cached_tokens, 0) AS cached_tokens,
    coalesce(r.output_tokens, 0) AS output_tokens,
    coalesce(r.engine_steps, 0) AS engine_steps,
    coalesce(r.prefill_us, 0) AS prefill_us, coalesce(r.decode_us, 0) AS decode_us,
    coalesce(r.prompt_moved, 0) AS prompt_moved, coalesce(r.cached_moved, 0) AS cached_moved,
    coalesce(r.output_moved, 0) AS output_moved,
    coalesce(r.unknown_series, 0) AS unknown_series
FROM (
    -- a pod that moves is on two nodes in one minute; its tokens are counted on one
    SELECT q.*, row_number() OVER (PARTITION BY q.cluster, q.namespace, q.pod, q.minute
        ORDER BY q.node, q.instance_id) AS place
    FROM pod_minute AS q
) AS p
LEFT JOIN fleet_pod AS f
    ON f.cluster = p.cluster AND f.namespace = p.namespace AND f.pod = p.pod
    AND p.minute >= f.life_from AND p.minute < f.life_to
LEFT JOIN covered AS c
    ON c.cluster = p.cluster AND c.namespace = p.namespace AND c.pod = p.pod AND c.minute = p.minute
LEFT JOIN risen AS r
    ON r.cluster = p.cluster AND r.namespace = p.namespace AND r.pod = p.pod AND r.minute = p.minute AND p.place = 1
LEFT JOIN event_minute AS e ON e.route = f.route AND e.minute = p.minute
