-- Tokens that engines processed against tokens that calls logged, by hour, for `explain`. Partition: the local day.
-- inputs: fleet_match_hour, detail_day, publish_parameter
SELECT
    strftime(u.day, '%Y-%m-%d') AS partition, NULL AS partition_team,
    u.day, u.hour, u.route AS model, u.region, u.token_class, u.engine_tokens, u.event_tokens, u.total_tokens,
    u.rest_tokens
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM fleet_match_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN detail_day AS w ON w.day = u.day
