-- Claude Code's session transcripts (JSON Lines, one file a session; sub-agents in files or lines of their own).
-- grain: one line of a transcript; lines that are no answer of a model are left out and counted
-- invariant: `content` and `toolUseResult` are in no column list, so no text of a session ever enters the engine
--
-- One answer is written 2 to 14 times while it grows, and again in every session that resumes or forks this one: each
-- writing is a record, all of one answer are one event (step 02 keeps the largest output). The answer's own id says
-- which: Anthropic's ids (`msg_01...`) are unique in the world, others are so with the request's, if it is told.
-- source: reference/usage.md 2.0 (Anthropic messages), 3 (33-35); samples/README.md d

-- :columns
type VARCHAR, uuid VARCHAR, "timestamp" VARCHAR, "sessionId" VARCHAR, "requestId" VARCHAR, "agentId" VARCHAR,
"isSidechain" VARCHAR, "isApiErrorMessage" VARCHAR, cwd VARCHAR, "gitBranch" VARCHAR, version VARCHAR, "costUSD" VARCHAR,
message STRUCT(
    id VARCHAR, model VARCHAR, stop_reason VARCHAR,
    usage STRUCT(
        input_tokens VARCHAR, output_tokens VARCHAR, cache_read_input_tokens VARCHAR, cache_creation_input_tokens VARCHAR,
        cache_creation STRUCT(ephemeral_5m_input_tokens VARCHAR, ephemeral_1h_input_tokens VARCHAR),
        server_tool_use STRUCT(web_search_requests VARCHAR), service_tier VARCHAR, speed VARCHAR,
        output_tokens_details STRUCT(thinking_tokens VARCHAR)))

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
             WHEN json_type(line, '$.message.usage') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.message.usage.cache_creation') NOT IN ('OBJECT', 'NULL') THEN 'wrong_type'
        END AS broken
    FROM json_line
)
-- a line whose message is plain text is no answer of a model
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL AND json_type(line, '$.message') = 'OBJECT' THEN line ELSE '{}' END
    AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH known AS (
    SELECT *,
        nullif(message.id, '') AS message_id, nullif("requestId", '') AS request_id,
        coalesce(lower("isSidechain") = 'true', FALSE) OR coalesce("agentId", '') <> '' AS is_sub_agent,
        lower(coalesce(message.usage.service_tier, '')) AS tier
    FROM payload
)
SELECT
    path, line_number, row_digest, broken,
    -- no usage: what people and tools said; `<synthetic>`: what Claude Code itself said in a model's place
    message.usage IS NULL OR coalesce(message.model, '') = '<synthetic>' OR coalesce(lower("isApiErrorMessage") = 'true', FALSE)
        AS filtered,
    coalesce(nullif(uuid, ''), md5(concat_ws('|', message_id, request_id, "sessionId", "timestamp", message.usage.output_tokens)))
        AS record_id,
    CASE WHEN regexp_full_match(message_id, 'msg_(bdrk_|vrtx_)?[0-9A-Za-z]{20,}') THEN message_id
         ELSE message_id || coalesce(':' || request_id, '') END AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt, CAST(NULL AS VARCHAR) AS parent_id,
    nullif("sessionId", '') AS session_id,
    nullif("sessionId", '') AS task_id,
    CASE WHEN is_sub_agent THEN 'sub-agent' ELSE 'main' END AS agent,
    CASE WHEN is_sub_agent THEN 'main' END AS parent_agent,
    CAST(NULL AS VARCHAR) AS task_outcome,
    CAST(getvariable('user') AS VARCHAR) AS user_id,
    -- a line says when it was written: neither when the call began nor when its first token came
    instant("timestamp") AS started_at, CAST(NULL AS TIMESTAMP) AS first_token_at, instant("timestamp") AS ended_at,
    CASE WHEN starts_with(message_id, 'msg_bdrk_') THEN 'aws.bedrock'
         WHEN starts_with(message_id, 'msg_vrtx_') THEN 'gcp.vertex_ai'
         ELSE CAST(getvariable('provider') AS VARCHAR) END AS provider,
    nullif(message.model, '') AS model_raw,
    CAST(getvariable('account') AS VARCHAR) AS account_id, CAST(getvariable('region') AS VARCHAR) AS region_id,
    model_scope(message.model) AS scope, CAST(NULL AS VARCHAR) AS route,
    CASE WHEN tier IN ('', 'standard', 'default', 'auto') THEN 'standard' WHEN tier IN ('batch', 'flex', 'priority') THEN tier
    END AS service_tier,
    CAST(NULL AS BOOLEAN) AS stream, 'success' AS status, CAST(NULL AS VARCHAR) AS error_kind,
    nullif(message.stop_reason, '') AS finish_reason,
    FALSE AS input_includes_cache,
    message.usage.input_tokens AS input_tokens,
    message.usage.cache_read_input_tokens AS cache_read_tokens,
    message.usage.cache_creation_input_tokens AS cache_write_tokens,
    message.usage.cache_creation.ephemeral_5m_input_tokens AS cache_write_5m_tokens,
    message.usage.cache_creation.ephemeral_1h_input_tokens AS cache_write_1h_tokens,
    message.usage.output_tokens AS output_tokens,
    message.usage.output_tokens_details.thinking_tokens AS reasoning_tokens,
    CAST(NULL AS VARCHAR) AS total_tokens,
    CASE WHEN TRY_CAST(message.usage.server_tool_use.web_search_requests AS BIGINT) > 0
         THEN MAP {'web_searches': message.usage.server_tool_use.web_search_requests} END AS other_units,
    list_filter([
        struct_pack(n := 'project', v := regexp_extract(cwd, '([^/\\]+)[/\\]*$', 1)),
        struct_pack(n := 'branch', v := "gitBranch"),
        struct_pack(n := 'client', v := 'claude-code ' || version)
    ], lambda claim: list_contains(CAST(getvariable('claim_names') AS VARCHAR[]), claim.n)) AS claims,
    -- what the client worked out from its own prices; an answer's first writings say 0
    CASE WHEN TRY_CAST("costUSD" AS DOUBLE) > 0 THEN "costUSD" END AS provider_cost,
    'anthropic:disjoint' AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'input_tokens', v := message.usage.input_tokens),
        struct_pack(k := 'output_tokens', v := message.usage.output_tokens),
        struct_pack(k := 'cache_read_input_tokens', v := message.usage.cache_read_input_tokens),
        struct_pack(k := 'cache_creation_input_tokens', v := message.usage.cache_creation_input_tokens),
        struct_pack(k := 'ephemeral_5m_input_tokens', v := message.usage.cache_creation.ephemeral_5m_input_tokens),
        struct_pack(k := 'ephemeral_1h_input_tokens', v := message.usage.cache_creation.ephemeral_1h_input_tokens),
        struct_pack(k := 'speed', v := message.usage.speed)
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM known;
