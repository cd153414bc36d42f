-- The ledger with owners, by hour.
-- inputs: owned_hour (ledger_hour of the months at hand with local day and owners)
SELECT
    strftime(day, '%Y-%m') AS partition, team AS partition_team,
    hour, day, billing_period, currency, provider, account_id, region_id AS region, service_name, line_class, cluster, pool, model,
    token_class, service_tier, kind, basis, status, method, reason, team, app, cost_center, agent, environment,
    claim_set_id, tokens, effective_nano, billed_nano
FROM owned_hour
