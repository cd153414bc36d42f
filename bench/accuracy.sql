-- Ledger against truth, one row per figure; instance lines of billed hours only.
-- inputs: cost_hour, ratio_day, event (marts); fleet_request, fleet_replica_minute, fleet_node_hour (truth)
WITH billed AS (
    SELECT CAST(max(hour) AS TIMESTAMP) + INTERVAL 1 HOUR AS until FROM fleet_node_hour WHERE in_bill
),
ledger AS (
    SELECT *, CASE WHEN reason = 'no_log' THEN '(no log)' ELSE coalesce(team, '(no team)') END AS who
    FROM cost_hour WHERE line_class = 'accelerator' AND cluster IS NOT NULL AND basis = 'billed'
),
replica AS (
    SELECT CAST(date_trunc('hour', minute) AS TIMESTAMP) AS hour, cluster, route,
        CASE WHEN role IN ('prefill', 'decode') THEN role ELSE 'mixed' END AS role, running_us, step_us, held_us, cost_nano
    FROM fleet_replica_minute, billed WHERE CAST(minute AS TIMESTAMP) < until
),
worked AS (
    SELECT *, CASE WHEN pool LIKE '%-prefill' THEN 'prefill' WHEN pool LIKE '%-decode' THEN 'decode' ELSE 'mixed' END AS role,
        CASE WHEN pool LIKE '%-prefill' OR pool LIKE '%-decode' THEN 'pool_role' ELSE 'configured_ratio' END AS how
    FROM ledger WHERE kind IN ('usage', 'under_used', 'unattributed')
),
busy AS (
    SELECT hour, cluster, model AS route, role, sum(effective_nano) / 1e9 AS usd FROM worked GROUP BY ALL
),
-- a call that was cut off is in the log with less than the engine did for it, or not at all
logged AS (
    SELECT record_id AS id, uncached_input_tokens AS uncached_input, cache_read_tokens AS cache_read, output_tokens AS output
    FROM event
),
told AS (
    SELECT r.*, CAST(date_trunc('hour', coalesce(r.ended_at, r.started_at)) AS TIMESTAMP) AS hour,
        CASE WHEN r.role IN ('prefill', 'decode') THEN r.role ELSE 'mixed' END AS part,
        CASE WHEN r.bypassed OR r.id IS NULL THEN 0
             ELSE least(coalesce(l.uncached_input, 0) + coalesce(l.cache_read, 0),
                        r.uncached_input_tokens + r.cache_read_tokens) END AS logged_input,
        CASE WHEN r.bypassed OR r.id IS NULL THEN 0 ELSE least(coalesce(l.output, 0), r.output_tokens) END
            AS logged_output
    FROM fleet_request AS r LEFT JOIN logged AS l ON l.id = r.id
    WHERE r.pool IS NOT NULL
),
known AS (
    SELECT *, logged_input / nullif(uncached_input_tokens + cache_read_tokens, 0) AS input_share,
        logged_output / nullif(output_tokens, 0) AS output_share
    FROM told
),
request AS (
    SELECT hour, cluster, route, part AS role, team AS who,
        gpu_us_prefill * coalesce(input_share, 1) AS gpu_us_prefill, gpu_us_cached * coalesce(input_share, 1) AS gpu_us_cached,
        gpu_us_decode * coalesce(output_share, 1) AS gpu_us_decode, logged_input + logged_output AS tokens
    FROM known WHERE NOT bypassed AND id IS NOT NULL
    UNION ALL
    SELECT hour, cluster, route, part, '(no log)',
        gpu_us_prefill * (1 - coalesce(input_share, CASE WHEN bypassed OR id IS NULL THEN 0 ELSE 1 END)),
        gpu_us_cached * (1 - coalesce(input_share, CASE WHEN bypassed OR id IS NULL THEN 0 ELSE 1 END)),
        gpu_us_decode * (1 - coalesce(output_share, CASE WHEN bypassed OR id IS NULL THEN 0 ELSE 1 END)),
        uncached_input_tokens + cache_read_tokens + output_tokens - logged_input - logged_output
    FROM known
),
-- what a GPU-microsecond of a pool's requests costs in an hour, when the ledger's busy money is paid by what was used
rate AS (
    SELECT r.hour, r.cluster, r.route, r.role,
        any_value(b.usd) / sum(r.gpu_us_prefill + r.gpu_us_cached + r.gpu_us_decode) AS usd_per_us
    FROM request AS r INNER JOIN busy AS b USING (hour, cluster, route, role), billed
    WHERE r.hour < until GROUP BY ALL HAVING sum(r.gpu_us_prefill + r.gpu_us_cached + r.gpu_us_decode) > 0
),
valued AS (
    SELECT r.*, (r.gpu_us_prefill + r.gpu_us_cached + r.gpu_us_decode) * k.usd_per_us AS usd,
         r.gpu_us_prefill * k.usd_per_us AS prefill_usd,
        r.gpu_us_cached * k.usd_per_us AS cached_usd, r.gpu_us_decode * k.usd_per_us AS decode_usd,
        CASE WHEN r.role = 'mixed' THEN 'configured_ratio' ELSE 'pool_role' END AS method
    FROM request AS r INNER JOIN rate AS k USING (hour, cluster, route, role)
),
figure AS (
    SELECT 1 AS place, 'model' AS what, t.route AS of, NULL AS method, t.usd AS truth, l.usd AS ledger,
        NULL::DOUBLE AS low, NULL::DOUBLE AS high
    FROM (SELECT route, sum(cost_nano) / 1e9 AS usd FROM replica GROUP BY ALL) AS t
    FULL JOIN (SELECT model AS route, sum(effective_nano) / 1e9 AS usd FROM ledger WHERE model IS NOT NULL
               GROUP BY ALL) AS l USING (route)
    UNION ALL
    SELECT 2, 'idle', 'replicas', NULL,
        (SELECT sum(cost_nano) / 1e9 FROM replica WHERE running_us = 0),
        (SELECT sum(effective_nano) / 1e9 FROM ledger WHERE kind = 'idle' AND model IS NOT NULL), NULL, NULL
    UNION ALL
    SELECT 2, 'idle', 'nodes', NULL,
        (SELECT sum(cost_nano) / 1e9 FROM fleet_node_hour WHERE in_bill AND class = 'gpu')
            - (SELECT sum(cost_nano) / 1e9 FROM replica),
        (SELECT sum(effective_nano) / 1e9 FROM ledger WHERE kind = 'idle' AND model IS NULL), NULL, NULL
    UNION ALL
    SELECT 3, 'unmeasured', 'replicas and nodes', NULL, NULL,
        (SELECT sum(effective_nano) / 1e9 FROM ledger WHERE kind = 'unmeasured'), NULL, NULL
    UNION ALL
    SELECT 4, 'unattributed tokens', 'all pools', NULL,
        (SELECT sum(tokens) / 1e3 FROM valued WHERE who = '(no log)'),
        (SELECT sum(tokens) / 1e3 FROM worked WHERE who = '(no log)'), NULL, NULL
    UNION ALL
    SELECT 4, 'tokens in no log', NULL, method, t.tokens, l.tokens, NULL, NULL
    FROM (SELECT method, sum(tokens) / 1e3 AS tokens
          FROM valued WHERE who = '(no log)' GROUP BY ALL) AS t
    FULL JOIN (SELECT how AS method, sum(tokens) / 1e3 AS tokens FROM worked WHERE who = '(no log)' GROUP BY ALL) AS l
        USING (method)
    UNION ALL
    SELECT 5, CASE WHEN coalesce(t.who, l.who) = '(no log)' THEN 'unattributed' ELSE 'team' END,
        coalesce(t.route, l.route) || ' ' || coalesce(t.who, l.who), coalesce(t.method, l.method), t.usd, l.usd,
        -- what weights do not tell: contexts of different lengths, batches of single calls
        least(i.low, i.high, l.usd * 0.95), greatest(i.low, i.high, l.usd * 1.05)
    FROM (SELECT route, method, who, sum(usd) AS usd FROM valued GROUP BY ALL) AS t
    FULL JOIN (SELECT model AS route, how AS method, who, sum(effective_nano) / 1e9 AS usd FROM worked GROUP BY ALL
               HAVING abs(sum(effective_nano)) > 10000000) AS l USING (route, method, who)
    LEFT JOIN (SELECT model AS route, team AS who, method, sum(at_low_nano) / 1e9 AS low, sum(at_high_nano) / 1e9 AS high
               FROM ratio_day WHERE method = 'configured_ratio' GROUP BY ALL) AS i USING (route, method, who)
    UNION ALL
    SELECT 6, 'class', t.route || ' ' || t.class, t.method, t.usd, l.usd, NULL, NULL
    FROM (
        SELECT route, method, 'uncached_input' AS class, sum(prefill_usd) AS usd FROM valued GROUP BY ALL
        UNION ALL SELECT route, method, 'cache_read', sum(cached_usd) FROM valued GROUP BY ALL
        UNION ALL SELECT route, method, 'output', sum(decode_usd) FROM valued GROUP BY ALL
    ) AS t
    LEFT JOIN (SELECT model AS route, how AS method, token_class AS class, sum(effective_nano) / 1e9 AS usd FROM worked
               GROUP BY ALL) AS l USING (route, method, class)
    UNION ALL
    -- no target: the reference is what the fleet itself reached last week, not what its GPUs could do
    SELECT 7, 'under-used', 'replicas', NULL,
        (SELECT sum(cost_nano) / 1e9 - sum(cost_nano * CAST(step_us AS DOUBLE) / held_us) / 1e9
         FROM replica WHERE running_us > 0 AND held_us > 0),
        (SELECT sum(effective_nano) / 1e9 FROM ledger WHERE kind = 'under_used'), NULL, NULL
)
SELECT what, of, method, truth, ledger, low, high FROM figure
-- calls without a team that were mostly cut off: cents
WHERE NOT (what IN ('team', 'unattributed') AND coalesce(truth, 0) < 1)
ORDER BY place, what, of
