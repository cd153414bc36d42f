-- The whole ledger with owners, by local day: the hours and the overlay of support, tax and credits.
-- inputs: owned_hour, owned_overlay
-- A NULL amount is an estimate without a price: it stays NULL beside its tokens.
SELECT
    strftime(day, '%Y-%m') AS partition, team AS partition_team,
    day, billing_period, currency, provider, account_id, region_id AS region, service_name, line_class, cluster, pool, model,
    token_class, service_tier, kind, basis, status, method, reason, team, app, cost_center, agent, environment,
    claim_set_id,
    CAST(sum(tokens) AS BIGINT) AS tokens,
    CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(billed_nano) AS BIGINT) AS billed_nano
FROM (
    SELECT day, billing_period, currency, provider, account_id, region_id, service_name, line_class, cluster, pool, model,
        token_class, service_tier, kind, basis, status, method, reason, team, app, cost_center, agent, environment,
        claim_set_id, tokens, effective_nano, billed_nano
    FROM owned_hour
    UNION ALL
    SELECT day, billing_period, currency, provider, account_id, NULL, service_name, line_class, NULL, NULL, NULL,
        NULL, NULL, kind, 'billed', status, method, reason, team, app, cost_center, agent, environment,
        claim_set_id, 0, effective_nano, billed_nano
    FROM owned_overlay
)
GROUP BY ALL
