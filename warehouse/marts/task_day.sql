-- The money of agent tasks by local day; calls of no task are one row per owner, so that days add up to the ledger.
-- inputs: task_hour, claim_owner, work_month, publish_parameter
SELECT
    strftime(t.day, '%Y-%m') AS partition, o.team AS partition_team,
    t.day, t.task_id, t.currency, o.team, o.app, o.cost_center, o.agent, o.environment,
    CAST(sum(t.tokens) AS BIGINT) AS tokens,
    CAST(sum(CASE WHEN t.basis = 'billed' THEN t.effective_nano ELSE 0 END) AS BIGINT) AS effective_nano,
    CAST(sum(CASE WHEN t.basis = 'billed' THEN t.billed_nano ELSE 0 END) AS BIGINT) AS billed_nano,
    CAST(sum(CASE WHEN t.basis = 'estimated' THEN t.effective_nano END) AS BIGINT) AS estimated_nano
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM task_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS t
SEMI JOIN work_month AS w ON w.month = strftime(t.day, '%Y-%m')
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = t.claim_set_id AND o.valid_from <= t.day AND t.day < o.valid_to
GROUP BY ALL
