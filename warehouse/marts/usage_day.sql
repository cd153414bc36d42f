-- How models were used, with owners, by local day.
-- inputs: usage_hour, claim_owner, work_month, publish_parameter
SELECT
    strftime(u.day, '%Y-%m') AS partition, o.team AS partition_team,
    u.day, u.provider, u.account_id, u.region_id AS region, u.model, u.service_tier, u.currency,
    o.team, o.app, o.cost_center, o.agent, o.environment, u.claim_set_id,
    CAST(sum(u.requests) AS BIGINT) AS requests,
    CAST(sum(u.operations) AS BIGINT) AS operations,
    CAST(sum(u.failed_requests) AS BIGINT) AS failed_requests,
    CAST(sum(u.timeout_requests) AS BIGINT) AS timeout_requests,
    CAST(sum(u.cancelled_requests) AS BIGINT) AS cancelled_requests,
    CAST(sum(u.retried_requests) AS BIGINT) AS retried_requests,
    CAST(sum(u.unknown_token_requests) AS BIGINT) AS unknown_token_requests,
    CAST(sum(u.uncached_input_tokens) AS BIGINT) AS uncached_input_tokens,
    CAST(sum(u.cache_read_tokens) AS BIGINT) AS cache_read_tokens,
    CAST(sum(u.cache_write_5m_tokens) AS BIGINT) AS cache_write_5m_tokens,
    CAST(sum(u.cache_write_1h_tokens) AS BIGINT) AS cache_write_1h_tokens,
    CAST(sum(u.output_tokens) AS BIGINT) AS output_tokens,
    CAST(sum(u.reasoning_tokens) AS BIGINT) AS reasoning_tokens,
    CAST(sum(u.unpriced_tokens) AS BIGINT) AS unpriced_tokens,
    CAST(round(sum(u.priced_pico) / 1000) AS BIGINT) AS priced_nano,
    CAST(round(sum(u.base_priced_pico) / 1000) AS BIGINT) AS base_priced_nano,
    CAST(round(sum(u.uncached_pico) / 1000) AS BIGINT) AS uncached_nano,
    CAST(sum(u.duration_us) AS BIGINT) AS duration_us,
    CAST(sum(u.duration_requests) AS BIGINT) AS duration_requests,
    CAST(sum(u.ttft_us) AS BIGINT) AS ttft_us,
    CAST(sum(u.ttft_requests) AS BIGINT) AS ttft_requests
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM usage_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN work_month AS w ON w.month = strftime(u.day, '%Y-%m')
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = u.claim_set_id AND o.valid_from <= u.day AND u.day < o.valid_to
GROUP BY ALL
