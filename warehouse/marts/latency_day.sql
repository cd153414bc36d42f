-- Latency bucket counts, with owners, by local day. le_ms is the bucket's upper bound.
-- inputs: latency_hour, claim_owner, work_month, publish_parameter
SELECT
    strftime(u.day, '%Y-%m') AS partition, o.team AS partition_team,
    u.day, u.provider, u.model, o.team, o.app, o.agent, o.environment, u.measure, u.bucket,
    CAST(ceil(round(power(10, u.bucket / 12.0), 6)) AS BIGINT) AS le_ms,
    CAST(sum(u.requests) AS BIGINT) AS requests
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM latency_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN work_month AS w ON w.month = strftime(u.day, '%Y-%m')
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = u.claim_set_id AND o.valid_from <= u.day AND u.day < o.valid_to
GROUP BY ALL
