-- Step 6b: events -> disjoint token classes, priced.
-- grain:   event_key x token_class (classes with tokens only)
-- inputs:  work_event, rate
-- rule:    calls that the own fleet answered have no price list: their cost is what the fleet costs (steps 50-56).
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
)
SELECT
    k.event_key AS event_key, k.hour AS hour, k.provider AS provider, k.account_id AS account_id,
    k.region_id AS region_id, k.model AS model, k.scope AS scope, k.service_tier AS service_tier,
    k.claim_set_id AS claim_set_id, k.task_id AS task_id, k.user_id AS user_id,
    k.input_tokens AS input_tokens, k.token_class AS token_class, k.tokens AS tokens,
    r.tier_start AS tier_start,
    r.currency AS currency,
    k.tokens * r.pico_per_token AS pico,
    k.tokens * b.pico_per_token AS base_pico,
    k.tokens * u.pico_per_token AS uncached_pico
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
