-- Step 7 (usage): latency as bucket counts; percentiles come from merged buckets, never from other percentiles.
-- grain:   hour x provider x model x claim set x measure x bucket
-- inputs:  work_event
-- rule:    buckets are 12 per decade: le_ms = ceil(10 ** (k / 12)), so a percentile is known within 21 %.
SELECT
    b.hour AS hour, b.provider AS provider, b.model AS model, b.claim_set_id AS claim_set_id, b.measure AS measure,
    b.bucket AS bucket, CAST(count(*) AS BIGINT) AS requests
FROM (
    SELECT
        v.hour AS hour, v.provider AS provider, v.model AS model, v.claim_set_id AS claim_set_id,
        v.measure AS measure,
        CAST(ceil(round(log10(CASE WHEN v.us < 1000 THEN 1000 ELSE v.us END / 1000.0) * 12, 9)) AS INTEGER) AS bucket
    FROM (
        SELECT e.hour AS hour, e.provider AS provider, e.model AS model, e.claim_set_id AS claim_set_id,
            'duration' AS measure, date_diff('microsecond', e.started_at, e.ended_at) AS us
        FROM work_event AS e WHERE e.status = 'success'
        UNION ALL
        SELECT e.hour AS hour, e.provider AS provider, e.model AS model, e.claim_set_id AS claim_set_id,
            'ttft' AS measure, date_diff('microsecond', e.started_at, e.first_token_at) AS us
        FROM work_event AS e WHERE e.status = 'success' AND e.first_token_at IS NOT NULL
    ) AS v
) AS b
GROUP BY b.hour, b.provider, b.model, b.claim_set_id, b.measure, b.bucket
