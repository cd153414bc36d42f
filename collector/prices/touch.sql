-- Hours that a changed price, rate or alias reaches: every hour that holds usage or a token-metered bill line.
-- grain: one hour; inputs: usage_record, billing_line

-- :touch
INSERT INTO touched_hour BY NAME
WITH reached AS (
    SELECT DISTINCT date_trunc('hour', started_at) AS hour FROM usage_record
    UNION
    SELECT DISTINCT date_trunc('hour', charge_period_start) FROM billing_line WHERE x_token_class IS NOT NULL
)
SELECT hour, CAST(? AS VARCHAR) AS reason
FROM reached
ORDER BY hour;
