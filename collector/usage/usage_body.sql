-- Usage objects as providers' APIs answer them, one a line, with the call they are of: {id, created, provider, model, usage}.
-- grain: one answer; `usage` (OpenAI, Anthropic, Bedrock Converse, Mistral, DeepSeek, Moonshot, Groq, OpenRouter, xAI, ...),
-- `usageMetadata` (Gemini), `meta` (Cohere); what the answer said is in no column list
-- rule: the body's own field names say which API made it; what its counts mean stands in token_semantics.csv, by API and,
-- where a provider differs, by provider. Null is not zero: a count that is not there is unknown.
-- source: reference/usage.md 2.0; genai-prices' extractors (2026-08-21)

-- :columns
id VARCHAR, created VARCHAR, created_at VARCHAR, "timestamp" VARCHAR, started_at VARCHAR, ended_at VARCHAR,
provider VARCHAR, model VARCHAR, "modelVersion" VARCHAR, service_tier VARCHAR, account VARCHAR, region VARCHAR,
"user" VARCHAR, session_id VARCHAR, status VARCHAR, metadata JSON,
usage STRUCT(
    prompt_tokens VARCHAR, completion_tokens VARCHAR, input_tokens VARCHAR, output_tokens VARCHAR, total_tokens VARCHAR,
    cached_tokens VARCHAR, num_cached_tokens VARCHAR, prompt_cache_hit_tokens VARCHAR, prompt_cache_miss_tokens VARCHAR,
    prompt_tokens_details STRUCT(cached_tokens VARCHAR, cache_write_tokens VARCHAR, audio_tokens VARCHAR,
        image_tokens VARCHAR, video_tokens VARCHAR),
    completion_tokens_details STRUCT(reasoning_tokens VARCHAR, audio_tokens VARCHAR, image_tokens VARCHAR),
    input_tokens_details STRUCT(cached_tokens VARCHAR, cache_write_tokens VARCHAR, audio_tokens VARCHAR, image_tokens VARCHAR),
    output_tokens_details STRUCT(reasoning_tokens VARCHAR, thinking_tokens VARCHAR, audio_tokens VARCHAR, image_tokens VARCHAR),
    cache_read_input_tokens VARCHAR, cache_creation_input_tokens VARCHAR,
    cache_creation STRUCT(ephemeral_5m_input_tokens VARCHAR, ephemeral_1h_input_tokens VARCHAR),
    server_tool_use STRUCT(web_search_requests VARCHAR), num_search_queries VARCHAR, service_tier VARCHAR, cost JSON,
    "inputTokens" VARCHAR, "outputTokens" VARCHAR, "cacheReadInputTokens" VARCHAR, "cacheWriteInputTokens" VARCHAR,
    "cacheReadInputTokenCount" VARCHAR, "cacheWriteInputTokenCount" VARCHAR,
    "cacheDetails" STRUCT(ttl VARCHAR, "inputTokens" VARCHAR)[],
    billed_units STRUCT(input_tokens VARCHAR, output_tokens VARCHAR, search_units VARCHAR)),
"usageMetadata" STRUCT(
    "promptTokenCount" VARCHAR, "candidatesTokenCount" VARCHAR, "thoughtsTokenCount" VARCHAR,
    "toolUsePromptTokenCount" VARCHAR, "cachedContentTokenCount" VARCHAR, "totalTokenCount" VARCHAR, "serviceTier" VARCHAR,
    "promptTokensDetails" STRUCT(modality VARCHAR, "tokenCount" VARCHAR)[],
    "toolUsePromptTokensDetails" STRUCT(modality VARCHAR, "tokenCount" VARCHAR)[],
    "cacheTokensDetails" STRUCT(modality VARCHAR, "tokenCount" VARCHAR)[],
    "candidatesTokensDetails" STRUCT(modality VARCHAR, "tokenCount" VARCHAR)[]),
meta STRUCT(billed_units STRUCT(input_tokens VARCHAR, output_tokens VARCHAR, search_units VARCHAR))

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
             WHEN json_type(line, '$.usage') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.usageMetadata') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.meta') NOT IN ('OBJECT', 'NULL')
               OR TRY_CAST(CAST(line AS JSON) AS STRUCT({{columns}})) IS NULL THEN 'wrong_type'
        END AS broken
    FROM json_line
)
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :macros
-- Tokens of one modality in a list of Gemini's, which reads documents as images; NULL where the list does not name it.
CREATE OR REPLACE TEMP MACRO of_modality(details, wanted) AS
    CAST(list_sum(list_transform(list_filter(details, lambda each: lower(each.modality) = wanted
            OR (wanted = 'image' AND lower(each.modality) = 'document')),
        lambda each: TRY_CAST(each."tokenCount" AS BIGINT))) AS VARCHAR);

CREATE OR REPLACE TEMP MACRO plus(one, other) AS
    CASE WHEN one IS NULL AND other IS NULL THEN NULL
         WHEN TRY_CAST(coalesce(one, '0') AS BIGINT) IS NULL THEN one
         WHEN TRY_CAST(coalesce(other, '0') AS BIGINT) IS NULL THEN other
         ELSE CAST(TRY_CAST(coalesce(one, '0') AS BIGINT) + TRY_CAST(coalesce(other, '0') AS BIGINT) AS VARCHAR) END;

CREATE OR REPLACE TEMP MACRO cached_for(details, wanted) AS
    CAST(list_sum(list_transform(list_filter(details, lambda each: (each.ttl = '1h') = wanted),
        lambda each: TRY_CAST(each."inputTokens" AS BIGINT))) AS VARCHAR);

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH shaped AS (
    SELECT *,
        CASE WHEN "usageMetadata" IS NOT NULL THEN 'gemini'
             WHEN meta.billed_units IS NOT NULL OR usage.billed_units IS NOT NULL THEN 'cohere'
             WHEN usage."inputTokens" IS NOT NULL OR usage."outputTokens" IS NOT NULL THEN 'bedrock.converse'
             WHEN usage.cache_creation_input_tokens IS NOT NULL OR usage.cache_read_input_tokens IS NOT NULL
                 OR usage.cache_creation IS NOT NULL THEN 'anthropic.messages'
             WHEN usage.prompt_tokens IS NOT NULL THEN 'openai.chat'
             WHEN usage.input_tokens IS NOT NULL OR usage.output_tokens IS NOT NULL THEN 'openai.responses'
        END AS shape,
        coalesce(provider_name.provider, nullif(line.provider, ''), CAST(getvariable('provider') AS VARCHAR)) AS seller,
        coalesce(started_at, created, created_at, "timestamp", ended_at) AS told_start,
        coalesce(ended_at, created, created_at, "timestamp", started_at) AS told_end
    FROM payload AS line
    LEFT JOIN provider_name ON provider_name.system = 'genai-prices' AND provider_name.name = lower(line.provider)
),
known AS (
    SELECT shaped.*, semantics.* EXCLUDE (shape, provider),
        coalesce(meta.billed_units, usage.billed_units) AS billed,
        -- a cost that is an object (Perplexity's) is taken apart by nobody here
        CASE WHEN json_type(usage.cost) IN ('DOUBLE', 'UBIGINT', 'BIGINT') THEN usage.cost ->> '$' END AS told_cost
    FROM shaped
    LEFT JOIN (
        SELECT *, row_number() OVER (PARTITION BY shape ORDER BY provider) AS nth FROM token_semantics
    ) AS semantics
        ON semantics.shape = shaped.shape
        AND coalesce(semantics.provider, '') = CASE WHEN EXISTS (
            SELECT 1 FROM token_semantics AS own WHERE own.shape = shaped.shape AND own.provider = shaped.seller)
            THEN shaped.seller ELSE '' END
),
counted AS (
    SELECT *,
        CASE shape
            WHEN 'gemini' THEN plus("usageMetadata"."promptTokenCount", "usageMetadata"."toolUsePromptTokenCount")
            WHEN 'cohere' THEN billed.input_tokens
            WHEN 'bedrock.converse' THEN usage."inputTokens"
            WHEN 'openai.chat' THEN usage.prompt_tokens
            ELSE usage.input_tokens END AS n_in,
        CASE shape
            WHEN 'gemini' THEN "usageMetadata"."cachedContentTokenCount"
            WHEN 'bedrock.converse' THEN coalesce(usage."cacheReadInputTokens", usage."cacheReadInputTokenCount")
            WHEN 'anthropic.messages' THEN usage.cache_read_input_tokens
            -- Mistral's num_cached_tokens are charged as any input: they stay in raw_counts
            WHEN 'openai.chat' THEN coalesce(usage.prompt_tokens_details.cached_tokens, usage.prompt_cache_hit_tokens,
                usage.cached_tokens)
            WHEN 'openai.responses' THEN usage.input_tokens_details.cached_tokens END AS n_cached,
        CASE shape
            WHEN 'bedrock.converse' THEN coalesce(usage."cacheWriteInputTokens", usage."cacheWriteInputTokenCount")
            WHEN 'anthropic.messages' THEN usage.cache_creation_input_tokens
            WHEN 'openai.chat' THEN usage.prompt_tokens_details.cache_write_tokens
            WHEN 'openai.responses' THEN usage.input_tokens_details.cache_write_tokens END AS n_written,
        CASE shape
            WHEN 'gemini' THEN "usageMetadata"."candidatesTokenCount"
            WHEN 'cohere' THEN billed.output_tokens
            WHEN 'bedrock.converse' THEN usage."outputTokens"
            WHEN 'openai.chat' THEN usage.completion_tokens
            ELSE usage.output_tokens END AS n_out,
        CASE shape
            WHEN 'gemini' THEN "usageMetadata"."thoughtsTokenCount"
            WHEN 'openai.chat' THEN usage.completion_tokens_details.reasoning_tokens
            ELSE coalesce(usage.output_tokens_details.reasoning_tokens, usage.output_tokens_details.thinking_tokens)
        END AS n_reasoning,
        [
            struct_pack(k := 'input_audio_tokens', v := coalesce(
                plus(of_modality("usageMetadata"."promptTokensDetails", 'audio'),
                     of_modality("usageMetadata"."toolUsePromptTokensDetails", 'audio')),
                usage.prompt_tokens_details.audio_tokens, usage.input_tokens_details.audio_tokens)),
            struct_pack(k := 'input_image_tokens', v := coalesce(
                plus(of_modality("usageMetadata"."promptTokensDetails", 'image'),
                     of_modality("usageMetadata"."toolUsePromptTokensDetails", 'image')),
                usage.prompt_tokens_details.image_tokens, usage.input_tokens_details.image_tokens)),
            struct_pack(k := 'input_video_tokens', v := coalesce(
                plus(of_modality("usageMetadata"."promptTokensDetails", 'video'),
                     of_modality("usageMetadata"."toolUsePromptTokensDetails", 'video')),
                usage.prompt_tokens_details.video_tokens)),
            struct_pack(k := 'cache_audio_read_tokens', v := of_modality("usageMetadata"."cacheTokensDetails", 'audio')),
            struct_pack(k := 'cache_image_read_tokens', v := of_modality("usageMetadata"."cacheTokensDetails", 'image')),
            struct_pack(k := 'cache_video_read_tokens', v := of_modality("usageMetadata"."cacheTokensDetails", 'video')),
            struct_pack(k := 'output_audio_tokens', v := coalesce(
                of_modality("usageMetadata"."candidatesTokensDetails", 'audio'),
                usage.completion_tokens_details.audio_tokens, usage.output_tokens_details.audio_tokens)),
            struct_pack(k := 'output_image_tokens', v := coalesce(
                of_modality("usageMetadata"."candidatesTokensDetails", 'image'),
                usage.completion_tokens_details.image_tokens, usage.output_tokens_details.image_tokens)),
            struct_pack(k := 'web_searches', v := coalesce(usage.server_tool_use.web_search_requests, usage.num_search_queries)),
            struct_pack(k := 'search_units', v := billed.search_units)
        ] AS units,
        lower(coalesce(service_tier, usage.service_tier, "usageMetadata"."serviceTier", '')) AS tier
    FROM known
)
SELECT
    path, line_number, row_digest, broken,
    FALSE AS filtered,
    nullif(id, '') AS record_id, nullif(id, '') AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt, CAST(NULL AS VARCHAR) AS parent_id,
    nullif(session_id, '') AS session_id, CAST(NULL AS VARCHAR) AS task_id, CAST(NULL AS VARCHAR) AS agent,
    CAST(NULL AS VARCHAR) AS parent_agent, CAST(NULL AS VARCHAR) AS task_outcome, nullif("user", '') AS user_id,
    instant(told_start) AS started_at, CAST(NULL AS TIMESTAMP) AS first_token_at, instant(told_end) AS ended_at,
    seller AS provider, coalesce(nullif(model, ''), nullif("modelVersion", '')) AS model_raw,
    coalesce(nullif(account, ''), CAST(getvariable('account') AS VARCHAR)) AS account_id,
    coalesce(nullif(region, ''), CAST(getvariable('region') AS VARCHAR)) AS region_id,
    CASE WHEN seller LIKE 'aws.%' THEN coalesce(model_scope(model), 'regional') ELSE model_scope(model) END AS scope,
    CAST(NULL AS VARCHAR) AS route,
    CASE WHEN tier IN ('', 'standard', 'default', 'auto', 'on_demand') THEN 'standard'
         WHEN tier IN ('batch', 'flex', 'priority') THEN tier END AS service_tier,
    CAST(NULL AS BOOLEAN) AS stream, coalesce(nullif(lower(status), ''), 'success') AS status,
    CAST(NULL AS VARCHAR) AS error_kind, CAST(NULL AS VARCHAR) AS finish_reason,
    input_includes_cache_read = 'true' AS input_includes_cache,
    n_in AS input_tokens, n_cached AS cache_read_tokens, n_written AS cache_write_tokens,
    CASE shape WHEN 'anthropic.messages' THEN usage.cache_creation.ephemeral_5m_input_tokens
               WHEN 'bedrock.converse' THEN cached_for(usage."cacheDetails", FALSE) END AS cache_write_5m_tokens,
    CASE shape WHEN 'anthropic.messages' THEN usage.cache_creation.ephemeral_1h_input_tokens
               WHEN 'bedrock.converse' THEN cached_for(usage."cacheDetails", TRUE) END AS cache_write_1h_tokens,
    CASE WHEN output_includes_reasoning = 'false' THEN plus(n_out, n_reasoning) ELSE n_out END AS output_tokens,
    n_reasoning AS reasoning_tokens,
    CAST(NULL AS VARCHAR) AS total_tokens,
    CASE WHEN len(list_filter(units, lambda unit: TRY_CAST(unit.v AS BIGINT) > 0)) > 0
         THEN map_from_entries(list_filter(units, lambda unit: TRY_CAST(unit.v AS BIGINT) > 0)) END AS other_units,
    list_transform(CAST(getvariable('claim_metadata') AS VARCHAR[]), lambda name: struct_pack(
        n := 'metadata.' || name, v := json_extract_string(metadata, '$."' || name || '"'))) AS claims,
    told_cost AS provider_cost,
    coalesce(code, 'unknown') AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'input', v := n_in), struct_pack(k := 'cache_read', v := n_cached),
        struct_pack(k := 'cache_write', v := n_written), struct_pack(k := 'output', v := n_out),
        struct_pack(k := 'reasoning', v := n_reasoning),
        struct_pack(k := 'num_cached_tokens', v := usage.num_cached_tokens),
        struct_pack(k := 'tool_use_prompt', v := "usageMetadata"."toolUsePromptTokenCount")
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM counted;
