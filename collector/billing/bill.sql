-- From the staged lines of one delivery of a bill to the warehouse: the same steps for every export format.
-- inputs: temporary tables `staged_line` (columns of billing_line from `x_line_item_id` on; lines of other billing periods
-- are left alone), `staged_check` (bill_check from `billing_period` on), `staged_split` (split_cost_line from
-- `billing_period` on); session variables export_name, billing_period ('YYYY-MM'), load_id, identity, delivered_at,
-- export_group, format, wish
-- invariant: the period is replaced whole; sums in = sums out; only hours whose lines differ are touched; of exports
-- that tell one account's month one is the record and in billing_line, the others are in cross_check_line

-- :standing
-- The delivery that stands in the warehouse for this export and period; NULL when there is none.
SELECT max(delivered_at), max_by(identity, (delivered_at, identity))
FROM bill_version
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

-- :judge
-- grain: one export, billing period, provider and account; which of several exports is the record of it
-- Set by hand a record always counts; else the group with the format that tells most, then the first by name.
CREATE OR REPLACE TEMP TABLE judged AS
SELECT provider_name, billing_account_id FROM bill_export
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period')
UNION
SELECT provider_name, billing_account_id FROM staged_line
WHERE strftime(billing_period_start, '%Y-%m') = getvariable('billing_period');

CREATE OR REPLACE TEMP TABLE role_before AS
SELECT e.* FROM bill_export AS e SEMI JOIN judged USING (provider_name, billing_account_id)
WHERE e.billing_period = getvariable('billing_period');

DELETE FROM bill_export
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

INSERT INTO bill_export BY NAME
SELECT DISTINCT getvariable('export_name') AS export_name, getvariable('billing_period') AS billing_period,
    provider_name, billing_account_id, getvariable('export_group') AS export_group, getvariable('format') AS format,
    getvariable('wish') AS wish, FALSE AS is_record
FROM staged_line
WHERE strftime(billing_period_start, '%Y-%m') = getvariable('billing_period')
ORDER BY ALL;

CREATE OR REPLACE TEMP TABLE role AS
WITH grouped AS (
    SELECT e.provider_name, e.billing_account_id, e.export_group, bool_or(e.wish = 'record') AS is_set,
        min(list_position(['cur2', 'legacy_cur', 'focus'], e.format)) FILTER (e.wish = 'auto') AS place
    FROM bill_export AS e SEMI JOIN judged USING (provider_name, billing_account_id)
    WHERE e.billing_period = getvariable('billing_period')
    GROUP BY ALL
),
ranked AS (
    SELECT *, bool_or(is_set) OVER account AS any_set,
        row_number() OVER (PARTITION BY provider_name, billing_account_id ORDER BY place NULLS LAST, export_group) AS nth
    FROM grouped
    WINDOW account AS (PARTITION BY provider_name, billing_account_id)
)
SELECT e.export_name, e.provider_name, e.billing_account_id,
    e.wish = 'record' OR (e.wish = 'auto' AND CASE WHEN r.any_set THEN r.is_set ELSE r.nth = 1 END) AS is_record
FROM bill_export AS e
JOIN ranked AS r USING (provider_name, billing_account_id, export_group)
WHERE e.billing_period = getvariable('billing_period');

UPDATE bill_export SET is_record = role.is_record
FROM role
WHERE bill_export.billing_period = getvariable('billing_period') AND bill_export.export_name = role.export_name
  AND bill_export.provider_name = role.provider_name AND bill_export.billing_account_id = role.billing_account_id
  AND bill_export.is_record <> role.is_record;

CREATE OR REPLACE TEMP TABLE role_change AS
SELECT n.export_name, n.provider_name, n.billing_account_id, n.is_record
FROM role AS n
JOIN role_before AS b USING (export_name, provider_name, billing_account_id)
WHERE n.is_record <> b.is_record AND n.export_name <> getvariable('export_name');

-- :named
-- grain: one line with its digest: what the ledger reads of it, whatever the format and the delivery said it in; not its
-- id, for AWS gives every delivery new ones, nor what is only kept
CREATE OR REPLACE TEMP VIEW named_line AS
SELECT getvariable('load_id') AS load_id, getvariable('export_name') AS export_name,
    getvariable('billing_period') AS billing_period,
    md5(concat_ws(chr(31), {{content}})) AS line_digest, staged_line.*
FROM staged_line
WHERE strftime(billing_period_start, '%Y-%m') = getvariable('billing_period');

-- :before
-- grain: one charge period of the lines that may change; lines are compared as a set without order, by count and sum
-- of their digests
CREATE OR REPLACE TEMP MACRO line_sets(is_new) AS TABLE
SELECT is_new AS is_new, charge_period_start, charge_period_end,
    x_token_class IS NULL AND charge_period_end - charge_period_start > INTERVAL 1 DAY AS is_overlay,
    count(*) AS lines,
    -- the effective cost is no part of a line's own digest: that of a Capacity Block's hours depends on other lines
    sum(CAST(md5_number_lower(line_digest || CAST(effective_cost AS VARCHAR)) AS HUGEINT)) AS digest
FROM billing_line
WHERE billing_period = getvariable('billing_period')
  AND (export_name = getvariable('export_name') OR export_name IN (SELECT c.export_name FROM role_change AS c))
GROUP BY ALL;

CREATE OR REPLACE TEMP TABLE lines_before AS FROM line_sets(FALSE);

-- :delete
DELETE FROM billing_line
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

DELETE FROM cross_check_line
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

DELETE FROM bill_check
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

DELETE FROM split_cost_line
WHERE export_name = getvariable('export_name') AND billing_period = getvariable('billing_period');

-- :move
-- Exports that this delivery made the record, or no longer the record.
INSERT INTO billing_line BY NAME
SELECT l.* FROM cross_check_line AS l
SEMI JOIN role_change AS c
    ON c.is_record AND c.export_name = l.export_name AND c.provider_name = l.provider_name
    AND c.billing_account_id = l.billing_account_id
WHERE l.billing_period = getvariable('billing_period')
ORDER BY l.charge_period_start, l.line_digest;

INSERT INTO cross_check_line BY NAME
SELECT l.* FROM billing_line AS l
SEMI JOIN role_change AS c
    ON NOT c.is_record AND c.export_name = l.export_name AND c.provider_name = l.provider_name
    AND c.billing_account_id = l.billing_account_id
WHERE l.billing_period = getvariable('billing_period')
ORDER BY l.charge_period_start, l.line_digest;

DELETE FROM cross_check_line USING role_change AS c
WHERE c.is_record AND cross_check_line.billing_period = getvariable('billing_period')
  AND c.export_name = cross_check_line.export_name AND c.provider_name = cross_check_line.provider_name
  AND c.billing_account_id = cross_check_line.billing_account_id;

DELETE FROM billing_line USING role_change AS c
WHERE NOT c.is_record AND billing_line.billing_period = getvariable('billing_period')
  AND c.export_name = billing_line.export_name AND c.provider_name = billing_line.provider_name
  AND c.billing_account_id = billing_line.billing_account_id;

-- :cuts
-- grain: one row; instants between which lie as many lines as are sorted at once
SELECT quantile_disc(charge_period_start, CAST(getvariable('shares') AS DOUBLE[])) FROM named_line;

-- :insert
-- grain: one line of the bill; clustered by charge period
INSERT INTO billing_line BY NAME
SELECT s.* FROM named_line AS s
SEMI JOIN role AS r
    ON r.is_record AND r.export_name = s.export_name AND r.provider_name = s.provider_name
    AND r.billing_account_id = s.billing_account_id
WHERE s.charge_period_start >= getvariable('chunk_from') AND s.charge_period_start < getvariable('chunk_to')
ORDER BY s.charge_period_start, s.line_digest;

INSERT INTO cross_check_line BY NAME
SELECT s.* FROM named_line AS s
SEMI JOIN role AS r
    ON NOT r.is_record AND r.export_name = s.export_name AND r.provider_name = s.provider_name
    AND r.billing_account_id = s.billing_account_id
WHERE s.charge_period_start >= getvariable('chunk_from') AND s.charge_period_start < getvariable('chunk_to')
ORDER BY s.charge_period_start, s.line_digest;

-- :beside
-- What the delivery says beside its lines; `staged_check` and `staged_split` are of one billing period or name it.
INSERT INTO bill_check BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('export_name') AS export_name, staged_check.*
FROM staged_check WHERE billing_period = getvariable('billing_period') ORDER BY check_name, subject;

INSERT INTO split_cost_line BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('export_name') AS export_name, staged_split.*
FROM staged_split WHERE billing_period = getvariable('billing_period')
ORDER BY charge_period_start, parent_resource_id, resource_id;

-- :touch
-- grain: one hour, or the period's overlay, whose lines differ between what stood and what stands
INSERT INTO touched_hour BY NAME
WITH compared AS (
    SELECT charge_period_start, charge_period_end, is_overlay,
        sum(lines) FILTER (is_new) AS new_lines, sum(lines) FILTER (NOT is_new) AS old_lines,
        sum(digest) FILTER (is_new) AS new_digest, sum(digest) FILTER (NOT is_new) AS old_digest
    FROM (FROM line_sets(TRUE) UNION ALL FROM lines_before)
    GROUP BY ALL
),
changed AS (
    SELECT * FROM compared WHERE new_lines IS DISTINCT FROM old_lines OR new_digest IS DISTINCT FROM old_digest
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

-- :compared
-- grain: one account of this delivery that another export is the record of
SELECT DISTINCT r.billing_account_id || ' by ' || o.export_name
FROM role AS r
JOIN role AS o ON o.is_record AND o.provider_name = r.provider_name AND o.billing_account_id = r.billing_account_id
WHERE r.export_name = getvariable('export_name') AND NOT r.is_record
ORDER BY ALL;

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
WHERE strftime(billing_period_start, '%Y-%m') = getvariable('billing_period')
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

-- :periods
-- grain: one billing period
SELECT DISTINCT strftime(billing_period_start, '%Y-%m') AS period FROM staged_line
UNION
SELECT billing_period FROM bill_export WHERE export_name = getvariable('export_name')
ORDER BY period;

-- :outcome
-- grain: one row for a billing period of the load
SELECT count(*) AS lines,
    count(*) FILTER (WHERE x_token_class IS NOT NULL AND x_tokens IS NULL) AS unknown_units
FROM staged_line
WHERE strftime(billing_period_start, '%Y-%m') = getvariable('billing_period');

-- :totals
-- grain: one currency and cost column of the load; currencies are never added up
WITH total AS (
    SELECT billing_currency AS currency, sum(billed_cost) AS billed, sum(effective_cost) AS effective, sum(list_cost) AS listed,
        sum(contracted_cost) AS contracted
    FROM staged_line GROUP BY billing_currency
)
SELECT name, currency, CAST(CASE name WHEN 'billed_cost' THEN billed WHEN 'effective_cost' THEN effective
    WHEN 'list_cost' THEN listed ELSE contracted END AS VARCHAR) AS amount
FROM total CROSS JOIN (VALUES ('billed_cost', 1), ('effective_cost', 2), ('list_cost', 3), ('contracted_cost', 4)) AS n(name, nth)
ORDER BY currency, nth;

-- :span
SELECT min(charge_period_start), max(charge_period_end) FROM staged_line;
