"""Who gets what, and by which rule: what every owner rule caught, what nobody owns, why a call is whose.

Rules are those of the configuration at hand; calls, tokens and money are those that are published. Rules are tried here
as the waterfall's step 90 tries them, on the published claim sets, so that a rule can be judged before it is used.
"""

import json
from datetime import date
from typing import Any

import yaml

from inferledger.exits import UsageError
from inferledger.rows import Facts, rows, shown
from warehouse.owners import CREDENTIAL_CLAIMS, is_credential, like_pattern, ranked, split_template
from warehouse.settings import OwnerRule
from warehouse.snapshot import Snapshot

TOKENS = "uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + output_tokens"

# grain: one rule and one claim set that meets its conditions; `gives`: the dimensions for which it then has a value
MATCHED = """
rule AS (
    SELECT unnest(from_json(CAST($1 AS JSON), '[{"rank": "INTEGER", "valid_from": "DATE", "valid_to": "DATE",
        "conditions": [{"claim": "VARCHAR", "pattern": "VARCHAR"}],
        "gives": [{"dimension": "VARCHAR", "claim": "VARCHAR"}]}]'), recursive := true)
),
claim AS (SELECT claim_set_id, CAST(min(claims) AS JSON) AS claims FROM owner GROUP BY claim_set_id),
matched AS (
    SELECT r.rank, c.claim_set_id, r.valid_from, r.valid_to,
        list_transform(list_filter(r.gives, lambda g: g.claim IS NULL
            OR json_extract_string(c.claims, '$."' || g.claim || '"') IS NOT NULL), lambda g: g.dimension) AS gives
    FROM rule AS r CROSS JOIN claim AS c
    WHERE list_bool_and(list_transform(r.conditions, lambda each: coalesce(
        json_extract_string(c.claims, '$."' || each.claim || '"') LIKE each.pattern ESCAPE '!', FALSE)))
)"""
ACTIVE = f"""
active AS (
    SELECT day, claim_set_id, sum(requests) AS requests, sum(tokens) AS tokens, sum(nano) AS nano FROM (
        SELECT day, claim_set_id, requests, {TOKENS} AS tokens, 0 AS nano FROM usage_day
        UNION ALL
        SELECT day, claim_set_id, 0, 0, effective_nano FROM cost_day
        WHERE basis = 'billed' AND kind <> 'future' AND currency = $2 AND claim_set_id IS NOT NULL)
    WHERE day >= $3 AND day <= $4
    GROUP BY day, claim_set_id
)"""


def ownership(
    snapshot: Snapshot, rules: tuple[OwnerRule, ...], first: date | None, last: date | None, limit: int
) -> Facts:
    """What each rule caught and the largest groups of calls without a team, each with a rule that would catch them.

    Cost is effective cost on the bill, in the reporting currency. `matched`: claim sets that meet a rule's conditions;
    `decided`: those for which it gives at least one owner, because no rule before it does.
    """
    tried = json.dumps([_plain(rank, rule) for rank, (_, rule) in enumerate(ranked(rules), start=1)])
    bound = [tried, snapshot.currency, first or date.min, last or date.max]
    caught = {row.pop("rank"): row for row in rows(snapshot, _caught(), bound)}
    groups = rows(snapshot, _groups(), [*bound, limit or 1_000_000_000])
    return {
        "currency": snapshot.currency,
        "rules": [
            {
                "rank": rank,
                "number": number,
                "when": dict(rule.when),
                "set": dict(rule.set),
                "from": rule.valid_from.isoformat(),
                "to": rule.valid_to.isoformat(),
                "rests_on": "credential" if is_credential(rule) else "payload",
                **shown(caught[rank]),
            }
            for rank, (number, rule) in enumerate(ranked(rules), start=1)
        ],
        "without_team": [{**shown(row), "rule": _suggested(row["claim"], row["value"])} for row in groups],
    }


def why(snapshot: Snapshot, rules: tuple[OwnerRule, ...], name: str) -> Facts:
    """Why a claim set, or the call of a record, is whose it is: its claims, and every rule with what it lacks.

    Raises UsageError when no published claim set and no published call has that name.
    """
    found = rows(
        snapshot,
        "SELECT claim_set_id, min(claims) AS claims FROM owner WHERE claim_set_id = $1 OR claim_set_id IN "
        "(SELECT claim_set_id FROM event WHERE record_id = $1 OR event_key = $1) GROUP BY claim_set_id LIMIT 1",
        [name],
    )
    if not found:
        raise UsageError(
            f"No published claim set, record or call is named {name}. `inferledger owners` lists claim sets; single "
            "calls are published for the latest days only."
        )
    claims: dict[str, str] = json.loads(found[0]["claims"])
    owners: dict[str, str] = {}
    tried: list[Facts] = []
    for rank, (number, rule) in enumerate(ranked(rules), start=1):
        lacking = {
            claim: pattern for claim, pattern in rule.when.items() if not _meets(snapshot, claims, claim, pattern)
        }
        gave = {} if lacking else _values(rule, claims)
        new = {dimension: value for dimension, value in gave.items() if dimension not in owners}
        owners |= new
        tried.append(
            {
                "rank": rank, "number": number, "when": dict(rule.when), "matched": not lacking, "lacking": lacking,
                "gave": new, "from": rule.valid_from.isoformat(), "to": rule.valid_to.isoformat(),
            }
        )  # fmt: skip
    return {"claim_set_id": found[0]["claim_set_id"], "claims": claims, "owners": owners, "rules": tried}


def _caught() -> str:
    return f"""
        WITH {MATCHED}, {ACTIVE},
        met AS (
            SELECT a.day, a.claim_set_id, m.rank, unnest(m.gives) AS dimension
            FROM active AS a JOIN matched AS m USING (claim_set_id)
            WHERE a.day >= m.valid_from AND a.day < m.valid_to
        ),
        decided AS (
            SELECT DISTINCT day, claim_set_id, rank FROM (
                SELECT day, claim_set_id, dimension, min(rank) AS rank FROM met GROUP BY day, claim_set_id, dimension)
        ),
        sums AS (
            SELECT d.rank, count(DISTINCT d.claim_set_id) AS decided, sum(a.requests) AS requests,
                sum(a.tokens) AS tokens, sum(a.nano) AS nano
            FROM decided AS d JOIN active AS a USING (day, claim_set_id) GROUP BY d.rank
        )
        SELECT r.rank, (SELECT count(*) FROM matched AS m WHERE m.rank = r.rank) AS matched,
            coalesce(s.decided, 0) AS decided, CAST(coalesce(s.requests, 0) AS BIGINT) AS requests,
            CAST(coalesce(s.tokens, 0) AS BIGINT) AS tokens, CAST(coalesce(s.nano, 0) AS BIGINT) AS cost_nano
        FROM rule AS r LEFT JOIN sums AS s USING (rank) ORDER BY r.rank"""


def _groups() -> str:
    credentials = ", ".join(f"'{name}'" for name in sorted(CREDENTIAL_CLAIMS))
    return f"""
        WITH {MATCHED}, {ACTIVE},
        teamed AS (
            SELECT a.day, a.claim_set_id FROM active AS a JOIN matched AS m USING (claim_set_id)
            WHERE a.day >= m.valid_from AND a.day < m.valid_to AND list_contains(m.gives, 'team')
        ),
        orphan AS (SELECT a.* FROM active AS a ANTI JOIN teamed AS t USING (day, claim_set_id)),
        -- the claim that says most: what a credential proves, and of several the first by name
        named AS (
            SELECT o.*, (SELECT min((CASE WHEN k IN ({credentials}) THEN 0 ELSE 1 END, k))
                         FROM (SELECT unnest(json_keys(c.claims)) AS k))[2] AS claim, c.claims
            FROM orphan AS o LEFT JOIN claim AS c USING (claim_set_id)
        )
        SELECT claim, json_extract_string(claims, '$."' || claim || '"') AS value,
            count(DISTINCT claim_set_id) AS claim_sets, min(claim_set_id) AS claim_set_id,
            CAST(sum(requests) AS BIGINT) AS requests, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(nano) AS BIGINT) AS cost_nano, min(day) AS first_day, max(day) AS last_day
        FROM named GROUP BY ALL ORDER BY cost_nano DESC, tokens DESC, claim, value LIMIT $5"""


def _plain(rank: int, rule: OwnerRule) -> dict[str, Any]:
    return {
        "rank": rank,
        "valid_from": rule.valid_from.isoformat(),
        "valid_to": rule.valid_to.isoformat(),
        "conditions": [{"claim": claim, "pattern": like_pattern(glob)} for claim, glob in rule.when.items()],
        "gives": [
            {"dimension": dimension, "claim": split_template(template)[1]} for dimension, template in rule.set.items()
        ],
    }


def _suggested(claim: str | None, value: str | None) -> str | None:
    """A rule to paste under `owners`; None for calls that say nothing at all."""
    if claim is None or value is None:
        return None
    given = yaml.safe_dump(
        [{"when": {claim: value}, "set": {"team": "TEAM"}}], default_flow_style=True, sort_keys=False, width=1_000
    )
    return "- " + given.strip().removeprefix("[").removesuffix("]")


def _meets(snapshot: Snapshot, claims: dict[str, str], claim: str, glob: str) -> bool:
    if claim not in claims:
        return False
    (row,) = rows(snapshot, "SELECT $1 LIKE $2 ESCAPE '!' AS meets", [claims[claim], like_pattern(glob)])
    return bool(row["meets"])


def _values(rule: OwnerRule, claims: dict[str, str]) -> dict[str, str]:
    """What a rule that matches gives; a template whose claim is not there gives nothing."""
    given: dict[str, str] = {}
    for dimension, template in rule.set.items():
        start, claim, end = split_template(template)
        if claim is None:
            given[dimension] = start
        elif claim in claims:
            given[dimension] = start + claims[claim] + end
    return given
