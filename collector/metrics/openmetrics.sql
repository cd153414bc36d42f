-- OpenMetrics 1.0 and Prometheus text exposition: lines of text to judged samples.
-- grain: one sample line; input: `metric_file` (file, path, is_openmetrics, instant of the file's name)
-- invariant: labels are parsed once per distinct series, never per sample

-- :strict
-- Lines of whole files, in no particular order and without numbers; a file that is no UTF-8 raises.
CREATE OR REPLACE TEMP VIEW exposition_line AS
SELECT CAST(file_index AS BIGINT) AS place, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest, line
FROM read_csv(getvariable('files'), columns = {'line': 'VARCHAR'}, delim = chr(31), quote = '', escape = '',
    comment = '', header = false, auto_detect = false)
WHERE line IS NOT NULL AND line[1] <> '#';

-- :tolerant
-- Lines of pieces with their numbers. Input: temporary table `piece`, variables `files`, `pieces`.
CREATE OR REPLACE TEMP VIEW exposition_line AS
SELECT list_position(getvariable('files'), path) - 1 AS place, first_line + ordinal - 1 AS line_number,
    md5(line) AS row_digest, line
FROM (
    SELECT piece.path, piece.first_line, generate_subscripts(string_split(content.content, chr(10)), 1) AS ordinal,
        unnest(string_split(content.content, chr(10))) AS line
    FROM read_text(getvariable('pieces')) AS content
    JOIN piece ON piece.piece = content.filename
)
WHERE line[1] <> '#' AND trim(line, ' ' || chr(9) || chr(13)) <> '';

-- :read
-- A plain line ends in two numbers; only what does not (no timestamp, exemplar, malformed) costs a regular expression.
-- A view, read twice: to keep the text of every line costs more than to split it again.
CREATE OR REPLACE TEMP VIEW raw_line AS
WITH cut AS (
    SELECT place, line_number, row_digest, line, string_split(line, ' ') AS words FROM exposition_line
),
told AS (
    SELECT *, TRY_CAST(words[-2] AS DOUBLE) AS exposed, TRY_CAST(words[-1] AS DOUBLE) AS told_at FROM cut
),
looked AS (
    SELECT *,
        CASE WHEN exposed IS NULL OR told_at IS NULL OR contains(line, ' # ') OR contains(line, chr(1))
             THEN regexp_extract(line,
                '(?s)^((?:[a-zA-Z_:][a-zA-Z0-9_:]*)?[ \t]*(?:\{(?:[^"{}]|"(?:[^"\\]|\\.)*")*\})?)[ \t]*[ \t]([^ \t#"{}]+)(?:[ \t]+([^ \t#"{}]+))?[ \t\r]*(?:[ \t]# .*)?$',
                ['series', 'exposed', 'told_at']) END AS again
    FROM told
)
SELECT place, line_number, row_digest,
    CASE WHEN again IS NULL THEN left(line, length(line) - length(words[-1]) - length(words[-2]) - 2)
         ELSE again.series END AS series,
    CASE WHEN again IS NULL THEN exposed ELSE TRY_CAST(again.exposed AS DOUBLE) END AS exposed,
    CASE WHEN again IS NULL THEN told_at ELSE TRY_CAST(nullif(again.told_at, '') AS DOUBLE) END AS told_at,
    CASE WHEN contains(line, chr(1)) THEN 'invalid_utf8'
         WHEN again IS NULL THEN NULL
         WHEN again.series = '' OR TRY_CAST(again.exposed AS DOUBLE) IS NULL
           OR (again.told_at <> '' AND TRY_CAST(again.told_at AS DOUBLE) IS NULL) THEN 'malformed_line' END AS broken
FROM looked;

-- :met
-- grain: one distinct series text in one file. Samples find their series by a 64-bit hash of its text, for the texts of
-- a batch are a gigabyte; should two texts ever share one, both are refused.
CREATE OR REPLACE TEMP TABLE met_series AS
SELECT hash(series) AS key, place, min(series) AS text, max(series) <> min(series) AS is_shared, count(*) AS samples
FROM raw_line
WHERE broken IS NULL
GROUP BY key, place;

-- :series
-- grain: one distinct series text that was not met before in this batch
INSERT INTO staged_series BY NAME
WITH met AS (
    SELECT key, min(text) AS text, bool_or(is_shared) OR max(text) <> min(text) AS is_shared FROM met_series GROUP BY key
),
parsed AS (
    SELECT key, is_shared,
        regexp_full_match(text, '(?s)[a-zA-Z_:][a-zA-Z0-9_:]*[ \t]*(\{[ \t]*([a-zA-Z_][a-zA-Z0-9_]*[ \t]*=[ \t]*"([^"\\]|\\.)*"([ \t]*,[ \t]*[a-zA-Z_][a-zA-Z0-9_]*[ \t]*=[ \t]*"([^"\\]|\\.)*")*[ \t]*,?)?[ \t]*\})?[ \t]*')
            AS is_series,
        -- Prometheus 3 writes a name that is no identifier inside the braces; the catalogue holds no such name
        starts_with(text, '{"') AS is_quoted,
        regexp_extract(text, '^[a-zA-Z0-9_:]*') AS metric,
        regexp_extract_all(text, '(?s)([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"', 1) AS names,
        regexp_extract_all(text, '(?s)([a-zA-Z_][a-zA-Z0-9_]*)[ \t]*=[ \t]*"((?:[^"\\]|\\.)*)"', 2) AS texts
    FROM met ANTI JOIN staged_series USING (key)
)
SELECT key, CAST(row_number() OVER () + (SELECT count(*) FROM staged_series) AS INTEGER) AS number, metric,
    CASE WHEN is_shared THEN 'hash_shared'
         WHEN is_quoted THEN NULL
         WHEN NOT is_series THEN 'malformed_line'
         WHEN len(list_distinct(names)) <> len(names) THEN 'duplicate_label' END AS broken,
    CASE WHEN is_series AND len(list_distinct(names)) = len(names) THEN canonical_labels(
        list_transform(list_zip(names, texts), lambda pair: {'key': pair[1], 'value':
            replace(replace(replace(replace(pair[2], '\\', chr(2)), '\n', chr(10)), '\"', '"'), chr(2), '\')})) END
        AS labels
FROM parsed;

-- :samples
-- grain: one sample line; its instant rounded to the millisecond, which is what Prometheus keeps
CREATE OR REPLACE TEMP VIEW raw_sample AS
SELECT raw.place, raw.line_number, raw.row_digest, series.number, raw.exposed,
    coalesce(raw.broken, series.broken) AS broken,
    CASE WHEN raw.told_at IS NULL THEN file.instant
         WHEN isfinite(raw.told_at) AND abs(raw.told_at) < 1e14
         THEN make_timestamp(1000 * CAST(round(CASE WHEN file.is_openmetrics THEN raw.told_at * 1000 ELSE raw.told_at END)
            AS BIGINT)) END AS sampled_at
FROM raw_line AS raw
JOIN metric_file AS file USING (place)
LEFT JOIN staged_series AS series ON series.key = hash(raw.series);
