-- Exchange rates from the configuration.
-- grain: one (day, currency); input: variable `content`: [{day, currency, reporting_currency, rate}] as JSON

-- :delete
DELETE FROM fx_rate;

-- :insert
INSERT INTO fx_rate BY NAME
WITH given AS (
    SELECT unnest(from_json(getvariable('content'),
        '[{"day": "DATE", "currency": "VARCHAR", "reporting_currency": "VARCHAR", "rate": "VARCHAR"}]'), recursive := true)
)
SELECT getvariable('load_id') AS load_id, day, currency, reporting_currency, CAST(rate AS DECIMAL(38, 18)) AS rate
FROM given
ORDER BY day, currency;

-- :count
SELECT count(*) FROM fx_rate;
