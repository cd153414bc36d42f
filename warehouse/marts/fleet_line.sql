-- The bill's lines of the own fleet, for `explain`; and those of GPU instances that no cluster knows (cluster NULL),
-- for `doctor`. Partition: the local day.
-- inputs: fleet_line_hour, billing_line, known_node, detail_day, publish_parameter
WITH hours AS (
    SELECT local_day(h.hour, p.zone) AS day, h.*
    FROM fleet_line_hour AS h, publish_parameter AS p
    WHERE h.hour >= p.first_hour AND h.hour < p.last_hour
),
stranger AS (
    SELECT local_day(date_trunc('hour', l.charge_period_start), p.zone) AS day,
        CAST(date_trunc('hour', l.charge_period_start) AS TIMESTAMP) AS hour, l.*
    FROM billing_line AS l, publish_parameter AS p
    WHERE l.charge_period_start >= p.first_hour AND l.charge_period_start < p.last_hour
      AND l.charge_category = 'Usage' AND nullif(l.resource_id, '') IS NOT NULL
      -- EC2 families with NVIDIA or AWS accelerators
      AND regexp_matches(l.x_usage_type, '(BoxUsage|SpotUsage|DedicatedUsage|HostBoxUsage|UnusedBox):(p[2-9]|g[2-9]|gr6|inf[12]|trn[1-9]|dl[12])')
)
SELECT
    strftime(h.day, '%Y-%m-%d') AS partition, NULL AS partition_team,
    h.day, h.hour, h.line_route, h.cluster, h.resource_id, h.gpus, h.billing_period, h.currency, h.account_id,
    h.region_id AS region, h.service_name, h.line_class, h.line_digest, b.export_name, b.file, b.line_item_id,
    b.usage_type, h.usage_ms, h.effective_nano, h.billed_nano
FROM hours AS h
SEMI JOIN detail_day AS w ON w.day = h.day
LEFT JOIN (
    SELECT billing_period, line_digest, min(export_name) AS export_name, min(x_file) AS file,
        min(x_line_item_id) AS line_item_id, min(x_usage_type) AS usage_type
    FROM billing_line GROUP BY ALL
) AS b ON b.billing_period = h.billing_period AND b.line_digest = h.line_digest
UNION ALL
SELECT
    strftime(s.day, '%Y-%m-%d'), NULL, s.day, s.hour, 'unknown', NULL, s.resource_id, NULL, s.billing_period,
    s.billing_currency, coalesce(nullif(s.sub_account_id, ''), s.billing_account_id), s.region_id, s.service_name,
    NULL, s.line_digest, s.export_name, s.x_file, s.x_line_item_id, s.x_usage_type, NULL, nano(s.effective_cost),
    nano(s.billed_cost)
FROM stranger AS s
SEMI JOIN detail_day AS w ON w.day = s.day
ANTI JOIN (SELECT resource_id FROM known_node) AS k ON k.resource_id = s.resource_id
