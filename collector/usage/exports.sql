-- Exported tables in any file type, every value as text; see exports.py.
-- grain: one row of the export; invariant: columns that nobody asked for never enter the engine, or (CSV) no view

-- :json
-- `auto` tells arrays, JSON Lines and single objects apart, file by file.
SELECT line.*, filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json({{files}}, format = 'auto', records = 'true', maximum_object_size = 134217728, columns = {{shape}}) AS line

-- :json_numbered
SELECT line.*, filename AS path, row_number() OVER () AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json({{files}}, format = 'auto', records = 'true', maximum_object_size = 134217728, columns = {{shape}}) AS line

-- :json_by_line
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM json_line

-- :csv
SELECT {{wanted}}filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS broken
FROM read_csv({{files}}, auto_detect = false, header = true, columns = {{columns}}, delim = ',', quote = '"',
    escape = '"', filename = true, max_line_size = 16777216, strict_mode = true)

-- :csv_numbered
-- Rows are counted, the header is 1; a quoted line break makes no new row.
SELECT {{wanted}}filename AS path, row_number() OVER () + 1 AS line_number, CAST(NULL AS VARCHAR) AS broken
FROM read_csv({{files}}, auto_detect = false, header = true, columns = {{columns}}, delim = ',', quote = '"',
    escape = '"', filename = true, max_line_size = 16777216, ignore_errors = true, store_rejects = true,
    rejects_table = 'csv_refused', rejects_scan = 'csv_refused_scan', rejects_limit = 0)

-- :parquet
SELECT {{wanted}}filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS broken
FROM read_parquet({{files}}, hive_partitioning = false, filename = true)

-- :parquet_numbered
SELECT {{wanted}}filename AS path, file_row_number + 1 AS line_number, CAST(NULL AS VARCHAR) AS broken
FROM read_parquet({{files}}, hive_partitioning = false, filename = true, file_row_number = true)

-- :refused
SELECT {{path}} AS path, CAST(NULL AS BIGINT) AS line_number, '{{reason}}' AS broken
