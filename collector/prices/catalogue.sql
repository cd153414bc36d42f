-- The genai-prices catalogue as effective-dated price rows.
-- grain: one price of (provider, model, scope, service tier, token class, tier of the prompt, interval, time of day)
-- input: variable `content`, the package's providers as JSON; temporary table provider_name
-- invariant: a row's name is one that the catalogue itself states (an id, or a literal of its match rules), never a
-- prefix or part of another; where two entries claim one name, the one whose id it is wins, else the first in the list

-- :delete
DELETE FROM price WHERE book = 'catalogue';

-- :insert
INSERT INTO price BY NAME
WITH listed AS (
    SELECT unnest(from_json(getvariable('content'), '["JSON"]')) AS provider
),
owned AS (
    SELECT provider ->> 'id' AS provider_id, provider ->> 'id' AS origin_id, 0 AS is_fallback, provider -> 'models' AS models
    FROM listed
    UNION ALL
    -- A provider that sells another's models at that one's prices says so itself.
    SELECT seller.id, maker.provider ->> 'id', 1, maker.provider -> 'models'
    FROM (SELECT provider ->> 'id' AS id, unnest(from_json(provider -> 'fallback_model_providers', '["VARCHAR"]')) AS maker
          FROM listed) AS seller
    JOIN listed AS maker ON (maker.provider ->> 'id') = seller.maker
),
entry AS (
    SELECT provider_id, origin_id, is_fallback, generate_subscripts(list, 1) AS place, unnest(list) AS model
    FROM (SELECT *, from_json(models, '["JSON"]') AS list FROM owned)
),
-- Names: the id, and the literals of the match rules outside an `and`.
claimed AS (
    SELECT provider_id, origin_id, is_fallback, place, model, model ->> 'id' AS name, 0 AS rank, 'id' AS reason FROM entry
    UNION ALL
    SELECT entry.provider_id, entry.origin_id, entry.is_fallback, entry.place, entry.model, leaf.atom ->> '$',
        CASE leaf.key WHEN 'equals' THEN 1 WHEN 'starts_with' THEN 2 ELSE 3 END,
        leaf.key
    FROM entry, json_tree(entry.model -> 'match') AS leaf
    WHERE leaf.key IN ('equals', 'starts_with', 'contains') AND NOT contains(leaf.fullkey, 'and_')
),
named AS (
    SELECT provider_id, place, origin_id, is_fallback, model, model_slug(name) AS slug, rank,
        CASE WHEN is_fallback = 1 THEN reason || ' (' || origin_id || ')' ELSE reason END AS match_reason,
        unnest(CASE WHEN provider_id <> 'aws' THEN [NULL]
                    WHEN model_scope(model ->> 'id') = 'regional' THEN ['regional', 'geo']
                    ELSE [model_scope(model ->> 'id')] END) AS scope
    FROM claimed
    WHERE model_slug(name) IS NOT NULL
),
chosen AS (
    SELECT * FROM named
    QUALIFY row_number() OVER (PARTITION BY provider_id, slug, scope ORDER BY is_fallback, rank, place, match_reason) = 1
),
-- Prices in force: an entry of the list holds from its start date until a later entry's.
priced AS (
    SELECT DISTINCT origin_id, place, model FROM entry
),
conditional AS (
    SELECT origin_id, place, model, generate_subscripts(list, 1) AS step, unnest(list) AS price
    FROM (
        SELECT *, CASE json_type(model -> 'prices')
            WHEN 'ARRAY' THEN from_json(model -> 'prices', '["JSON"]')
            ELSE [json_object('constraint', NULL, 'prices', model -> 'prices')] END AS list
        FROM priced
    )
),
dated AS (
    SELECT *,
        coalesce(TRY_CAST(price ->> '$.constraint.start_date' AS TIMESTAMP), TIMESTAMP '1970-01-01') AS valid_from,
        coalesce(min(TRY_CAST(price ->> '$.constraint.start_date' AS TIMESTAMP)) OVER (
            PARTITION BY origin_id, place ORDER BY step ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING),
            TIMESTAMP '9999-12-31') AS valid_to,
        CAST(epoch(TRY_CAST(left(price ->> '$.constraint.start_time', 8) AS TIME)) AS INTEGER) AS day_start_second,
        CAST(epoch(TRY_CAST(left(price ->> '$.constraint.end_time', 8) AS TIME)) AS INTEGER) AS day_end_second,
        price -> 'prices' AS standard
    FROM conditional
),
-- Variants for a service tier override single prices of the standard ones; the first in the list wins.
variant AS (
    SELECT origin_id, place, step, tier, prices, valid_from,
        coalesce(min(valid_from) FILTER (WHERE valid_from > TIMESTAMP '1970-01-01') OVER (
            PARTITION BY origin_id, place, tier ORDER BY step ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
            TIMESTAMP '9999-12-31') AS valid_to
    FROM (
        SELECT origin_id, place, generate_subscripts(list, 1) AS step, unnest(list) AS variant,
            CASE WHEN CAST(variant -> 'when' AS VARCHAR) = '{"processing":"batch"}' THEN 'batch'
                 WHEN CAST(variant -> 'when' AS VARCHAR) = '{"service_tier":"flex"}' THEN 'flex'
                 WHEN CAST(variant -> 'when' AS VARCHAR) = '{"service_tier":"priority"}' THEN 'priority' END AS tier,
            variant -> 'prices' AS prices,
            coalesce(TRY_CAST(variant ->> '$.constraint.start_date' AS TIMESTAMP), TIMESTAMP '1970-01-01') AS valid_from
        FROM (SELECT *, from_json(model -> 'price_variants', '["JSON"]') AS list FROM priced)
    )
    WHERE tier IS NOT NULL
),
in_force AS (
    SELECT origin_id, place, 'standard' AS service_tier, standard AS prices, valid_from, valid_to,
        day_start_second, day_end_second
    FROM dated
    UNION ALL
    SELECT dated.origin_id, dated.place, variant.tier, json_merge_patch(dated.standard, variant.prices),
        greatest(dated.valid_from, variant.valid_from), least(dated.valid_to, variant.valid_to),
        dated.day_start_second, dated.day_end_second
    FROM dated JOIN variant ON variant.origin_id = dated.origin_id AND variant.place = dated.place
),
-- One row a price key; a plain price is a tier of its own from 0.
keyed AS (
    SELECT in_force.* EXCLUDE (prices), item.key AS price_key,
        CASE item.type WHEN 'OBJECT' THEN item.value ->> 'base' ELSE item.value ->> '$' END AS base,
        from_json(CASE item.type WHEN 'OBJECT' THEN item.value -> 'tiers' ELSE '[]' END,
            '[{"start": "BIGINT", "price": "VARCHAR"}]') AS tiers
    FROM in_force, json_each(in_force.prices) AS item
    WHERE item.type <> 'NULL' AND valid_from < valid_to AND regexp_matches(item.key, '_(mtok|kcount|mchars|kpages|hours)$')
),
threshold AS (
    SELECT DISTINCT origin_id, place, service_tier, valid_from, valid_to, day_start_second, day_end_second,
        unnest(list_concat([0], list_transform(tiers, lambda tier: tier.start))) AS from_input_tokens
    FROM keyed
),
amount AS (
    SELECT keyed.* EXCLUDE (tiers, base), threshold.from_input_tokens,
        coalesce(list_filter(tiers, lambda tier: tier.start <= threshold.from_input_tokens)[-1].price, base) AS written
    FROM keyed
    JOIN threshold ON threshold.origin_id = keyed.origin_id AND threshold.place = keyed.place
        AND threshold.service_tier = keyed.service_tier
        AND threshold.valid_from = keyed.valid_from AND threshold.valid_to = keyed.valid_to
        AND threshold.day_start_second IS NOT DISTINCT FROM keyed.day_start_second
        AND threshold.day_end_second IS NOT DISTINCT FROM keyed.day_end_second
)
SELECT
    getvariable('load_id') AS load_id,
    'catalogue' AS book,
    coalesce(provider_name.provider, chosen.provider_id) AS provider,
    chosen.slug AS model,
    chosen.scope,
    amount.service_tier,
    CASE amount.price_key
        WHEN 'input_mtok' THEN 'uncached_input' WHEN 'cache_read_mtok' THEN 'cache_read'
        WHEN 'cache_write_mtok' THEN 'cache_write_5m' WHEN 'cache_write_1h_mtok' THEN 'cache_write_1h'
        WHEN 'output_mtok' THEN 'output'
        -- tokens and counts are named by what they are, what is measured otherwise by its unit too: input_audio is tokens
        ELSE regexp_replace(regexp_replace(regexp_replace(amount.price_key, '_(mtok|kcount)$', ''), '_mchars$', '_chars'),
                            '_kpages$', '_pages') END AS token_class,
    amount.from_input_tokens,
    'USD' AS currency,
    CAST(CAST(amount.written AS DECIMAL(38, 18)) * CASE
        WHEN amount.price_key LIKE '%\_hours' ESCAPE '\' THEN 1000000
        WHEN amount.price_key LIKE '%\_kcount' ESCAPE '\' OR amount.price_key LIKE '%\_kpages' ESCAPE '\' THEN 1000
        ELSE 1 END AS DECIMAL(38, 18)) AS per_mtok,
    amount.valid_from, amount.valid_to, amount.day_start_second, amount.day_end_second,
    chosen.match_reason,
    getvariable('origin') AS origin
FROM chosen
JOIN amount ON amount.origin_id = chosen.origin_id AND amount.place = chosen.place
LEFT JOIN provider_name ON provider_name.system = 'genai-prices' AND provider_name.name = chosen.provider_id
ORDER BY provider, model, scope, service_tier, token_class, from_input_tokens, valid_from, day_start_second;

-- :count
SELECT count(*) FROM price WHERE book = 'catalogue';
