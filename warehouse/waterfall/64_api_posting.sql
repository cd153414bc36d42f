-- Step 6g: the money of each bucket to those who used it.
-- grain:   bucket x amount x hour x claim set x task x user x currency of its price (NULL: no price), and one row per
--          bucket for what no call explains
-- inputs:  bucket_match, bill_amount, event_cell, run_parameter
-- rule:    billed    share() of the bill's own amount; weights are tokens, the unexplained rest is a weight too;
--                    a bucket without any token is unattributed, with the reason
--          estimated price book x tokens for the missing part only; NULL where the price is unknown
-- control: sum of billed nanos per bucket = sum of its amounts; sum of tokens = event tokens + unexplained - variance.
WITH weight AS (
    SELECT
        c.bucket_id AS bucket_id, c.hour AS hour, c.claim_set_id AS claim_set_id, c.task_id AS task_id,
        c.user_id AS user_id, CAST(sum(c.tokens) AS BIGINT) AS tokens,
        CAST(sum(c.unpriced_tokens) AS BIGINT) AS unpriced_tokens, CAST(sum(c.pico) AS BIGINT) AS pico,
        c.currency AS currency, 0 AS is_rest
    FROM event_cell AS c
    GROUP BY c.bucket_id, c.hour, c.claim_set_id, c.task_id, c.user_id, c.currency
    UNION ALL
    SELECT
        m.bucket_id AS bucket_id, m.charge_hour AS hour, CAST(NULL AS VARCHAR) AS claim_set_id,
        CAST(NULL AS VARCHAR) AS task_id, CAST(NULL AS VARCHAR) AS user_id,
        m.unexplained_tokens AS tokens, 0 AS unpriced_tokens, CAST(NULL AS BIGINT) AS pico,
        CAST(NULL AS VARCHAR) AS currency, 1 AS is_rest
    FROM bucket_match AS m
    WHERE m.unexplained_tokens > 0 OR (m.has_bill = 1 AND m.bill_tokens = 0 AND m.event_tokens = 0)
),
running AS (
    SELECT
        w.bucket_id AS bucket_id, w.hour AS hour, w.claim_set_id AS claim_set_id, w.task_id AS task_id,
        w.user_id AS user_id, w.tokens AS tokens, w.unpriced_tokens AS unpriced_tokens, w.pico AS pico,
        w.currency AS currency, w.is_rest AS is_rest,
        CAST(sum(w.tokens) OVER (
            PARTITION BY w.bucket_id
            ORDER BY w.is_rest, w.hour, coalesce(w.claim_set_id, ''), coalesce(w.task_id, ''), coalesce(w.user_id, ''),
                coalesce(w.currency, '')
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS upto,
        CAST(sum(w.tokens) OVER (PARTITION BY w.bucket_id) AS BIGINT) AS total
    FROM weight AS w
),
covered AS (
    SELECT
        r.bucket_id AS bucket_id, r.hour AS hour, r.claim_set_id AS claim_set_id, r.task_id AS task_id,
        r.user_id AS user_id, r.tokens AS tokens, r.unpriced_tokens AS unpriced_tokens, r.pico AS pico,
        r.currency AS currency, r.is_rest AS is_rest, r.upto AS upto, r.total AS total,
        m.provider AS provider, m.account_id AS account_id, m.region_id AS region_id, m.model AS model,
        m.token_class AS token_class, m.service_tier AS service_tier, m.scope AS scope,
        m.charge_hour AS charge_hour, m.has_bill AS has_bill, m.missing_tokens AS missing_tokens,
        CASE WHEN r.total = 0 THEN 0
             ELSE share(CASE WHEN m.bill_tokens > r.total THEN r.total ELSE m.bill_tokens END,
                        r.upto, r.tokens, r.total) END AS billed_tokens
    FROM running AS r
    INNER JOIN bucket_match AS m ON m.bucket_id = r.bucket_id
)
SELECT
    c.bucket_id AS bucket_id, c.charge_hour AS charge_hour, c.hour AS hour,
    a.billing_period AS billing_period, a.currency AS currency,
    c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id, a.service_name AS service_name,
    c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier, c.scope AS scope,
    CASE WHEN c.is_rest = 1 THEN 'unattributed' ELSE 'usage' END AS kind,
    'billed' AS basis, a.status AS status, 'bill_tokens' AS method,
    CASE WHEN c.is_rest = 0 THEN NULL WHEN c.total = 0 THEN 'no_tokens_on_bill' ELSE 'no_log' END AS reason,
    c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id,
    CASE WHEN a.amount_rank = 1 THEN c.billed_tokens ELSE 0 END AS tokens,
    CAST(CASE WHEN c.total = 0 THEN a.effective_nano ELSE share(a.effective_nano, c.upto, c.tokens, c.total) END
        AS BIGINT) AS effective_nano,
    CAST(CASE WHEN c.total = 0 THEN a.billed_nano ELSE share(a.billed_nano, c.upto, c.tokens, c.total) END
        AS BIGINT) AS billed_nano
FROM covered AS c
INNER JOIN bill_amount AS a ON a.bucket_id = c.bucket_id
UNION ALL
SELECT
    c.bucket_id AS bucket_id, c.charge_hour AS charge_hour, c.hour AS hour,
    CAST(NULL AS VARCHAR) AS billing_period, coalesce(c.currency, p.currency) AS currency,
    c.provider AS provider, c.account_id AS account_id, c.region_id AS region_id,
    CAST(NULL AS VARCHAR) AS service_name,
    c.model AS model, c.token_class AS token_class, c.service_tier AS service_tier, c.scope AS scope,
    'usage' AS kind, 'estimated' AS basis, 'open' AS status, 'price_book' AS method,
    CASE WHEN c.unpriced_tokens > 0 THEN 'no_price' END AS reason,
    c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id,
    c.tokens - c.billed_tokens AS tokens,
    CASE WHEN c.unpriced_tokens > 0 THEN NULL
         ELSE CAST(floor(CAST(c.pico AS DOUBLE) / 1000 * (c.tokens - c.billed_tokens) / c.tokens + 0.5) AS BIGINT)
    END AS effective_nano,
    CASE WHEN c.unpriced_tokens > 0 THEN NULL
         ELSE CAST(floor(CAST(c.pico AS DOUBLE) / 1000 * (c.tokens - c.billed_tokens) / c.tokens + 0.5) AS BIGINT)
    END AS billed_nano
FROM covered AS c
CROSS JOIN run_parameter AS p
WHERE c.missing_tokens > 0 AND c.is_rest = 0 AND c.tokens > c.billed_tokens
