-- Names of one model: the built-in list, and the configuration's, which wins.
-- grain: one alias; input: variable `content`: [{alias, model, origin}] as JSON
-- invariant: no alias leads to a name that is an alias itself, so one join resolves a name

-- :delete
DELETE FROM model_alias;

-- :insert
INSERT INTO model_alias BY NAME
WITH given AS (
    SELECT unnest(from_json(getvariable('content'), '[{"alias": "VARCHAR", "model": "VARCHAR", "origin": "VARCHAR"}]'), recursive := true)
),
spelt AS (
    SELECT model_slug(alias) AS alias, model_slug(model) AS model, origin FROM given
    QUALIFY row_number() OVER (PARTITION BY model_slug(alias) ORDER BY origin DESC, alias) = 1
)
SELECT getvariable('load_id') AS load_id, spelt.alias, coalesce(onward.model, spelt.model) AS model, spelt.origin
FROM spelt
LEFT JOIN spelt AS onward ON onward.alias = spelt.model
WHERE spelt.alias <> coalesce(onward.model, spelt.model)
ORDER BY spelt.alias;

-- :count
SELECT count(*) FROM model_alias;
