-- What every pod of the own fleet held and did, by hour, for `explain` and `doctor`. Partition: the local day.
-- inputs: replica_window, detail_day, publish_parameter
SELECT
    strftime(u.day, '%Y-%m-%d') AS partition, NULL AS partition_team,
    u.day, u.hour, u.cluster, u.namespace, u.pod, u.node, u.instance_id AS resource_id, u.region, u.gpu_type,
    u.route AS model, u.pool, u.role, u.version, u.is_table,
    CAST(max(u.gpus) AS BIGINT) AS gpus,
    CAST(sum(u.busy_gpu_ms) AS BIGINT) AS busy_gpu_ms,
    CAST(sum(u.no_traffic_gpu_ms) AS BIGINT) AS no_traffic_gpu_ms,
    CAST(sum(u.starting_gpu_ms) AS BIGINT) AS starting_gpu_ms,
    CAST(sum(u.stopping_gpu_ms) AS BIGINT) AS stopping_gpu_ms,
    CAST(sum(u.unmeasured_gpu_ms) AS BIGINT) AS unmeasured_gpu_ms,
    CAST(sum(u.sampled_minutes) AS BIGINT) AS sampled_minutes,
    CAST(sum(u.unknown_series) AS BIGINT) AS unknown_series
FROM (
    SELECT r.*, local_day(r.hour, p.zone) AS day
    FROM replica_window AS r, publish_parameter AS p
    WHERE r.hour >= p.first_hour AND r.hour < p.last_hour
) AS u
SEMI JOIN detail_day AS w ON w.day = u.day
GROUP BY ALL
