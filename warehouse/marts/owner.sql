-- Claim sets and who they belong to, by which rule.
-- inputs: claim_owner, claim_set
SELECT
    'all' AS partition, o.team AS partition_team,
    o.claim_set_id, CAST(o.valid_from AS DATE) AS valid_from, CAST(o.valid_to AS DATE) AS valid_to,
    o.team, o.app, o.cost_center, o.agent, o.environment, o.team_rule AS rule,
    CAST(to_json(c.claims) AS VARCHAR) AS claims
FROM claim_owner AS o INNER JOIN (SELECT claim_set_id, min(claims) AS claims FROM claim_set GROUP BY ALL) AS c
    ON c.claim_set_id = o.claim_set_id
