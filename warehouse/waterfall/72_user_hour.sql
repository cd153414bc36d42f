-- Step 7c: the same money by user.
-- grain:   hour x user x claim set x currency x basis (user NULL: calls without a user)
-- inputs:  api_posting, fleet_posting
-- control: sums = sums of ledger_hour, kind usage.
SELECT
    a.hour AS hour, a.user_id AS user_id, a.claim_set_id AS claim_set_id, a.currency AS currency, a.basis AS basis,
    CAST(sum(a.tokens) AS BIGINT) AS tokens,
    CAST(sum(a.effective_nano) AS BIGINT) AS effective_nano,
    CAST(sum(a.billed_nano) AS BIGINT) AS billed_nano
FROM (
    SELECT p.hour AS hour, p.user_id AS user_id, p.claim_set_id AS claim_set_id, p.currency AS currency,
        p.basis AS basis, p.tokens AS tokens, p.effective_nano AS effective_nano, p.billed_nano AS billed_nano
    FROM api_posting AS p WHERE p.kind = 'usage'
    UNION ALL
    SELECT p.hour AS hour, p.user_id AS user_id, p.claim_set_id AS claim_set_id, p.currency AS currency,
        p.basis AS basis, p.tokens AS tokens, p.effective_nano AS effective_nano, p.billed_nano AS billed_nano
    FROM fleet_posting AS p WHERE p.kind = 'usage'
) AS a
GROUP BY a.hour, a.user_id, a.claim_set_id, a.currency, a.basis
