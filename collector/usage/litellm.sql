-- LiteLLM's StandardLoggingPayload (JSON objects or JSON Lines, callbacks of LiteLLM 1.4 to 1.110) to usage records.
-- grain: one payload, one attempt at a model call; input: `payload` (read_json of whole files, or lines one by one)
-- invariant: `messages` and `response` are in no column list, so no prompt or answer ever enters the engine; only the
-- tolerant pass holds whole lines, as long as it takes to see what is wrong with them

-- :deployment
-- grain: one deployment of the gateway that the configuration places; input: {model_id: {account, region}} as JSON
CREATE OR REPLACE TEMP TABLE deployment AS
SELECT name, places[name].account AS account, places[name].region AS region
FROM (
    SELECT unnest(map_keys(places)) AS name, places
    FROM (SELECT CAST(CAST(? AS JSON) AS MAP(VARCHAR, STRUCT(account VARCHAR, region VARCHAR))) AS places)
);

-- :payload
-- Measures are read as text, so that a refused one can be named exactly.
CREATE OR REPLACE TEMP VIEW payload AS
SELECT line.*, filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json(getvariable('files'), format = 'newline_delimited', records = true, maximum_object_size = 134217728,
    columns = {{shape}}) AS line;

-- :columns
id VARCHAR, litellm_call_id VARCHAR, trace_id VARCHAR, session_id VARCHAR, call_type VARCHAR, cache_hit VARCHAR,
stream VARCHAR, status VARCHAR, custom_llm_provider VARCHAR, "startTime" VARCHAR, "endTime" VARCHAR,
"completionStartTime" VARCHAR, model VARCHAR, model_id VARCHAR, model_group VARCHAR, api_base VARCHAR, end_user VARCHAR,
prompt_tokens VARCHAR, completion_tokens VARCHAR, total_tokens VARCHAR, response_cost VARCHAR, request_tags VARCHAR[],
response_cost_failure_debug_info STRUCT(custom_llm_provider VARCHAR),
error_information STRUCT(error_code VARCHAR, error_class VARCHAR),
hidden_params STRUCT(api_base VARCHAR, batch_models JSON),
model_parameters STRUCT(service_tier VARCHAR, stream VARCHAR),
metadata STRUCT(
    user_api_key_alias VARCHAR, user_api_key_team_id VARCHAR, user_api_key_team_alias VARCHAR,
    user_api_key_org_id VARCHAR, user_api_key_org_alias VARCHAR, user_api_key_project_id VARCHAR,
    user_api_key_project_alias VARCHAR, user_api_key_user_id VARCHAR, user_api_key_end_user_id VARCHAR,
    attempted_retries VARCHAR, spend_logs_metadata JSON, requester_metadata JSON, user_api_key_auth_metadata JSON,
    usage_object STRUCT(
        prompt_tokens VARCHAR, completion_tokens VARCHAR, total_tokens VARCHAR, service_tier VARCHAR,
        cache_read_input_tokens VARCHAR, cache_creation_input_tokens VARCHAR,
        cache_creation STRUCT(ephemeral_5m_input_tokens VARCHAR, ephemeral_1h_input_tokens VARCHAR),
        prompt_tokens_details STRUCT(
            cached_tokens VARCHAR, cache_creation_tokens VARCHAR, cache_write_tokens VARCHAR,
            cache_creation_token_details STRUCT(ephemeral_5m_input_tokens VARCHAR, ephemeral_1h_input_tokens VARCHAR)),
        completion_tokens_details STRUCT(reasoning_tokens VARCHAR)))

-- :payload_by_line
CREATE OR REPLACE TEMP VIEW payload AS
WITH looked AS (
    SELECT path, line_number, line,
        CASE WHEN broken IS NOT NULL THEN broken
             WHEN json_type(line, '$.metadata') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.metadata.usage_object') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.metadata.usage_object.prompt_tokens_details') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.metadata.usage_object.completion_tokens_details') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.request_tags') NOT IN ('ARRAY', 'NULL') THEN 'wrong_type'
        END AS broken
    FROM json_line
)
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH known AS (
    SELECT *,
        coalesce(status = 'success', FALSE) AS ok,
        coalesce(lower(cache_hit) = 'true', FALSE) AS answered_from_cache,
        nullif(metadata.usage_object.prompt_tokens, '') AS stated_input,
        coalesce(metadata.usage_object.cache_creation, metadata.usage_object.prompt_tokens_details.cache_creation_token_details)
            AS split,
        coalesce(nullif(api_base, ''), hidden_params.api_base, '') AS base,
        lower(coalesce(metadata.usage_object.service_tier, model_parameters.service_tier, '')) AS tier,
        coalesce(json_type(hidden_params.batch_models) = 'ARRAY', FALSE) AS whole_batch,
        lower(coalesce(error_information.error_class, '')) AS error_class
    FROM payload
)
SELECT
    known.path, known.line_number, known.row_digest, known.broken,
    -- Fetching a stored response, batch or file again is no model call: its usage was logged when it ran. A batch's
    -- cost record is one (LiteLLM logs it as aretrieve_batch, once the batch has ended).
    NOT whole_batch AND regexp_matches(coalesce(call_type, ''), '^a?(get_|retrieve|list_|cancel|delete)') AS filtered,
    CASE WHEN ok THEN nullif(id, '') ELSE nullif(litellm_call_id, '') || ':' || "startTime" END AS record_id,
    CASE WHEN ok AND NOT answered_from_cache THEN nullif(id, '') END AS provider_response_id,
    nullif(litellm_call_id, '') AS operation_id,
    TRY_CAST(metadata.attempted_retries AS INTEGER) AS attempt,
    CAST(NULL AS VARCHAR) AS parent_id,
    nullif(session_id, '') AS session_id,
    coalesce({{task}}, CASE WHEN {{agent}} IS NOT NULL THEN nullif(trace_id, '') END) AS task_id,
    {{agent}} AS agent,
    {{parent_agent}} AS parent_agent,
    {{task_outcome}} AS task_outcome,
    coalesce(nullif(metadata.user_api_key_user_id, ''), nullif(end_user, ''), nullif(metadata.user_api_key_end_user_id, ''))
        AS user_id,
    instant("startTime") AS started_at,
    CASE WHEN ok AND (lower(stream) = 'true' OR lower(model_parameters.stream) = 'true')
         THEN instant("completionStartTime") END AS first_token_at,
    instant("endTime") AS ended_at,
    coalesce(provider_name.provider, nullif(custom_llm_provider, '')) AS provider,
    nullif(known.model, '') AS model_raw,
    coalesce(json_extract_string(metadata.user_api_key_auth_metadata, '$.aws_account_id'),
        deployment.account, CAST(getvariable('account') AS VARCHAR)) AS account_id,
    coalesce(nullif(regexp_extract(base, '(?:bedrock[a-z-]*\.|^https://)([a-z]{2}(?:-[a-z]+)+-[0-9]+)[.-]', 1), ''),
        deployment.region, CAST(getvariable('region') AS VARCHAR)) AS region_id,
    CASE WHEN coalesce(provider_name.provider, custom_llm_provider) LIKE 'aws.%'
         THEN coalesce(model_scope(known.model), 'regional') ELSE model_scope(known.model) END AS scope,
    nullif(model_group, '') AS route,
    CASE WHEN whole_batch THEN 'batch'
         WHEN tier IN ('', 'default', 'auto', 'standard', 'standard_only', 'on_demand') THEN 'standard'
         WHEN tier IN ('batch', 'flex', 'priority') THEN tier
         WHEN tier = 'optimized' THEN 'latency_optimized' END AS service_tier,
    coalesce(lower(stream) = 'true', FALSE) OR coalesce(lower(model_parameters.stream) = 'true', FALSE) AS stream,
    CASE WHEN ok THEN 'success'
         WHEN status <> 'failure' OR status IS NULL THEN NULL
         WHEN contains(error_class, 'timeout') OR error_information.error_code IN ('408', '504') THEN 'timeout'
         WHEN contains(error_class, 'cancel') OR contains(error_class, 'disconnect') OR error_information.error_code = '499'
             THEN 'cancelled'
         ELSE 'failure' END AS status,
    CASE WHEN NOT ok THEN coalesce(nullif(error_information.error_class, ''), nullif(error_information.error_code, '')) END
        AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    TRUE AS input_includes_cache,
    -- LiteLLM's own answer cache: the provider did nothing. Without a usage object a 0 is its default, not a count.
    CASE WHEN answered_from_cache THEN '0' WHEN stated_input IS NOT NULL THEN stated_input
         ELSE nullif(prompt_tokens, '0') END AS input_tokens,
    CASE WHEN answered_from_cache THEN NULL
         WHEN metadata.usage_object.cache_read_input_tokens > '0' THEN metadata.usage_object.cache_read_input_tokens
         ELSE coalesce(metadata.usage_object.prompt_tokens_details.cached_tokens,
                       metadata.usage_object.cache_read_input_tokens) END AS cache_read_tokens,
    CASE WHEN answered_from_cache THEN NULL
         WHEN metadata.usage_object.cache_creation_input_tokens > '0' THEN metadata.usage_object.cache_creation_input_tokens
         ELSE coalesce(metadata.usage_object.prompt_tokens_details.cache_creation_tokens,
                       metadata.usage_object.prompt_tokens_details.cache_write_tokens,
                       metadata.usage_object.cache_creation_input_tokens) END AS cache_write_tokens,
    CASE WHEN NOT answered_from_cache THEN split.ephemeral_5m_input_tokens END AS cache_write_5m_tokens,
    CASE WHEN NOT answered_from_cache THEN split.ephemeral_1h_input_tokens END AS cache_write_1h_tokens,
    CASE WHEN answered_from_cache THEN '0'
         WHEN stated_input IS NOT NULL THEN coalesce(metadata.usage_object.completion_tokens, completion_tokens)
         ELSE nullif(completion_tokens, '0') END AS output_tokens,
    CASE WHEN NOT answered_from_cache THEN metadata.usage_object.completion_tokens_details.reasoning_tokens END
        AS reasoning_tokens,
    CASE WHEN NOT answered_from_cache THEN coalesce(metadata.usage_object.total_tokens, known.total_tokens) END AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_concat([
        struct_pack(n := 'key_alias', v := metadata.user_api_key_alias),
        struct_pack(n := 'team_id', v := metadata.user_api_key_team_id),
        struct_pack(n := 'team_alias', v := metadata.user_api_key_team_alias),
        struct_pack(n := 'organization', v := coalesce(nullif(metadata.user_api_key_org_alias, ''), metadata.user_api_key_org_id)),
        struct_pack(n := 'project', v := coalesce(nullif(metadata.user_api_key_project_alias, ''), metadata.user_api_key_project_id))
    ], list_transform(CAST(getvariable('claim_tags') AS VARCHAR[]), lambda name: struct_pack(
        n := 'tag.' || name,
        v := coalesce(
            substr(list_filter(request_tags, lambda tag: starts_with(tag, name || ':'))[1], length(name) + 2),
            CASE WHEN list_contains(request_tags, name) THEN 'true' END))
    ), list_transform(CAST(getvariable('claim_metadata') AS VARCHAR[]), lambda name: struct_pack(
        n := 'metadata.' || name,
        v := coalesce(json_extract_string(metadata.spend_logs_metadata, '$."' || name || '"'),
                      json_extract_string(metadata.requester_metadata, '$."' || name || '"')))
    )) AS claims,
    CASE WHEN ok AND NOT answered_from_cache AND response_cost_failure_debug_info IS NULL
              AND NOT (coalesce(TRY_CAST(response_cost AS DOUBLE), 1) = 0 AND coalesce(TRY_CAST(total_tokens AS DOUBLE), 0) > 0)
         THEN response_cost END AS provider_cost,
    CASE WHEN answered_from_cache THEN 'litellm:answered_from_cache'
         WHEN stated_input IS NULL AND ok AND prompt_tokens IS DISTINCT FROM '0' THEN 'litellm:inclusive_no_usage_object'
         WHEN stated_input IS NULL THEN 'litellm:unknown'
         ELSE 'litellm:inclusive' END AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'prompt_tokens', v := coalesce(stated_input, prompt_tokens)),
        struct_pack(k := 'completion_tokens', v := coalesce(metadata.usage_object.completion_tokens, completion_tokens)),
        struct_pack(k := 'total_tokens', v := coalesce(metadata.usage_object.total_tokens, known.total_tokens)),
        struct_pack(k := 'cached_tokens', v := metadata.usage_object.prompt_tokens_details.cached_tokens),
        struct_pack(k := 'cache_read_input_tokens', v := metadata.usage_object.cache_read_input_tokens),
        struct_pack(k := 'cache_creation_input_tokens', v := metadata.usage_object.cache_creation_input_tokens),
        struct_pack(k := 'ephemeral_5m_input_tokens', v := split.ephemeral_5m_input_tokens),
        struct_pack(k := 'ephemeral_1h_input_tokens', v := split.ephemeral_1h_input_tokens),
        struct_pack(k := 'reasoning_tokens', v := metadata.usage_object.completion_tokens_details.reasoning_tokens)
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM known
LEFT JOIN provider_name ON provider_name.system = 'litellm' AND provider_name.name = known.custom_llm_provider
LEFT JOIN deployment ON deployment.name = known.model_id;
