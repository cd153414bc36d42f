-- Step 7 (usage): how the models were used, hour by hour; numerators and denominators only.
-- grain:   hour x provider x account x region x model x service tier x claim set x currency of its price
-- inputs:  work_event, event_class
-- rule:    attempts are requests; an operation is counted in the hour of its last attempt; priced, base and uncached
--          amounts are whole pico-dollars, of priced calls only; tokens without a price are counted beside them.
WITH priced AS (
    SELECT
        c.event_key AS event_key, max(c.currency) AS currency,
        CAST(sum(c.pico) AS BIGINT) AS pico,
        CAST(sum(c.base_pico) AS BIGINT) AS base_pico,
        CAST(sum(c.uncached_pico) AS BIGINT) AS uncached_pico,
        CAST(sum(CASE WHEN c.pico IS NULL THEN c.tokens ELSE 0 END) AS BIGINT) AS unpriced_tokens,
        max(CASE WHEN c.pico IS NULL THEN 1 ELSE 0 END) AS is_unpriced
    FROM event_class AS c
    GROUP BY c.event_key
)
SELECT
    e.hour AS hour, e.provider AS provider, e.account_id AS account_id, e.region_id AS region_id,
    e.model AS model, e.service_tier AS service_tier, e.claim_set_id AS claim_set_id, p.currency AS currency,
    CAST(count(*) AS BIGINT) AS requests,
    CAST(sum(CASE WHEN e.is_last_attempt = 1 THEN 1 ELSE 0 END) AS BIGINT) AS operations,
    CAST(sum(CASE WHEN e.status <> 'success' THEN 1 ELSE 0 END) AS BIGINT) AS failed_requests,
    CAST(sum(CASE WHEN e.status = 'timeout' THEN 1 ELSE 0 END) AS BIGINT) AS timeout_requests,
    CAST(sum(CASE WHEN e.status = 'cancelled' THEN 1 ELSE 0 END) AS BIGINT) AS cancelled_requests,
    CAST(sum(e.is_retry) AS BIGINT) AS retried_requests,
    CAST(sum(CASE WHEN e.status = 'success' AND e.output_tokens IS NULL THEN 1 ELSE 0 END) AS BIGINT)
        AS unknown_token_requests,
    CAST(sum(coalesce(e.uncached_input_tokens, 0)) AS BIGINT) AS uncached_input_tokens,
    CAST(sum(coalesce(e.cache_read_tokens, 0)) AS BIGINT) AS cache_read_tokens,
    CAST(sum(coalesce(e.cache_write_5m_tokens, 0)) AS BIGINT) AS cache_write_5m_tokens,
    CAST(sum(coalesce(e.cache_write_1h_tokens, 0)) AS BIGINT) AS cache_write_1h_tokens,
    CAST(sum(coalesce(e.output_tokens, 0)) AS BIGINT) AS output_tokens,
    CAST(sum(coalesce(e.reasoning_tokens, 0)) AS BIGINT) AS reasoning_tokens,
    CAST(sum(coalesce(p.unpriced_tokens, 0)) AS BIGINT) AS unpriced_tokens,
    CAST(sum(CASE WHEN p.is_unpriced = 0 THEN p.pico END) AS BIGINT) AS priced_pico,
    CAST(sum(CASE WHEN p.is_unpriced = 0 THEN p.base_pico END) AS BIGINT) AS base_priced_pico,
    CAST(sum(CASE WHEN p.is_unpriced = 0 THEN p.uncached_pico END) AS BIGINT) AS uncached_pico,
    CAST(sum(CASE WHEN e.status = 'success' THEN date_diff('microsecond', e.started_at, e.ended_at) ELSE 0 END)
        AS BIGINT) AS duration_us,
    CAST(sum(CASE WHEN e.status = 'success' THEN 1 ELSE 0 END) AS BIGINT) AS duration_requests,
    CAST(sum(CASE WHEN e.status = 'success' AND e.first_token_at IS NOT NULL
                  THEN date_diff('microsecond', e.started_at, e.first_token_at) ELSE 0 END) AS BIGINT) AS ttft_us,
    CAST(sum(CASE WHEN e.status = 'success' AND e.first_token_at IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT)
        AS ttft_requests
FROM work_event AS e
LEFT JOIN priced AS p ON p.event_key = e.event_key
GROUP BY e.hour, e.provider, e.account_id, e.region_id, e.model, e.service_tier, e.claim_set_id, p.currency
