-- Every pool of the own fleet by hour: GPU time, engine tokens and money by state. pool NULL: of nodes, not of pools.
-- inputs: pool_hour, work_month, publish_parameter
SELECT
    strftime(u.day, '%Y-%m') AS partition, NULL AS partition_team,
    u.day, u.hour, u.cluster, u.region, u.route AS model, u.pool, u.role, u.currency,
    u.busy_gpu_ms, u.no_traffic_gpu_ms, u.starting_gpu_ms, u.stopping_gpu_ms, u.unmeasured_gpu_ms,
    u.not_requested_gpu_ms, u.uncached_input_tokens, u.cache_read_tokens, u.output_tokens, u.unknown_series,
    u.active_ppm_sum, u.active_samples, u.memory_used_sum, u.memory_total_sum,
    u.productive_nano, u.under_used_nano, u.shared_nano, u.no_traffic_nano, u.starting_nano, u.stopping_nano,
    u.not_requested_nano, u.not_in_cluster_nano, u.unmeasured_nano, u.unattributed_nano, u.effective_nano
FROM (
    SELECT h.*, local_day(h.hour, p.zone) AS day
    FROM pool_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
) AS u
SEMI JOIN work_month AS w ON w.month = strftime(u.day, '%Y-%m')
