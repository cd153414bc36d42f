-- Step 5d: the engines' tokens, with the cache hits that only the log tells.
-- grain:   hour x cluster x region x route x pool x role
-- inputs:  pool_token, route_region, fleet_cell
-- rule:    engines that count no cache hit while the log tells cache reads do not count them: their prompts are split as
--          the log of the group says (the mirror of step 5c).
-- control: sum of input tokens = sum of input tokens of pool_token.
WITH placed AS (
    SELECT
        p.*, g.group_region AS group_region,
        CAST(sum(p.cache_read_tokens) OVER (PARTITION BY p.hour, p.route, g.group_region) AS BIGINT) AS group_hits
    FROM pool_token AS p
    INNER JOIN route_region AS g
        ON g.hour = p.hour AND g.route = p.route AND coalesce(g.region, '') = coalesce(p.region, '')
),
logged AS (
    SELECT
        c.hour AS hour, c.route AS route, c.group_region AS group_region,
        CAST(sum(CASE WHEN c.token_class = 'cache_read' THEN c.tokens ELSE 0 END) AS BIGINT) AS read_tokens,
        CAST(sum(CASE WHEN c.token_class = 'uncached_input' THEN c.tokens ELSE 0 END) AS BIGINT) AS uncached_tokens
    FROM fleet_cell AS c
    GROUP BY c.hour, c.route, c.group_region
),
split AS (
    SELECT
        p.*,
        CASE WHEN p.group_hits = 0 AND l.read_tokens > 0
             THEN edge(p.uncached_input_tokens, l.read_tokens, l.read_tokens + l.uncached_tokens) ELSE 0 END AS hits,
        CASE WHEN p.group_hits = 0 AND l.read_tokens > 0
             THEN edge(p.uncached_moved, l.read_tokens, l.read_tokens + l.uncached_tokens) ELSE 0 END AS hits_moved
    FROM placed AS p
    LEFT JOIN logged AS l ON l.hour = p.hour AND l.route = p.route AND l.group_region = p.group_region
)
SELECT
    s.hour AS hour, s.cluster AS cluster, s.region AS region, s.route AS route, s.pool AS pool, s.role AS role,
    s.group_region AS group_region,
    s.uncached_input_tokens - s.hits AS uncached_input_tokens, s.cache_read_tokens + s.hits AS cache_read_tokens,
    s.output_tokens AS output_tokens, s.uncached_moved - s.hits_moved AS uncached_moved,
    s.cached_moved + s.hits_moved AS cached_moved, s.output_moved AS output_moved, s.engine_steps AS engine_steps,
    s.prefill_us AS prefill_us, s.decode_us AS decode_us, s.sampled_minutes AS sampled_minutes
FROM split AS s
