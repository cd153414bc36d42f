-- Every control with both sides, exact.
-- inputs: control_hour, control_period
SELECT
    'all' AS partition, NULL AS partition_team,
    name, 'all hours' AS subject, CAST(sum(lhs) AS VARCHAR) AS lhs, CAST(sum(rhs) AS VARCHAR) AS rhs,
    CAST(sum(abs(lhs - rhs)) AS VARCHAR) AS difference, '0' AS tolerance,
    count(*) FILTER (WHERE lhs <> rhs) = 0 AS ok,
    count(*) || ' hours checked, ' || count(*) FILTER (WHERE lhs <> rhs) || ' do not hold' AS explanation
FROM control_hour GROUP BY name
UNION ALL
SELECT
    'all', NULL, name, billing_period || ' ' || currency, CAST(lhs AS VARCHAR), CAST(rhs AS VARCHAR),
    CAST(abs(lhs - rhs) AS VARCHAR), '0', lhs = rhs, 'nano-dollars of the whole billing period'
FROM control_period
