-- Amazon Bedrock's model invocation logs (S3, one JSON document a line) to usage records.
-- grain: one invocation; `inputBodyJson` and `outputBodyJson` are in no column list: no prompt or answer enters the engine
-- rule: input counts exclude cache reads and writes, as in Converse (inferred, see reference/usage.md 2.7). An application
-- inference profile names no model: models.aliases says which one it stands for, and the profile stays as a claim.
-- source: reference/usage.md 2.7

-- :columns
"schemaType" VARCHAR, "timestamp" VARCHAR, "accountId" VARCHAR, region VARCHAR, "inferenceRegion" VARCHAR,
"requestId" VARCHAR, operation VARCHAR, "modelId" VARCHAR, "errorCode" VARCHAR, status VARCHAR, "serviceTier" VARCHAR,
identity STRUCT(arn VARCHAR), "requestMetadata" JSON,
input STRUCT("inputTokenCount" VARCHAR, "cacheReadInputTokenCount" VARCHAR, "cacheWriteInputTokenCount" VARCHAR),
output STRUCT("outputTokenCount" VARCHAR)

-- :payload
CREATE OR REPLACE TEMP VIEW payload AS
SELECT line.*, filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json(getvariable('files'), format = 'newline_delimited', records = true, maximum_object_size = 134217728,
    columns = {{shape}}) AS line;

-- :payload_by_line
CREATE OR REPLACE TEMP VIEW payload AS
WITH looked AS (
    SELECT path, line_number, line,
        CASE WHEN broken IS NOT NULL THEN broken
             WHEN json_type(line, '$.input') NOT IN ('OBJECT', 'NULL') OR json_type(line, '$.output') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.identity') NOT IN ('OBJECT', 'NULL') THEN 'wrong_type' END AS broken
    FROM json_line
)
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH known AS (
    SELECT *,
        "errorCode" IS NULL AND coalesce(lower(status), 'success') IN ('success', 'succeeded', 'completed', '200') AS ok,
        lower(coalesce("serviceTier", '')) AS tier,
        coalesce(identity.arn, '') AS arn,
        lower(coalesce("errorCode", status, '')) AS said
    FROM payload
)
SELECT
    path, line_number, row_digest, broken,
    coalesce("schemaType" <> 'ModelInvocationLog', FALSE) AS filtered,
    nullif("requestId", '') AS record_id, nullif("requestId", '') AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt, CAST(NULL AS VARCHAR) AS parent_id,
    json_extract_string("requestMetadata", '$."' || getvariable('session_key') || '"') AS session_id,
    json_extract_string("requestMetadata", '$."' || getvariable('task_key') || '"') AS task_id,
    json_extract_string("requestMetadata", '$."' || getvariable('agent_key') || '"') AS agent,
    CAST(NULL AS VARCHAR) AS parent_agent, CAST(NULL AS VARCHAR) AS task_outcome,
    -- an assumed role's session is named after who or what assumed it
    nullif(regexp_extract(arn, '^arn:[^:]*:sts::[0-9]*:assumed-role/[^/]+/(.+)$', 1), '') AS user_id,
    instant("timestamp") AS started_at, CAST(NULL AS TIMESTAMP) AS first_token_at, instant("timestamp") AS ended_at,
    'aws.bedrock' AS provider, nullif("modelId", '') AS model_raw,
    nullif("accountId", '') AS account_id, nullif(region, '') AS region_id,
    coalesce(model_scope("modelId"), 'regional') AS scope, CAST(NULL AS VARCHAR) AS route,
    CASE WHEN tier IN ('', 'default', 'standard', 'on_demand') THEN 'standard'
         WHEN tier IN ('batch', 'flex', 'priority') THEN tier END AS service_tier,
    contains(coalesce(operation, ''), 'Stream') AS stream,
    CASE WHEN ok THEN 'success' WHEN contains(said, 'timeout') THEN 'timeout' ELSE 'failure' END AS status,
    CASE WHEN NOT ok THEN coalesce("errorCode", status) END AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    FALSE AS input_includes_cache,
    input."inputTokenCount" AS input_tokens, input."cacheReadInputTokenCount" AS cache_read_tokens,
    input."cacheWriteInputTokenCount" AS cache_write_tokens,
    CAST(NULL AS VARCHAR) AS cache_write_5m_tokens, CAST(NULL AS VARCHAR) AS cache_write_1h_tokens,
    output."outputTokenCount" AS output_tokens, CAST(NULL AS VARCHAR) AS reasoning_tokens,
    CAST(NULL AS VARCHAR) AS total_tokens, CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_concat([
        struct_pack(n := 'principal', v := regexp_replace(arn, '^(arn:[^:]*:sts::[0-9]*:assumed-role/[^/]+)/.+$', '\1')),
        struct_pack(n := 'inference_profile', v := CASE WHEN contains("modelId", 'inference-profile/') THEN "modelId" END)
    ], list_transform(CAST(getvariable('claim_metadata') AS VARCHAR[]), lambda name: struct_pack(
        n := 'metadata.' || name, v := json_extract_string("requestMetadata", '$."' || name || '"')))) AS claims,
    CAST(NULL AS VARCHAR) AS provider_cost,
    'bedrock.invocation_log:disjoint' AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'inputTokenCount', v := input."inputTokenCount"),
        struct_pack(k := 'cacheReadInputTokenCount', v := input."cacheReadInputTokenCount"),
        struct_pack(k := 'cacheWriteInputTokenCount', v := input."cacheWriteInputTokenCount"),
        struct_pack(k := 'outputTokenCount', v := output."outputTokenCount"),
        struct_pack(k := 'inferenceRegion', v := nullif("inferenceRegion", region))
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM known;
