-- From what a log says to usage records: the same steps for every format.
--
-- A format offers one temporary view `mapped`, one row a logged attempt, everything as the source wrote it; `judge`
-- turns it into rows of `staged_record` that carry either facts or the reason why they are refused; then the rows are
-- written. Session variables: source, load_id, source_trust, latest (TIMESTAMP), from `collector.usage.records`.
-- invariant: rows read = inserted + known before + rejected + filtered; no text of a prompt or answer is in any column

-- :macros
-- A count written as text: whole and within BIGINT, else NULL ('1200' and '1200.0' are whole, '1.5' and 'x' are not).
CREATE OR REPLACE TEMP MACRO whole(written) AS
    CASE WHEN NOT contains(written, '.') AND NOT contains(written, 'e') THEN TRY_CAST(written AS BIGINT)
         WHEN TRY_CAST(written AS DECIMAL(38, 6)) = trunc(TRY_CAST(written AS DECIMAL(38, 6)))
         THEN TRY_CAST(trunc(TRY_CAST(written AS DECIMAL(38, 6))) AS BIGINT)
    END;

-- An instant written as epoch seconds ('1796072430.814375', exact to the microsecond) or ISO 8601 (UTC without a zone).
CREATE OR REPLACE TEMP MACRO instant(written) AS
    CASE WHEN abs(TRY_CAST(written AS DOUBLE)) < 100000000000
         THEN make_timestamp(CAST(round(TRY_CAST(written AS DOUBLE) * 1000000) AS BIGINT))
         WHEN contains(written, '-') THEN CAST(TRY_CAST(written AS TIMESTAMPTZ) AS TIMESTAMP)
    END;

-- Claims of one row: named values, those without a value left out, sorted by name.
CREATE OR REPLACE TEMP MACRO claims_of(named) AS
    list_sort(list_filter(named, lambda claim: claim.v IS NOT NULL AND claim.v <> ''));

-- :shape
-- Column definitions of the table log_shape as the literal that read_json(columns = ...) takes.
SELECT '{' || string_agg('"' || column_name || '": ''' || data_type || '''', ', ' ORDER BY column_index) || '}'
FROM duckdb_columns() WHERE table_name = 'log_shape';

-- :json_line
-- The tolerant pass over JSON Lines: every line by itself, with its number and what is wrong with it. A view, so that
-- whole lines (they may hold a prompt) are never put down anywhere. Input: temporary table `piece`, variable `pieces`.
CREATE OR REPLACE TEMP VIEW json_line AS
SELECT path, first_line + ordinal - 1 AS line_number, line,
    CASE WHEN contains(line, chr(1)) THEN 'invalid_utf8'
         WHEN NOT json_valid(line) THEN 'malformed_json'
         WHEN json_type(line) <> 'OBJECT' THEN 'not_an_object' END AS broken
FROM (
    SELECT piece.path, piece.first_line, generate_subscripts(string_split(content.content, chr(10)), 1) AS ordinal,
        unnest(string_split(content.content, chr(10))) AS line
    FROM read_text(getvariable('pieces')) AS content
    JOIN piece ON piece.piece = content.filename
)
WHERE trim(line, ' ' || chr(9) || chr(13)) <> '';

-- :stage
-- grain: one logged attempt; `reason` NULL means fit to be stored
CREATE OR REPLACE TEMP TABLE staged_record (
    path VARCHAR, line_number BIGINT, row_digest VARCHAR, reason VARCHAR, detail VARCHAR, filtered BOOLEAN,
    record_id VARCHAR, event_key VARCHAR, provider_response_id VARCHAR, operation_id VARCHAR, attempt INTEGER,
    parent_id VARCHAR, session_id VARCHAR, task_id VARCHAR, agent VARCHAR, parent_agent VARCHAR, task_outcome VARCHAR,
    user_id VARCHAR, started_at TIMESTAMP, first_token_at TIMESTAMP, ended_at TIMESTAMP, provider VARCHAR,
    model_raw VARCHAR, account_id VARCHAR, region_id VARCHAR, scope VARCHAR, route VARCHAR,
    service_tier VARCHAR, stream BOOLEAN, status VARCHAR, error_kind VARCHAR, finish_reason VARCHAR,
    uncached_input_tokens BIGINT, cache_read_tokens BIGINT, cache_write_5m_tokens BIGINT, cache_write_1h_tokens BIGINT,
    output_tokens BIGINT, reasoning_tokens BIGINT, other_units MAP(VARCHAR, VARCHAR), claims STRUCT(n VARCHAR, v VARCHAR)[],
    provider_cost VARCHAR, semantics VARCHAR, raw_counts MAP(VARCHAR, VARCHAR)
);

-- :judge
-- grain: one row of `mapped`; input: `mapped`; invariant: one row out for one row in
INSERT INTO staged_record BY NAME
WITH counted AS (
    SELECT *,
        whole(input_tokens) AS n_input, whole(cache_read_tokens) AS n_read, whole(cache_write_tokens) AS n_write,
        whole(cache_write_5m_tokens) AS n_write_5m, whole(cache_write_1h_tokens) AS n_write_1h,
        whole(output_tokens) AS n_output, whole(reasoning_tokens) AS n_reasoning, whole(total_tokens) AS n_total
    FROM mapped
),
settled AS (
    SELECT *,
        -- xAI and a few others report reasoning beside the output: the total says so.
        n_total IS NOT NULL AND n_reasoning > 0 AND n_total = n_input + n_output + n_reasoning AS reasoning_beside,
        coalesce(n_write, n_write_5m + coalesce(n_write_1h, 0), n_write_1h) AS n_written,
        coalesce(n_read, 0) + coalesce(n_write, coalesce(n_write_5m, 0) + coalesce(n_write_1h, 0)) AS n_cached
    FROM counted
),
judged AS (
    SELECT *,
        CASE
            WHEN broken IS NOT NULL THEN broken
            WHEN filtered THEN NULL
            WHEN status IS NULL THEN 'unknown_status'
            WHEN record_id IS NULL OR record_id = '' THEN 'missing_id'
            WHEN started_at IS NULL OR ended_at IS NULL THEN 'missing_time'
            WHEN status = 'success' AND (model_raw IS NULL OR model_raw = '') THEN 'missing_model'
            WHEN provider IS NULL OR provider = '' THEN 'missing_provider'
            WHEN service_tier IS NULL THEN 'unknown_service_tier'
            WHEN started_at < TIMESTAMP '2015-01-01' THEN 'implausible_time'
            WHEN ended_at < started_at THEN 'ended_before_started'
            WHEN ended_at > getvariable('latest') THEN 'future_clock'
            WHEN status <> 'success' THEN NULL
            WHEN (input_tokens IS NOT NULL AND n_input IS NULL) OR (cache_read_tokens IS NOT NULL AND n_read IS NULL)
                OR (cache_write_tokens IS NOT NULL AND n_write IS NULL)
                OR (cache_write_5m_tokens IS NOT NULL AND n_write_5m IS NULL)
                OR (cache_write_1h_tokens IS NOT NULL AND n_write_1h IS NULL)
                OR (output_tokens IS NOT NULL AND n_output IS NULL)
                OR (reasoning_tokens IS NOT NULL AND n_reasoning IS NULL) THEN 'not_a_whole_number'
            WHEN least(n_input, n_read, n_write, n_write_5m, n_write_1h, n_output, n_reasoning) < 0 THEN 'negative_tokens'
            WHEN greatest(n_input, n_read, n_write, n_write_5m, n_write_1h, n_output, n_reasoning) > 1000000000
                THEN 'absurd_tokens'
            WHEN input_includes_cache AND n_cached > n_input THEN 'subset_exceeds_total'
            WHEN n_write IS NOT NULL AND coalesce(n_write_5m, 0) + coalesce(n_write_1h, 0) > n_write
                THEN 'subset_exceeds_total'
            WHEN NOT reasoning_beside AND n_reasoning > n_output THEN 'subset_exceeds_total'
            WHEN provider_cost IS NOT NULL AND TRY_CAST(provider_cost AS DOUBLE) IS NULL THEN 'not_a_number'
            WHEN TRY_CAST(provider_cost AS DOUBLE) < 0 THEN 'negative_cost'
            WHEN TRY_CAST(provider_cost AS DOUBLE) > 1000000 THEN 'absurd_cost'
        END AS reason
    FROM settled
)
SELECT
    path, line_number, CASE WHEN reason IS NOT NULL THEN row_digest END AS row_digest, reason, filtered,
    CASE reason
        WHEN 'malformed_json' THEN 'the line is no complete JSON document'
        WHEN 'invalid_utf8' THEN 'the line holds bytes that are no UTF-8'
        WHEN 'not_an_object' THEN 'the line is JSON, but no object'
        WHEN 'wrong_type' THEN 'an object or list was expected where the line has another type'
        WHEN 'unknown_status' THEN 'status is not one that this format knows'
        WHEN 'missing_id' THEN 'a call needs an id'
        WHEN 'missing_time' THEN 'start or end is absent or no instant'
        WHEN 'missing_model' THEN 'a successful call names its model'
        WHEN 'missing_provider' THEN 'no provider is named'
        WHEN 'unknown_service_tier' THEN 'service tier is none of standard, batch, flex, priority, latency_optimized'
        WHEN 'implausible_time' THEN 'started before 2015'
        WHEN 'ended_before_started' THEN 'ended_at < started_at'
        WHEN 'future_clock' THEN 'ended later than the time of collection and its tolerance; check that machine''s clock'
        WHEN 'not_a_whole_number' THEN 'a token count is no whole number'
        WHEN 'negative_tokens' THEN 'a token count is below 0'
        WHEN 'absurd_tokens' THEN 'a token count is above 1,000,000,000'
        WHEN 'subset_exceeds_total' THEN 'a part (cache, reasoning) is larger than its total'
        WHEN 'not_a_number' THEN 'the cost is no number'
        WHEN 'negative_cost' THEN 'the cost is below 0'
        WHEN 'absurd_cost' THEN 'the cost of one call is above 1,000,000'
    END AS detail,
    record_id,
    CASE WHEN provider_response_id IS NOT NULL THEN 'r:' || provider || ':' || provider_response_id
         ELSE 's:' || getvariable('source') || ':' || record_id END AS event_key,
    provider_response_id, operation_id, attempt, parent_id, session_id, task_id, agent, parent_agent, task_outcome,
    user_id, started_at, first_token_at, ended_at, provider, model_raw,
    account_id, region_id, scope, route, service_tier, stream, status, error_kind, finish_reason,
    CASE WHEN status <> 'success' THEN NULL WHEN input_includes_cache THEN n_input - n_cached ELSE n_input END
        AS uncached_input_tokens,
    CASE WHEN status = 'success' AND n_input IS NOT NULL THEN coalesce(n_read, 0) END AS cache_read_tokens,
    CASE WHEN status = 'success' AND n_input IS NOT NULL
         THEN coalesce(n_written, 0) - coalesce(n_write_1h, 0) END AS cache_write_5m_tokens,
    CASE WHEN status = 'success' AND n_input IS NOT NULL THEN coalesce(n_write_1h, 0) END AS cache_write_1h_tokens,
    CASE WHEN status <> 'success' THEN NULL WHEN reasoning_beside THEN n_output + n_reasoning ELSE n_output END
        AS output_tokens,
    CASE WHEN status = 'success' THEN n_reasoning END AS reasoning_tokens,
    other_units, claims, provider_cost,
    semantics
        || CASE WHEN n_write > 0 AND n_write_5m IS NULL AND n_write_1h IS NULL THEN '+5m_assumed' ELSE '' END
        || CASE WHEN reasoning_beside THEN '+reasoning_added' ELSE '' END AS semantics,
    raw_counts
FROM judged;

-- :bad_files
-- grain: one file with a refused row
SELECT DISTINCT path FROM staged_record WHERE reason IS NOT NULL AND line_number IS NULL;

-- :drop_files
DELETE FROM staged_record WHERE path IN (SELECT unnest(getvariable('bad_files')));

-- :refuse_files
-- grain: one file that cannot be read at all
INSERT INTO staged_record BY NAME
SELECT unnest(getvariable('bad_files')) AS path, FALSE AS filtered, getvariable('refusal') AS reason,
    'the file is truncated or not what the configuration says it is' AS detail;

-- :digest
-- grain: one fit row that the warehouse does not have; its claim set and record digest
-- inputs: staged_record, usage_record of the same time range
-- What is costly is done once per different value: claims are sorted and named once per combination.
CREATE OR REPLACE TEMP TABLE combination AS
SELECT row_number() OVER () AS combination, claims AS written, claims_of(claims) AS claims,
    md5(CAST(to_json(claims_of(claims)) AS VARCHAR)) AS claim_set_id
FROM (SELECT DISTINCT claims FROM staged_record WHERE reason IS NULL AND NOT filtered);

CREATE OR REPLACE TEMP TABLE fresh_record AS
WITH digested AS (
    SELECT staged.rowid AS staged_row, staged.record_id, staged.started_at, combination.claim_set_id,
        md5(concat_ws(chr(31),
            event_key, coalesce(operation_id, chr(30)), coalesce(CAST(attempt AS VARCHAR), chr(30)),
            coalesce(parent_id, chr(30)), coalesce(session_id, chr(30)), coalesce(task_id, chr(30)),
            coalesce(agent, chr(30)), coalesce(parent_agent, chr(30)), coalesce(task_outcome, chr(30)),
            coalesce(user_id, chr(30)), epoch_us(staged.started_at), coalesce(CAST(epoch_us(first_token_at) AS VARCHAR), chr(30)),
            epoch_us(ended_at), provider, coalesce(model_raw, chr(30)), coalesce(account_id, chr(30)),
            coalesce(region_id, chr(30)), coalesce(scope, chr(30)), coalesce(route, chr(30)), service_tier,
            coalesce(CAST(stream AS VARCHAR), chr(30)), status, coalesce(error_kind, chr(30)),
            coalesce(finish_reason, chr(30)), coalesce(provider_cost, chr(30)), semantics,
            coalesce(CAST(uncached_input_tokens AS VARCHAR), chr(30)), coalesce(CAST(cache_read_tokens AS VARCHAR), chr(30)),
            coalesce(CAST(cache_write_5m_tokens AS VARCHAR), chr(30)), coalesce(CAST(cache_write_1h_tokens AS VARCHAR), chr(30)),
            coalesce(CAST(output_tokens AS VARCHAR), chr(30)), coalesce(CAST(reasoning_tokens AS VARCHAR), chr(30)),
            coalesce(CAST(other_units AS VARCHAR), chr(30)), combination.claim_set_id)) AS record_digest
    FROM staged_record AS staged
    JOIN combination ON combination.written = staged.claims
    WHERE reason IS NULL AND NOT filtered
),
once AS (
    SELECT * FROM digested
    QUALIFY row_number() OVER (PARTITION BY record_id, record_digest ORDER BY staged_row) = 1
)
SELECT once.*
FROM once
ANTI JOIN (
    SELECT record_id, record_digest
    FROM usage_record
    WHERE source = getvariable('source')
      AND started_at BETWEEN (SELECT min(started_at) FROM once) AND (SELECT max(started_at) FROM once)
) AS known ON known.record_id = once.record_id AND known.record_digest = once.record_digest;

-- :claim_sets
-- grain: one new claim set
INSERT INTO claim_set BY NAME
SELECT claim_set_id,
    map_from_entries(list_transform(any_value(claims), lambda claim: struct_pack(k := claim.n, v := claim.v))) AS claims
FROM combination
WHERE claim_set_id IN (SELECT claim_set_id FROM fresh_record)
  AND claim_set_id NOT IN (SELECT claim_set_id FROM claim_set)
GROUP BY claim_set_id
ORDER BY claim_set_id;

-- :insert
-- grain: one record that the warehouse does not have; clustered by time
INSERT INTO usage_record BY NAME
SELECT
    getvariable('load_id') AS load_id, getvariable('source') AS source, getvariable('source_trust') AS source_trust,
    fresh.record_digest, fresh.claim_set_id, CAST(NULL AS BIGINT[]) AS prefix_blocks,
    spelt.model, money(provider_cost) AS provider_cost_usd,
    staged.* EXCLUDE (path, line_number, row_digest, reason, detail, filtered, claims, provider_cost)
FROM fresh_record AS fresh
JOIN staged_record AS staged ON staged.rowid = fresh.staged_row
LEFT JOIN (SELECT model_raw, model_slug(model_raw) AS model FROM (SELECT DISTINCT model_raw FROM staged_record)) AS spelt
    ON spelt.model_raw = staged.model_raw
ORDER BY staged.started_at;

-- :forget_refused
-- What was refused in an earlier version of these objects says nothing about the version that is loaded now.
DELETE FROM rejected_row
WHERE source = getvariable('source') AND location IN (SELECT unnest(getvariable('object_keys')));

-- :reject
-- grain: one refused line; the object it came from by the side list of joined files
INSERT INTO rejected_row BY NAME
SELECT getvariable('load_id') AS load_id, getvariable('source') AS source,
    coalesce(member.key, parse_filename(staged.path)) AS location,
    staged.line_number - coalesce(member.first_line, 1) + 1 AS line_number,
    staged.reason, staged.detail, staged.row_digest
FROM staged_record AS staged
LEFT JOIN member ON member.path = staged.path
    AND coalesce(staged.line_number, 1) BETWEEN member.first_line AND coalesce(member.last_line, 9223372036854775807)
WHERE staged.reason IS NOT NULL
ORDER BY location, line_number;

-- :touch
-- grain: one hour in which a new record started or ended
INSERT INTO touched_hour BY NAME
SELECT hour, 'usage' AS reason
FROM (
    SELECT date_trunc('hour', staged.started_at) AS hour
    FROM fresh_record AS fresh JOIN staged_record AS staged ON staged.rowid = fresh.staged_row
    UNION
    SELECT date_trunc('hour', staged.ended_at)
    FROM fresh_record AS fresh JOIN staged_record AS staged ON staged.rowid = fresh.staged_row
) AS touched
WHERE hour NOT IN (SELECT known.hour FROM touched_hour AS known WHERE known.reason = 'usage')
ORDER BY hour;

-- :outcome
-- grain: one row for the load
SELECT
    count(*) AS rows_read,
    (SELECT count(*) FROM fresh_record) AS rows_loaded,
    count(*) FILTER (WHERE reason IS NOT NULL) AS rows_rejected,
    count(*) FILTER (WHERE filtered AND reason IS NULL) AS rows_filtered,
    min(started_at) FILTER (WHERE reason IS NULL AND NOT filtered) AS first_at,
    max(ended_at) FILTER (WHERE reason IS NULL AND NOT filtered) AS last_at,
    CAST(coalesce(sum(uncached_input_tokens) FILTER (WHERE reason IS NULL AND NOT filtered), 0) AS VARCHAR) AS uncached_input_tokens,
    CAST(coalesce(sum(cache_read_tokens) FILTER (WHERE reason IS NULL AND NOT filtered), 0) AS VARCHAR) AS cache_read_tokens,
    CAST(coalesce(sum(cache_write_5m_tokens) FILTER (WHERE reason IS NULL AND NOT filtered), 0) AS VARCHAR) AS cache_write_5m_tokens,
    CAST(coalesce(sum(cache_write_1h_tokens) FILTER (WHERE reason IS NULL AND NOT filtered), 0) AS VARCHAR) AS cache_write_1h_tokens,
    CAST(coalesce(sum(output_tokens) FILTER (WHERE reason IS NULL AND NOT filtered), 0) AS VARCHAR) AS output_tokens,
    (SELECT count(DISTINCT claim_set_id) FROM fresh_record) AS claim_sets
FROM staged_record;
