-- Step 5c: the same calls by the group of pools that answered them.
-- grain:   hour x route x group_region x token class x claim set x task x user
-- inputs:  fleet_use, route_region, pool_token
-- rule:    a log that tells no cache reads at all while the engines hit their caches cannot know: its input is split as
--          the engines of the group say.
-- control: sum of tokens = sum of tokens of fleet_use.
WITH engine AS (
    SELECT
        g.hour AS hour, g.route AS route, g.group_region AS group_region,
        CAST(sum(p.uncached_input_tokens) AS BIGINT) AS uncached_input_tokens,
        CAST(sum(p.cache_read_tokens) AS BIGINT) AS cache_read_tokens
    FROM pool_token AS p
    INNER JOIN route_region AS g
        ON g.hour = p.hour AND g.route = p.route AND coalesce(g.region, '') = coalesce(p.region, '')
    GROUP BY g.hour, g.route, g.group_region
),
placed AS (
    SELECT
        u.hour AS hour, u.route AS route, g.group_region AS group_region, u.token_class AS token_class,
        u.claim_set_id AS claim_set_id, u.task_id AS task_id, u.user_id AS user_id,
        CAST(sum(u.tokens) AS BIGINT) AS tokens
    FROM fleet_use AS u
    INNER JOIN route_region AS g
        ON g.hour = u.hour AND g.route = u.route AND coalesce(g.region, '') = coalesce(u.region_id, '')
    GROUP BY u.hour, u.route, g.group_region, u.token_class, u.claim_set_id, u.task_id, u.user_id
),
logged AS (
    SELECT
        p.hour AS hour, p.route AS route, p.group_region AS group_region,
        max(CASE WHEN p.token_class = 'cache_read' THEN 1 ELSE 0 END) AS tells_cache
    FROM placed AS p
    GROUP BY p.hour, p.route, p.group_region
),
told AS (
    SELECT
        p.*,
        CASE WHEN p.token_class = 'uncached_input' AND l.tells_cache = 0 AND e.cache_read_tokens > 0
             THEN edge(p.tokens, e.cache_read_tokens, e.cache_read_tokens + e.uncached_input_tokens) ELSE 0 END
            AS read_tokens
    FROM placed AS p
    INNER JOIN logged AS l ON l.hour = p.hour AND l.route = p.route AND l.group_region = p.group_region
    LEFT JOIN engine AS e ON e.hour = p.hour AND e.route = p.route AND e.group_region = p.group_region
)
SELECT
    t.hour AS hour, t.route AS route, t.group_region AS group_region, t.token_class AS token_class,
    t.claim_set_id AS claim_set_id, t.task_id AS task_id, t.user_id AS user_id, t.tokens - t.read_tokens AS tokens
FROM told AS t
WHERE t.tokens > t.read_tokens
UNION ALL
SELECT
    t.hour AS hour, t.route AS route, t.group_region AS group_region, 'cache_read' AS token_class,
    t.claim_set_id AS claim_set_id, t.task_id AS task_id, t.user_id AS user_id, t.read_tokens AS tokens
FROM told AS t
WHERE t.read_tokens > 0
