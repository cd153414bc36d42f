-- From the staged lines of one delivery of a bill to the warehouse: the same steps for every export format.
-- inputs: temporary table `staged_line` (columns of billing_line from `line_digest` on); session variables export_name,
-- billing_period ('YYYY-MM'), load_id, identity, delivered_at
-- invariant: the period is replaced whole; sums in = sums out; only hours whose lines differ are touched

-- :standing
-- The delivery that stands in the warehouse for this export and period; NULL when there is none.
SELECT max(delivered_at), max_by(identity, (delivered_at, identity))
FROM bill_version
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

-- :touch
-- grain: one hour, or the period's overlay, whose lines differ between what stands and what is staged
-- Lines are compared as a set without order: count and sum of their digests per charge period.
INSERT INTO touched_hour BY NAME
WITH line AS (
    SELECT TRUE AS is_new, charge_period_start, charge_period_end, x_token_class, line_digest FROM staged_line
    UNION ALL
    SELECT FALSE, charge_period_start, charge_period_end, x_token_class, line_digest
    FROM billing_line
    WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period')
),
compared AS (
    SELECT charge_period_start, charge_period_end,
        x_token_class IS NULL AND charge_period_end - charge_period_start > INTERVAL 1 DAY AS is_overlay,
        count(*) FILTER (WHERE is_new) AS new_lines,
        count(*) FILTER (WHERE NOT is_new) AS old_lines,
        sum(CAST(md5_number_lower(line_digest) AS HUGEINT)) FILTER (WHERE is_new) AS new_digest,
        sum(CAST(md5_number_lower(line_digest) AS HUGEINT)) FILTER (WHERE NOT is_new) AS old_digest
    FROM line
    GROUP BY ALL
),
changed AS (
    SELECT * FROM compared WHERE new_lines <> old_lines OR new_digest IS DISTINCT FROM old_digest
),
touched AS (
    SELECT CAST(getvariable('billing_period') || '-01' AS TIMESTAMP) AS hour, 'overlay' AS reason
    FROM changed WHERE is_overlay
    UNION
    SELECT unnest(generate_series(date_trunc('hour', charge_period_start),
            greatest(charge_period_end - INTERVAL 1 MICROSECOND, charge_period_start), INTERVAL 1 HOUR)),
        'billing'
    FROM changed WHERE NOT is_overlay
)
SELECT touched.hour, touched.reason
FROM touched
ANTI JOIN touched_hour AS known ON known.hour = touched.hour AND known.reason = touched.reason
ORDER BY touched.hour, touched.reason;

-- :delete
DELETE FROM billing_line
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

-- :insert
-- grain: one line of the bill; clustered by charge period
INSERT INTO billing_line BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('export_name') AS export_name,
    getvariable('billing_period') AS billing_period, staged_line.*
FROM staged_line
ORDER BY charge_period_start, line_digest;

-- :version
-- grain: one UTC day, service and currency of this delivery
DELETE FROM bill_version
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period')
  AND identity = getvariable('identity');

INSERT INTO bill_version BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('export_name') AS export_name,
    getvariable('billing_period') AS billing_period, 0 AS delivery, getvariable('delivered_at') AS delivered_at,
    getvariable('identity') AS identity, CAST(charge_period_start AS DATE) AS charge_day, service_name,
    billing_currency, count(*) AS line_count,
    CAST(sum(billed_cost) AS DECIMAL(38, 18)) AS billed_cost, CAST(sum(effective_cost) AS DECIMAL(38, 18)) AS effective_cost
FROM staged_line
GROUP BY ALL
ORDER BY charge_day, service_name, billing_currency;

-- Deliveries are numbered by when the provider made them, whatever the order they were loaded in.
UPDATE bill_version AS version
SET delivery = ranked.delivery
FROM (
    SELECT identity, CAST(dense_rank() OVER (ORDER BY delivered_at, identity) AS INTEGER) AS delivery
    FROM (SELECT DISTINCT identity, delivered_at FROM bill_version
          WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period'))
) AS ranked
WHERE version.export_name = getvariable('export_name') AND version.billing_period = getvariable('billing_period')
  AND version.identity = ranked.identity AND version.delivery <> ranked.delivery;

-- :outcome
-- grain: one row for the load
SELECT count(*) AS lines, min(charge_period_start) AS first_at, max(charge_period_end) AS last_at,
    CAST(coalesce(sum(billed_cost), 0) AS VARCHAR) AS billed_cost,
    CAST(coalesce(sum(effective_cost), 0) AS VARCHAR) AS effective_cost,
    CAST(coalesce(sum(list_cost), 0) AS VARCHAR) AS list_cost,
    CAST(coalesce(sum(x_tokens), 0) AS VARCHAR) AS x_tokens,
    CAST(count(*) FILTER (WHERE x_token_class IS NOT NULL AND x_tokens IS NULL) AS VARCHAR) AS lines_of_unknown_unit
FROM staged_line;
