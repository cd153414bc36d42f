-- Step 7a: the ledger, hour by hour.
-- grain:   hour x bill dimensions x model dimensions x kind x basis x status x method x reason x claim set
-- inputs:  api_posting, fleet_posting, bill_line
-- rule:    the own fleet's model is its route; cluster and pool are NULL for model APIs.
-- control: sum of billed nanos = sum of nanos of bill lines on the routes token, node, cluster and hour.
WITH posting AS (
    SELECT
        a.hour AS hour, a.billing_period AS billing_period, a.currency AS currency, a.provider AS provider,
        a.account_id AS account_id, a.region_id AS region_id, a.service_name AS service_name,
        'model_api' AS line_class, CAST(NULL AS VARCHAR) AS cluster, CAST(NULL AS VARCHAR) AS pool, a.model AS model, a.token_class AS token_class, a.service_tier AS service_tier,
        a.kind AS kind, a.basis AS basis, a.status AS status, a.method AS method, a.reason AS reason,
        a.claim_set_id AS claim_set_id, a.tokens AS tokens, a.effective_nano AS effective_nano,
        a.billed_nano AS billed_nano
    FROM api_posting AS a
    UNION ALL
    SELECT
        f.hour AS hour, f.billing_period AS billing_period, f.currency AS currency, 'self-hosted' AS provider,
        f.account_id AS account_id, f.region_id AS region_id, f.service_name AS service_name,
        f.line_class AS line_class, f.cluster AS cluster, f.pool AS pool, f.route AS model,
        CASE WHEN f.kind <> 'shared' THEN f.token_class END AS token_class, 'standard' AS service_tier,
        f.kind AS kind, f.basis AS basis, f.status AS status, f.method AS method, f.reason AS reason,
        f.claim_set_id AS claim_set_id, f.tokens AS tokens, f.effective_nano AS effective_nano,
        f.billed_nano AS billed_nano
    FROM fleet_posting AS f
    UNION ALL
    SELECT
        l.charge_hour AS hour, l.billing_period AS billing_period, l.currency AS currency, l.provider AS provider,
        l.account_id AS account_id, l.region_id AS region_id, l.service_name AS service_name,
        l.line_class AS line_class, l.cluster AS cluster, CAST(NULL AS VARCHAR) AS pool, l.model AS model, l.token_class AS token_class, l.service_tier AS service_tier,
        CASE WHEN l.is_future = 1 THEN 'future'
             WHEN l.line_class = 'out_of_scope' THEN 'out_of_scope'
             ELSE 'unattributed' END AS kind,
        'billed' AS basis, l.status AS status, 'bill_line' AS method,
        CASE WHEN l.is_future = 1 OR l.line_class = 'out_of_scope' THEN NULL
             WHEN l.line_class = 'model_api' AND l.token_class IS NOT NULL THEN 'unit_unknown'
             WHEN l.line_class = 'model_api' THEN 'not_metered_in_tokens'
             ELSE 'no_key' END AS reason,
        CAST(NULL AS VARCHAR) AS claim_set_id, CAST(0 AS BIGINT) AS tokens, l.effective_nano AS effective_nano,
        l.billed_nano AS billed_nano
    FROM bill_line AS l
    WHERE l.line_route = 'hour'
)
SELECT
    g.hour AS hour, g.billing_period AS billing_period, g.currency AS currency, g.provider AS provider,
    g.account_id AS account_id, g.region_id AS region_id, g.service_name AS service_name,
    g.line_class AS line_class, g.cluster AS cluster, g.pool AS pool, g.model AS model,
    g.token_class AS token_class, g.service_tier AS service_tier, g.kind AS kind, g.basis AS basis, g.status AS status, g.method AS method, g.reason AS reason,
    g.claim_set_id AS claim_set_id,
    CAST(sum(g.tokens) AS BIGINT) AS tokens,
    CAST(sum(g.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(g.billed_nano) AS BIGINT) AS billed_nano
FROM posting AS g
GROUP BY g.hour, g.billing_period, g.currency, g.provider, g.account_id, g.region_id, g.service_name, g.line_class,
    g.cluster, g.pool, g.model, g.token_class, g.service_tier, g.kind, g.basis, g.status, g.method, g.reason, g.claim_set_id
