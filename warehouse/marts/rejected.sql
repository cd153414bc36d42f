-- What was refused, by reason, with one example to look at.
-- inputs: rejected_row
SELECT
    'all' AS partition, NULL AS partition_team,
    source, reason, count(*) AS rows, min(detail) AS detail, min(location) AS example_location,
    min_by(line_number, (location, line_number)) AS example_line
FROM rejected_row GROUP BY ALL
