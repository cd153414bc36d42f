-- Step 6d: what the bill charges for a bucket. A correction on a later bill is an amount of its own.
-- grain:   bucket_id x billing_period x currency x status x service_name
-- inputs:  bill_line
-- rule:    amount_rank 1 carries the bucket's tokens in the ledger, so that they are counted once.
-- control: sum of nanos = sum of nanos of lines on the token route.
SELECT
    a.bucket_id AS bucket_id, a.billing_period AS billing_period, a.currency AS currency, a.status AS status,
    a.service_name AS service_name, a.effective_nano AS effective_nano, a.billed_nano AS billed_nano,
    row_number() OVER (
        PARTITION BY a.bucket_id ORDER BY a.billing_period, a.currency, a.status, a.service_name
    ) AS amount_rank
FROM (
    SELECT
        md5(concat_ws('|', key_part(l.provider), key_part(l.account_id), key_part(l.region_id), key_part(l.model),
            key_part(l.token_class), key_part(l.service_tier), key_part(l.scope), key_part(l.context_tier),
            CAST(l.charge_period_start AS VARCHAR), CAST(l.charge_period_end AS VARCHAR))) AS bucket_id,
        l.billing_period AS billing_period, l.currency AS currency, l.status AS status,
        l.service_name AS service_name,
        CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano,
        CAST(sum(l.billed_nano) AS BIGINT) AS billed_nano
    FROM bill_line AS l
    WHERE l.line_route = 'token'
    GROUP BY l.provider, l.account_id, l.region_id, l.model, l.token_class, l.service_tier, l.scope, l.context_tier,
        l.charge_period_start, l.charge_period_end,
        l.billing_period, l.currency, l.status, l.service_name
) AS a
