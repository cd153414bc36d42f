-- Step 4a: the tokens that engines say they processed, by pool and hour.
-- grain:   hour x cluster x region x route x pool x role
-- inputs:  work_window (replica_window of the hours at hand)
-- rule:    prompts count where they were computed, answers where they were decoded: a decode replica counts the prompts
--          that were sent to it a second time, a prefill replica the first token of each answer.
SELECT
    w.hour AS hour, w.cluster AS cluster, w.region AS region, w.route AS route, w.pool AS pool, w.role AS role,
    CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.prompt_tokens - w.cached_tokens END) AS BIGINT)
        AS uncached_input_tokens,
    CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.cached_tokens END) AS BIGINT) AS cache_read_tokens,
    CAST(sum(CASE WHEN w.role IN ('prefill', 'embedding') THEN 0 ELSE w.output_tokens END) AS BIGINT)
        AS output_tokens,
    CAST(sum(CASE WHEN w.role = 'decode' OR w.cached_crossing > w.prompt_crossing THEN 0
                  ELSE w.prompt_crossing - w.cached_crossing END) AS BIGINT) AS uncached_crossing,
    CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.cached_crossing END) AS BIGINT) AS cached_crossing,
    CAST(sum(CASE WHEN w.role IN ('prefill', 'embedding') THEN 0 ELSE w.output_crossing END) AS BIGINT)
        AS output_crossing,
    CAST(sum(w.engine_steps) AS BIGINT) AS engine_steps,
    CAST(sum(w.prefill_us) AS BIGINT) AS prefill_us, CAST(sum(w.decode_us) AS BIGINT) AS decode_us,
    CAST(sum(w.sampled_minutes) AS BIGINT) AS sampled_minutes,
    CAST(sum(w.unknown_series) AS BIGINT) AS unknown_series
FROM work_window AS w
WHERE w.route IS NOT NULL
GROUP BY w.hour, w.cluster, w.region, w.route, w.pool, w.role
