-- Step 7k: the bill's lines that became money of the own fleet.
-- grain:   hour x line (bill, digest) x route of the line
-- inputs:  bill_line
-- rule:    usage_ms is the billed time of an instance; a line of a cluster as a whole has no instance.
-- control: sum of nanos = sum of nanos of lines on the routes node and cluster.
SELECT
    l.charge_hour AS hour, l.line_digest AS line_digest, l.line_route AS line_route,
    l.cluster AS cluster, l.resource_id AS resource_id, l.fleet_gpus AS gpus, l.billing_period AS billing_period,
    l.currency AS currency, l.account_id AS account_id, l.region_id AS region_id, l.service_name AS service_name,
    l.line_class AS line_class,
    CAST(sum(l.usage_ms) AS BIGINT) AS usage_ms,
    CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(l.billed_nano) AS BIGINT) AS billed_nano
FROM bill_line AS l
WHERE l.line_route IN ('node', 'cluster')
GROUP BY l.charge_hour, l.line_digest, l.line_route, l.cluster, l.resource_id, l.fleet_gpus,
    l.billing_period, l.currency, l.account_id, l.region_id, l.service_name, l.line_class
