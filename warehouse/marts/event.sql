-- Single calls, for `explain`: ids, counts and times; no text exists anywhere to show. Partition: the local day.
-- inputs: usage_event, claim_owner, detail_day, publish_parameter
SELECT
    strftime(u.day, '%Y-%m-%d') AS partition, o.team AS partition_team,
    u.day, u.hour, u.event_key, u.source, u.record_id, u.operation_id, u.task_id, u.agent, u.user_id,
    u.started_at, u.first_token_at, u.ended_at, u.provider, u.account_id, u.region_id AS region, u.model,
    u.service_tier, u.scope, u.status, u.error_kind, u.is_retry, u.uncached_input_tokens, u.cache_read_tokens,
    u.cache_write_5m_tokens, u.cache_write_1h_tokens, u.output_tokens, u.claim_set_id, o.team, o.app
FROM (
    SELECT e.*, local_day(e.hour, p.zone) AS day
    FROM usage_event AS e, publish_parameter AS p
    WHERE e.hour >= p.first_hour AND e.hour < p.last_hour
) AS u
SEMI JOIN detail_day AS w ON w.day = u.day
LEFT JOIN claim_owner AS o
    ON o.claim_set_id = u.claim_set_id AND o.valid_from <= u.day AND u.day < o.valid_to
