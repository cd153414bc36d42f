-- Contract prices from the configuration.
-- grain: one price of (provider, model, scope, service tier, token class, tier of the prompt, interval)
-- input: variable `content`: [{provider, model, scope, service_tier, token_class, from_input_tokens, ...}] as JSON

-- :delete
DELETE FROM price WHERE book = 'contract';

-- :insert
INSERT INTO price BY NAME
WITH given AS (
    SELECT unnest(from_json(getvariable('content'), '[{
        "provider": "VARCHAR", "model": "VARCHAR", "scope": "VARCHAR", "service_tier": "VARCHAR", "currency": "VARCHAR",
        "valid_from": "TIMESTAMP", "valid_to": "TIMESTAMP", "classes": "MAP(VARCHAR, VARCHAR)", "input_tokens": "BIGINT",
        "tiers": [{"input_tokens": "BIGINT", "classes": "MAP(VARCHAR, VARCHAR)"}]}]'), recursive := true)
),
tiered AS (
    SELECT * EXCLUDE (classes, tiers, input_tokens), 0 AS from_input_tokens, classes FROM given
    UNION ALL
    SELECT * EXCLUDE (classes, tiers, input_tokens, tier), tier.input_tokens,
        map_concat(classes, tier.classes)
    FROM (SELECT *, unnest(tiers) AS tier FROM given)
),
priced AS (
    SELECT * EXCLUDE (classes), unnest(map_keys(classes)) AS token_class, unnest(map_values(classes)) AS amount FROM tiered
)
SELECT
    getvariable('load_id') AS load_id, 'contract' AS book, provider, model_slug(model) AS model, scope, service_tier,
    token_class, from_input_tokens, currency, CAST(amount AS DECIMAL(38, 18)) AS per_mtok, valid_from,
    coalesce(valid_to, TIMESTAMP '9999-12-31') AS valid_to, CAST(NULL AS INTEGER) AS day_start_second,
    CAST(NULL AS INTEGER) AS day_end_second, 'contract' AS match_reason, getvariable('origin') AS origin
FROM priced
WHERE amount IS NOT NULL
ORDER BY provider, model, scope, service_tier, token_class, from_input_tokens, valid_from;

-- :count
SELECT count(*) FROM price WHERE book = 'contract';
