-- Step 7h: what the own fleet's users would pay if an output token were weighed lower or higher.
-- grain:   hour x cluster x route x pool x claim set x currency x kind x method
-- inputs:  fleet_posting
-- rule:    productive and under-used money only. At either end the money of a pool is the same, its parts differ; the
--          interval of a figure lies between the two, taken after adding up.
-- control: sums of effective_nano, at_low_nano and at_high_nano are equal.
SELECT
    p.hour AS hour, p.cluster AS cluster, p.route AS model, p.pool AS pool, p.claim_set_id AS claim_set_id,
    p.currency AS currency, p.kind AS kind, p.method AS method,
    CAST(sum(p.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(p.at_low_nano) AS BIGINT) AS at_low_nano,
    CAST(sum(p.at_high_nano) AS BIGINT) AS at_high_nano
FROM fleet_posting AS p
WHERE p.state IN ('productive', 'under_used') AND p.basis = 'billed'
GROUP BY p.hour, p.cluster, p.route, p.pool, p.claim_set_id, p.currency, p.kind, p.method
