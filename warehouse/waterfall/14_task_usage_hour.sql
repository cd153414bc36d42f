-- Step 7 (usage): what agent tasks did.
-- grain:   hour x task x claim set x agent x model
-- inputs:  work_event
-- rule:    the outcome is the last one told, not the last in the alphabet.
SELECT
    e.hour AS hour, e.task_id AS task_id, e.claim_set_id AS claim_set_id, coalesce(e.agent, '') AS agent,
    e.model AS model,
    CAST(count(*) AS BIGINT) AS requests,
    CAST(sum(CASE WHEN e.status <> 'success' THEN 1 ELSE 0 END) AS BIGINT) AS failed_requests,
    max(CASE WHEN e.parent_agent IS NOT NULL THEN 1 ELSE 0 END) AS is_sub_agent,
    min(e.started_at) AS started_at, max(e.ended_at) AS ended_at,
    max(CASE WHEN e.task_outcome IS NOT NULL THEN e.ended_at END) AS outcome_at,
    max(CASE WHEN e.outcome_choice = 1 THEN e.task_outcome END) AS outcome,
    CAST(sum(e.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(coalesce(e.cache_read_tokens, 0)) AS BIGINT) AS cache_read_tokens,
    CAST(sum(coalesce(e.output_tokens, 0)) AS BIGINT) AS output_tokens
FROM (
    SELECT
        v.*,
        row_number() OVER (
            PARTITION BY v.hour, v.task_id, v.claim_set_id, coalesce(v.agent, ''), v.model
            ORDER BY CASE WHEN v.task_outcome IS NULL THEN 1 ELSE 0 END, v.ended_at DESC, v.event_key DESC
        ) AS outcome_choice
    FROM work_event AS v
    WHERE v.task_id IS NOT NULL
) AS e
GROUP BY e.hour, e.task_id, e.claim_set_id, coalesce(e.agent, ''), e.model
