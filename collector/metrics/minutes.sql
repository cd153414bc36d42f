-- Samples of any source to minutes: judged, cut, merged with what is there.
-- grain: staged_sample: one sample; new_minute: one series x minute
-- input: temporary table `metric_catalogue`, view `raw_sample`, variables load_id, source, cluster, latest
-- invariant: any split of samples into loads, in any order, leaves the same minutes

-- :macros
CREATE OR REPLACE TEMP MACRO canonical_labels(entries) AS
    map_from_entries(list_sort(list_filter(entries, lambda entry: entry.value <> '')));
CREATE OR REPLACE TEMP MACRO series_name(metric, labels) AS
    md5(getvariable('source') || '|' || metric || '|' || CAST(to_json(labels) AS VARCHAR));
CREATE OR REPLACE TEMP MACRO first_label(labels, names) AS
    list_filter(list_transform(names, lambda name: labels[name]), lambda value: value IS NOT NULL)[1];

-- :stage
CREATE OR REPLACE TEMP TABLE staged_series (
    key UBIGINT, number INTEGER, metric VARCHAR, broken VARCHAR, labels MAP(VARCHAR, VARCHAR)
);
-- grain: one sample of a catalogued series, or one refused one; `reason` NULL means fit to be stored
CREATE OR REPLACE TEMP TABLE staged_sample (
    place BIGINT, line_number BIGINT, row_digest VARCHAR, number INTEGER, sampled_at TIMESTAMP, value BIGINT,
    reason VARCHAR, detail VARCHAR
);
-- grain: one (input file, pass); what was left out because no catalogue has it
CREATE OR REPLACE TEMP TABLE left_out (place BIGINT, samples BIGINT);

-- :known
-- grain: one series of the batch that the catalogue knows; written in two ways, it has two numbers and one `same_as`
CREATE OR REPLACE TEMP TABLE known_series AS
SELECT min(series.number) OVER (PARTITION BY series.metric, series.labels) AS same_as, series.number, series.metric, series.labels, known.* EXCLUDE (name, conditions),
    series_name(series.metric, series.labels) AS series_id,
    CASE WHEN known.of_metric IS NOT NULL THEN series_name(known.of_metric, series.labels) END AS of_series_id
FROM staged_series AS series
JOIN metric_catalogue AS known ON known.name = series.metric
WHERE series.broken IS NULL
  AND coalesce(list_bool_and(list_transform(map_entries(known.conditions),
        lambda test: regexp_full_match(coalesce(series.labels[test.key], ''), test.value))), TRUE);

-- :judge
INSERT INTO staged_sample BY NAME
SELECT raw.place, raw.line_number, raw.row_digest, known.same_as AS number, raw.sampled_at,
    CASE WHEN abs(raw.exposed * known.scale) <= 9007199254740992 THEN CAST(round(raw.exposed * known.scale) AS BIGINT) END
        AS value,
    CASE WHEN raw.broken IS NOT NULL THEN raw.broken
         WHEN raw.sampled_at IS NULL THEN 'no_timestamp'
         WHEN raw.sampled_at < TIMESTAMP '2000-01-01' THEN 'implausible_timestamp'
         WHEN raw.sampled_at > getvariable('latest') THEN 'in_future'
         WHEN isnan(raw.exposed) THEN 'not_a_number'
         WHEN isinf(raw.exposed) THEN 'infinite'
         WHEN raw.exposed < 0 AND known.sample_kind = 'counter' THEN 'negative_counter'
         WHEN raw.exposed < known.minimum OR raw.exposed > known.maximum
           OR abs(raw.exposed * known.scale) > 9007199254740992 THEN 'out_of_range' END AS reason,
    known.metric AS detail
FROM raw_sample AS raw
LEFT JOIN known_series AS known USING (number)
WHERE known.number IS NOT NULL OR raw.broken IS NOT NULL;

-- :left_out
INSERT INTO left_out BY NAME
SELECT met.place, CAST(sum(met.samples) AS BIGINT) AS samples
FROM met_series AS met JOIN staged_series AS series USING (key)
WHERE series.broken IS NULL AND series.number NOT IN (SELECT known.number FROM known_series AS known)
GROUP BY met.place;

-- :new_minute
-- The same instant twice: the larger value, whoever came first. (Sorting short lists is ten times faster than an
-- ordered aggregate.)
CREATE OR REPLACE TEMP TABLE new_minute AS
WITH distinct_sample AS (
    SELECT number, sampled_at, max(value) AS value FROM staged_sample WHERE reason IS NULL GROUP BY number, sampled_at
)
SELECT number, date_trunc('minute', sampled_at) AS minute, list_sort(list(struct_pack(sampled_at, value))) AS samples
FROM distinct_sample
GROUP BY number, date_trunc('minute', sampled_at);

-- :of_table
-- grain: one series x minute of one evidence table
CREATE OR REPLACE TEMP VIEW fresh_minute AS
SELECT known.series_id, known.sample_kind = 'counter' AS is_counter, fresh.number, fresh.minute, fresh.samples
FROM new_minute AS fresh JOIN known_series AS known USING (number)
WHERE known.evidence = '{{evidence}}';

-- :span
SELECT min(minute), max(minute) FROM fresh_minute;

-- :known_minute
-- grain: one series x minute that is there already
CREATE OR REPLACE TEMP TABLE known_minute AS
SELECT fresh.number, there.series_id, there.minute, fresh.is_counter, fresh.samples AS fresh_samples,
    list_transform(list_zip(there.sample_at, there.sample_value),
        lambda pair: struct_pack(sampled_at := pair[1], value := pair[2])) AS samples
FROM {{evidence}} AS there
JOIN fresh_minute AS fresh ON fresh.series_id = there.series_id AND fresh.minute = there.minute
WHERE there.minute BETWEEN getvariable('first_minute') AND getvariable('last_minute');

-- :changed_minute
-- grain: one series x minute to be written: not there yet, or there with other samples
CREATE OR REPLACE TEMP TABLE changed_minute AS
WITH united AS (
    SELECT series_id, number, minute, is_counter, list_sort(list(struct_pack(sampled_at, value))) AS samples
    FROM (
        SELECT series_id, number, minute, is_counter, sample.sampled_at AS sampled_at, max(sample.value) AS value
        FROM (
            SELECT series_id, number, minute, is_counter, unnest(list_concat(samples, fresh_samples)) AS sample
            FROM known_minute
            WHERE samples <> fresh_samples
        )
        GROUP BY series_id, number, minute, is_counter, sample.sampled_at
    )
    GROUP BY series_id, number, minute, is_counter
)
SELECT series_id, number, minute, is_counter, samples, FALSE AS is_there
FROM fresh_minute ANTI JOIN known_minute USING (series_id, minute)
UNION ALL
SELECT united.*, TRUE
FROM united JOIN known_minute AS there USING (series_id, minute)
WHERE united.samples <> there.samples;

-- :replace
DELETE FROM {{evidence}} USING changed_minute AS changed
WHERE changed.is_there AND {{evidence}}.series_id = changed.series_id AND {{evidence}}.minute = changed.minute
  AND {{evidence}}.minute BETWEEN getvariable('first_minute') AND getvariable('last_minute');

-- :insert
-- `increase` is inside the minute only; a decrease is a reset, and the new value counts whole.
INSERT INTO {{evidence}} BY NAME
SELECT getvariable('load_id') AS load_id, series_id, minute,
    samples[1].sampled_at AS first_at, samples[1].value AS first_value,
    samples[-1].sampled_at AS last_at, samples[-1].value AS last_value,
    CASE WHEN NOT is_counter THEN NULL
         WHEN len(samples) = 1 THEN 0
         ELSE CAST(list_sum(list_transform(range(2, len(samples) + 1), lambda n: samples[n].value
            - CASE WHEN samples[n].value >= samples[n - 1].value THEN samples[n - 1].value ELSE 0 END)) AS BIGINT) END
        AS increase,
    len(samples) AS sample_count,
    CASE WHEN len(samples) = 1 THEN samples[1].value
         ELSE CAST(list_sum(list_transform(samples, lambda sample: sample.value)) AS BIGINT) END AS value_sum,
    CASE WHEN len(samples) = 1 THEN samples[1].value
         ELSE list_max(list_transform(samples, lambda sample: sample.value)) END AS max_value,
    CASE WHEN len(samples) = 1 THEN samples[1].value
         ELSE list_min(list_transform(samples, lambda sample: sample.value)) END AS min_value,
    list_transform(samples, lambda sample: sample.sampled_at) AS sample_at,
    list_transform(samples, lambda sample: sample.value) AS sample_value
FROM (FROM changed_minute ORDER BY date_trunc('hour', minute), number, minute);

-- :touch
-- grain: one hour whose minutes changed, and the next one where a seam reaches into it
INSERT INTO touched_hour BY NAME
SELECT hour, 'metrics' AS reason
FROM (
    SELECT date_trunc('hour', minute) AS hour FROM changed_minute
    UNION
    SELECT date_trunc('hour', minute + INTERVAL 5 MINUTE) FROM changed_minute
)
WHERE hour NOT IN (SELECT known.hour FROM touched_hour AS known WHERE known.reason = 'metrics')
ORDER BY hour;

-- :renamed_cluster
-- The name of a cluster is the source's setting; under another one, what is there is of the same cluster.
UPDATE metric_series SET cluster = getvariable('cluster'),
    target_id = md5(concat_ws('|', getvariable('source'), getvariable('cluster'), coalesce(labels['job'], ''),
        coalesce(labels['instance'], '')))
WHERE source = getvariable('source') AND cluster <> getvariable('cluster');

-- :metric_series
INSERT INTO metric_series BY NAME
SELECT getvariable('load_id') AS load_id, series_id, getvariable('source') AS source, engine, metric, concept, sample_kind,
    unit, semantics, getvariable('cluster') AS cluster,
    md5(concat_ws('|', getvariable('source'), getvariable('cluster'), coalesce(labels['job'], ''),
        coalesce(labels['instance'], ''))) AS target_id,
    first_label(labels, namespace_labels) AS namespace, first_label(labels, pod_labels) AS pod,
    first_label(labels, node_labels) AS node, of_series_id, labels
FROM known_series SEMI JOIN (SELECT number FROM staged_sample WHERE reason IS NULL) USING (number)
WHERE series_id NOT IN (SELECT there.series_id FROM metric_series AS there)
ORDER BY metric, series_id;

-- :reject
-- grain: one refused line; of many alike in one file the first hundred, and one row for all others
INSERT INTO rejected_row BY NAME
WITH numbered AS (
    SELECT staged.*, coalesce(member.key, parse_filename(file.path)) AS location,
        staged.line_number - coalesce(member.first_line, 1) + 1 AS line,
        row_number() OVER (PARTITION BY staged.place, member.key, staged.reason
            ORDER BY staged.line_number, staged.detail, staged.sampled_at) AS nth
    FROM staged_sample AS staged
    JOIN metric_file AS file USING (place)
    LEFT JOIN member ON member.path = file.path
        AND coalesce(staged.line_number, 1) BETWEEN member.first_line AND coalesce(member.last_line, 9223372036854775807)
    WHERE staged.reason IS NOT NULL
)
SELECT getvariable('load_id') AS load_id, getvariable('source') AS source, location,
    CASE WHEN nth <= 100 THEN line END AS line_number, reason,
    CASE WHEN nth <= 100 THEN any_value(detail) ELSE count(*) || ' more' END AS detail,
    CASE WHEN nth <= 100 THEN any_value(row_digest) END AS row_digest
FROM numbered
GROUP BY location, reason, least(nth, 101), CASE WHEN nth <= 100 THEN line END, nth <= 100
ORDER BY location, line_number, reason;

-- :outcome
SELECT
    count(*) FILTER (WHERE reason IS NULL) AS rows_loaded,
    count(*) FILTER (WHERE reason IS NOT NULL) AS rows_rejected,
    (SELECT coalesce(CAST(sum(samples) AS BIGINT), 0) FROM left_out) AS rows_filtered,
    min(sampled_at) FILTER (WHERE reason IS NULL) AS first_at,
    max(sampled_at) FILTER (WHERE reason IS NULL) AS last_at,
    (SELECT count(*) FROM known_series) AS series,
    (SELECT count(DISTINCT metric) FROM staged_series ANTI JOIN known_series USING (number)) AS other_metrics
FROM staged_sample;
