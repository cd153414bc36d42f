-- Agent tasks for life: one row a task, in the partition of the month it started in.
-- inputs: task_usage_hour, task_hour, claim_owner, task_month (months in which a task at hand began), publish_parameter
-- rule:   a task belongs to the owner of most of its requests (claim set id decides a tie); whether it is still open
--         is a question of as_of, answered by the reader.
WITH touched AS (
    SELECT u.task_id
    FROM task_usage_hour AS u, publish_parameter AS p
    GROUP BY u.task_id, p.zone
    HAVING strftime(local_day(min(u.started_at), p.zone), '%Y-%m') IN (SELECT month FROM task_month)
),
activity AS (
    SELECT u.* FROM task_usage_hour AS u SEMI JOIN touched AS t ON t.task_id = u.task_id
),
owner_choice AS (
    SELECT task_id, claim_set_id,
        row_number() OVER (PARTITION BY task_id ORDER BY sum(requests) DESC, claim_set_id) AS choice
    FROM activity GROUP BY task_id, claim_set_id
),
life AS (
    SELECT
        a.task_id, min(a.started_at) AS started_at, max(a.ended_at) AS ended_at,
        CAST(sum(a.requests) AS BIGINT) AS requests, CAST(sum(a.failed_requests) AS BIGINT) AS failed_requests,
        CAST(count(DISTINCT CASE WHEN a.agent <> '' THEN a.agent END) AS BIGINT) AS agents,
        string_agg(DISTINCT a.model, ', ' ORDER BY a.model) AS models,
        CAST(sum(a.input_tokens) AS BIGINT) AS input_tokens,
        CAST(sum(a.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
        CAST(sum(a.output_tokens) AS BIGINT) AS output_tokens,
        max_by(a.outcome, (a.outcome_at, a.outcome)) AS outcome, max(a.outcome_at) AS outcome_at
    FROM activity AS a GROUP BY a.task_id
),
money AS (
    SELECT
        h.task_id, h.currency,
        CAST(sum(CASE WHEN h.basis = 'billed' THEN h.effective_nano ELSE 0 END) AS BIGINT) AS effective_nano,
        CAST(sum(CASE WHEN h.basis = 'billed' THEN h.billed_nano ELSE 0 END) AS BIGINT) AS billed_nano,
        CAST(sum(CASE WHEN h.basis = 'estimated' THEN h.effective_nano END) AS BIGINT) AS estimated_nano,
        CAST(sum(CASE WHEN h.effective_nano IS NULL THEN h.tokens ELSE 0 END) AS BIGINT) AS unpriced_tokens
    FROM task_hour AS h SEMI JOIN touched AS t ON t.task_id = h.task_id
    GROUP BY h.task_id, h.currency
)
SELECT
    strftime(local_day(l.started_at, p.zone), '%Y-%m') AS partition, o.team AS partition_team,
    l.task_id, m.currency, o.team, o.app, o.cost_center, o.agent, o.environment,
    l.started_at, l.ended_at, l.requests, l.failed_requests, l.agents, l.models,
    l.input_tokens, l.cache_read_tokens, l.output_tokens,
    m.effective_nano, m.billed_nano, m.estimated_nano, m.unpriced_tokens,
    l.outcome, l.outcome_at, local_day(l.ended_at, p.zone) AS last_day
FROM life AS l
CROSS JOIN publish_parameter AS p
INNER JOIN owner_choice AS c ON c.task_id = l.task_id AND c.choice = 1
LEFT JOIN money AS m ON m.task_id = l.task_id
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = c.claim_set_id
    AND o.valid_from <= local_day(l.started_at, p.zone) AND local_day(l.started_at, p.zone) < o.valid_to
