-- Step 7 (usage): what users did.
-- grain:   hour x user x claim set
-- inputs:  work_event
SELECT
    e.hour AS hour, e.user_id AS user_id, e.claim_set_id AS claim_set_id,
    CAST(count(*) AS BIGINT) AS requests,
    CAST(sum(e.input_tokens + coalesce(e.output_tokens, 0)) AS BIGINT) AS tokens
FROM work_event AS e
GROUP BY e.hour, e.user_id, e.claim_set_id
