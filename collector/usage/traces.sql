-- What every source of traces shares: parents that repeat their children, versions of one span, names of providers.
--
-- A call in a trace has the record id `trace:span` and the parent id `trace:span` of the span above it. Input: the
-- temporary table staged_record, with the spans that are no calls too, and usage_record; variable source. Whatever is decided here rests on all
-- spans that are known of a trace, those of earlier loads too, so that the order of loading does not matter.
-- invariant: of every path from a root to a leaf at most one call keeps its usage

-- :macros
-- OpenTelemetry's name of a provider in any spelling; what is not known stays as it is written, in lower case.
CREATE OR REPLACE TEMP MACRO provider_named(written) AS
    CASE
        WHEN regexp_matches(lower(trim(written)), '^(unknown|none|null|-|)$') THEN NULL
        WHEN regexp_matches(lower(trim(written)), '^az(ure)?[._-]?(ai[._-])?(open_?ai)?(\..*)?$')
             AND NOT contains(lower(written), 'inference') THEN 'azure.ai.openai'
        WHEN regexp_matches(lower(trim(written)), '^az(ure)?[._-]ai[._-]inference$|^azure_ai$') THEN 'azure.ai.inference'
        WHEN regexp_matches(lower(trim(written)), '^(text-completion-)?openai(\..*)?$') THEN 'openai'
        WHEN regexp_matches(lower(trim(written)), '^anthropic(\..*)?$') THEN 'anthropic'
        WHEN regexp_matches(lower(trim(written)), '^(aws|amazon)$|^(aws|amazon)?[._-]?bedrock([._-].*)?$') THEN 'aws.bedrock'
        -- what Google's agent kit says of every model, wherever it runs
        WHEN lower(trim(written)) = 'gcp.vertex.agent' THEN 'gcp.gen_ai'
        WHEN regexp_matches(lower(trim(written)), '^(gcp[._-]|google[._-])?vertex(_?ai)?([._-].*)?$|^vertexai$') THEN 'gcp.vertex_ai'
        WHEN regexp_matches(lower(trim(written)), '^(gcp[._-]|google[._-])?gemini$|^google[._-]generative[._-]ai$') THEN 'gcp.gemini'
        WHEN regexp_matches(lower(trim(written)), '^google$|^(gcp[._]|google[_-])gen_?ai$') THEN 'gcp.gen_ai'
        WHEN regexp_matches(lower(trim(written)), '^x[_.-]?ai(\..*)?$') THEN 'x_ai'
        WHEN regexp_matches(lower(trim(written)), '^mistral(_?ai)?(\..*)?$') THEN 'mistral_ai'
        WHEN regexp_matches(lower(trim(written)), '^moonshot(_?ai)?$') THEN 'moonshot_ai'
        WHEN regexp_matches(lower(trim(written)), '^(ibm\.)?watsonx(\.ai)?$') THEN 'ibm.watsonx.ai'
        WHEN regexp_matches(lower(trim(written)), '^together(_?ai)?$') THEN 'together_ai'
        WHEN regexp_matches(lower(trim(written)), '^fireworks(_?ai)?$') THEN 'fireworks_ai'
        WHEN regexp_matches(lower(trim(written)), '^(hosted_)?vllm$|^sglang$|^tgi$|^ollama(\..*)?$|^llama\.?cpp$') THEN 'self-hosted'
        ELSE lower(trim(written))
    END;

-- The provider whose API answers at an address. NULL: a proxy, an own server, anything else.
CREATE OR REPLACE TEMP MACRO provider_at(address) AS
    CASE
        WHEN regexp_matches(lower(address), '(^|[/.])api\.openai\.com') THEN 'openai'
        WHEN regexp_matches(lower(address), '\.(openai\.azure|cognitiveservices\.azure)\.(com|us|cn)') THEN 'azure.ai.openai'
        WHEN regexp_matches(lower(address), '\.(services\.ai|models\.ai|inference\.ai)\.azure\.com') THEN 'azure.ai.inference'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.anthropic\.com') THEN 'anthropic'
        WHEN regexp_matches(lower(address), '(^|[/.])bedrock[a-z-]*\.[a-z0-9-]+\.amazonaws\.com') THEN 'aws.bedrock'
        WHEN regexp_matches(lower(address), '(^|[/.])generativelanguage\.googleapis\.com') THEN 'gcp.gemini'
        WHEN regexp_matches(lower(address), 'aiplatform\.googleapis\.com') THEN 'gcp.vertex_ai'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.x\.ai') THEN 'x_ai'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.mistral\.ai') THEN 'mistral_ai'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.deepseek\.com') THEN 'deepseek'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.groq\.com') THEN 'groq'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.moonshot\.(ai|cn)') THEN 'moonshot_ai'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.perplexity\.ai') THEN 'perplexity'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.cohere\.(ai|com)') THEN 'cohere'
        WHEN regexp_matches(lower(address), '(^|[/.])openrouter\.ai') THEN 'openrouter'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.together\.(ai|xyz)') THEN 'together_ai'
        WHEN regexp_matches(lower(address), '(^|[/.])api\.fireworks\.ai') THEN 'fireworks_ai'
    END;

-- AWS region in the address of a Bedrock endpoint.
CREATE OR REPLACE TEMP MACRO region_at(address) AS
    nullif(regexp_extract(lower(address), 'bedrock[a-z-]*\.([a-z]{2}(?:-[a-z]+)+-[0-9]+)\.', 1), '');

-- A word, such as an error's class. Anything longer or with more in it may be a sentence about a prompt: NULL.
CREATE OR REPLACE TEMP MACRO word_of(written) AS
    CASE WHEN regexp_full_match(trim(written), '[A-Za-z0-9_.:/\-]{1,80}') THEN trim(written) END;

-- A source's own cost. 0 for tokens is how tools write `not known`; a number that is also a count of the row's tokens
-- is a count in the wrong place (Arize-ai/openinference#1331).
CREATE OR REPLACE TEMP MACRO stated_cost(cost, input, output, total) AS
    CASE
        WHEN TRY_CAST(cost AS DOUBLE) = 0
             AND coalesce(TRY_CAST(input AS DOUBLE), 0) + coalesce(TRY_CAST(output AS DOUBLE), 0) > 0 THEN NULL
        WHEN TRY_CAST(cost AS DOUBLE) >= 1 AND TRY_CAST(cost AS DOUBLE)
             IN (TRY_CAST(input AS DOUBLE), TRY_CAST(output AS DOUBLE), TRY_CAST(total AS DOUBLE)) THEN NULL
        ELSE nullif(cost, '')
    END;

CREATE OR REPLACE TEMP MACRO tier_named(written) AS
    CASE WHEN lower(coalesce(written, '')) IN ('', 'default', 'auto', 'standard', 'standard_only', 'on_demand') THEN 'standard'
         WHEN lower(written) IN ('batch', 'flex', 'priority') THEN lower(written)
         WHEN lower(written) IN ('optimized', 'latency_optimized') THEN 'latency_optimized' END;

-- :server
-- grain: one address that the configuration knows; input: {address: {provider, account, region}} as JSON
CREATE OR REPLACE TEMP TABLE server AS
SELECT lower(name) AS address, places[name].provider AS provider, places[name].account AS account,
    places[name].region AS region
FROM (
    SELECT unnest(map_keys(places)) AS name, places
    FROM (SELECT CAST(CAST(? AS JSON) AS MAP(VARCHAR, STRUCT(provider VARCHAR, account VARCHAR, region VARCHAR))) AS places)
);

-- :call
-- grain: one version of a call of the traces at hand, as staged now or as stored by an earlier load
CREATE OR REPLACE TEMP TABLE trace_call AS
WITH staged AS (
    SELECT record_id, parent_id, started_at, ended_at, contains(semantics, 'agent_total') AS is_total,
        coalesce(uncached_input_tokens, output_tokens) IS NOT NULL AS has_usage, raw_counts['updated_at'] AS updated_at,
        FALSE AS is_stored, rowid AS staged_row, CAST(NULL AS VARCHAR) AS record_digest, CAST(NULL AS VARCHAR) AS claim_set_id
    FROM staged_record
    WHERE reason IS NULL AND NOT filtered
),
-- a trace lasts a week at most: what starts further away is another with the same id
span AS (SELECT min(started_at) - INTERVAL 7 DAY AS first_at, max(ended_at) + INTERVAL 7 DAY AS last_at FROM staged)
SELECT * FROM staged
UNION ALL
SELECT record_id, parent_id, started_at, ended_at, contains(semantics, 'agent_total'),
    coalesce(uncached_input_tokens, output_tokens) IS NOT NULL, raw_counts['updated_at'], TRUE, NULL, record_digest, claim_set_id
FROM usage_record
WHERE source = getvariable('source')
  AND started_at >= (SELECT first_at FROM span) AND started_at <= (SELECT last_at FROM span)
  AND split_part(record_id, ':', 1) IN (SELECT split_part(record_id, ':', 1) FROM staged);

-- :old_version
-- grain: one version of a span that a later one replaces; the greatest `updated_at` counts, where the source has it
CREATE OR REPLACE TEMP TABLE old_version AS
SELECT call.*
FROM trace_call AS call
JOIN (
    SELECT record_id, max(updated_at) AS newest FROM trace_call WHERE updated_at IS NOT NULL GROUP BY record_id
) AS known ON known.record_id = call.record_id
WHERE coalesce(call.updated_at, '') < known.newest;
DELETE FROM trace_call
WHERE (record_id, coalesce(updated_at, ''), is_stored) IN (SELECT (record_id, coalesce(updated_at, ''), is_stored) FROM old_version);

-- :repeated
-- grain: one call whose usage its own children report; either it is staged now or an earlier load stored it
-- rule: a call with usage above another call with usage, however many spans lie between; and a total of an agent (or
--       workflow, chain, tool) within whose time another call of its trace took place: the spans that link the two
--       may be in a file that is not here
CREATE OR REPLACE TEMP TABLE repeated_span AS
WITH RECURSIVE
link AS (
    SELECT record_id, parent_id FROM staged_record WHERE parent_id IS NOT NULL
    UNION
    SELECT record_id, parent_id FROM trace_call WHERE parent_id IS NOT NULL
    UNION
    -- calls that earlier loads left out: the list of them says where they were
    SELECT split_part(substr(location, 6), ' in ', 1), split_part(substr(location, 6), ' in ', 2)
    FROM rejected_row
    WHERE source = getvariable('source') AND reason = 'repeats_children' AND contains(location, ' in ')
      AND split_part(substr(location, 6), ':', 1) IN (SELECT split_part(record_id, ':', 1) FROM trace_call)
),
above AS (
    SELECT record_id, parent_id AS ancestor FROM link WHERE record_id IN (SELECT record_id FROM trace_call WHERE has_usage)
    UNION
    SELECT above.record_id, link.parent_id FROM above JOIN link ON link.record_id = above.ancestor
),
repeated AS (
    SELECT ancestor AS record_id FROM above
    WHERE record_id <> ancestor
      -- spans that claim to be each other's parent are both kept
      AND (ancestor, record_id) NOT IN (SELECT (record_id, ancestor) FROM above)
    UNION
    SELECT total.record_id
    FROM trace_call AS total
    JOIN trace_call AS part ON split_part(part.record_id, ':', 1) = split_part(total.record_id, ':', 1)
        AND part.record_id <> total.record_id
    WHERE total.is_total AND part.has_usage AND NOT part.is_total
      AND part.started_at >= total.started_at AND part.ended_at <= total.ended_at
)
SELECT trace_call.* FROM trace_call JOIN repeated USING (record_id) WHERE has_usage;

-- :leave_out
UPDATE staged_record SET filtered = TRUE
WHERE rowid IN (SELECT staged_row FROM repeated_span UNION ALL SELECT staged_row FROM old_version);

-- :explain
UPDATE staged_record SET detail = CASE reason
    WHEN 'metrics_not_spans' THEN 'the document holds OTLP metrics; this source reads spans (resourceSpans)'
    WHEN 'logs_not_spans' THEN 'the document holds OTLP logs; this source reads spans (resourceSpans)'
    WHEN 'no_spans' THEN 'the document is no OTLP/JSON: it has no resourceSpans and is no span'
    WHEN 'not_observations' THEN 'the row has neither the id nor the type of an observation'
    WHEN 'not_a_request' THEN 'the row has no request_id'
    WHEN 'malformed_csv' THEN 'the row does not have the columns of the header'
    ELSE detail END
WHERE reason IS NOT NULL;

-- :withdraw
-- What an earlier load stored and the spans of this one make a repetition, or an old version.
CREATE OR REPLACE TEMP TABLE withdrawn AS
SELECT * FROM repeated_span WHERE is_stored UNION ALL SELECT * FROM old_version WHERE is_stored;
DELETE FROM usage_record
WHERE source = getvariable('source')
  AND started_at >= (SELECT min(started_at) FROM withdrawn) AND started_at <= (SELECT max(started_at) FROM withdrawn)
  AND (record_id, record_digest) IN (SELECT (record_id, record_digest) FROM withdrawn);
DELETE FROM claim_set
WHERE claim_set_id IN (SELECT claim_set_id FROM withdrawn) AND claim_set_id NOT IN (SELECT claim_set_id FROM usage_record);
INSERT INTO touched_hour BY NAME
SELECT hour, 'usage' AS reason
FROM (SELECT date_trunc('hour', started_at) AS hour FROM withdrawn UNION SELECT date_trunc('hour', ended_at) FROM withdrawn)
WHERE hour NOT IN (SELECT known.hour FROM touched_hour AS known WHERE known.reason = 'usage');

-- :list
-- grain: one call that repeats its children, listed once however often it is read
INSERT INTO rejected_row BY NAME
SELECT DISTINCT getvariable('load_id') AS load_id, getvariable('source') AS source, location,
    'repeats_children' AS reason,
    'the calls below it report this usage themselves; theirs counts, nothing is missing' AS detail
FROM (SELECT 'span ' || record_id || coalesce(' in ' || parent_id, '') AS location FROM repeated_span)
WHERE location NOT IN (
    SELECT rejected_row.location FROM rejected_row WHERE source = getvariable('source') AND reason = 'repeats_children')
ORDER BY location;

-- :counts
SELECT
    (SELECT count(*) FROM repeated_span WHERE NOT is_stored) AS repeated,
    (SELECT count(*) FROM old_version WHERE NOT is_stored) AS old,
    (SELECT count(*) FROM withdrawn) AS withdrawn;
