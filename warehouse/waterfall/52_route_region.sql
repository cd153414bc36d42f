-- Step 5b: which pools a call may have used: those of its region, if the log tells regions.
-- grain:   hour x route x region (NULL: not told) -> group_region
-- inputs:  pool_token, fleet_use
-- rule:    in an hour in which some call of a route names no region, or one where nothing of it is known to run, all
--          regions of the route are one group ('').
WITH pool_region AS (
    SELECT DISTINCT p.hour AS hour, p.route AS route, p.region AS region FROM pool_token AS p
),
use_region AS (
    SELECT DISTINCT u.hour AS hour, u.route AS route, u.region_id AS region FROM fleet_use AS u
),
undecided AS (
    SELECT DISTINCT u.hour AS hour, u.route AS route
    FROM use_region AS u
    LEFT JOIN pool_region AS p ON p.hour = u.hour AND p.route = u.route AND p.region = u.region
    WHERE p.region IS NULL
),
named AS (
    SELECT p.hour AS hour, p.route AS route, p.region AS region FROM pool_region AS p
    UNION
    SELECT u.hour AS hour, u.route AS route, u.region AS region FROM use_region AS u
)
SELECT
    n.hour AS hour, n.route AS route, n.region AS region,
    CASE WHEN d.hour IS NOT NULL OR n.region IS NULL THEN '' ELSE n.region END AS group_region
FROM named AS n
LEFT JOIN undecided AS d ON d.hour = n.hour AND d.route = n.route
