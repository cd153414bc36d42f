-- Step 7e: the overlay in the ledger: what belongs to inference goes to claim sets by that day's usage cost.
-- grain:   local day x billing period x currency x service x class x kind x status x method x reason x claim set
-- inputs:  overlay_day, day_usage (day x billing_period x currency x part x claim set: usage nanos from ledger_hour;
--          part `all`, and `fleet` again for the own fleet)
-- rule:    what is of the own fleet (commitments that cover it, its daily lines) is shared by those who used it,
--          everything else by all. Weights are the day's billed usage (negative ones count as 0); a day without
--          usage keeps its amount, ownerless, with the reason.
-- control: sum of nanos = overlay_day.
WITH kinded AS (
    SELECT
        o.billing_period AS billing_period, o.currency AS currency, o.account_id AS account_id,
        o.provider AS provider, o.service_name AS service_name, o.line_class AS line_class,
        o.status AS status, o.day AS day,
        CASE WHEN o.is_future = 1 THEN 'future'
             WHEN o.part = 'out' THEN 'out_of_scope'
             WHEN o.line_class IN ('credit', 'discount') THEN 'credit'
             ELSE 'shared' END AS kind,
        CAST(sum(o.effective_nano) AS BIGINT) AS effective_nano,
        CAST(sum(o.billed_nano) AS BIGINT) AS billed_nano
    FROM overlay_day AS o
    GROUP BY o.billing_period, o.currency, o.account_id, o.provider, o.service_name, o.line_class, o.status, o.day,
        CASE WHEN o.is_future = 1 THEN 'future'
             WHEN o.part = 'out' THEN 'out_of_scope'
             WHEN o.line_class IN ('credit', 'discount') THEN 'credit'
             ELSE 'shared' END
),
running AS (
    SELECT
        u.day AS day, u.billing_period AS billing_period, u.currency AS currency, u.part AS part,
        u.claim_set_id AS claim_set_id, u.weight AS weight,
        CAST(sum(u.weight) OVER (PARTITION BY u.day, u.billing_period, u.currency, u.part
            ORDER BY coalesce(u.claim_set_id, '')
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS BIGINT) AS upto,
        CAST(sum(u.weight) OVER (PARTITION BY u.day, u.billing_period, u.currency, u.part) AS BIGINT) AS total
    FROM day_usage AS u
    WHERE u.weight > 0
)
SELECT
    k.day AS day, k.billing_period AS billing_period, k.currency AS currency, k.provider AS provider,
    k.account_id AS account_id, k.service_name AS service_name, k.line_class AS line_class, k.kind AS kind,
    k.status AS status,
    CASE WHEN k.kind IN ('shared', 'credit') THEN 'by_day_usage' ELSE 'bill_line' END AS method,
    CASE WHEN k.kind IN ('shared', 'credit') AND r.total IS NULL THEN 'no_usage_that_day' END AS reason,
    r.claim_set_id AS claim_set_id,
    CAST(CASE WHEN r.total IS NULL THEN k.effective_nano
              ELSE share(k.effective_nano, r.upto, r.weight, r.total) END AS BIGINT) AS effective_nano,
    CAST(CASE WHEN r.total IS NULL THEN k.billed_nano
              ELSE share(k.billed_nano, r.upto, r.weight, r.total) END AS BIGINT) AS billed_nano
FROM kinded AS k
LEFT JOIN running AS r
    ON k.kind IN ('shared', 'credit')
    AND r.part = CASE WHEN k.line_class IN ('commitment', 'accelerator', 'other_compute', 'storage', 'network',
                                            'control_plane') THEN 'fleet' ELSE 'all' END
    AND r.day = k.day AND r.billing_period = k.billing_period AND r.currency = k.currency
