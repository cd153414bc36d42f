-- Step 4b: what a pool's busy time and its part of the cluster cost, by token class.
-- grain:   hour x bill dimensions x cluster x region x route x pool x role x state x token class (NULL: no tokens)
-- inputs:  node_share, cluster_share, engine_token, fleet_match, route_weight
-- rule:    in this order: the role of the pool where prefill and decode are apart (pool_role), the engine's own
--          GPU-seconds of both (engine_seconds), the configured weights (configured_ratio). Never request-seconds. The
--          weight of a cached token is a stated prior. A pool without counters takes the tokens of the log.
--          By configured ratio, an output token is weighed in a step of the reference batch; what the engine's steps
--          cost beyond that is under-used: those who generated tokens in small batches share it.
--          at_low and at_high: the same with the lower and the upper weights.
-- control: sum of nanos = sum of nanos of the states productive, under_used and shared.
WITH amount AS (
    SELECT
        s.hour AS hour, s.billing_period AS billing_period, s.currency AS currency, s.status AS status,
        s.account_id AS account_id, s.region_id AS region_id, s.service_name AS service_name,
        s.line_class AS line_class, s.cluster AS cluster, s.region AS region, s.route AS route, s.pool AS pool,
        s.role AS role, s.state AS state, s.effective_nano AS effective_nano, s.billed_nano AS billed_nano
    FROM node_share AS s
    WHERE s.state IN ('productive', 'under_used')
    UNION ALL
    SELECT
        s.hour AS hour, s.billing_period AS billing_period, s.currency AS currency, s.status AS status,
        s.account_id AS account_id, s.region_id AS region_id, s.service_name AS service_name,
        s.line_class AS line_class, s.cluster AS cluster, s.region AS region, s.route AS route, s.pool AS pool,
        s.role AS role, s.state AS state, s.effective_nano AS effective_nano, s.billed_nano AS billed_nano
    FROM cluster_share AS s
    WHERE s.state = 'shared'
),
logged AS (
    SELECT
        m.hour AS hour, m.route AS route, m.group_region AS group_region,
        CAST(sum(CASE WHEN m.token_class = 'uncached_input' THEN m.event_tokens ELSE 0 END) AS BIGINT)
            AS uncached_input_tokens,
        CAST(sum(CASE WHEN m.token_class = 'cache_read' THEN m.event_tokens ELSE 0 END) AS BIGINT)
            AS cache_read_tokens,
        CAST(sum(CASE WHEN m.token_class = 'output' THEN m.event_tokens ELSE 0 END) AS BIGINT) AS output_tokens
    FROM fleet_match AS m
    GROUP BY m.hour, m.route, m.group_region
),
counted AS (
    SELECT
        p.hour AS hour, p.cluster AS cluster, p.region AS region, p.route AS route, p.pool AS pool, p.role AS role,
        p.group_region AS group_region, p.prefill_us AS prefill_us, p.decode_us AS decode_us,
        CASE WHEN p.uncached_input_tokens + p.cache_read_tokens + p.output_tokens > 0 THEN p.uncached_input_tokens
             WHEN p.role = 'decode' THEN 0 ELSE coalesce(l.uncached_input_tokens, 0) END AS uncached_input_tokens,
        CASE WHEN p.uncached_input_tokens + p.cache_read_tokens + p.output_tokens > 0 THEN p.cache_read_tokens
             WHEN p.role = 'decode' THEN 0 ELSE coalesce(l.cache_read_tokens, 0) END AS cache_read_tokens,
        CASE WHEN p.uncached_input_tokens + p.cache_read_tokens + p.output_tokens > 0 THEN p.output_tokens
             WHEN p.role IN ('prefill', 'embedding') THEN 0 ELSE coalesce(l.output_tokens, 0) END AS output_tokens,
        coalesce(k.cached_weight, 0) AS cached_weight, coalesce(k.output_weight, 1000) AS output_weight,
        coalesce(k.output_low, 1000) AS output_low, coalesce(k.output_high, 1000) AS output_high,
        coalesce(k.step_weight, 0) AS step_weight, coalesce(k.step_low, 0) AS step_low,
        coalesce(k.step_high, 0) AS step_high, coalesce(k.reference_batch, 1) AS reference_batch,
        p.engine_steps AS engine_steps, p.output_tokens AS engine_output_tokens,
        CASE WHEN p.role IN ('prefill', 'decode', 'embedding') THEN 'pool_role'
             WHEN p.prefill_us + p.decode_us > 0 THEN 'engine_seconds'
             ELSE 'configured_ratio' END AS method
    FROM engine_token AS p
    LEFT JOIN logged AS l ON l.hour = p.hour AND l.route = p.route AND l.group_region = p.group_region
    LEFT JOIN route_weight AS k ON k.route = p.route
),
worked AS (
    SELECT
        c.*,
        c.uncached_input_tokens * 1000 AS uncached_work,
        c.cache_read_tokens * c.cached_weight AS cached_work,
        -- steps beyond those that its answers had taken in full batches
        CASE WHEN c.method = 'configured_ratio' AND c.engine_output_tokens > 0
                  AND c.engine_steps * c.reference_batch > c.engine_output_tokens
             THEN c.engine_steps - CAST(floor(c.engine_output_tokens / c.reference_batch) AS BIGINT) ELSE 0 END
            AS spare_steps
    FROM counted AS c
),
weighed AS (
    SELECT
        w.*,
        CASE WHEN w.method <> 'engine_seconds' THEN w.uncached_work
             WHEN w.uncached_work + w.cached_work = 0 THEN w.prefill_us
             ELSE edge(w.prefill_us, w.uncached_work, w.uncached_work + w.cached_work) END AS uncached_weight,
        CASE WHEN w.method <> 'engine_seconds' THEN w.cached_work
             WHEN w.uncached_work + w.cached_work = 0 THEN 0
             ELSE w.prefill_us - edge(w.prefill_us, w.uncached_work, w.uncached_work + w.cached_work) END
            AS read_weight,
        CASE WHEN w.method = 'engine_seconds' THEN w.decode_us ELSE w.output_tokens * w.output_weight END
            AS answer_weight,
        CASE WHEN w.method = 'engine_seconds' THEN w.decode_us ELSE w.output_tokens * w.output_low END
            AS answer_low,
        CASE WHEN w.method = 'engine_seconds' THEN w.decode_us ELSE w.output_tokens * w.output_high END
            AS answer_high,
        w.spare_steps * w.step_weight AS spare_weight, w.spare_steps * w.step_low AS spare_low,
        w.spare_steps * w.step_high AS spare_high
    FROM worked AS w
),
part AS (
    SELECT v.hour AS hour, v.cluster AS cluster, v.region AS region, v.route AS route, v.pool AS pool, v.role AS role,
        v.group_region AS group_region, v.method AS method, 1 AS part_number, 'uncached_input' AS token_class,
        0 AS is_spare, v.uncached_weight AS weight, v.uncached_weight AS weight_low, v.uncached_weight AS weight_high
    FROM weighed AS v
    UNION ALL
    SELECT v.hour AS hour, v.cluster AS cluster, v.region AS region, v.route AS route, v.pool AS pool, v.role AS role,
        v.group_region AS group_region, v.method AS method, 2 AS part_number, 'cache_read' AS token_class,
        0 AS is_spare, v.read_weight AS weight, v.read_weight AS weight_low, v.read_weight AS weight_high
    FROM weighed AS v
    UNION ALL
    SELECT v.hour AS hour, v.cluster AS cluster, v.region AS region, v.route AS route, v.pool AS pool, v.role AS role,
        v.group_region AS group_region, v.method AS method, 3 AS part_number, 'output' AS token_class,
        0 AS is_spare, v.answer_weight AS weight, v.answer_low AS weight_low, v.answer_high AS weight_high
    FROM weighed AS v
    UNION ALL
    SELECT v.hour AS hour, v.cluster AS cluster, v.region AS region, v.route AS route, v.pool AS pool, v.role AS role,
        v.group_region AS group_region, v.method AS method, 4 AS part_number, 'output' AS token_class,
        1 AS is_spare, v.spare_weight AS weight, v.spare_low AS weight_low, v.spare_high AS weight_high
    FROM weighed AS v
    WHERE v.spare_weight > 0
),
class_weight AS (
    SELECT
        t.*,
        CAST(sum(t.weight) OVER (PARTITION BY t.hour, t.cluster, t.region, t.route, t.pool, t.role, t.token_class)
            AS BIGINT) AS class_weight,
        CAST(sum(t.weight) OVER so_far AS BIGINT) AS upto, CAST(sum(t.weight) OVER pool_hour AS BIGINT) AS total,
        CAST(sum(t.weight_low) OVER so_far AS BIGINT) AS upto_low,
        CAST(sum(t.weight_low) OVER pool_hour AS BIGINT) AS total_low,
        CAST(sum(t.weight_high) OVER so_far AS BIGINT) AS upto_high,
        CAST(sum(t.weight_high) OVER pool_hour AS BIGINT) AS total_high
    FROM part AS t
    WINDOW
        pool_hour AS (PARTITION BY t.hour, t.cluster, t.region, t.route, t.pool, t.role),
        so_far AS (PARTITION BY t.hour, t.cluster, t.region, t.route, t.pool, t.role ORDER BY t.part_number
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
divided AS (
    SELECT
        a.hour AS hour, a.billing_period AS billing_period, a.currency AS currency, a.status AS status,
        a.account_id AS account_id, a.region_id AS region_id, a.service_name AS service_name,
        a.line_class AS line_class, a.cluster AS cluster, a.region AS region, a.route AS route, a.pool AS pool,
        a.role AS role,
        CASE WHEN a.state = 'productive' AND c.is_spare = 1 THEN 'under_used' ELSE a.state END AS state,
        c.group_region AS group_region, c.token_class AS token_class, c.method AS method,
        c.class_weight AS class_weight, c.total AS total_weight,
        CASE WHEN c.total IS NULL THEN a.effective_nano
             ELSE share(a.effective_nano, c.upto, c.weight, c.total) END AS effective_nano,
        CASE WHEN c.total IS NULL THEN a.billed_nano
             ELSE share(a.billed_nano, c.upto, c.weight, c.total) END AS billed_nano,
        CASE WHEN c.total IS NULL THEN a.effective_nano
             ELSE share(a.effective_nano, c.upto_low, c.weight_low, c.total_low) END AS at_low_nano,
        CASE WHEN c.total IS NULL THEN a.effective_nano
             ELSE share(a.effective_nano, c.upto_high, c.weight_high, c.total_high) END AS at_high_nano
    FROM amount AS a
    LEFT JOIN class_weight AS c
        ON c.total > 0 AND c.hour = a.hour AND c.cluster = a.cluster
        AND coalesce(c.region, '') = coalesce(a.region, '')
        AND c.route = a.route AND c.pool = a.pool AND c.role = a.role
)
SELECT
    d.hour AS hour, d.billing_period AS billing_period, d.currency AS currency, d.status AS status,
    d.account_id AS account_id, d.region_id AS region_id, d.service_name AS service_name,
    d.line_class AS line_class, d.cluster AS cluster, d.region AS region, d.route AS route, d.pool AS pool,
    d.role AS role, d.state AS state, d.group_region AS group_region, d.token_class AS token_class,
    d.method AS method, max(d.class_weight) AS weight, max(d.total_weight) AS total_weight,
    CAST(sum(d.effective_nano) AS BIGINT) AS effective_nano, CAST(sum(d.billed_nano) AS BIGINT) AS billed_nano,
    CAST(sum(d.at_low_nano) AS BIGINT) AS at_low_nano, CAST(sum(d.at_high_nano) AS BIGINT) AS at_high_nano
FROM divided AS d
GROUP BY d.hour, d.billing_period, d.currency, d.status, d.account_id, d.region_id, d.service_name, d.line_class,
    d.cluster, d.region, d.route, d.pool, d.role, d.state, d.group_region, d.token_class, d.method
