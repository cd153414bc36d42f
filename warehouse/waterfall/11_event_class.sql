-- Step 6b: events -> disjoint token classes, priced.
-- grain:   event_key x token_class (classes with tokens only), and x unit that is no token (tokens = 0)
-- inputs:  work_event, work_unit (what a call used beside tokens; tokens of audio, images, video within a class), rate
-- rule:    calls that the own fleet answered have no price list: their cost is what the fleet costs (steps 50-56).
--          Tokens of audio, images or video have the price of their own where the list has one, else that of their
--          class.
-- columns: pico           price book x tokens, tier of the whole prompt applied; NULL if this class has no price
--          base_pico      the same without any long-context tier
--          uncached_pico  what it had cost had nothing been cached, without tier
-- control: sum of tokens = sum of the five counts of work_event, the own fleet's apart.
WITH class_tokens AS (
    SELECT e.event_key AS event_key, 'uncached_input' AS token_class, e.uncached_input_tokens AS tokens
    FROM work_event AS e WHERE e.is_fleet = 0 AND e.uncached_input_tokens > 0
    UNION ALL
    SELECT e.event_key AS event_key, 'cache_read' AS token_class, e.cache_read_tokens AS tokens
    FROM work_event AS e WHERE e.is_fleet = 0 AND e.cache_read_tokens > 0
    UNION ALL
    SELECT e.event_key AS event_key, 'cache_write_5m' AS token_class, e.cache_write_5m_tokens AS tokens
    FROM work_event AS e WHERE e.is_fleet = 0 AND e.cache_write_5m_tokens > 0
    UNION ALL
    SELECT e.event_key AS event_key, 'cache_write_1h' AS token_class, e.cache_write_1h_tokens AS tokens
    FROM work_event AS e WHERE e.is_fleet = 0 AND e.cache_write_1h_tokens > 0
    UNION ALL
    SELECT e.event_key AS event_key, 'output' AS token_class, e.output_tokens AS tokens
    FROM work_event AS e WHERE e.is_fleet = 0 AND e.output_tokens > 0
),
keyed AS (
    SELECT
        e.event_key AS event_key, e.hour AS hour, e.slot AS slot, e.provider AS provider,
        e.account_id AS account_id, e.region_id AS region_id, e.model AS model, e.scope AS scope,
        e.service_tier AS service_tier, e.claim_set_id AS claim_set_id, e.task_id AS task_id, e.user_id AS user_id,
        e.input_tokens AS input_tokens, c.token_class AS token_class, c.tokens AS tokens,
        CASE WHEN c.token_class = 'output' THEN 'output' ELSE 'uncached_input' END AS uncached_class
    FROM class_tokens AS c
    INNER JOIN work_event AS e ON e.event_key = c.event_key
),
-- the list that applies to a unit of a call: for its tier, for the base tier, and as if nothing had been cached
unit_price AS (
    SELECT
        u.event_key AS event_key, u.part_of AS part_of, u.price_class AS price_class, u.units AS units,
        r.currency AS currency, r.tier_start AS tier_start, r.pico_per_token AS pico,
        b.pico_per_token AS base_pico, n.pico_per_token AS uncached_pico
    FROM work_unit AS u
    INNER JOIN work_event AS e ON e.event_key = u.event_key
    LEFT JOIN rate AS r
        ON r.slot = e.slot AND r.provider = e.provider AND r.model = e.model AND r.service_tier = e.service_tier
        AND coalesce(r.scope, '') = coalesce(e.scope, '') AND r.token_class = u.price_class
        AND e.input_tokens > r.above_tokens AND e.input_tokens <= r.upto_tokens
    LEFT JOIN rate AS b
        ON b.slot = e.slot AND b.provider = e.provider AND b.model = e.model AND b.service_tier = e.service_tier
        AND coalesce(b.scope, '') = coalesce(e.scope, '') AND b.token_class = u.price_class AND b.tier_start = 0
    LEFT JOIN rate AS n
        ON n.slot = e.slot AND n.provider = e.provider AND n.model = e.model AND n.service_tier = e.service_tier
        AND coalesce(n.scope, '') = coalesce(e.scope, '') AND n.token_class = u.uncached_class AND n.tier_start = 0
    UNION ALL
    -- a list with a price for each request charges every call that was answered
    SELECT
        e.event_key AS event_key, CAST(NULL AS VARCHAR) AS part_of, r.token_class AS price_class,
        CAST(1 AS BIGINT) AS units, r.currency AS currency, r.tier_start AS tier_start, r.pico_per_token AS pico,
        r.pico_per_token AS base_pico, r.pico_per_token AS uncached_pico
    FROM work_event AS e
    INNER JOIN rate AS r
        ON r.slot = e.slot AND r.provider = e.provider AND r.model = e.model AND r.service_tier = e.service_tier
        AND coalesce(r.scope, '') = coalesce(e.scope, '') AND r.token_class = 'requests'
        AND e.input_tokens > r.above_tokens AND e.input_tokens <= r.upto_tokens
    WHERE e.is_fleet = 0 AND e.status = 'success'
),
part AS (
    SELECT
        p.event_key AS event_key, p.part_of AS token_class,
        CAST(sum(p.units) AS BIGINT) AS tokens,
        CAST(sum(pico_of(p.units, p.pico)) AS BIGINT) AS pico,
        CAST(sum(pico_of(p.units, coalesce(p.base_pico, p.pico))) AS BIGINT) AS base_pico,
        CAST(sum(pico_of(p.units, coalesce(p.uncached_pico, p.base_pico, p.pico))) AS BIGINT) AS uncached_pico
    FROM unit_price AS p
    WHERE p.part_of IS NOT NULL AND p.pico IS NOT NULL
    GROUP BY p.event_key, p.part_of
)
SELECT
    k.event_key AS event_key, k.hour AS hour, k.provider AS provider, k.account_id AS account_id,
    k.region_id AS region_id, k.model AS model, k.scope AS scope, k.service_tier AS service_tier,
    k.claim_set_id AS claim_set_id, k.task_id AS task_id, k.user_id AS user_id,
    k.input_tokens AS input_tokens, k.token_class AS token_class, k.tokens AS tokens,
    r.tier_start AS tier_start,
    r.currency AS currency,
    -- a part that is more than its whole has no price of its own
    CASE WHEN p.tokens <= k.tokens THEN pico_of(k.tokens - p.tokens, r.pico_per_token) + p.pico
         ELSE pico_of(k.tokens, r.pico_per_token) END AS pico,
    CASE WHEN p.tokens <= k.tokens THEN pico_of(k.tokens - p.tokens, b.pico_per_token) + p.base_pico
         ELSE pico_of(k.tokens, b.pico_per_token) END AS base_pico,
    CASE WHEN p.tokens <= k.tokens THEN pico_of(k.tokens - p.tokens, u.pico_per_token) + p.uncached_pico
         ELSE pico_of(k.tokens, u.pico_per_token) END AS uncached_pico
FROM keyed AS k
LEFT JOIN rate AS r
    ON r.slot = k.slot AND r.provider = k.provider AND r.model = k.model AND r.service_tier = k.service_tier
    AND coalesce(r.scope, '') = coalesce(k.scope, '') AND r.token_class = k.token_class
    AND k.input_tokens > r.above_tokens AND k.input_tokens <= r.upto_tokens
LEFT JOIN rate AS b
    ON b.slot = k.slot AND b.provider = k.provider AND b.model = k.model AND b.service_tier = k.service_tier
    AND coalesce(b.scope, '') = coalesce(k.scope, '') AND b.token_class = k.token_class AND b.tier_start = 0
LEFT JOIN rate AS u
    ON u.slot = k.slot AND u.provider = k.provider AND u.model = k.model AND u.service_tier = k.service_tier
    AND coalesce(u.scope, '') = coalesce(k.scope, '') AND u.token_class = k.uncached_class AND u.tier_start = 0
LEFT JOIN part AS p ON p.event_key = k.event_key AND p.token_class = k.token_class
UNION ALL
SELECT
    e.event_key AS event_key, e.hour AS hour, e.provider AS provider, e.account_id AS account_id,
    e.region_id AS region_id, e.model AS model, e.scope AS scope, e.service_tier AS service_tier,
    e.claim_set_id AS claim_set_id, e.task_id AS task_id, e.user_id AS user_id,
    e.input_tokens AS input_tokens, p.price_class AS token_class, CAST(0 AS BIGINT) AS tokens,
    p.tier_start AS tier_start,
    p.currency AS currency,
    pico_of(p.units, p.pico) AS pico,
    pico_of(p.units, coalesce(p.base_pico, p.pico)) AS base_pico,
    pico_of(p.units, coalesce(p.uncached_pico, p.base_pico, p.pico)) AS uncached_pico
FROM unit_price AS p
INNER JOIN work_event AS e ON e.event_key = p.event_key
WHERE p.part_of IS NULL
