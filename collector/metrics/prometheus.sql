-- Answers of Prometheus's HTTP API (instant queries of range selectors: resultType matrix) to judged samples.
-- grain: one sample; input: variable `files`

-- :answer
CREATE OR REPLACE TEMP TABLE answer AS
SELECT list_position(getvariable('files'), filename) - 1 AS place, status, data."resultType" AS result_type,
    coalesce(len(warnings), 0) AS warnings, coalesce("isPartial", FALSE) AS is_partial, data.result AS result
FROM read_json(getvariable('files'), format = 'unstructured', records = true, filename = true,
    maximum_object_size = {{size}},
    columns = {'status': 'VARCHAR', 'warnings': 'VARCHAR[]', 'isPartial': 'BOOLEAN', 'data':
        'STRUCT("resultType" VARCHAR, result STRUCT(metric MAP(VARCHAR, VARCHAR), "values" VARCHAR[][])[])'});

-- :unfit
-- grain: one answer that must not be booked
SELECT place,
    CASE WHEN status IS DISTINCT FROM 'success' THEN 'failed'
         WHEN result_type IS DISTINCT FROM 'matrix' THEN 'no_matrix' ELSE 'partial' END AS reason
FROM answer
WHERE status IS DISTINCT FROM 'success' OR result_type IS DISTINCT FROM 'matrix' OR warnings > 0 OR is_partial
ORDER BY place
LIMIT 1;

-- :read
CREATE OR REPLACE TEMP TABLE told_series AS
SELECT place, hash(CAST(told.metric AS VARCHAR)) AS key, told.metric AS metric, told."values" AS told_values
FROM (SELECT place, unnest(result) AS told FROM answer);

-- :met
CREATE OR REPLACE TEMP TABLE met_series AS
SELECT key, place, CAST(sum(len(told_values)) AS BIGINT) AS samples FROM told_series GROUP BY key, place;

-- :series
INSERT INTO staged_series BY NAME
WITH met AS (
    SELECT key, min(metric) AS told, max(metric) <> min(metric) AS is_shared FROM told_series GROUP BY key
)
SELECT key, CAST(row_number() OVER () + (SELECT count(*) FROM staged_series) AS INTEGER) AS number,
    told['__name__'] AS metric, CASE WHEN is_shared THEN 'hash_shared' END AS broken,
    canonical_labels(list_filter(map_entries(told), lambda entry: entry.key <> '__name__')) AS labels
FROM met ANTI JOIN staged_series USING (key);

-- :samples
-- Window edges come twice (Prometheus 2 closes both ends); the same instant is one sample, see minutes.sql.
CREATE OR REPLACE TEMP VIEW raw_sample AS
SELECT place, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest, number,
    TRY_CAST(pair[2] AS DOUBLE) AS exposed, CASE WHEN TRY_CAST(pair[2] AS DOUBLE) IS NULL THEN 'malformed_value' END
        AS broken,
    make_timestamp(1000 * CAST(round(TRY_CAST(pair[1] AS DOUBLE) * 1000) AS BIGINT)) AS sampled_at
FROM (
    SELECT told.place, series.number, unnest(told.told_values) AS pair
    FROM told_series AS told JOIN staged_series AS series USING (key)
);
