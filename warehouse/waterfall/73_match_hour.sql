-- Step 7d: bill against log, hour by hour, with what each bucket cost.
-- grain:   charge hour x provider x account x region x model x class x service tier x scope x context tier
-- inputs:  bucket_match, api_posting
-- control: tokens as in bucket_match; nanos = api_posting.
WITH money AS (
    SELECT
        a.bucket_id AS bucket_id,
        CAST(sum(CASE WHEN a.basis = 'billed' THEN a.effective_nano ELSE 0 END) AS BIGINT) AS effective_nano,
        CAST(sum(CASE WHEN a.kind = 'unattributed' THEN a.effective_nano ELSE 0 END) AS BIGINT)
            AS unattributed_nano,
        CAST(sum(CASE WHEN a.basis = 'estimated' THEN a.effective_nano END) AS BIGINT) AS estimated_nano
    FROM api_posting AS a
    GROUP BY a.bucket_id
)
SELECT
    m.charge_hour AS hour, m.provider AS provider, m.account_id AS account_id, m.region_id AS region_id,
    m.model AS model, m.token_class AS token_class, m.service_tier AS service_tier, m.scope AS scope,
    m.context_tier AS context_tier,
    CAST(sum(m.bill_tokens) AS BIGINT) AS bill_tokens,
    CAST(sum(m.event_tokens) AS BIGINT) AS event_tokens,
    CAST(sum(m.unexplained_tokens) AS BIGINT) AS unexplained_tokens,
    CAST(sum(m.missing_tokens) AS BIGINT) AS missing_tokens,
    CAST(sum(m.variance_tokens) AS BIGINT) AS variance_tokens,
    CAST(sum(m.unpriced_tokens) AS BIGINT) AS unpriced_tokens,
    CAST(sum(coalesce(y.effective_nano, 0)) AS BIGINT) AS effective_nano,
    CAST(sum(coalesce(y.unattributed_nano, 0)) AS BIGINT) AS unattributed_nano,
    CAST(sum(y.estimated_nano) AS BIGINT) AS estimated_nano,
    min(m.is_settled) AS is_settled
FROM bucket_match AS m
LEFT JOIN money AS y ON y.bucket_id = m.bucket_id
GROUP BY m.charge_hour, m.provider, m.account_id, m.region_id, m.model, m.token_class, m.service_tier, m.scope,
    m.context_tier
