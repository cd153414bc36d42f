-- Step 6a: the price list that applies, per half hour.
-- grain:  slot x provider x model x scope x service_tier x tier x token_class
-- inputs: work_event, price
-- rule:   one list per call, never a mixture: the contract before the catalogue, a list for the call's own scope
--         before a general one. A tier reprices the whole request; a class without a row of its own in a tier keeps
--         its row of the tier below. Nothing is ever taken from another model.
WITH wanted AS (
    SELECT DISTINCT
        e.slot AS slot, e.provider AS provider, e.model AS model, e.scope AS scope, e.service_tier AS service_tier,
        CAST(extract(hour FROM e.slot) AS INTEGER) * 3600 + CAST(extract(minute FROM e.slot) AS INTEGER) * 60
            AS day_second
    FROM work_event AS e
),
candidate AS (
    SELECT
        w.slot AS slot, w.provider AS provider, w.model AS model, w.scope AS scope, w.service_tier AS service_tier,
        p.token_class AS token_class,
        p.from_input_tokens AS from_input_tokens,
        p.currency AS currency,
        p.book AS book,
        pico(p.per_mtok) AS pico_per_token,
        dense_rank() OVER (
            PARTITION BY w.slot, w.provider, w.model, w.scope, w.service_tier
            ORDER BY CASE WHEN p.book = 'contract' THEN 0 ELSE 1 END, CASE WHEN p.scope IS NULL THEN 1 ELSE 0 END
        ) AS list_choice,
        row_number() OVER (
            PARTITION BY w.slot, w.provider, w.model, w.scope, w.service_tier,
                p.book, p.scope, p.token_class, p.from_input_tokens
            ORDER BY CASE WHEN p.day_start_second IS NULL THEN 1 ELSE 0 END, p.valid_from DESC, p.per_mtok, p.origin
        ) AS row_choice
    FROM wanted AS w
    INNER JOIN price AS p
        ON p.provider = w.provider
        AND p.model = w.model
        AND p.service_tier = w.service_tier
        AND (p.scope IS NULL OR p.scope = w.scope)
        AND p.valid_from <= w.slot AND w.slot < p.valid_to
        AND (
            p.day_start_second IS NULL
            OR (p.day_start_second <= p.day_end_second
                AND p.day_start_second <= w.day_second AND w.day_second < p.day_end_second)
            OR (p.day_start_second > p.day_end_second
                AND (p.day_start_second <= w.day_second OR w.day_second < p.day_end_second))
        )
),
listed AS (
    SELECT * FROM candidate AS c WHERE c.list_choice = 1 AND c.row_choice = 1
),
tier AS (
    SELECT DISTINCT
        l.slot AS slot, l.provider AS provider, l.model AS model, l.scope AS scope, l.service_tier AS service_tier,
        l.from_input_tokens AS tier_start
    FROM listed AS l
),
bounded AS (
    SELECT
        t.slot AS slot, t.provider AS provider, t.model AS model, t.scope AS scope, t.service_tier AS service_tier,
        t.tier_start AS tier_start,
        coalesce(lead(t.tier_start) OVER (
            PARTITION BY t.slot, t.provider, t.model, t.scope, t.service_tier ORDER BY t.tier_start
        ), 9000000000000000000) AS tier_end
    FROM tier AS t
)
SELECT
    f.slot AS slot, f.provider AS provider, f.model AS model, f.scope AS scope, f.service_tier AS service_tier,
    f.tier_start AS tier_start,
    -- a prompt of exactly the threshold is below it; one of no tokens at all is in the base tier
    CASE WHEN f.tier_start = 0 THEN -1 ELSE f.tier_start END AS above_tokens,
    f.tier_end AS upto_tokens, f.token_class AS token_class,
    f.currency AS currency, f.book AS book, f.pico_per_token AS pico_per_token
FROM (
    SELECT
        b.slot AS slot, b.provider AS provider, b.model AS model, b.scope AS scope, b.service_tier AS service_tier,
        b.tier_start AS tier_start, b.tier_end AS tier_end,
        l.token_class AS token_class, l.currency AS currency, l.book AS book, l.pico_per_token AS pico_per_token,
        row_number() OVER (
            PARTITION BY b.slot, b.provider, b.model, b.scope, b.service_tier, b.tier_start, l.token_class
            ORDER BY l.from_input_tokens DESC
        ) AS choice
    FROM bounded AS b
    INNER JOIN listed AS l
        ON l.slot = b.slot AND l.provider = b.provider AND l.model = b.model
        AND l.service_tier = b.service_tier
        AND coalesce(l.scope, '') = coalesce(b.scope, '')
        AND l.from_input_tokens <= b.tier_start
) AS f
WHERE f.choice = 1
