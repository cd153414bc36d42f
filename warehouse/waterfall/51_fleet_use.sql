-- Step 5a: the calls that the own fleet answered, by the hours in which their tokens were processed.
-- grain:   hour x route x region x token class x claim set x task x user
-- inputs:  work_fleet_event (calls that overlap the hours at hand, with their route), work_hour
-- rule:    input counts at the first token, output evenly from the first token to the end; parts of a call add up to
--          its tokens. Writing to an engine's own cache costs nothing beyond computing the token.
WITH timed AS (
    SELECT
        e.event_key AS event_key, e.route AS route, e.region_id AS region_id, e.claim_set_id AS claim_set_id,
        e.task_id AS task_id, e.user_id AS user_id,
        CASE WHEN e.first_token_at >= e.started_at AND e.first_token_at <= e.ended_at THEN e.first_token_at
             ELSE e.started_at END AS first_at,
        e.ended_at AS ended_at,
        coalesce(e.uncached_input_tokens, 0) + coalesce(e.cache_write_5m_tokens, 0)
            + coalesce(e.cache_write_1h_tokens, 0) AS uncached_input_tokens,
        coalesce(e.cache_read_tokens, 0) AS cache_read_tokens,
        coalesce(e.output_tokens, 0) AS output_tokens
    FROM work_fleet_event AS e
),
piece AS (
    SELECT
        t.event_key AS event_key, t.route AS route, t.region_id AS region_id, t.claim_set_id AS claim_set_id,
        t.task_id AS task_id, t.user_id AS user_id, w.hour AS hour,
        CASE WHEN t.first_at >= w.hour AND t.first_at < w.hour + INTERVAL 1 HOUR
             THEN t.uncached_input_tokens ELSE 0 END AS uncached_input_tokens,
        CASE WHEN t.first_at >= w.hour AND t.first_at < w.hour + INTERVAL 1 HOUR
             THEN t.cache_read_tokens ELSE 0 END AS cache_read_tokens,
        t.output_tokens AS output_tokens,
        date_diff('microsecond', t.first_at, t.ended_at) AS total_us,
        date_diff('microsecond', t.first_at,
            CASE WHEN t.ended_at < w.hour + INTERVAL 1 HOUR THEN t.ended_at ELSE w.hour + INTERVAL 1 HOUR END)
            AS upto_us,
        date_diff('microsecond', t.first_at, CASE WHEN t.first_at > w.hour THEN t.first_at ELSE w.hour END)
            AS before_us
    FROM timed AS t
    INNER JOIN work_hour AS w ON t.first_at < w.hour + INTERVAL 1 HOUR AND t.ended_at >= w.hour
),
class_piece AS (
    SELECT p.hour AS hour, p.route AS route, p.region_id AS region_id, 'uncached_input' AS token_class,
        p.claim_set_id AS claim_set_id, p.task_id AS task_id, p.user_id AS user_id,
        p.uncached_input_tokens AS tokens
    FROM piece AS p WHERE p.uncached_input_tokens > 0
    UNION ALL
    SELECT p.hour AS hour, p.route AS route, p.region_id AS region_id, 'cache_read' AS token_class,
        p.claim_set_id AS claim_set_id, p.task_id AS task_id, p.user_id AS user_id, p.cache_read_tokens AS tokens
    FROM piece AS p WHERE p.cache_read_tokens > 0
    UNION ALL
    SELECT p.hour AS hour, p.route AS route, p.region_id AS region_id, 'output' AS token_class,
        p.claim_set_id AS claim_set_id, p.task_id AS task_id, p.user_id AS user_id,
        CASE WHEN p.total_us = 0 THEN p.output_tokens
             ELSE share(p.output_tokens, p.upto_us, p.upto_us - p.before_us, p.total_us) END AS tokens
    FROM piece AS p WHERE p.output_tokens > 0
)
SELECT
    c.hour AS hour, c.route AS route, c.region_id AS region_id, c.token_class AS token_class,
    c.claim_set_id AS claim_set_id, c.task_id AS task_id, c.user_id AS user_id,
    CAST(sum(c.tokens) AS BIGINT) AS tokens
FROM class_piece AS c
GROUP BY c.hour, c.route, c.region_id, c.token_class, c.claim_set_id, c.task_id, c.user_id
HAVING sum(c.tokens) > 0
