-- Bill against log by local day.
-- inputs: match_hour, work_month, publish_parameter
SELECT
    strftime(m.day, '%Y-%m') AS partition, NULL AS partition_team,
    m.day, m.provider, m.account_id, m.region_id AS region, m.model, m.token_class, m.service_tier, m.scope,
    m.context_tier,
    CAST(sum(m.bill_tokens) AS BIGINT) AS bill_tokens,
    CAST(sum(m.event_tokens) AS BIGINT) AS event_tokens,
    CAST(sum(m.unexplained_tokens) AS BIGINT) AS unexplained_tokens,
    CAST(sum(m.missing_tokens) AS BIGINT) AS missing_tokens,
    CAST(sum(m.variance_tokens) AS BIGINT) AS variance_tokens,
    CAST(sum(m.unpriced_tokens) AS BIGINT) AS unpriced_tokens,
    CAST(sum(m.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(m.unattributed_nano) AS BIGINT) AS unattributed_nano,
    CAST(sum(m.estimated_nano) AS BIGINT) AS estimated_nano,
    min(m.is_settled) = 1 AS is_settled
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM match_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS m
SEMI JOIN work_month AS w ON w.month = strftime(m.day, '%Y-%m')
GROUP BY ALL
