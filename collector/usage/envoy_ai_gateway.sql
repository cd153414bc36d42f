-- Envoy AI Gateway's access log in JSON to usage records.
-- grain: one line, one request of a caller; whoever writes the log's format names its keys, so names are data:
-- envoy_name.csv has those of the documentation, of `aigw run` and the metadata's own; `keys` of the source adds others
-- invariant: only named keys are read, so nothing else that a log format holds enters the engine

-- :asked
-- grain: one key of one field, first come first served; the configuration's come first
CREATE OR REPLACE TEMP TABLE envoy_name AS
SELECT said.field AS field, said.name AS name
FROM (SELECT unnest(CAST(CAST(? AS JSON) AS STRUCT(field VARCHAR, name VARCHAR)[])) AS said);

-- :names
INSERT INTO envoy_name SELECT field, name FROM read_csv(?, header = true, all_varchar = true);

-- :fields
-- grain: one field; `-` is how Envoy writes that there is no value
SELECT 'coalesce(' || string_agg('nullif(nullif("' || replace(name, '"', '""') || '", ''-''), '''')', ', ' ORDER BY place)
    || ', NULL) AS "said ' || replace(field, '"', '""') || '"'
FROM (SELECT field, name, rowid AS place FROM envoy_name) GROUP BY field ORDER BY min(place);

-- :payload
CREATE OR REPLACE TEMP VIEW payload AS
SELECT {{fields}}, filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json(getvariable('files'), format = 'newline_delimited', records = true, maximum_object_size = 134217728,
    columns = {{shape}});

-- :payload_by_line
CREATE OR REPLACE TEMP VIEW payload AS
SELECT {{fields}}, "of path" AS path, "of number" AS line_number, "of digest" AS row_digest, "of broken" AS broken
FROM (
    SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
        path AS "of path", line_number AS "of number", md5(line) AS "of digest", broken AS "of broken"
    FROM json_line
);

-- :backend
-- grain: one backend that the configuration knows; input: {name: {provider, account, region}} as JSON
CREATE OR REPLACE TEMP TABLE backend AS
SELECT name, places[name].provider AS provider, places[name].account AS account, places[name].region AS region
FROM (
    SELECT unnest(map_keys(places)) AS name, places
    FROM (SELECT CAST(CAST(? AS JSON) AS MAP(VARCHAR, STRUCT(provider VARCHAR, account VARCHAR, region VARCHAR))) AS places)
);

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH named AS (
    SELECT *,
        instant("said start") AS begun,
        TRY_CAST("said duration" AS DOUBLE) AS took_ms,
        TRY_CAST("said code" AS INTEGER) AS code,
        string_split(coalesce("said flags", ''), ',') AS flags,
        -- `namespace/name/route/...` since 0.3, a bare name before
        CASE WHEN contains("said backend", '/') THEN split_part("said backend", '/', 2) ELSE "said backend" END AS backend_name,
        coalesce("said response_model", "said override_model", "said request_model") AS answered_as
    FROM payload
),
known AS (
    SELECT named.*, backend.account, backend.region,
        coalesce(backend.provider, CAST(getvariable('provider') AS VARCHAR),
            -- a backend that bears the name of a provider
            CASE WHEN provider_named(backend_name) IN ('openai', 'anthropic', 'aws.bedrock', 'azure.ai.openai', 'gcp.vertex_ai',
                'gcp.gemini', 'cohere', 'deepseek', 'groq', 'mistral_ai', 'x_ai', 'openrouter') THEN provider_named(backend_name) END) AS provider,
        list_has_any(flags, ['DC', 'DPE', 'DR']) OR code = 499 AS has_left,
        list_has_any(flags, ['UT', 'SI', 'DT', 'UMSDR']) OR code IN (408, 504) AS has_timed_out
    FROM named
    LEFT JOIN backend ON backend.name = backend_name
)
SELECT
    path, line_number, row_digest, broken,
    -- MCP, health checks and what the gateway refused before it knew a model
    broken IS NULL AND "said request_model" IS NULL AND coalesce("said input", "said output") IS NULL AS filtered,
    -- a caller may send any x-request-id, and send it again
    "said request_id" || ':' || coalesce("said start", '') AS record_id,
    CAST(NULL AS VARCHAR) AS provider_response_id,
    "said request_id" AS operation_id,
    TRY_CAST("said attempts" AS INTEGER) - 1 AS attempt,
    CAST(NULL AS VARCHAR) AS parent_id,
    "said session" AS session_id,
    "said task" AS task_id,
    "said agent" AS agent, CAST(NULL AS VARCHAR) AS parent_agent, CAST(NULL AS VARCHAR) AS task_outcome,
    "said user" AS user_id,
    begun AS started_at, CAST(NULL AS TIMESTAMP) AS first_token_at,
    CASE WHEN took_ms BETWEEN 0 AND 604800000 THEN begun + to_microseconds(CAST(round(took_ms * 1000) AS BIGINT)) END AS ended_at,
    provider, answered_as AS model_raw,
    coalesce(account, CAST(getvariable('account') AS VARCHAR)) AS account_id,
    coalesce(region, CAST(getvariable('region') AS VARCHAR)) AS region_id,
    coalesce(model_scope("said override_model"), model_scope(answered_as), CASE WHEN provider LIKE 'aws.%' THEN 'regional' END) AS scope,
    "said request_model" AS route,
    'standard' AS service_tier, CAST(NULL AS BOOLEAN) AS stream,
    CASE WHEN coalesce(has_left, FALSE) THEN 'cancelled' WHEN coalesce(has_timed_out, FALSE) THEN 'timeout'
         WHEN code BETWEEN 200 AND 299 THEN 'success' WHEN code IS NOT NULL THEN 'failure' END AS status,
    CASE WHEN coalesce(has_left, FALSE) OR coalesce(has_timed_out, FALSE) OR code NOT BETWEEN 200 AND 299
         THEN coalesce(word_of("said error"), word_of("said flags"), CAST(code AS VARCHAR)) END AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    TRUE AS input_includes_cache,
    "said input" AS input_tokens, "said cache_read" AS cache_read_tokens, "said cache_write" AS cache_write_tokens,
    CAST(NULL AS VARCHAR) AS cache_write_5m_tokens, CAST(NULL AS VARCHAR) AS cache_write_1h_tokens,
    CASE WHEN "said input" IS NOT NULL AND "said output" IS NULL AND contains("said path", '/embeddings') THEN '0' ELSE "said output" END AS output_tokens,
    "said reasoning" AS reasoning_tokens, "said total" AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    CAST([{{claims}}] AS STRUCT(n VARCHAR, v VARCHAR)[]) AS claims,
    CAST(NULL AS VARCHAR) AS provider_cost,
    CASE WHEN coalesce("said input", "said output") IS NULL THEN 'envoy_ai_gateway:unknown' ELSE 'envoy_ai_gateway:inclusive' END AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'input', v := word_of("said input")), struct_pack(k := 'output', v := word_of("said output")),
        struct_pack(k := 'total', v := word_of("said total")), struct_pack(k := 'cache_read', v := word_of("said cache_read")),
        struct_pack(k := 'cache_write', v := word_of("said cache_write")), struct_pack(k := 'reasoning', v := word_of("said reasoning"))
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM known;
