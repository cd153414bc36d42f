-- Step 0: records -> events. One real attempt at a model call, whoever reported it and however often.
-- grain:   event_key
-- inputs:  work_record (every record of the operations at hand), model_name
-- rule:    a total order of trust: the source first, then the largest output count (a transcript repeats a call
--          while it grows), then the latest end; the digest decides what is still equal. An empty text is no text.
-- control: one row per distinct event_key.
WITH event AS (
    SELECT
        e.event_key AS event_key,
        e.source AS source,
        e.record_id AS record_id,
        e.record_count AS record_count,
        nullif(e.operation_id, '') AS operation_id,
        e.attempt AS attempt,
        e.session_id AS session_id,
        nullif(e.task_id, '') AS task_id,
        e.agent AS agent,
        e.parent_agent AS parent_agent,
        e.task_outcome AS task_outcome,
        nullif(e.user_id, '') AS user_id,
        e.started_at AS started_at,
        e.first_token_at AS first_token_at,
        e.ended_at AS ended_at,
        CAST(date_trunc('hour', e.ended_at) AS TIMESTAMP) AS hour,
        CAST(date_trunc('hour', e.ended_at) AS TIMESTAMP)
            + CASE WHEN extract(minute FROM e.ended_at) >= 30 THEN INTERVAL 30 MINUTE ELSE INTERVAL 0 MINUTE END AS slot,
        e.provider AS provider,
        coalesce(n.model, nullif(e.model, ''), 'unknown') AS model,
        nullif(e.account_id, '') AS account_id,
        nullif(e.region_id, '') AS region_id,
        nullif(e.scope, '') AS scope,
        e.route AS route,
        e.service_tier AS service_tier,
        e.status AS status,
        e.error_kind AS error_kind,
        e.uncached_input_tokens AS uncached_input_tokens,
        e.cache_read_tokens AS cache_read_tokens,
        e.cache_write_5m_tokens AS cache_write_5m_tokens,
        e.cache_write_1h_tokens AS cache_write_1h_tokens,
        e.output_tokens AS output_tokens,
        e.reasoning_tokens AS reasoning_tokens,
        e.other_units AS other_units,
        coalesce(e.uncached_input_tokens, 0) + coalesce(e.cache_read_tokens, 0)
            + coalesce(e.cache_write_5m_tokens, 0) + coalesce(e.cache_write_1h_tokens, 0) AS input_tokens,
        e.claim_set_id AS claim_set_id,
        e.provider_cost_usd AS provider_cost_usd
    FROM (
        SELECT
            r.*,
            count(*) OVER (PARTITION BY r.event_key) AS record_count,
            row_number() OVER (
                PARTITION BY r.event_key
                ORDER BY r.source_trust, coalesce(r.output_tokens, -1) DESC, r.ended_at DESC,
                    r.source, r.record_id, r.record_digest
            ) AS choice
        FROM work_record AS r
    ) AS e
    LEFT JOIN model_name AS n ON n.alias = e.model
    WHERE e.choice = 1
)
SELECT
    v.*,
    CASE WHEN row_number() OVER (
        PARTITION BY coalesce(v.operation_id, v.event_key) ORDER BY v.ended_at DESC, v.event_key DESC
    ) = 1 THEN 1 ELSE 0 END AS is_last_attempt,
    CASE WHEN row_number() OVER (
        PARTITION BY coalesce(v.operation_id, v.event_key) ORDER BY v.ended_at, v.event_key
    ) > 1 THEN 1 ELSE 0 END AS is_retry
FROM event AS v
