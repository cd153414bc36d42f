-- Step 6f: bill bucket meets log bucket.
-- grain:   bucket_id
-- inputs:  bill_bucket, event_cell, bill_watermark, run_parameter
-- rule:    settled = the bill's watermark for that provider and account passed the bucket's end by settle_hours;
--          a pure function of evidence, never of the clock.
--          unexplained  tokens on the bill that no call explains: unattributed cost
--          missing      tokens logged, not billed yet: estimated
--          variance     tokens logged, bill settled without them: no cost, shown
-- control: bill_tokens + missing + variance = event_tokens + unexplained.
WITH logged AS (
    SELECT
        c.bucket_id AS bucket_id,
        max(c.provider) AS provider, max(c.account_id) AS account_id, max(c.region_id) AS region_id,
        max(c.model) AS model, max(c.token_class) AS token_class, max(c.service_tier) AS service_tier,
        max(c.scope) AS scope, max(c.context_tier) AS context_tier,
        min(c.hour) AS first_hour, max(c.hour) AS last_hour,
        CAST(sum(c.tokens) AS BIGINT) AS event_tokens,
        CAST(sum(c.unpriced_tokens) AS BIGINT) AS unpriced_tokens
    FROM event_cell AS c
    GROUP BY c.bucket_id
),
met AS (
    SELECT
        coalesce(b.bucket_id, g.bucket_id) AS bucket_id,
        CASE WHEN b.bucket_id IS NULL THEN 0 ELSE 1 END AS has_bill,
        coalesce(b.provider, g.provider) AS provider,
        coalesce(b.account_id, g.account_id) AS account_id,
        coalesce(b.region_id, g.region_id) AS region_id,
        coalesce(b.model, g.model) AS model,
        coalesce(b.token_class, g.token_class) AS token_class,
        coalesce(b.service_tier, g.service_tier) AS service_tier,
        coalesce(b.scope, g.scope) AS scope,
        coalesce(b.context_tier, g.context_tier) AS context_tier,
        coalesce(b.charge_hour, g.first_hour) AS charge_hour,
        coalesce(b.charge_period_end, g.last_hour + INTERVAL 1 HOUR) AS period_end,
        coalesce(b.bill_tokens, 0) AS bill_tokens,
        coalesce(g.event_tokens, 0) AS event_tokens,
        coalesce(g.unpriced_tokens, 0) AS unpriced_tokens
    FROM bill_bucket AS b
    FULL OUTER JOIN logged AS g ON g.bucket_id = b.bucket_id
)
SELECT
    m.bucket_id AS bucket_id, m.has_bill AS has_bill, m.provider AS provider, m.account_id AS account_id,
    m.region_id AS region_id, m.model AS model, m.token_class AS token_class, m.service_tier AS service_tier,
    m.scope AS scope, m.context_tier AS context_tier, m.charge_hour AS charge_hour, m.period_end AS period_end,
    m.bill_tokens AS bill_tokens, m.event_tokens AS event_tokens, m.unpriced_tokens AS unpriced_tokens,
    CASE WHEN m.bill_tokens > m.event_tokens THEN m.bill_tokens - m.event_tokens ELSE 0 END AS unexplained_tokens,
    CASE WHEN w.watermark >= m.period_end + p.settle_hours * INTERVAL 1 HOUR THEN 1 ELSE 0 END AS is_settled,
    CASE WHEN m.event_tokens > m.bill_tokens
              AND NOT coalesce(w.watermark >= m.period_end + p.settle_hours * INTERVAL 1 HOUR, FALSE)
         THEN m.event_tokens - m.bill_tokens ELSE 0 END AS missing_tokens,
    CASE WHEN m.event_tokens > m.bill_tokens
              AND coalesce(w.watermark >= m.period_end + p.settle_hours * INTERVAL 1 HOUR, FALSE)
         THEN m.event_tokens - m.bill_tokens ELSE 0 END AS variance_tokens
FROM met AS m
CROSS JOIN run_parameter AS p
LEFT JOIN bill_watermark AS w ON w.provider = m.provider AND w.account_id = m.account_id
