-- Codex's session logs (`rollout-*.jsonl` under ~/.codex/sessions) to usage records.
-- grain: one line; a `token_count` event is one answer, all other lines are left out and counted
-- invariant: what people, models and tools said is in no column list
--
-- `last_token_usage` is the answer's own usage, `total_token_usage` the session's so far: the latter is never added up;
-- it tells an event that is only repeated (rate limits are told with the same counts) and stands in where `last` lacks.
-- A forked or resumed session begins with the parent's events: same instant and totals, so the same record.
-- source: reference/usage.md 2.0 (OpenAI responses, ccusage's Codex reader); samples/README.md i

-- :columns
"timestamp" VARCHAR, type VARCHAR,
payload STRUCT(
    type VARCHAR, id VARCHAR, cwd VARCHAR, model VARCHAR, model_provider VARCHAR, cli_version VARCHAR,
    git STRUCT(branch VARCHAR),
    info STRUCT(
        model VARCHAR,
        last_token_usage STRUCT(input_tokens VARCHAR, cached_input_tokens VARCHAR, output_tokens VARCHAR,
            reasoning_output_tokens VARCHAR, total_tokens VARCHAR),
        total_token_usage STRUCT(input_tokens VARCHAR, cached_input_tokens VARCHAR, output_tokens VARCHAR,
            reasoning_output_tokens VARCHAR, total_tokens VARCHAR)))

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
             WHEN json_type(line, '$.payload') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.payload.info') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.payload.info.last_token_usage') NOT IN ('OBJECT', 'NULL')
               OR json_type(line, '$.payload.info.total_token_usage') NOT IN ('OBJECT', 'NULL') THEN 'wrong_type'
        END AS broken
    FROM json_line
)
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH said AS (
    SELECT *,
        instant("timestamp") AS told_at,
        payload.info.last_token_usage AS own, payload.info.total_token_usage AS so_far,
        coalesce(payload.type = 'token_count', FALSE) AND payload.info IS NOT NULL AS is_count,
        CASE WHEN type IN ('turn_context', 'session_meta') THEN 0 ELSE 1 END AS rank
    FROM payload AS line
),
-- what a session's latest lines say of it holds for what follows
known AS (
    SELECT *,
        last_value(CASE WHEN type = 'turn_context' THEN nullif(payload.model, '') END IGNORE NULLS) OVER past AS turn_model,
        last_value(nullif(payload.cwd, '') IGNORE NULLS) OVER past AS folder,
        first_value(CASE WHEN type = 'session_meta' THEN nullif(payload.id, '') END IGNORE NULLS) OVER whole AS session,
        first_value(CASE WHEN type = 'session_meta' THEN payload.git.branch END IGNORE NULLS) OVER whole AS branch,
        first_value(CASE WHEN type = 'session_meta' THEN payload.cli_version END IGNORE NULLS) OVER whole AS version,
        first_value(CASE WHEN type = 'session_meta' THEN nullif(payload.model_provider, '') END IGNORE NULLS) OVER whole
            AS model_provider,
        last_value(CASE WHEN is_count THEN so_far END IGNORE NULLS) OVER before AS so_far_before
    FROM said
    WINDOW past AS (PARTITION BY path ORDER BY told_at, rank, line_number, so_far.total_tokens
                    ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW),
        before AS (PARTITION BY path ORDER BY told_at, rank, line_number, so_far.total_tokens
                   ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
        whole AS (PARTITION BY path ORDER BY told_at ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)
),
counted AS (
    SELECT *,
        coalesce(own.input_tokens, CAST(TRY_CAST(so_far.input_tokens AS BIGINT)
            - coalesce(TRY_CAST(so_far_before.input_tokens AS BIGINT), 0) AS VARCHAR)) AS n_in,
        coalesce(own.cached_input_tokens, CAST(TRY_CAST(so_far.cached_input_tokens AS BIGINT)
            - coalesce(TRY_CAST(so_far_before.cached_input_tokens AS BIGINT), 0) AS VARCHAR)) AS n_cached,
        coalesce(own.output_tokens, CAST(TRY_CAST(so_far.output_tokens AS BIGINT)
            - coalesce(TRY_CAST(so_far_before.output_tokens AS BIGINT), 0) AS VARCHAR)) AS n_out,
        coalesce(own.reasoning_output_tokens, CAST(TRY_CAST(so_far.reasoning_output_tokens AS BIGINT)
            - coalesce(TRY_CAST(so_far_before.reasoning_output_tokens AS BIGINT), 0) AS VARCHAR)) AS n_reasoning
    FROM known
)
SELECT
    path, line_number, row_digest, broken,
    -- the same totals again are the same answer, told with other limits
    NOT is_count OR coalesce(so_far IS NOT DISTINCT FROM so_far_before AND so_far IS NOT NULL, FALSE) AS filtered,
    md5(concat_ws('|', "timestamp", CAST(own AS VARCHAR), CAST(so_far AS VARCHAR))) AS record_id,
    CAST(NULL AS VARCHAR) AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id, CAST(NULL AS INTEGER) AS attempt, CAST(NULL AS VARCHAR) AS parent_id,
    session AS session_id, session AS task_id, 'main' AS agent, CAST(NULL AS VARCHAR) AS parent_agent,
    CAST(NULL AS VARCHAR) AS task_outcome, CAST(getvariable('user') AS VARCHAR) AS user_id,
    told_at AS started_at, CAST(NULL AS TIMESTAMP) AS first_token_at, told_at AS ended_at,
    coalesce(lower(model_provider), CAST(getvariable('provider') AS VARCHAR)) AS provider,
    coalesce(nullif(payload.info.model, ''), turn_model) AS model_raw,
    CAST(getvariable('account') AS VARCHAR) AS account_id, CAST(getvariable('region') AS VARCHAR) AS region_id,
    CAST(NULL AS VARCHAR) AS scope, CAST(NULL AS VARCHAR) AS route, 'standard' AS service_tier,
    CAST(NULL AS BOOLEAN) AS stream, 'success' AS status, CAST(NULL AS VARCHAR) AS error_kind,
    CAST(NULL AS VARCHAR) AS finish_reason,
    TRUE AS input_includes_cache,
    n_in AS input_tokens, n_cached AS cache_read_tokens, CAST(NULL AS VARCHAR) AS cache_write_tokens,
    CAST(NULL AS VARCHAR) AS cache_write_5m_tokens, CAST(NULL AS VARCHAR) AS cache_write_1h_tokens,
    n_out AS output_tokens, n_reasoning AS reasoning_tokens,
    -- its total is of input and output; reasoning is within the output
    CAST(NULL AS VARCHAR) AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_filter([
        struct_pack(n := 'project', v := regexp_extract(folder, '([^/\\]+)[/\\]*$', 1)),
        struct_pack(n := 'branch', v := branch),
        struct_pack(n := 'client', v := 'codex ' || version)
    ], lambda claim: list_contains(CAST(getvariable('claim_names') AS VARCHAR[]), claim.n)) AS claims,
    CAST(NULL AS VARCHAR) AS provider_cost,
    CASE WHEN own IS NULL THEN 'openai:inclusive+from_totals' ELSE 'openai:inclusive' END AS semantics,
    map_from_entries(list_filter([
        struct_pack(k := 'input_tokens', v := own.input_tokens),
        struct_pack(k := 'cached_input_tokens', v := own.cached_input_tokens),
        struct_pack(k := 'output_tokens', v := own.output_tokens),
        struct_pack(k := 'reasoning_output_tokens', v := own.reasoning_output_tokens)
    ], lambda given: given.v IS NOT NULL)) AS raw_counts
FROM counted;
