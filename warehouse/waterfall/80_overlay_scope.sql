-- Step 1 (overlay): which part of support, tax, credits, discounts and commitments is inference at all.
-- grain:   billing period x currency x payer x account x service x class x charge category x status x charge period
--          x part (in, out)
-- inputs:  bill_line (overlay lines of the billing periods at hand), scope_service, scope_account,
--          api_service (services that sold a model API on any bill: a month's credit may come without usage),
--          period_usage (billing period x currency x payer x service x class: usage nanos from ledger_hour)
-- rule:    a line on a model API's own service, or on a service or account configured as in scope, is in; support is
--          shared by usage cost (in scope : all) of the same bill; everything else is out.
-- control: sum of nanos = sum of nanos of lines on the overlay route.
WITH usage_weight AS (
    SELECT
        u.billing_period AS billing_period, u.currency AS currency, u.payer_id AS payer_id,
        CAST(sum(CASE WHEN u.line_class <> 'out_of_scope' AND u.effective_nano > 0
                      THEN u.effective_nano ELSE 0 END) AS BIGINT) AS in_weight,
        CAST(sum(CASE WHEN u.line_class = 'out_of_scope' AND u.effective_nano > 0
                      THEN u.effective_nano ELSE 0 END) AS BIGINT) AS out_weight
    FROM period_usage AS u
    GROUP BY u.billing_period, u.currency, u.payer_id
),
overlay AS (
    SELECT
        l.billing_period AS billing_period, l.currency AS currency, l.payer_id AS payer_id,
        l.account_id AS account_id, l.provider AS provider, l.service_name AS service_name,
        l.line_class AS line_class, l.charge_category AS charge_category, l.status AS status,
        l.charge_period_start AS charge_period_start, l.charge_period_end AS charge_period_end,
        CASE
            WHEN l.line_class NOT IN ('support_tax', 'credit', 'discount', 'commitment', 'out_of_scope') THEN 'in'
            WHEN l.commitment_id IS NOT NULL THEN 'in'
            WHEN v.service_name IS NOT NULL OR s.name IS NOT NULL OR a.account_id IS NOT NULL THEN 'in'
            WHEN l.line_class = 'support_tax' AND l.charge_category <> 'Tax' THEN 'shared'
            ELSE 'out'
        END AS belongs,
        CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano,
        CAST(sum(l.billed_nano) AS BIGINT) AS billed_nano
    FROM bill_line AS l
    LEFT JOIN api_service AS v ON v.service_name = l.service_name
    LEFT JOIN scope_service AS s ON s.name = l.service_name
    LEFT JOIN scope_account AS a ON a.account_id = l.account_id
    WHERE l.line_route = 'overlay'
    GROUP BY l.billing_period, l.currency, l.payer_id, l.account_id, l.provider, l.service_name, l.line_class,
        l.charge_category, l.status, l.charge_period_start, l.charge_period_end,
        CASE
            WHEN l.line_class NOT IN ('support_tax', 'credit', 'discount', 'commitment', 'out_of_scope') THEN 'in'
            WHEN l.commitment_id IS NOT NULL THEN 'in'
            WHEN v.service_name IS NOT NULL OR s.name IS NOT NULL OR a.account_id IS NOT NULL THEN 'in'
            WHEN l.line_class = 'support_tax' AND l.charge_category <> 'Tax' THEN 'shared'
            ELSE 'out'
        END
),
weighed AS (
    SELECT
        o.billing_period AS billing_period, o.currency AS currency, o.payer_id AS payer_id,
        o.account_id AS account_id, o.provider AS provider, o.service_name AS service_name,
        o.line_class AS line_class, o.charge_category AS charge_category, o.status AS status,
        o.charge_period_start AS charge_period_start, o.charge_period_end AS charge_period_end,
        o.effective_nano AS effective_nano, o.billed_nano AS billed_nano,
        CASE WHEN o.belongs = 'in' THEN 1 WHEN o.belongs = 'out' THEN 0
             ELSE coalesce(u.in_weight, 0) END AS in_weight,
        CASE WHEN o.belongs = 'in' THEN 0 WHEN o.belongs = 'out' THEN 1
             WHEN coalesce(u.in_weight, 0) + coalesce(u.out_weight, 0) = 0 THEN 1
             ELSE u.out_weight END AS out_weight
    FROM overlay AS o
    LEFT JOIN usage_weight AS u
        ON u.billing_period = o.billing_period AND u.currency = o.currency AND u.payer_id = o.payer_id
)
SELECT
    w.billing_period AS billing_period, w.currency AS currency, w.payer_id AS payer_id, w.account_id AS account_id,
    w.provider AS provider, w.service_name AS service_name, w.line_class AS line_class,
    w.charge_category AS charge_category, w.status AS status,
    w.charge_period_start AS charge_period_start, w.charge_period_end AS charge_period_end,
    'in' AS part,
    share(w.effective_nano, w.in_weight, w.in_weight, w.in_weight + w.out_weight) AS effective_nano,
    share(w.billed_nano, w.in_weight, w.in_weight, w.in_weight + w.out_weight) AS billed_nano
FROM weighed AS w
WHERE w.in_weight > 0
UNION ALL
SELECT
    w.billing_period AS billing_period, w.currency AS currency, w.payer_id AS payer_id, w.account_id AS account_id,
    w.provider AS provider, w.service_name AS service_name, w.line_class AS line_class,
    w.charge_category AS charge_category, w.status AS status,
    w.charge_period_start AS charge_period_start, w.charge_period_end AS charge_period_end,
    'out' AS part,
    share(w.effective_nano, w.in_weight + w.out_weight, w.out_weight, w.in_weight + w.out_weight) AS effective_nano,
    share(w.billed_nano, w.in_weight + w.out_weight, w.out_weight, w.in_weight + w.out_weight) AS billed_nano
FROM weighed AS w
WHERE w.out_weight > 0
