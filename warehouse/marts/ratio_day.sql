-- The own fleet's money with the output weight at its lower and upper end, with owners, by local day.
-- inputs: ratio_hour, claim_owner, work_month, publish_parameter
SELECT
    strftime(u.day, '%Y-%m') AS partition, o.team AS partition_team,
    u.day, u.cluster, u.model, u.pool, u.currency, u.kind, u.method, o.team, o.app, o.cost_center, o.agent,
    o.environment,
    CAST(sum(u.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(u.at_low_nano) AS BIGINT) AS at_low_nano,
    CAST(sum(u.at_high_nano) AS BIGINT) AS at_high_nano
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM ratio_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN work_month AS w ON w.month = strftime(u.day, '%Y-%m')
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = u.claim_set_id AND o.valid_from <= u.day AND u.day < o.valid_to
GROUP BY ALL
