-- A log in columns of its own (CSV, JSON Lines, Parquet), mapped by the configuration's expressions.
-- grain: one row of the file; input: `payload`, the file's columns and __path, __line, __broken
-- invariant: expressions see one row at a time; what an expression cannot work out for a row is NULL there (TRY)

-- :parquet
CREATE OR REPLACE TEMP VIEW payload AS
SELECT * EXCLUDE (file_row_number, filename), filename AS __path, file_row_number + 1 AS __line,
    CAST(NULL AS VARCHAR) AS __broken
FROM read_parquet(getvariable('files'), union_by_name = true, hive_partitioning = false, filename = true,
    file_row_number = true);

-- :csv
-- Files with one header. Every value is text, so that a column's type does not depend on the rows that are there; the
-- columns are given, since DuckDB's sniffer fails on one bad row and may take a ragged file for one column.
SELECT * EXCLUDE (filename), filename AS __path, CAST(NULL AS BIGINT) AS __line, CAST(NULL AS VARCHAR) AS __broken
FROM read_csv({{files}}, auto_detect = false, header = true, columns = {{columns}}, delim = {{delimiter}}, quote = '"',
    escape = '"', filename = true, max_line_size = 16777216)

-- :csv_again
-- One file once more, its rows counted (the header is line 1; a quoted line break makes no new row).
SELECT * EXCLUDE (filename), filename AS __path, row_number() OVER () + 1 AS __line, CAST(NULL AS VARCHAR) AS __broken
FROM read_csv({{files}}, auto_detect = false, header = true, columns = {{columns}}, delim = {{delimiter}}, quote = '"',
    escape = '"', filename = true, max_line_size = 16777216, ignore_errors = true, store_rejects = true,
    rejects_table = 'csv_refused', rejects_scan = 'csv_refused_scan', rejects_limit = 0)

-- :csv_refused
-- grain: one row that is no row of its CSV file
INSERT INTO staged_record BY NAME
SELECT DISTINCT scan.file_path AS path, CAST(refused.line AS BIGINT) AS line_number, FALSE AS filtered,
    md5(refused.csv_line) AS row_digest, 'malformed_csv' AS reason, 'the row does not have the columns of the header' AS detail
FROM csv_refused AS refused
JOIN csv_refused_scan AS scan ON scan.scan_id = refused.scan_id AND scan.file_id = refused.file_id;

-- :jsonl
CREATE OR REPLACE TEMP VIEW payload AS
SELECT * EXCLUDE (filename), filename AS __path, CAST(NULL AS BIGINT) AS __line, CAST(NULL AS VARCHAR) AS __broken
FROM read_json(getvariable('files'), format = 'newline_delimited', records = true, filename = true,
    hive_partitioning = false, maximum_object_size = 134217728, {{types}});

-- :jsonl_good
-- The tolerant pass: lines that are JSON objects, each wrapped with where it came from.
COPY (
    SELECT CAST(to_json({'__path': path, '__line': line_number, 'row': CAST(line AS JSON)}) AS VARCHAR)
    FROM json_line WHERE broken IS NULL
) TO {{good}} (FORMAT csv, HEADER false, DELIMITER '\x01', QUOTE '', ESCAPE '');

-- :jsonl_again
CREATE OR REPLACE TEMP VIEW payload AS
SELECT unnest("row"), __path, __line, CAST(NULL AS VARCHAR) AS __broken
FROM read_json({{good}}, format = 'newline_delimited', records = true, ignore_errors = true,
    maximum_object_size = 134217728, {{wrapped_types}});

-- :jsonl_refused
-- grain: one line that is no JSON object
INSERT INTO staged_record BY NAME
SELECT path, line_number, FALSE AS filtered, md5(line) AS row_digest, broken AS reason,
    CASE broken WHEN 'malformed_json' THEN 'the line is no complete JSON document'
                WHEN 'invalid_utf8' THEN 'the line holds bytes that are no UTF-8'
                ELSE 'the line is JSON, but no object' END AS detail
FROM json_line WHERE broken IS NOT NULL;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH given AS (
    SELECT __path, __line, __broken, {{where}} AS kept,
        {{given}},
        {{claims}} AS claims,
        CAST(ROW({{row}}) AS VARCHAR) AS row_text
    FROM payload
)
SELECT
    __path AS path, __line AS line_number, md5(row_text) AS row_digest, __broken AS broken, NOT kept AS filtered,
    {{record}},
    '{{semantics}}' = 'inclusive' AS input_includes_cache,
    'generic:{{semantics}}' AS semantics,
    claims
FROM given;
