-- Step 7 (usage): what agent tasks did.
-- grain:   hour x task x claim set x agent x model
-- inputs:  work_event
SELECT
    e.hour AS hour, e.task_id AS task_id, e.claim_set_id AS claim_set_id, coalesce(e.agent, '') AS agent,
    e.model AS model,
    CAST(count(*) AS BIGINT) AS requests,
    CAST(sum(CASE WHEN e.status <> 'success' THEN 1 ELSE 0 END) AS BIGINT) AS failed_requests,
    max(CASE WHEN e.parent_agent IS NOT NULL THEN 1 ELSE 0 END) AS is_sub_agent,
    min(e.started_at) AS started_at, max(e.ended_at) AS ended_at,
    max(CASE WHEN e.task_outcome IS NOT NULL THEN e.ended_at END) AS outcome_at,
    max(e.task_outcome) AS outcome,
    CAST(sum(e.input_tokens) AS BIGINT) AS input_tokens,
    CAST(sum(coalesce(e.cache_read_tokens, 0)) AS BIGINT) AS cache_read_tokens,
    CAST(sum(coalesce(e.output_tokens, 0)) AS BIGINT) AS output_tokens
FROM work_event AS e
WHERE e.task_id IS NOT NULL
GROUP BY e.hour, e.task_id, e.claim_set_id, coalesce(e.agent, ''), e.model
