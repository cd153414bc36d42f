-- Step 7i: engines against the log, kept for whoever asks where a figure comes from.
-- grain:   hour x route x region (NULL: regions not told apart) x token class
-- inputs:  fleet_match
-- rule:    engine_tokens NULL: no engine of the route told its tokens in that hour.
SELECT
    m.hour AS hour, m.route AS route, nullif(m.group_region, '') AS region, m.token_class AS token_class,
    m.engine_tokens AS engine_tokens, m.event_tokens AS event_tokens, m.total_tokens AS total_tokens,
    m.rest_tokens AS rest_tokens
FROM fleet_match AS m
