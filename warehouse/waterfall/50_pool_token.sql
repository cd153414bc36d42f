-- Step 4a: the tokens that engines say they processed, by pool and hour.
-- grain:   hour x cluster x region x route x pool x role
-- inputs:  work_window (replica_window of the hours at hand)
-- rule:    prompts count where they were computed, answers where they were decoded: a decode replica counts the prompts
--          that were sent to it a second time, a prefill replica the first token of each answer. An engine counts a
--          cache hit when it begins a prompt and the prompt when it has computed it: more hits than prompts are of
--          prompts that are not done.
WITH counted AS (
    SELECT
        w.hour AS hour, w.cluster AS cluster, w.region AS region, w.route AS route, w.pool AS pool, w.role AS role,
        CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.prompt_tokens END) AS BIGINT) AS prompt_tokens,
        CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.cached_tokens END) AS BIGINT) AS cached_tokens,
        CAST(sum(CASE WHEN w.role IN ('prefill', 'embedding') THEN 0 ELSE w.output_tokens END) AS BIGINT)
            AS output_tokens,
        CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.prompt_moved END) AS BIGINT) AS prompt_moved,
        CAST(sum(CASE WHEN w.role = 'decode' THEN 0 ELSE w.cached_moved END) AS BIGINT) AS cached_moved,
        CAST(sum(CASE WHEN w.role IN ('prefill', 'embedding') THEN 0 ELSE w.output_moved END) AS BIGINT)
            AS output_moved,
        CAST(sum(w.engine_steps) AS BIGINT) AS engine_steps,
        CAST(sum(w.prefill_us) AS BIGINT) AS prefill_us, CAST(sum(w.decode_us) AS BIGINT) AS decode_us,
        CAST(sum(w.sampled_minutes) AS BIGINT) AS sampled_minutes,
        CAST(sum(w.unknown_series) AS BIGINT) AS unknown_series
    FROM work_window AS w
    WHERE w.route IS NOT NULL
    GROUP BY w.hour, w.cluster, w.region, w.route, w.pool, w.role
)
SELECT
    c.hour AS hour, c.cluster AS cluster, c.region AS region, c.route AS route, c.pool AS pool, c.role AS role,
    CASE WHEN c.cached_tokens > c.prompt_tokens THEN 0 ELSE c.prompt_tokens - c.cached_tokens END
        AS uncached_input_tokens,
    CASE WHEN c.cached_tokens > c.prompt_tokens THEN c.prompt_tokens ELSE c.cached_tokens END AS cache_read_tokens,
    c.output_tokens AS output_tokens,
    CASE WHEN c.cached_moved > c.prompt_moved THEN 0 ELSE c.prompt_moved - c.cached_moved END AS uncached_moved,
    c.cached_moved AS cached_moved, c.output_moved AS output_moved, c.engine_steps AS engine_steps,
    c.prefill_us AS prefill_us, c.decode_us AS decode_us, c.sampled_minutes AS sampled_minutes,
    c.unknown_series AS unknown_series
FROM counted AS c
