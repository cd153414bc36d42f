-- The bill lines behind the ledger's token-metered postings, for `explain`. Partition: the local day.
-- inputs: billing_line, model_name, detail_day, publish_parameter
SELECT
    strftime(b.day, '%Y-%m-%d') AS partition, NULL AS partition_team,
    b.day, b.charge_period_start, b.charge_period_end, b.billing_period, b.billing_currency AS currency, b.export_name,
    b.x_file AS file, b.x_line_item_id AS line_item_id, b.line_digest, b.service_name, b.x_usage_type AS usage_type,
    b.charge_description, coalesce(nullif(b.sub_account_id, ''), b.billing_account_id) AS account_id, b.region_id AS region,
    b.resource_id, coalesce(n.model, b.x_model) AS model, b.x_token_class AS token_class, b.x_tokens AS tokens,
    b.pricing_unit, b.billed_cost, b.effective_cost
FROM (
    SELECT l.*, local_day(date_trunc('hour', l.charge_period_start), p.zone) AS day FROM billing_line AS l, publish_parameter AS p
    WHERE l.charge_period_start >= p.first_hour AND l.charge_period_start < p.last_hour
      AND l.x_charge_family = 'model_api'
      -- what spans days without tokens is shared by day, not by call
      AND (l.x_token_class IS NOT NULL OR l.charge_period_end <= l.charge_period_start + INTERVAL 1 DAY)
) AS b
SEMI JOIN detail_day AS w ON w.day = b.day
LEFT JOIN model_name AS n ON n.alias = b.x_model
