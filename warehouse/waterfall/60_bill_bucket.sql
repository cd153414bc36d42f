-- Step 6c: what the bill says was used, by bucket.
-- grain:   bucket_id = provider x account x region x model x class x service tier x scope x context tier x charge period
-- inputs:  bill_line
-- control: sum of bill_tokens = sum of tokens of lines on the token route (before corrections are floored at 0).
SELECT
    md5(concat_ws('|', key_part(l.provider), key_part(l.account_id), key_part(l.region_id), key_part(l.model),
        key_part(l.token_class), key_part(l.service_tier), key_part(l.scope), key_part(l.context_tier),
        CAST(l.charge_period_start AS VARCHAR), CAST(l.charge_period_end AS VARCHAR))) AS bucket_id,
    l.provider AS provider, l.account_id AS account_id, l.region_id AS region_id, l.model AS model,
    l.token_class AS token_class, l.service_tier AS service_tier, l.scope AS scope, l.context_tier AS context_tier,
    l.charge_period_start AS charge_period_start, l.charge_period_end AS charge_period_end,
    CAST(date_trunc('hour', l.charge_period_start) AS TIMESTAMP) AS charge_hour,
    CAST(CASE WHEN sum(l.tokens) > 0 THEN sum(l.tokens) ELSE 0 END AS BIGINT) AS bill_tokens
FROM bill_line AS l
WHERE l.line_route = 'token'
GROUP BY l.provider, l.account_id, l.region_id, l.model, l.token_class, l.service_tier, l.scope, l.context_tier,
    l.charge_period_start, l.charge_period_end
