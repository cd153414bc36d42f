-- Step 6e: what the log says was used, each cell in the bill bucket it belongs to, if there is one.
-- grain:   bucket (bill or own) x hour x claim set x task x user
-- inputs:  event_class, bill_bucket, bucket_hour (bill buckets by the hours of their charge period), run_parameter
-- rule:    a bill that does not tell in-region from geo, or long context from base, for a model in an hour has one
--          bucket for both; one that does is taken at its word, even where a class is missing. The narrowest charge
--          period wins. A provider without regions names none on either side.
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
    -- a bill tells searches and the like in lines without tokens: they meet no bucket
    WHERE c.tokens > 0
    GROUP BY c.hour, c.provider, c.account_id, c.region_id, c.model, c.token_class, c.service_tier,
        coalesce(c.scope, 'regional'),
        CASE WHEN c.input_tokens > CASE WHEN coalesce(c.tier_start, 0) > 0 THEN c.tier_start
                                        ELSE p.long_context_tokens END
             THEN 'long' ELSE 'base' END,
        c.claim_set_id, c.task_id, c.user_id, c.currency
),
offered AS (
    -- which scopes, and which context tiers in them, the bill tells apart for a model in an hour
    SELECT
        b.hour AS hour, b.provider AS provider, b.account_id AS account_id, b.region_id AS region_id,
        b.model AS model, b.service_tier AS service_tier, b.scope AS scope,
        max(CASE WHEN b.context_tier = 'long' THEN 1 ELSE 0 END) AS has_long
    FROM bucket_hour AS b
    GROUP BY b.hour, b.provider, b.account_id, b.region_id, b.model, b.service_tier, b.scope
),
wanted AS (
    SELECT DISTINCT
        c.hour AS hour, c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
        c.model AS model, c.service_tier AS service_tier, c.scope AS scope
    FROM cell AS c
),
resolved AS (
    SELECT
        w.hour AS hour, w.provider AS provider, w.account_id AS account_id, w.region_id AS region_id,
        w.model AS model, w.service_tier AS service_tier, w.scope AS scope,
        o.scope AS bill_scope, o.has_long AS has_long,
        row_number() OVER (
            PARTITION BY w.hour, w.provider, w.account_id, w.region_id, w.model, w.service_tier, w.scope
            ORDER BY CASE WHEN o.scope = w.scope THEN 0 ELSE 1 END, o.scope
        ) AS choice
    FROM wanted AS w
    INNER JOIN offered AS o
        ON o.hour = w.hour AND o.provider = w.provider AND o.account_id = w.account_id
        AND coalesce(o.region_id, '') = coalesce(w.region_id, '') AND o.model = w.model AND o.service_tier = w.service_tier
        AND (o.scope = w.scope OR (o.scope <> 'global' AND w.scope <> 'global'))
),
narrowest AS (
    SELECT
        b.hour AS hour, b.provider AS provider, b.account_id AS account_id, b.region_id AS region_id,
        b.model AS model, b.token_class AS token_class, b.service_tier AS service_tier, b.scope AS scope,
        b.context_tier AS context_tier, b.bucket_id AS bucket_id,
        row_number() OVER (
            PARTITION BY b.hour, b.provider, b.account_id, b.region_id, b.model, b.token_class, b.service_tier,
                b.scope, b.context_tier
            ORDER BY b.period_seconds, b.bucket_id
        ) AS choice
    FROM bucket_hour AS b
),
choice AS (
    SELECT
        r.hour AS hour, r.provider AS provider, r.account_id AS account_id, r.region_id AS region_id,
        r.model AS model, r.service_tier AS service_tier, r.scope AS scope, r.has_long AS has_long,
        n.token_class AS token_class, n.context_tier AS context_tier, n.bucket_id AS bucket_id
    FROM resolved AS r
    INNER JOIN narrowest AS n
        ON n.choice = 1 AND n.hour = r.hour AND n.provider = r.provider AND n.account_id = r.account_id
        AND coalesce(n.region_id, '') = coalesce(r.region_id, '') AND n.model = r.model AND n.service_tier = r.service_tier
        AND n.scope = r.bill_scope
    WHERE r.choice = 1
),
placed AS (
    SELECT
        c.*,
        coalesce(CASE WHEN c.context_tier = 'long' AND r.has_long = 0 THEN 'base' END, c.context_tier)
            AS bill_context_tier
    FROM cell AS c
    LEFT JOIN resolved AS r
        ON r.choice = 1 AND r.hour = c.hour AND r.provider = c.provider AND r.account_id = c.account_id
        AND coalesce(r.region_id, '') = coalesce(c.region_id, '') AND r.model = c.model AND r.service_tier = c.service_tier
        AND r.scope = c.scope
)
SELECT
    coalesce(h.bucket_id, md5(concat_ws('|', key_part(c.provider), key_part(c.account_id), key_part(c.region_id),
        key_part(c.model), key_part(c.token_class), key_part(c.service_tier), key_part(c.scope),
        key_part(c.context_tier), CAST(c.hour AS VARCHAR), 'own')))
        AS bucket_id,
    CASE WHEN h.bucket_id IS NULL THEN 0 ELSE 1 END AS is_billed,
    c.hour AS hour, c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
    c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier, c.scope AS scope,
    c.context_tier AS context_tier, c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id,
    c.currency AS currency, c.tokens AS tokens, c.unpriced_tokens AS unpriced_tokens, c.pico AS pico
FROM placed AS c
LEFT JOIN choice AS h
    ON h.hour = c.hour AND h.provider = c.provider AND h.account_id = c.account_id
    AND coalesce(h.region_id, '') = coalesce(c.region_id, '')
    AND h.model = c.model AND h.token_class = c.token_class AND h.service_tier = c.service_tier
    AND h.scope = c.scope AND h.context_tier = c.bill_context_tier
