-- Step 7j: how the money of every pool was split between token classes, by which method and weights.
-- grain:   hour x cluster x region x route x pool x role x token class (NULL: no tokens) x method x currency
-- inputs:  pool_class
-- rule:    group_region is the region by which fleet_match_hour knows the pool's calls (NULL: not told apart).
-- control: sum of nanos = sum of nanos of pool_class.
SELECT
    p.hour AS hour, p.cluster AS cluster, p.region AS region, p.route AS route, p.pool AS pool, p.role AS role,
    nullif(p.group_region, '') AS group_region, p.token_class AS token_class, p.method AS method,
    p.currency AS currency, max(p.weight) AS weight, max(p.total_weight) AS total_weight,
    CAST(sum(CASE WHEN p.state = 'productive' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS productive_nano,
    CAST(sum(CASE WHEN p.state = 'under_used' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS under_used_nano,
    CAST(sum(CASE WHEN p.state = 'shared' THEN p.effective_nano ELSE 0 END) AS BIGINT) AS shared_nano
FROM pool_class AS p
GROUP BY p.hour, p.cluster, p.region, p.route, p.pool, p.role, nullif(p.group_region, ''), p.token_class, p.method,
    p.currency
