-- Step 0: one model name per alias.
-- grain:  alias
-- inputs: model_alias
-- rule:   the configuration's word goes before the built-in list.
SELECT
    n.alias AS alias,
    n.model AS model
FROM (
    SELECT
        a.alias AS alias,
        a.model AS model,
        row_number() OVER (
            PARTITION BY a.alias
            ORDER BY CASE WHEN a.origin = 'configuration' THEN 0 ELSE 1 END, a.model
        ) AS choice
    FROM model_alias AS a
) AS n
WHERE n.choice = 1
