-- OpenTelemetry GenAI and OpenInference spans as OTLP/JSON to usage records.
-- grain: one span; input: files of one ExportTraceServiceRequest (or bare span) a document, pretty-printed or a line
-- each. Names are data: otlp_name.csv says which attribute fills which field, the first that a span has counts.
-- invariant: attributes that no field names (prompts, answers, tool arguments) end where the document is opened

-- :macros
-- An id of a trace or span: hex in any case, or base64 as some exporters write it; an id of zeros is none.
CREATE OR REPLACE TEMP MACRO span_id_of(written) AS
    CASE WHEN written IS NULL OR regexp_matches(written, '^(0*|A+=*)$') THEN NULL
         WHEN regexp_full_match(written, '[0-9a-fA-F]+') THEN lower(written)
         ELSE replace(written, ':', '') END;

-- :name
-- grain: one spelling of one field
CREATE OR REPLACE TEMP TABLE otlp_name AS
SELECT field, name, row_number() OVER () AS place
FROM read_csv(?, header = true, all_varchar = true);

-- :asked
-- grain: one attribute that the configuration names, as field `claim:...`, `task` or `outcome`
INSERT INTO otlp_name
SELECT said.field, said.name, -1
FROM (SELECT unnest(CAST(CAST(? AS JSON) AS STRUCT(field VARCHAR, name VARCHAR)[])) AS said);

-- :columns
"resourceSpans" STRUCT(resource STRUCT(attributes {{attributes}}), "scopeSpans" {{scopes}}, "instrumentationLibrarySpans" {{scopes}})[],
"resourceMetrics" VARCHAR, "resourceLogs" VARCHAR,
"traceId" VARCHAR, "spanId" VARCHAR, "parentSpanId" VARCHAR, "startTimeUnixNano" VARCHAR, "endTimeUnixNano" VARCHAR,
attributes {{attributes}}, status STRUCT(code VARCHAR)

-- :scopes
STRUCT(scope STRUCT(name VARCHAR), spans STRUCT("traceId" VARCHAR, "spanId" VARCHAR, "parentSpanId" VARCHAR,
"startTimeUnixNano" VARCHAR, "endTimeUnixNano" VARCHAR, attributes {{attributes}}, status STRUCT(code VARCHAR))[])[]

-- :attributes
STRUCT(key VARCHAR, value STRUCT("stringValue" VARCHAR, "intValue" VARCHAR, "doubleValue" VARCHAR, "boolValue" VARCHAR,
"arrayValue" STRUCT("values" STRUCT("stringValue" VARCHAR)[])))[]

-- :document
CREATE OR REPLACE TEMP VIEW document AS
SELECT line.*, filename AS path, CAST(NULL AS BIGINT) AS line_number, CAST(NULL AS VARCHAR) AS row_digest,
    CAST(NULL AS VARCHAR) AS broken
FROM read_json(getvariable('files'), format = 'newline_delimited', records = true, maximum_object_size = 134217728,
    columns = {{shape}}) AS line;

-- :document_by_line
CREATE OR REPLACE TEMP VIEW document AS
WITH looked AS (
    SELECT path, line_number, line,
        CASE WHEN broken IS NOT NULL THEN broken
             WHEN json_type(line, '$.resourceSpans') NOT IN ('ARRAY', 'NULL')
               OR json_type(line, '$.attributes') NOT IN ('ARRAY', 'NULL')
               OR len(list_filter(list_concat(
                    json_type(line, '$.resourceSpans[*].scopeSpans'), json_type(line, '$.resourceSpans[*].scopeSpans[*].spans'),
                    json_type(line, '$.resourceSpans[*].resource.attributes'),
                    json_type(line, '$.resourceSpans[*].scopeSpans[*].spans[*].attributes')),
                    lambda kind: kind NOT IN ('ARRAY', 'NULL'))) > 0 THEN 'wrong_type'
        END AS broken
    FROM json_line
)
SELECT unnest(TRY_CAST(CAST(CASE WHEN broken IS NULL THEN line ELSE '{}' END AS JSON) AS STRUCT({{columns}}))),
    path, line_number, md5(line) AS row_digest, broken
FROM looked;

-- :payload
-- grain: one span, or one document that has none; its known attributes only, by field
CREATE OR REPLACE TEMP TABLE span_said AS
WITH resource AS (
    SELECT path, line_number, row_digest, unnest("resourceSpans") AS r FROM document WHERE broken IS NULL
),
scope AS (
    SELECT path, line_number, row_digest, r.resource.attributes AS resource_attributes,
        unnest(list_concat(coalesce(r."scopeSpans", []), coalesce(r."instrumentationLibrarySpans", []))) AS s
    FROM resource
),
one AS (
    SELECT path, line_number, row_digest, CAST(NULL AS VARCHAR) AS broken, resource_attributes, s.scope.name AS scope_name,
        unnest(s.spans, recursive := false) AS span
    FROM scope
    UNION ALL
    SELECT path, line_number, row_digest,
        CASE WHEN broken IS NOT NULL THEN broken WHEN "spanId" IS NOT NULL OR attributes IS NOT NULL THEN NULL
             WHEN "resourceMetrics" IS NOT NULL THEN 'metrics_not_spans'
             WHEN "resourceLogs" IS NOT NULL THEN 'logs_not_spans'
             ELSE 'no_spans' END,
        NULL, NULL,
        {'traceId': "traceId", 'spanId': "spanId", 'parentSpanId': "parentSpanId", 'startTimeUnixNano': "startTimeUnixNano",
         'endTimeUnixNano': "endTimeUnixNano", 'attributes': attributes, 'status': status}
    FROM document
    WHERE "resourceSpans" IS NULL
),
span AS MATERIALIZED (SELECT row_number() OVER () AS span_number, * FROM one),
-- What no field names goes no further than this join.
attribute AS (
    SELECT said.span_number, otlp_name.field, otlp_name.place, said.a.value AS value
    FROM (SELECT span_number, unnest(span.attributes) AS a FROM span) AS said
    JOIN otlp_name ON otlp_name.name = said.a.key
    UNION ALL
    SELECT said.span_number, own.field, own.place, said.a.value
    FROM (SELECT span_number, unnest(resource_attributes) AS a FROM span) AS said
    JOIN (SELECT field, place, substr(name, 10) AS name FROM otlp_name WHERE starts_with(name, 'resource/')) AS own
        ON own.name = said.a.key
),
written AS (
    SELECT span_number, field, place, coalesce(value."stringValue", value."intValue", value."doubleValue",
        value."boolValue", value."arrayValue"."values"[1]."stringValue") AS v
    FROM attribute
),
said AS (
    SELECT span_number, map_from_entries(list(struct_pack(k := field, v := v))) AS said
    FROM (SELECT span_number, field, arg_min(v, (place, v)) AS v FROM written WHERE v <> '' GROUP BY ALL)
    GROUP BY span_number
),
known AS (
    SELECT path, line_number, row_digest, broken, scope_name, span."startTimeUnixNano" AS started,
        span."endTimeUnixNano" AS ended, span.status.code AS status_code, coalesce(said.said, MAP {}) AS said,
        span_id_of(span."traceId") AS trace_id, span_id_of(span."spanId") AS span_id,
        span_id_of(span."parentSpanId") AS parent_span_id
    FROM span LEFT JOIN said USING (span_number)
)
SELECT * EXCLUDE (trace_id, span_id, parent_span_id),
    trace_id || ':' || span_id AS record_id, trace_id || ':' || parent_span_id AS parent_id,
    -- a span without valid ids is told apart by what it says
    CASE WHEN trace_id IS NULL OR span_id IS NULL
         THEN md5(concat_ws(chr(31), scope_name, started, ended, CAST(list_sort(map_entries(said)) AS VARCHAR))) END AS facts
FROM known;
CREATE OR REPLACE TEMP VIEW payload AS FROM span_said;

-- :mapped
CREATE OR REPLACE TEMP VIEW mapped AS
WITH named AS (
    SELECT *,
        said['input'] AS input_said, said['output'] AS output_said, said['total'] AS total_said,
        said['cache_read'] AS read_said, said['cache_write'] AS written_said, said['reasoning'] AS reasoning_said,
        lower(coalesce(said['operation'], '')) AS operation, upper(coalesce(said['kind'], '')) AS kind,
        lower(said['address']) AS called, lower(coalesce(said['error'], '')) AS error_said
    FROM payload
),
known AS (
    SELECT *,
        coalesce(input_said, output_said) IS NOT NULL AS has_usage,
        operation IN ('chat', 'generate_content', 'text_completion', 'completion', 'embeddings', 'embedding', 'rerank')
            OR kind IN ('LLM', 'EMBEDDING') OR regexp_matches(operation, '^ai\.\w+\.do\w+$') AS is_model_call,
        operation IN ('embeddings', 'embedding') OR kind = 'EMBEDDING' AS is_embedding,
        coalesce(status_code, '') IN ('2', 'STATUS_CODE_ERROR') AS has_failed,
        -- An instrumentation that leaves the cache out of the input gives itself away by its own total.
        coalesce(list_contains(CAST(getvariable('exclusive_scopes') AS VARCHAR[]), scope_name), FALSE) OR coalesce(
            whole(total_said) = whole(input_said) + whole(output_said) + coalesce(whole(read_said), 0) + coalesce(whole(written_said), 0)
            AND coalesce(whole(read_said), 0) + coalesce(whole(written_said), 0) > 0, FALSE) AS is_exclusive,
        (operation <> '' OR kind <> '') AS says_what_it_is,
        make_timestamp(nullif(TRY_CAST(started AS BIGINT), 0) // 1000) AS started_at,
        make_timestamp(nullif(TRY_CAST(ended AS BIGINT), 0) // 1000) AS ended_at
    FROM named
)
SELECT
    path, line_number, row_digest, broken,
    -- An agent, tool or HTTP span is a call only if it has usage that no call below it has (see traces.sql).
    broken IS NULL AND NOT is_model_call AND (NOT has_usage OR has_failed
        OR (says_what_it_is AND NOT getvariable('agent_totals'))) AS filtered,
    coalesce(record_id, 'span-' || facts) AS record_id,
    CASE WHEN NOT has_failed THEN nullif(said['response_id'], '') END AS provider_response_id,
    CAST(NULL AS VARCHAR) AS operation_id,
    CAST(NULL AS INTEGER) AS attempt,
    parent_id,
    said['session'] AS session_id,
    CASE WHEN getvariable('task_is_trace') THEN split_part(record_id, ':', 1)
         ELSE coalesce(said['task'], CASE WHEN said['agent'] IS NOT NULL THEN split_part(record_id, ':', 1) END) END AS task_id,
    said['agent'] AS agent,
    CAST(NULL AS VARCHAR) AS parent_agent,
    word_of(said['outcome']) AS task_outcome,
    said['user'] AS user_id,
    started_at,
    CASE WHEN has_failed THEN NULL
         WHEN TRY_CAST(said['first_chunk_seconds'] AS DOUBLE) BETWEEN 0 AND 86400
         THEN started_at + to_microseconds(CAST(round(TRY_CAST(said['first_chunk_seconds'] AS DOUBLE) * 1000000) AS BIGINT))
         WHEN TRY_CAST(said['first_chunk_ms'] AS DOUBLE) BETWEEN 0 AND 86400000
         THEN started_at + to_microseconds(CAST(round(TRY_CAST(said['first_chunk_ms'] AS DOUBLE) * 1000) AS BIGINT))
    END AS first_token_at,
    ended_at,
    -- A client library believes that it speaks to its own vendor; the address knows better.
    coalesce(server.provider, provider_at(called), provider_named(said['provider'])) AS provider,
    coalesce(said['response_model'], said['request_model']) AS model_raw,
    coalesce(server.account, CAST(getvariable('account') AS VARCHAR)) AS account_id,
    coalesce(region_at(called), server.region, CAST(getvariable('region') AS VARCHAR)) AS region_id,
    coalesce(model_scope(said['request_model']), model_scope(said['response_model']),
        CASE WHEN coalesce(server.provider, provider_at(called), provider_named(said['provider'])) LIKE 'aws.%' THEN 'regional' END) AS scope,
    said['request_model'] AS route,
    tier_named(said['tier']) AS service_tier,
    CASE WHEN said['stream'] IS NOT NULL THEN lower(said['stream']) = 'true'
         WHEN coalesce(said['first_chunk_seconds'], said['first_chunk_ms']) IS NOT NULL THEN TRUE END AS stream,
    CASE WHEN NOT has_failed THEN 'success'
         WHEN regexp_matches(error_said, 'time_?d?out|deadline') OR said['http_status'] IN ('408', '504') THEN 'timeout'
         WHEN regexp_matches(error_said, 'cancel|disconnect|abort|generatorexit') OR said['http_status'] = '499' THEN 'cancelled'
         ELSE 'failure' END AS status,
    CASE WHEN has_failed THEN coalesce(word_of(said['error']), word_of(said['http_status'])) END AS error_kind,
    word_of(regexp_replace(said['finish_reason'], '[\[\]"'']', '', 'g')) AS finish_reason,
    NOT is_exclusive AS input_includes_cache,
    input_said AS input_tokens, read_said AS cache_read_tokens, written_said AS cache_write_tokens,
    said['cache_write_5m'] AS cache_write_5m_tokens, said['cache_write_1h'] AS cache_write_1h_tokens,
    CASE WHEN is_embedding AND input_said IS NOT NULL THEN coalesce(output_said, '0') ELSE output_said END AS output_tokens,
    reasoning_said AS reasoning_tokens,
    CASE WHEN NOT is_exclusive THEN total_said END AS total_tokens,
    CAST(NULL AS MAP(VARCHAR, VARCHAR)) AS other_units,
    list_transform(CAST(getvariable('claim_names') AS VARCHAR[]), lambda claim: struct_pack(
        n := claim, v := CASE WHEN length(said['claim:' || claim]) <= 256 THEN said['claim:' || claim] END)) AS claims,
    stated_cost(said['cost'], input_said, output_said, total_said) AS provider_cost,
    CASE WHEN NOT has_usage THEN 'otlp:unknown' WHEN is_exclusive THEN 'otlp:disjoint' ELSE 'otlp:inclusive' END
        || CASE WHEN has_usage AND says_what_it_is AND NOT is_model_call THEN '+agent_total' ELSE '' END AS semantics,
    map_from_entries(list_filter(list_transform(
        ['input', 'output', 'total', 'cache_read', 'cache_write', 'cache_write_5m', 'cache_write_1h', 'reasoning', 'cost'],
        lambda field: struct_pack(k := field, v := word_of(said[field]))), lambda given: given.v IS NOT NULL)) AS raw_counts
FROM known
LEFT JOIN server ON server.address = known.called;
