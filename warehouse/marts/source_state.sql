-- What each source gave, and how fresh it is.
-- inputs: load
SELECT
    'all' AS partition, NULL AS partition_team,
    source, kind, count(*) AS batches, min(first_at) AS first_at, max(last_at) AS last_at, max(loaded_at) AS loaded_at,
    CAST(sum(rows_read) AS BIGINT) AS rows_read, CAST(sum(rows_loaded) AS BIGINT) AS rows_loaded,
    CAST(sum(rows_rejected) AS BIGINT) AS rows_rejected, CAST(sum(rows_filtered) AS BIGINT) AS rows_filtered
FROM load GROUP BY ALL
