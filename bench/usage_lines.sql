-- Calls of one month as three logs, made in the engine: numbers from `first` to `last`.

-- :litellm
SELECT 'resp-' || n AS id, 'call-' || n AS litellm_call_id, 'acompletion' AS call_type, 'success' AS status,
    'bedrock' AS custom_llm_provider, 'us.anthropic.claude-sonnet-4-6-v1:0' AS model, 'claude' AS model_group,
    1790000000 + n * 2.5 AS "startTime", 1790000002.25 + n * 2.5 AS "endTime",
    2000 + n % 4000 AS prompt_tokens, n % 900 AS completion_tokens, 2000 + n % 4000 + n % 900 AS total_tokens,
    0.01 AS response_cost, ['app:' || n % 40, 'env:prod'] AS request_tags,
    {'user_api_key_alias': 'team-' || n % 50, 'user_api_key_user_id': 'user-' || n % 500,
     'usage_object': {'prompt_tokens': 2000 + n % 4000, 'completion_tokens': n % 900,
        'prompt_tokens_details': {'cached_tokens': n % 2000}}} AS metadata,
    repeat('what was asked ', 20) AS messages, repeat('what was answered ', 20) AS response
FROM (SELECT unnest(range(getvariable('first'), getvariable('last'))) AS n);

-- :parquet
SELECT 'call-' || n AS record_id, 'resp-' || n AS provider_response_id,
    TIMESTAMP '2026-10-01' + to_microseconds(n * 2500000) AS started_at,
    TIMESTAMP '2026-10-01' + to_microseconds(n * 2500000 + 2250000) AS ended_at, 'aws.bedrock' AS provider,
    'claude-sonnet-4-6' AS model_raw, CAST(111122223330 + n % 4 AS VARCHAR) AS account_id, 'us-east-1' AS region_id,
    2000 + n % 4000 AS input_tokens, n % 2000 AS cache_read_tokens, n % 900 AS output_tokens,
    'task-' || n // 30 AS task_id, 'team-' || n % 50 AS key_alias
FROM (SELECT unnest(range(getvariable('first'), getvariable('last'))) AS n);

-- :claude
-- Every answer is written twice, first with a placeholder; between them stand lines of people and tools.
SELECT type, CASE WHEN type = 'assistant' THEN 'uuid-' || n || '-' || w END AS uuid,
    strftime(TIMESTAMP '2026-10-01' + to_microseconds(n * 2500000), '%Y-%m-%dT%H:%M:%S.000Z') AS "timestamp",
    'session-' || n // 300 AS "sessionId", CASE WHEN type = 'assistant' THEN 'req_' || n END AS "requestId",
    '/srv/code/shop' AS cwd, '2.1.0' AS version,
    CASE WHEN type = 'assistant' THEN {'id': 'msg_01' || lpad(CAST(n AS VARCHAR), 22, '0'), 'role': 'assistant',
        'model': 'claude-opus-4-6', 'stop_reason': CASE WHEN w = 1 THEN 'end_turn' END, 'content': repeat('an answer ', 20),
        'usage': {'input_tokens': 3 + n % 9, 'cache_creation_input_tokens': n % 2000, 'cache_read_input_tokens': 20000 + n % 9000,
            'output_tokens': CASE WHEN w = 1 THEN 50 + n % 900 ELSE 1 END}} END AS message
FROM (SELECT unnest(range(getvariable('first'), getvariable('last'))) AS n)
CROSS JOIN (VALUES ('assistant', 0), ('assistant', 1), ('user', 2)) AS line(type, w)
ORDER BY n, w;
