-- The bill itself by local day of its charge period, as loaded.
-- inputs: billing_line, work_month, publish_parameter, model_name
SELECT
    strftime(b.day, '%Y-%m') AS partition, NULL AS partition_team,
    b.day, b.billing_period, b.billing_currency AS currency, coalesce(nullif(b.sub_account_id, ''), b.billing_account_id) AS account_id,
    b.service_name, b.x_charge_family AS charge_family, b.charge_category,
    CASE WHEN b.invoice_id IS NULL THEN 'open' ELSE 'final' END AS status,
    count(*) AS line_count,
    CAST(sum(nano(b.billed_cost)) AS BIGINT) AS billed_nano,
    CAST(sum(nano(b.effective_cost)) AS BIGINT) AS effective_nano,
    CAST(sum(nano(b.list_cost)) AS BIGINT) AS list_nano
FROM (
    SELECT l.*, local_day(date_trunc('hour', l.charge_period_start), p.zone) AS day FROM billing_line AS l, publish_parameter AS p
) AS b
SEMI JOIN work_month AS w ON w.month = strftime(b.day, '%Y-%m')
GROUP BY ALL
