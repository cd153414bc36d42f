-- The hand-written pool table: CSV rows to pool members.
-- grain: one resource x pool x interval; input: variable `files`, temporary table `member` (which file is whose)
-- invariant: the rows of a source are replaced as a whole

-- :stage
CREATE OR REPLACE TEMP TABLE staged_member (
    path VARCHAR, line_number BIGINT, row_digest VARCHAR, resource_id VARCHAR, cluster VARCHAR, region_id VARCHAR,
    route VARCHAR, pool VARCHAR, role VARCHAR, gpus BIGINT, gpu_type VARCHAR, valid_from TIMESTAMP, valid_to TIMESTAMP,
    reason VARCHAR, is_repeated BOOLEAN
);

-- :read
-- All as text, so that a refused value can be named; a short row is filled with NULL and refused for what it lacks.
CREATE OR REPLACE TEMP TABLE pool_row AS
WITH raw AS (
    SELECT row_number() OVER () + 1 AS line_number, to_json(line) AS told
    FROM read_csv(getvariable('files'), header = true, all_varchar = true, delim = ',', quote = '"', null_padding = true,
        strict_mode = false, parallel = false, skip = 0) AS line
)
SELECT line_number, md5(CAST(told AS VARCHAR)) AS row_digest,
    from_json(told, '{"resource_id": "VARCHAR", "cluster": "VARCHAR", "region": "VARCHAR", "route": "VARCHAR",
        "pool": "VARCHAR", "role": "VARCHAR", "gpus": "VARCHAR", "gpu_type": "VARCHAR", "valid_from": "VARCHAR",
        "valid_to": "VARCHAR"}') AS told
FROM raw;

-- :judge
INSERT INTO staged_member BY NAME
WITH trimmed AS (
    SELECT line_number, row_digest, nullif(trim(told.resource_id), '') AS resource_id,
        nullif(trim(told.cluster), '') AS cluster, nullif(trim(told.region), '') AS region_id,
        nullif(trim(told.route), '') AS route, nullif(trim(told.pool), '') AS pool,
        coalesce(nullif(lower(trim(told.role)), ''), 'mixed') AS role, TRY_CAST(trim(told.gpus) AS DOUBLE) AS gpus,
        nullif(trim(told.gpu_type), '') AS gpu_type,
        nullif(trim(told.valid_from), '') AS told_from, nullif(trim(told.valid_to), '') AS told_to
    FROM pool_row
),
typed AS (
    SELECT * EXCLUDE (told_from, told_to), told_from, told_to,
        coalesce(CAST(TRY_CAST(told_from AS TIMESTAMPTZ) AS TIMESTAMP), CASE WHEN told_from IS NULL
            THEN TIMESTAMP '1970-01-01' END) AS valid_from,
        coalesce(CAST(TRY_CAST(told_to AS TIMESTAMPTZ) AS TIMESTAMP), CASE WHEN told_to IS NULL
            THEN TIMESTAMP '9999-12-31' END) AS valid_to
    FROM trimmed
)
SELECT getvariable('files')[1] AS path, line_number, row_digest, resource_id, cluster, region_id, route, pool, role,
    CAST(gpus AS BIGINT) AS gpus, gpu_type, valid_from, valid_to, FALSE AS is_repeated,
    CASE WHEN resource_id IS NULL THEN 'missing_resource_id'
         WHEN route IS NULL THEN 'missing_route'
         WHEN pool IS NULL THEN 'missing_pool'
         WHEN role NOT IN ('mixed', 'prefill', 'decode', 'embedding', 'batch') THEN 'unknown_role'
         WHEN gpus IS NULL OR gpus <> floor(gpus) OR gpus NOT BETWEEN 1 AND 1000000 THEN 'invalid_gpus'
         WHEN valid_from IS NULL OR valid_to IS NULL THEN 'invalid_instant'
         WHEN valid_from >= valid_to THEN 'empty_interval' END AS reason
FROM typed;

-- :repeated
-- The same row twice, in one file or two, is one row.
UPDATE staged_member SET is_repeated = TRUE
WHERE reason IS NULL AND rowid NOT IN (
    SELECT min(first.rowid) FROM staged_member AS first
    WHERE first.reason IS NULL
    GROUP BY first.resource_id, first.cluster, first.region_id, first.route, first.pool, first.role, first.gpus,
        first.gpu_type, first.valid_from, first.valid_to
);

-- :changed
-- grain: one row that is new or gone
CREATE OR REPLACE TEMP TABLE changed_member AS
WITH fresh AS (
    SELECT resource_id, cluster, region_id, route, pool, role, gpus, gpu_type, valid_from, valid_to
    FROM staged_member WHERE reason IS NULL AND NOT is_repeated
),
there AS (
    SELECT resource_id, cluster, region_id, route, pool, role, gpus, gpu_type, valid_from, valid_to
    FROM pool_member WHERE source = getvariable('source')
)
(FROM fresh EXCEPT FROM there) UNION ALL (FROM there EXCEPT FROM fresh);

-- :delete
DELETE FROM pool_member WHERE source = getvariable('source');

-- :insert
INSERT INTO pool_member BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('source') AS source, resource_id, cluster, region_id, route, pool,
    role, gpus, gpu_type, valid_from, valid_to
FROM staged_member
WHERE reason IS NULL AND NOT is_repeated
ORDER BY resource_id, valid_from, route, pool;

-- :touch
-- grain: one hour of a bill line whose resource changed its pool within that line's charge period
INSERT INTO touched_hour BY NAME
WITH reached AS (
    SELECT DISTINCT unnest(generate_series(date_trunc('hour', line.charge_period_start),
        greatest(line.charge_period_end - INTERVAL 1 MICROSECOND, line.charge_period_start), INTERVAL 1 HOUR)) AS hour
    FROM billing_line AS line
    JOIN changed_member AS changed ON changed.resource_id = line.resource_id
    WHERE line.charge_period_start < changed.valid_to AND line.charge_period_end > changed.valid_from
)
SELECT hour, 'metrics' AS reason
FROM reached
WHERE hour NOT IN (SELECT known.hour FROM touched_hour AS known WHERE known.reason = 'metrics')
ORDER BY hour;

-- :forget_refused
DELETE FROM rejected_row WHERE load_id = getvariable('load_id');

-- :reject
INSERT INTO rejected_row BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('source') AS source, member.key AS location, staged.line_number,
    staged.reason, staged.row_digest
FROM staged_member AS staged JOIN member USING (path)
WHERE staged.reason IS NOT NULL
ORDER BY location, line_number;

-- :outcome
SELECT count(*), count(*) FILTER (WHERE reason IS NULL AND NOT is_repeated), count(*) FILTER (WHERE reason IS NOT NULL),
    count(*) FILTER (WHERE is_repeated)
FROM staged_member;
