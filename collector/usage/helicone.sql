-- Helicone's requests (rows of `request_response_rmt`, or what its API and `@helicone/export` answer) to usage records.
-- grain: one request; input: `exported`
-- invariant: request and response bodies are in no column list

-- :payload
CREATE OR REPLACE TEMP VIEW payload AS FROM exported;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH named AS (
    SELECT *,
        TRY_CAST(coalesce(nullif(response_status, ''), nullif(status, '')) AS INTEGER) AS code,
        instant(nullif(request_created_at, '')) AS begun,
        TRY_CAST(coalesce(nullif(delay_ms, ''), nullif(latency, '')) AS DOUBLE) AS took_ms,
        TRY_CAST(nullif(time_to_first_token, '') AS DOUBLE) AS first_ms,
        CASE WHEN json_valid(coalesce(nullif(properties, ''), request_properties)) THEN coalesce(nullif(properties, ''), request_properties) END AS props,
        coalesce(nullif(response_model, ''), nullif(model_override, ''), nullif(model, ''), nullif(request_model, '')) AS answered_as,
        coalesce(provider_at(target_url), provider_named(provider)) AS answered_by,
        -- Helicone's own answer cache: the provider did nothing
        regexp_matches(coalesce(cache_reference_id, ''), '[1-9a-f]') AS from_cache,
        -- the table has 0 where nothing is known
        nullif(prompt_tokens, '') IS NOT NULL AND NOT (
            coalesce(whole(prompt_tokens), 0) = 0 AND coalesce(whole(completion_tokens), 0) = 0
            AND coalesce(whole(prompt_cache_read_tokens), 0) = 0 AND coalesce(whole(prompt_cache_write_tokens), 0) = 0) AS is_counted
    FROM payload
)
SELECT
    path, line_number, row_digest,
    CASE WHEN broken IS NOT NULL THEN broken WHEN nullif(request_id, '') IS NULL THEN 'not_a_request' END AS broken,
    -- still running: it is exported again when it has ended
    broken IS NULL AND coalesce(code = -2, FALSE) AS filtered,
    nullif(request_id, '') AS record_id,
    CAST(NULL AS VARCHAR) AS provider_response_id, CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt,
    CAST(NULL AS VARCHAR) AS parent_id,
    json_extract_string(props, '$."Helicone-Session-Id"') AS session_id,
    coalesce({{task}}, CASE WHEN {{agent}} IS NOT NULL THEN json_extract_string(props, '$."Helicone-Session-Id"') END) AS task_id,
    {{agent}} AS agent, CAST(NULL AS VARCHAR) AS parent_agent, word_of({{task_outcome}}) AS task_outcome,
    coalesce(nullif(user_id, ''), nullif(request_user_id, '')) AS user_id,
    begun AS started_at,
    CASE WHEN code BETWEEN 200 AND 299 AND first_ms BETWEEN 1 AND 86400000
         THEN begun + to_microseconds(CAST(round(first_ms * 1000) AS BIGINT)) END AS first_token_at,
    coalesce(instant(nullif(response_created_at, '')),
        CASE WHEN took_ms BETWEEN 0 AND 604800000 THEN begun + to_microseconds(CAST(round(took_ms * 1000) AS BIGINT)) END) AS ended_at,
    answered_by AS provider, answered_as AS model_raw,
    CAST(getvariable('account') AS VARCHAR) AS account_id,
    coalesce(region_at(target_url), CAST(getvariable('region') AS VARCHAR)) AS region_id,
    coalesce(model_scope(answered_as), CASE WHEN answered_by LIKE 'aws.%' THEN 'regional' END) AS scope,
    nullif(request_model, '') AS route,
    'standard' AS service_tier,
    CASE WHEN first_ms > 0 THEN TRUE END AS stream,
    CASE WHEN code BETWEEN 200 AND 299 THEN 'success'
         WHEN code IN (-1, 408, 504) THEN 'timeout'
         WHEN code IN (-3, 499) THEN 'cancelled'
         WHEN code IS NOT NULL THEN 'failure' END AS status,
    CASE WHEN code NOT BETWEEN 200 AND 299 THEN CAST(code AS VARCHAR) END AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    {{inclusive}} AS input_includes_cache,
    CASE WHEN from_cache THEN '0' WHEN is_counted THEN prompt_tokens END AS input_tokens,
    CASE WHEN is_counted AND NOT from_cache THEN nullif(prompt_cache_read_tokens, '') END AS cache_read_tokens,
    CASE WHEN is_counted AND NOT from_cache THEN nullif(prompt_cache_write_tokens, '') END AS cache_write_tokens,
    CAST(NULL AS VARCHAR) AS cache_write_5m_tokens, CAST(NULL AS VARCHAR) AS cache_write_1h_tokens,
    CASE WHEN from_cache THEN '0' WHEN is_counted THEN nullif(completion_tokens, '') END AS output_tokens,
    CASE WHEN is_counted AND NOT from_cache THEN nullif(reasoning_tokens, '') END AS reasoning_tokens,
    CAST(NULL AS VARCHAR) AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_concat([
        struct_pack(n := 'organization', v := organization_id), struct_pack(n := 'key_hash', v := proxy_key_id)
    ], list_transform(CAST(getvariable('claim_properties') AS VARCHAR[]), lambda name: struct_pack(
        n := 'property.' || name,
        v := CASE WHEN length(json_extract_string(props, '$."' || name || '"')) <= 256 THEN json_extract_string(props, '$."' || name || '"') END)
    )) AS claims,
    -- The table's own `cost` is in whole nano-dollars (costs times 1,000,000,000); the API's is in dollars.
    CASE WHEN from_cache THEN NULL ELSE stated_cost(
        coalesce(nullif("costUSD", ''), nullif(cost_usd, ''),
            CASE WHEN nullif(response_status, '') IS NULL AND nullif(status, '') IS NOT NULL
                 THEN coalesce(CAST(TRY_CAST(cost AS DECIMAL(20, 0)) * CAST(0.000000001 AS DECIMAL(10, 9)) AS VARCHAR), nullif(cost, ''))
                 ELSE nullif(cost, '') END),
        prompt_tokens, completion_tokens, total_tokens) END AS provider_cost,
    CASE WHEN from_cache THEN 'helicone:answered_from_cache' WHEN NOT is_counted THEN 'helicone:unknown'
         ELSE '{{semantics}}' END AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'prompt_tokens', v := word_of(prompt_tokens)),
        struct_pack(k := 'completion_tokens', v := word_of(completion_tokens)),
        struct_pack(k := 'total_tokens', v := word_of(total_tokens)),
        struct_pack(k := 'prompt_cache_read_tokens', v := word_of(prompt_cache_read_tokens)),
        struct_pack(k := 'prompt_cache_write_tokens', v := word_of(prompt_cache_write_tokens)),
        struct_pack(k := 'updated_at', v := CAST(instant(nullif(updated_at, '')) AS VARCHAR))
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM named;
