-- Step 7f: who a claim set belongs to, over time. A new rule is this query again, never a recomputation.
-- grain:   claim set x owner period (owner_period cuts time at every date a rule starts or ends)
-- inputs:  claim_value (claim_set_id, name, value), claim_set_key (claim_set_id), owner_period (valid_from, valid_to),
--          owner_rule (rule_rank, rule_name, valid_from, valid_to, condition_count),
--          owner_condition (rule_rank, claim, pattern: LIKE pattern with ! as escape), owner_value (rule_rank,
--          dimension, template_start, claim, template_end)
-- rule:    all conditions of a rule must match; per dimension the first rule with a value wins; rules on credentials
--          are ranked before rules on the payload.
WITH matched AS (
    SELECT
        c.claim_set_id AS claim_set_id, r.rule_rank AS rule_rank, r.rule_name AS rule_name,
        r.valid_from AS valid_from, r.valid_to AS valid_to
    FROM owner_rule AS r
    INNER JOIN owner_condition AS o ON o.rule_rank = r.rule_rank
    INNER JOIN claim_value AS c ON c.name = o.claim AND c.value LIKE o.pattern ESCAPE '!'
    GROUP BY c.claim_set_id, r.rule_rank, r.rule_name, r.valid_from, r.valid_to, r.condition_count
    HAVING count(*) = r.condition_count
),
valued AS (
    SELECT
        m.claim_set_id AS claim_set_id, p.valid_from AS valid_from, p.valid_to AS valid_to,
        v.dimension AS dimension, m.rule_name AS rule_name,
        CASE WHEN v.claim IS NULL THEN v.template_start
             ELSE v.template_start || c.value || v.template_end END AS owner,
        row_number() OVER (
            PARTITION BY m.claim_set_id, p.valid_from, v.dimension ORDER BY m.rule_rank
        ) AS choice
    FROM matched AS m
    INNER JOIN owner_value AS v ON v.rule_rank = m.rule_rank
    INNER JOIN owner_period AS p ON p.valid_from >= m.valid_from AND p.valid_to <= m.valid_to
    LEFT JOIN claim_value AS c ON c.claim_set_id = m.claim_set_id AND c.name = v.claim
    WHERE v.claim IS NULL OR c.value IS NOT NULL
)
SELECT
    k.claim_set_id AS claim_set_id, p.valid_from AS valid_from, p.valid_to AS valid_to,
    max(CASE WHEN v.dimension = 'team' THEN v.owner END) AS team,
    max(CASE WHEN v.dimension = 'app' THEN v.owner END) AS app,
    max(CASE WHEN v.dimension = 'cost_center' THEN v.owner END) AS cost_center,
    max(CASE WHEN v.dimension = 'agent' THEN v.owner END) AS agent,
    max(CASE WHEN v.dimension = 'environment' THEN v.owner END) AS environment,
    max(CASE WHEN v.dimension = 'team' THEN v.rule_name END) AS team_rule
FROM claim_set_key AS k
CROSS JOIN owner_period AS p
LEFT JOIN valued AS v
    ON v.claim_set_id = k.claim_set_id AND v.valid_from = p.valid_from AND v.choice = 1
GROUP BY k.claim_set_id, p.valid_from, p.valid_to
