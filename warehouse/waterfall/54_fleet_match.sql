-- Step 5e: engines meet the log.
-- grain:   hour x route x group_region x token class
-- inputs:  fleet_cell, engine_token
-- rule:    the denominator is the larger of both: tokens that no call explains stay visible (rest_tokens), and calls
--          that the counters missed (unknown first values, gaps) are not counted twice. Engines are read once a scrape:
--          a difference of less than half of what was moved across the hour's edges is no unexplained token.
-- control: total_tokens = event_tokens + rest_tokens.
WITH engine AS (
    SELECT
        p.hour AS hour, p.route AS route, p.group_region AS group_region, k.token_class AS token_class,
        CAST(sum(CASE WHEN k.token_class = 'uncached_input' THEN p.uncached_input_tokens
                      WHEN k.token_class = 'cache_read' THEN p.cache_read_tokens
                      ELSE p.output_tokens END) AS BIGINT) AS tokens,
        CAST(sum(CASE WHEN k.token_class = 'uncached_input' THEN p.uncached_moved
                      WHEN k.token_class = 'cache_read' THEN p.cached_moved
                      ELSE p.output_moved END) AS BIGINT) AS moved
    FROM engine_token AS p
    CROSS JOIN (
        SELECT 'uncached_input' AS token_class
        UNION ALL SELECT 'cache_read' AS token_class
        UNION ALL SELECT 'output' AS token_class
    ) AS k
    WHERE p.sampled_minutes > 0
    GROUP BY p.hour, p.route, p.group_region, k.token_class
),
logged AS (
    SELECT
        c.hour AS hour, c.route AS route, c.group_region AS group_region, c.token_class AS token_class,
        CAST(sum(c.tokens) AS BIGINT) AS tokens
    FROM fleet_cell AS c
    GROUP BY c.hour, c.route, c.group_region, c.token_class
)
SELECT
    coalesce(e.hour, l.hour) AS hour, coalesce(e.route, l.route) AS route,
    coalesce(e.group_region, l.group_region) AS group_region, coalesce(e.token_class, l.token_class) AS token_class,
    e.tokens AS engine_tokens, coalesce(l.tokens, 0) AS event_tokens,
    CASE WHEN (e.tokens - coalesce(l.tokens, 0)) * 2 > e.moved THEN e.tokens ELSE coalesce(l.tokens, 0) END
        AS total_tokens,
    CASE WHEN (e.tokens - coalesce(l.tokens, 0)) * 2 > e.moved THEN e.tokens - coalesce(l.tokens, 0) ELSE 0 END
        AS rest_tokens
FROM engine AS e
FULL OUTER JOIN logged AS l
    ON l.hour = e.hour AND l.route = e.route AND l.group_region = e.group_region AND l.token_class = e.token_class
