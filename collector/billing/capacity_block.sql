-- Capacity Blocks for ML: one payment ahead becomes the cost of the block's hours, on whatever bills those are.
-- inputs: {{table}} (billing_line or cross_check_line); session variables export_name, billing_period
-- rule:    an hour of the block costs its part of the payment by time; the lines of one hour share it by quantity. Time
--          that a bill has passed by two days without a line of the block stays on the payment's own line; time to come
--          is paid and not yet a cost. A payment that does not say when its block begins and ends stays whole.
-- control: parts of one payment never add up to more than it; of a block that is over they add up to it, exactly
-- sources: reference/billing.md 4.5; columns reservation_start_time and reservation_end_time of the payment

-- :blocks
-- grain: one payment for a block; `known_until`: the bill is complete up to there
CREATE OR REPLACE TEMP TABLE capacity_block AS
WITH paid AS (
    SELECT resource_id, billing_currency,
        CAST(sum(billed_cost) AS DECIMAL(38, 18)) AS fee,
        min(CAST(TRY_CAST(x_other['reservation_start_time'] AS TIMESTAMPTZ) AS TIMESTAMP)) AS starts,
        max(CAST(TRY_CAST(x_other['reservation_end_time'] AS TIMESTAMPTZ) AS TIMESTAMP)) AS ends
    FROM {{table}}
    WHERE export_name = getvariable('export_name') AND x_purchase_option = 'capacity_block' AND x_line_item_type = 'Fee'
      AND resource_id IS NOT NULL
    GROUP BY resource_id, billing_currency
)
SELECT *, coalesce((SELECT max(charge_period_end) - INTERVAL 2 DAY FROM {{table}}
    WHERE export_name = getvariable('export_name') AND charge_category = 'Usage'), starts) AS known_until
FROM paid
WHERE starts < ends;

-- :macros
-- What of a payment is spent once `done` of the block's time has passed: to the nano, and the whole fee at its end.
CREATE OR REPLACE TEMP MACRO spent_part(fee, done, whole) AS
    CASE WHEN done >= whole THEN fee WHEN done <= 0 THEN CAST(0 AS DECIMAL(38, 18))
         ELSE CAST(CAST(CAST(fee AS DOUBLE) * done / whole AS DECIMAL(38, 9)) AS DECIMAL(38, 18)) END;

-- :costs
-- grain: one line of a block with the effective cost that it should have
CREATE OR REPLACE TEMP TABLE block_cost AS
WITH hour_line AS (
    SELECT l.rowid AS line, b.resource_id, b.billing_currency, b.fee, b.starts, b.ends, l.billed_cost,
        l.charge_period_start, l.charge_period_end,
        greatest(CAST(round(coalesce(CAST(l.consumed_quantity AS DOUBLE), 1) * 3600000) AS BIGINT), 1) AS weight,
        l.line_digest
    FROM {{table}} AS l
    JOIN capacity_block AS b ON b.resource_id = l.resource_id AND b.billing_currency = l.billing_currency
    WHERE l.export_name = getvariable('export_name') AND l.charge_category = 'Usage'
      AND l.charge_period_start < b.ends AND l.charge_period_end > b.starts
),
placed AS (
    SELECT *,
        epoch_ms(greatest(charge_period_start, starts)) - epoch_ms(starts) AS from_ms,
        epoch_ms(least(charge_period_end, ends)) - epoch_ms(greatest(charge_period_start, starts)) AS length_ms,
        epoch_ms(ends) - epoch_ms(starts) AS whole_ms,
        CAST(sum(weight) OVER together AS BIGINT) AS upto,
        CAST(sum(weight) OVER (PARTITION BY resource_id, billing_currency, charge_period_start, charge_period_end) AS BIGINT) AS total
    FROM hour_line
    WINDOW together AS (PARTITION BY resource_id, billing_currency, charge_period_start, charge_period_end
        ORDER BY line_digest, line ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
part AS (
    SELECT line, resource_id, billing_currency, billed_cost, charge_period_start, charge_period_end,
        spent_part(fee, CASE WHEN upto = total THEN from_ms + length_ms
                             ELSE from_ms + length_ms * CAST(upto AS DOUBLE) / total END, whole_ms)
        - spent_part(fee, CASE WHEN upto = weight THEN from_ms
                               ELSE from_ms + length_ms * CAST(upto - weight AS DOUBLE) / total END, whole_ms) AS share
    FROM placed
),
-- of the time that the bill has passed, what no line of the block tells
told AS (
    SELECT resource_id, billing_currency,
        sum(share) FILTER (charge_period_start < known_until) AS by_now
    FROM part JOIN capacity_block USING (resource_id, billing_currency)
    GROUP BY resource_id, billing_currency
),
untold AS (
    SELECT b.resource_id, b.billing_currency,
        greatest(spent_part(b.fee, epoch_ms(least(b.known_until, b.ends)) - epoch_ms(b.starts),
            epoch_ms(b.ends) - epoch_ms(b.starts)) - coalesce(t.by_now, 0), 0) AS kept
    FROM capacity_block AS b LEFT JOIN told AS t USING (resource_id, billing_currency)
)
SELECT line, CAST(billed_cost + share AS DECIMAL(38, 18)) AS effective_cost FROM part
UNION ALL
-- a payment in several lines keeps what is untold on the first of them
SELECT l.rowid, CAST(CASE WHEN row_number() OVER (PARTITION BY l.resource_id, l.billing_currency
    ORDER BY l.charge_period_start, l.line_digest, l.rowid) = 1 THEN u.kept ELSE 0 END AS DECIMAL(38, 18))
FROM {{table}} AS l JOIN untold AS u USING (resource_id, billing_currency)
WHERE l.export_name = getvariable('export_name') AND l.x_purchase_option = 'capacity_block' AND l.x_line_item_type = 'Fee';

-- :touch
-- grain: one hour of another month's bill whose lines will cost something else; this month's are compared as a whole
INSERT INTO touched_hour BY NAME
WITH other AS (
    SELECT l.billing_period, l.charge_period_start, l.charge_period_end,
        l.charge_period_end - l.charge_period_start > INTERVAL 1 DAY OR l.x_line_item_type = 'Fee' AS is_overlay
    FROM billing_line AS l JOIN block_cost AS c ON c.line = l.rowid
    WHERE l.billing_period <> getvariable('billing_period') AND l.effective_cost <> c.effective_cost
),
touched AS (
    SELECT CAST(billing_period || '-01' AS TIMESTAMP) AS hour, 'overlay' AS reason FROM other WHERE is_overlay
    UNION
    SELECT unnest(generate_series(date_trunc('hour', charge_period_start),
        greatest(charge_period_end - INTERVAL 1 MICROSECOND, charge_period_start), INTERVAL 1 HOUR)), 'billing'
    FROM other WHERE NOT is_overlay
)
SELECT touched.hour, touched.reason FROM touched
ANTI JOIN touched_hour AS known ON known.hour = touched.hour AND known.reason = touched.reason
ORDER BY touched.hour, touched.reason;

-- :settle
-- AWS's usage types of blocks are not told anywhere: an hour that names a paid block is one of it, whatever its type.
UPDATE {{table}} AS l SET effective_cost = c.effective_cost, x_purchase_option = 'capacity_block'
FROM block_cost AS c
WHERE l.rowid = c.line
  AND (l.effective_cost <> c.effective_cost OR l.x_purchase_option IS DISTINCT FROM 'capacity_block');
