-- Langfuse observations (blob export in CSV, JSON, JSON Lines, Parquet; pages of its API; one trace of its API) to
-- usage records. grain: one observation; input: `exported`
-- invariant: `input`, `output` and tool calls are in no column list; of `metadata` only named keys are looked at

-- :macros
-- Tags as written in any file type: a JSON list.
CREATE OR REPLACE TEMP MACRO tag_list(written) AS
    CASE WHEN json_valid(written) AND json_type(written) = 'ARRAY' THEN CAST(CAST(written AS JSON) AS VARCHAR[]) ELSE [] END;

-- :payload
CREATE OR REPLACE TEMP VIEW payload AS
WITH document AS (
    SELECT path, line_number, row_digest, broken,
        CASE WHEN observations IS NOT NULL THEN observations WHEN data IS NOT NULL THEN data ELSE [{{itself}}] END AS all_of_it,
        trace."userId" AS trace_user, trace."sessionId" AS trace_session, trace.tags AS trace_tags, "userId" AS own_user,
        "sessionId" AS own_session
    FROM exported
),
one AS (
    SELECT * EXCLUDE (all_of_it), unnest(all_of_it) AS o FROM document
)
SELECT path, line_number, row_digest, broken, trace_user, trace_session, trace_tags, own_user, own_session, {{fields}}
FROM one;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH parsed AS (
    SELECT *,
        CASE WHEN json_valid(usage_details) AND json_type(usage_details) = 'OBJECT'
             THEN CAST(CAST(usage_details AS JSON) AS MAP(VARCHAR, VARCHAR)) ELSE MAP {} END AS counts,
        CASE WHEN json_valid(metadata) THEN metadata END AS meta,
        upper(coalesce(type, '')) AS kind
    FROM payload
),
opened AS (
    SELECT *,
        -- the database keeps the values of metadata as text, so an object may be text once more
        CASE WHEN json_valid(json_extract_string(meta, '$.attributes')) THEN json_extract_string(meta, '$.attributes') END
            AS attributes,
        coalesce(counts['input'], counts['input_tokens'], counts['prompt_tokens']) AS said_input,
        coalesce(counts['output'], counts['output_tokens'], counts['completion_tokens']) AS said_output,
        coalesce(counts['input_cached_tokens'], counts['input_cache_read'], counts['input_cache_read_tokens'],
            counts['cache_read_input_tokens'], counts['prompt_details.cache_read']) AS said_read,
        coalesce(counts['input_cache_creation'], counts['input_cache_creation_tokens'], counts['cache_creation_input_tokens'],
            counts['input_cache_write'], counts['prompt_details.cache_write']) AS said_write,
        coalesce(counts['input_cache_creation_5m'], counts['input_cache_creation_5m_tokens']) AS said_5m,
        coalesce(counts['input_cache_creation_1h'], counts['input_cache_creation_1h_tokens']) AS said_1h,
        coalesce(counts['output_reasoning'], counts['output_reasoning_tokens'], counts['reasoning_tokens'],
            counts['completion_details.reasoning']) AS said_reasoning,
        coalesce(counts['total'], counts['total_tokens']) AS said_total,
        coalesce(whole(coalesce(counts['input_audio'], counts['input_audio_tokens'], counts['prompt_details.audio'])), 0) AS audio_in,
        coalesce(whole(coalesce(counts['output_audio'], counts['output_audio_tokens'], counts['completion_details.audio'])), 0) AS audio_out
    FROM parsed
),
counted AS (
    SELECT *,
        coalesce(whole(said_input), 0) AS i, coalesce(whole(said_output), 0) AS o, coalesce(whole(said_reasoning), 0) AS r,
        coalesce(whole(said_read), 0) + coalesce(whole(said_write), coalesce(whole(said_5m), 0) + coalesce(whole(said_1h), 0)) AS c,
        whole(said_total) AS t,
        coalesce(said_input, said_output) IS NOT NULL AS has_usage,
        kind IN ('GENERATION', 'EMBEDDING') AS is_model_call,
        upper(coalesce(level, '')) = 'ERROR' AS has_failed,
        lower(coalesce(status_message, '')) AS message,
        coalesce(json_extract_string(attributes, '$."server.address"'), '') AS address,
        coalesce(provider_at(json_extract_string(attributes, '$."server.address"')),
            provider_named(json_extract_string(attributes, '$."gen_ai.provider.name"')),
            provider_named(json_extract_string(attributes, '$."gen_ai.system"')),
            provider_named(json_extract_string(attributes, '$."llm.provider"')),
            provider_named(json_extract_string(attributes, '$."ai.model.provider"')),
            provider_named(json_extract_string(meta, '$.ls_provider')),
            CAST(getvariable('provider') AS VARCHAR)) AS answered_by
    FROM opened
),
settled AS (
    SELECT *,
        -- By Langfuse's convention the classes are disjoint and add up to the total; wrappers that send a part inside
        -- its whole (langfuse/langfuse#10592, #12306) give themselves away by the total.
        CASE WHEN t IS NULL OR t = i + c + o + r + audio_in + audio_out THEN 'disjoint'
             WHEN t = i + c + o + r THEN 'disjoint'
             WHEN t = i + o THEN 'inclusive'
             WHEN t = i + o + r THEN 'cache_inside'
             WHEN t = i + c + o THEN 'reasoning_inside'
             ELSE 'disjoint+total_differs' END AS convention,
        t = i + c + o + r + audio_in + audio_out AND audio_in + audio_out > 0 AS is_audio_beside
    FROM counted
)
SELECT
    path, line_number, row_digest,
    CASE WHEN broken IS NOT NULL THEN broken WHEN nullif(id, '') IS NULL OR kind = '' THEN 'not_observations'
        WHEN nullif(usage_details, '') IS NOT NULL AND (NOT json_valid(usage_details) OR json_type(usage_details) NOT IN ('OBJECT', 'NULL'))
             THEN 'wrong_type' END AS broken,
    broken IS NULL AND kind <> '' AND NOT is_model_call
        AND (NOT has_usage OR has_failed OR NOT getvariable('agent_totals')) AS filtered,
    coalesce(nullif(trace_id, ''), 'none') || ':' || id AS record_id,
    CASE WHEN NOT has_failed THEN nullif(json_extract_string(attributes, '$."gen_ai.response.id"'), '') END AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt,
    coalesce(nullif(trace_id, ''), 'none') || ':' || nullif(parent_observation_id, '') AS parent_id,
    coalesce(nullif(session_id, ''), trace_session, own_session) AS session_id,
    coalesce({{task}}, CASE WHEN {{agent}} IS NOT NULL THEN nullif(trace_id, '') END) AS task_id,
    {{agent}} AS agent, CAST(NULL AS VARCHAR) AS parent_agent, word_of({{task_outcome}}) AS task_outcome,
    coalesce(nullif(user_id, ''), trace_user, own_user) AS user_id,
    instant(start_time) AS started_at,
    CASE WHEN NOT has_failed THEN instant(nullif(completion_start_time, '')) END AS first_token_at,
    instant(end_time) AS ended_at,
    answered_by AS provider,
    coalesce(nullif(provided_model_name, ''), nullif(model, '')) AS model_raw,
    CAST(getvariable('account') AS VARCHAR) AS account_id,
    coalesce(region_at(address), CAST(getvariable('region') AS VARCHAR)) AS region_id,
    coalesce(model_scope(coalesce(nullif(provided_model_name, ''), model)), CASE WHEN answered_by LIKE 'aws.%' THEN 'regional' END) AS scope,
    CAST(NULL AS VARCHAR) AS route,
    tier_named(CASE WHEN json_valid(model_parameters) THEN json_extract_string(model_parameters, '$.service_tier') END) AS service_tier,
    CASE WHEN nullif(completion_start_time, '') IS NOT NULL THEN TRUE END AS stream,
    CASE WHEN NOT has_failed THEN 'success'
         WHEN regexp_matches(message, 'timed?[ _-]?out|deadline') THEN 'timeout'
         WHEN regexp_matches(message, 'cancel|abort|disconnect') THEN 'cancelled'
         ELSE 'failure' END AS status,
    CASE WHEN has_failed THEN coalesce(word_of(json_extract_string(attributes, '$."error.type"')), word_of(level)) END AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    convention IN ('cache_inside', 'inclusive') AS input_includes_cache,
    CASE WHEN is_audio_beside AND whole(said_input) IS NOT NULL THEN CAST(i + audio_in AS VARCHAR) ELSE said_input END AS input_tokens,
    said_read AS cache_read_tokens, said_write AS cache_write_tokens, said_5m AS cache_write_5m_tokens,
    said_1h AS cache_write_1h_tokens,
    CASE WHEN kind = 'EMBEDDING' AND said_input IS NOT NULL THEN coalesce(said_output, '0')
         WHEN said_output IS NULL OR whole(said_output) IS NULL OR o < 0 OR r < 0 THEN said_output
         ELSE CAST(o + CASE WHEN convention IN ('reasoning_inside', 'inclusive') THEN 0 ELSE r END
                   + CASE WHEN is_audio_beside THEN audio_out ELSE 0 END AS VARCHAR) END AS output_tokens,
    said_reasoning AS reasoning_tokens,
    CAST(NULL AS VARCHAR) AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_concat([
        struct_pack(n := 'project', v := project_id), struct_pack(n := 'environment', v := environment),
        struct_pack(n := 'release', v := release), struct_pack(n := 'trace_name', v := CASE WHEN getvariable('claim_trace_name') THEN trace_name END)
    ], list_transform(CAST(getvariable('claim_tags') AS VARCHAR[]), lambda name: struct_pack(
        n := 'tag.' || name,
        v := coalesce(
            substr(list_filter(tag_list(coalesce(tags, trace_tags)), lambda tag: starts_with(tag, name || ':'))[1], length(name) + 2),
            CASE WHEN list_contains(tag_list(coalesce(tags, trace_tags)), name) THEN 'true' END))
    ), list_transform(CAST(getvariable('claim_metadata') AS VARCHAR[]), lambda name: struct_pack(
        n := 'metadata.' || name,
        v := CASE WHEN length(json_extract_string(meta, '$."' || name || '"')) <= 256 THEN json_extract_string(meta, '$."' || name || '"') END)
    )) AS claims,
    stated_cost(total_cost, said_input, said_output, said_total) AS provider_cost,
    CASE WHEN NOT has_usage THEN 'langfuse:unknown' ELSE 'langfuse:' || convention END
        || CASE WHEN has_usage AND NOT is_model_call THEN '+agent_total' ELSE '' END AS semantics,
    -- `updated_at` is kept with the counts: of two versions of one observation the later one counts
    map_from_entries(list_concat(
        list_transform(list_filter(map_entries(counts), lambda one: word_of(one.key) IS NOT NULL AND word_of(one.value) IS NOT NULL),
            lambda one: struct_pack(k := one.key, v := one.value)),
        CASE WHEN instant(updated_at) IS NOT NULL THEN [struct_pack(k := 'updated_at', v := CAST(instant(updated_at) AS VARCHAR))] ELSE [] END
    )) AS raw_counts
FROM settled;
