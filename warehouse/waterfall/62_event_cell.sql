-- Step 6e: what the log says was used, each cell in the bill bucket it belongs to, if there is one.
-- grain:   bucket (bill or own) x hour x claim set x task x user
-- inputs:  event_class, bill_bucket, bucket_hour (bill buckets by the hours of their charge period), run_parameter
-- rule:    a call looks for its bucket by exactness: its own scope and context tier; a bill that does not tell
--          in-region from geo, or long context from base, has one bucket for both. The narrowest charge period wins.
-- control: sum of tokens = sum of tokens of event_class.
WITH cell AS (
    SELECT
        c.hour AS hour, c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
        c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier,
        coalesce(c.scope, 'regional') AS scope,
        CASE WHEN c.input_tokens > CASE WHEN coalesce(c.tier_start, 0) > 0 THEN c.tier_start
                                        ELSE p.long_context_tokens END
             THEN 'long' ELSE 'base' END AS context_tier,
        c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id, c.currency AS currency,
        CAST(sum(c.tokens) AS BIGINT) AS tokens,
        CAST(sum(CASE WHEN c.pico IS NULL THEN c.tokens ELSE 0 END) AS BIGINT) AS unpriced_tokens,
        CAST(sum(c.pico) AS BIGINT) AS pico
    FROM event_class AS c
    CROSS JOIN run_parameter AS p
    GROUP BY c.hour, c.provider, c.account_id, c.region_id, c.model, c.token_class, c.service_tier,
        coalesce(c.scope, 'regional'),
        CASE WHEN c.input_tokens > CASE WHEN coalesce(c.tier_start, 0) > 0 THEN c.tier_start
                                        ELSE p.long_context_tokens END
             THEN 'long' ELSE 'base' END,
        c.claim_set_id, c.task_id, c.user_id, c.currency
),
own AS (
    SELECT DISTINCT
        c.hour AS hour, c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
        c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier,
        c.scope AS scope, c.context_tier AS context_tier
    FROM cell AS c
),
choice AS (
    SELECT
        o.hour AS hour, o.provider AS provider, o.account_id AS account_id, o.region_id AS region_id,
        o.model AS model, o.token_class AS token_class, o.service_tier AS service_tier,
        o.scope AS scope, o.context_tier AS context_tier, b.bucket_id AS bucket_id,
        row_number() OVER (
            PARTITION BY o.hour, o.provider, o.account_id, o.region_id, o.model, o.token_class, o.service_tier,
                o.scope, o.context_tier
            ORDER BY CASE WHEN b.context_tier = o.context_tier THEN 0 ELSE 1 END,
                CASE WHEN b.scope = o.scope THEN 0 ELSE 1 END,
                b.period_seconds, b.bucket_id
        ) AS exactness
    FROM own AS o
    INNER JOIN bucket_hour AS b
        ON b.hour = o.hour AND b.provider = o.provider AND b.account_id = o.account_id
        AND b.region_id = o.region_id AND b.model = o.model AND b.token_class = o.token_class
        AND b.service_tier = o.service_tier
        AND (b.context_tier = o.context_tier OR b.context_tier = 'base')
        AND (b.scope = o.scope OR (b.scope = 'regional' AND o.scope = 'geo')
             OR (b.scope = 'geo' AND o.scope = 'regional'))
)
SELECT
    coalesce(h.bucket_id, md5(concat_ws('|', c.provider, coalesce(c.account_id, '-'), coalesce(c.region_id, '-'),
        c.model, c.token_class, c.service_tier, c.scope, c.context_tier, CAST(c.hour AS VARCHAR), 'own')))
        AS bucket_id,
    CASE WHEN h.bucket_id IS NULL THEN 0 ELSE 1 END AS is_billed,
    c.hour AS hour, c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
    c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier, c.scope AS scope,
    c.context_tier AS context_tier, c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id,
    c.currency AS currency, c.tokens AS tokens, c.unpriced_tokens AS unpriced_tokens, c.pico AS pico
FROM cell AS c
LEFT JOIN choice AS h
    ON h.exactness = 1 AND h.hour = c.hour AND h.provider = c.provider
    AND h.account_id = c.account_id AND h.region_id = c.region_id AND h.model = c.model
    AND h.token_class = c.token_class AND h.service_tier = c.service_tier
    AND h.scope = c.scope AND h.context_tier = c.context_tier
