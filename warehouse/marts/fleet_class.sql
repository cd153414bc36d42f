-- How a pool's money was split between token classes, by hour, for `explain`. Partition: the local day.
-- inputs: fleet_class_hour, detail_day, publish_parameter
SELECT
    strftime(u.day, '%Y-%m-%d') AS partition, NULL AS partition_team,
    u.day, u.hour, u.cluster, u.region, u.route AS model, u.pool, u.role, u.group_region, u.token_class, u.method,
    u.currency, u.weight, u.total_weight, u.productive_nano, u.under_used_nano, u.shared_nano
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM fleet_class_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN detail_day AS w ON w.day = u.day
