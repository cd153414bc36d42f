-- What users used and what it cost, with owners, by local day; calls without a user are one row per owner.
-- inputs: user_hour, user_usage_hour, claim_owner, work_month, publish_parameter
SELECT
    strftime(u.day, '%Y-%m') AS partition, o.team AS partition_team,
    u.day, u.user_id, u.currency, o.team, o.app, o.cost_center, o.agent, o.environment,
    CAST(sum(u.requests) AS BIGINT) AS requests,
    CAST(sum(u.tokens) AS BIGINT) AS tokens,
    CAST(sum(u.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(u.billed_nano) AS BIGINT) AS billed_nano,
    CAST(sum(u.estimated_nano) AS BIGINT) AS estimated_nano
FROM (
    SELECT local_day(h.hour, p.zone) AS day, h.user_id, h.claim_set_id, h.currency, 0 AS requests, 0 AS tokens,
        CASE WHEN h.basis = 'billed' THEN h.effective_nano ELSE 0 END AS effective_nano,
        CASE WHEN h.basis = 'billed' THEN h.billed_nano ELSE 0 END AS billed_nano,
        CASE WHEN h.basis = 'estimated' THEN h.effective_nano END AS estimated_nano
    FROM user_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
    UNION ALL
    SELECT local_day(h.hour, p.zone) AS day, h.user_id, h.claim_set_id, p.currency, h.requests, h.tokens, 0, 0, NULL
    FROM user_usage_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN work_month AS w ON w.month = strftime(u.day, '%Y-%m')
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = u.claim_set_id AND o.valid_from <= u.day AND u.day < o.valid_to
GROUP BY ALL
