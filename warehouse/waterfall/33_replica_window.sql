-- Step 3b: the same by five minutes, with what the replica serves.
-- grain:   pod x node x window of five minutes
-- inputs:  replica_minute, fleet_pod, fleet_node, route_weight
-- rule:    GPU time is GPUs x milliseconds of whole minutes. Work is tokens by their weights, in thousandths of an
--          uncached input token; a decode replica counts the prompts that were sent to it and a prefill replica the
--          first token of each answer: neither is its own work.
-- control: sum of GPU time = GPUs x minutes of pod_minute.
WITH placed AS (
    SELECT
        r.*,
        r.hour + CAST(floor(extract(minute FROM r.minute) / 5) AS BIGINT) * 5 * INTERVAL 1 MINUTE AS window_start
    FROM replica_minute AS r
)
SELECT
    r.hour AS hour, r.window_start AS window_start, r.cluster AS cluster, r.namespace AS namespace, r.pod AS pod,
    r.node AS node, r.instance_id AS instance_id, coalesce(f.region, n.region) AS region,
    coalesce(f.gpu_type, n.gpu_type) AS gpu_type,
    f.route AS route, coalesce(f.pool, 'unlabelled') AS pool, coalesce(f.role, 'mixed') AS role, f.version AS version,
    r.is_table AS is_table, max(r.gpus) AS gpus,
    CAST(sum(CASE WHEN r.state = 'busy' THEN r.gpus * 60000 ELSE 0 END) AS BIGINT) AS busy_gpu_ms,
    CAST(sum(CASE WHEN r.state = 'no_traffic' THEN r.gpus * 60000 ELSE 0 END) AS BIGINT) AS no_traffic_gpu_ms,
    CAST(sum(CASE WHEN r.state = 'starting' THEN r.gpus * 60000 ELSE 0 END) AS BIGINT) AS starting_gpu_ms,
    CAST(sum(CASE WHEN r.state = 'stopping' THEN r.gpus * 60000 ELSE 0 END) AS BIGINT) AS stopping_gpu_ms,
    CAST(sum(CASE WHEN r.state = 'unmeasured' THEN r.gpus * 60000 ELSE 0 END) AS BIGINT) AS unmeasured_gpu_ms,
    CAST(sum(r.is_sampled) AS BIGINT) AS sampled_minutes,
    CAST(sum(r.prompt_tokens) AS BIGINT) AS prompt_tokens,
    CAST(sum(r.cached_tokens) AS BIGINT) AS cached_tokens,
    CAST(sum(r.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(r.prompt_moved) AS BIGINT) AS prompt_moved,
    CAST(sum(r.cached_moved) AS BIGINT) AS cached_moved,
    CAST(sum(r.output_moved) AS BIGINT) AS output_moved,
    CAST(sum(r.engine_steps) AS BIGINT) AS engine_steps,
    CAST(sum(r.prefill_us) AS BIGINT) AS prefill_us,
    CAST(sum(r.decode_us) AS BIGINT) AS decode_us,
    CAST(sum(
        CASE WHEN coalesce(f.role, 'mixed') = 'decode' THEN 0
             WHEN r.cached_tokens > r.prompt_tokens THEN r.cached_tokens * coalesce(k.cached_weight, 0)
             ELSE (r.prompt_tokens - r.cached_tokens) * 1000 + r.cached_tokens * coalesce(k.cached_weight, 0) END
        + CASE WHEN coalesce(f.role, 'mixed') IN ('prefill', 'embedding') THEN 0
               ELSE r.output_tokens * coalesce(k.output_weight, 0) END) AS BIGINT) AS work,
    CAST(sum(r.unknown_series) AS BIGINT) AS unknown_series
FROM placed AS r
LEFT JOIN fleet_pod AS f
    ON f.cluster = r.cluster AND f.namespace = r.namespace AND f.pod = r.pod
    AND r.minute >= f.life_from AND r.minute < f.life_to
LEFT JOIN fleet_node AS n
    ON n.cluster = r.cluster AND n.node = r.node AND n.instance_id = r.instance_id
LEFT JOIN route_weight AS k ON k.route = f.route
GROUP BY r.hour, r.window_start, r.cluster, r.namespace, r.pod, r.node, r.instance_id, coalesce(f.region, n.region),
    coalesce(f.gpu_type, n.gpu_type), f.route, coalesce(f.pool, 'unlabelled'), coalesce(f.role, 'mixed'), f.version,
    r.is_table
