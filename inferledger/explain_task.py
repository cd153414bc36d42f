"""A task's part of the ledger. The ledger is kept by claim set, not by task: a task's share is computed when asked for,
from its calls and the rates of the hours they fell into."""

from inferledger.explain_evidence import BUCKETED, KEY
from inferledger.rows import Facts, rows
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

CLASSES = ("uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
POSTING = (
    *("kind", "basis", "status", "method", "reason", "provider", "account_id", "region", "service_name", "line_class"),
    *("cluster", "pool", "model", "token_class"),
)
INPUT = " + ".join(f"coalesce({name}_tokens, 0)" for name in CLASSES if name != "output")
CLASS_ROWS = " UNION ALL ".join(
    f"""
        SELECT day, hour, provider, account_id, region, model, service_tier, coalesce(scope, 'regional') AS scope,
            CASE WHEN {INPUT} > $3 THEN 'long' ELSE 'base' END AS context_tier, claim_set_id, task_id,
            '{name}' AS token_class, {name}_tokens AS tokens
        FROM event WHERE {name}_tokens > 0 AND hour IN (SELECT hour FROM task_hour)"""
    for name in CLASSES
)
# Calls of one claim set share a posting by what their tokens cost that day: long prompts and other scopes cost more.
POSTED = f"""
    WITH task_hour AS (SELECT DISTINCT hour FROM event WHERE task_id = $1),
    class_row AS ({CLASS_ROWS}),
    kind_of_call AS (
        SELECT DISTINCT day, provider, account_id, region, model, token_class, service_tier, scope, context_tier
        FROM class_row),
    rate AS (
        SELECT k.*, arg_min(CAST(m.effective_nano AS DOUBLE) / m.bill_tokens,
            (m.context_tier <> k.context_tier, m.scope <> k.scope, m.scope)) AS nano
        FROM kind_of_call AS k INNER JOIN match_day AS m
          ON m.day = k.day AND m.provider = k.provider AND m.model = k.model AND m.token_class = k.token_class
          AND m.account_id IS NOT DISTINCT FROM k.account_id AND m.region IS NOT DISTINCT FROM k.region
          AND m.service_tier = k.service_tier AND (m.context_tier = k.context_tier OR m.context_tier = 'base')
        WHERE m.bill_tokens > 0
        GROUP BY ALL),
    cell AS (
        SELECT c.day, c.hour, c.provider, c.account_id, c.region, c.model, c.service_tier, c.claim_set_id,
            c.token_class, sum(c.tokens) AS logged, sum(CASE WHEN c.task_id = $1 THEN c.tokens ELSE 0 END) AS mine,
            sum(c.tokens * coalesce(r.nano, 1)) AS weight,
            sum(CASE WHEN c.task_id = $1 THEN c.tokens * coalesce(r.nano, 1) ELSE 0 END) AS my_weight
        FROM class_row AS c LEFT JOIN rate AS r
          ON r.day = c.day AND r.provider = c.provider AND r.model = c.model AND r.token_class = c.token_class
          AND r.account_id IS NOT DISTINCT FROM c.account_id AND r.region IS NOT DISTINCT FROM c.region
          AND r.service_tier = c.service_tier AND r.scope = c.scope AND r.context_tier = c.context_tier
        GROUP BY ALL HAVING mine > 0),
    posted AS (
        SELECT c.day, c.provider, c.account_id, c.region, c.model, c.token_class, h.kind, h.basis, h.status, h.method,
            h.reason, h.service_name, h.line_class,
            CAST(round(sum(CAST(h.tokens AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS tokens,
            CAST(round(sum(h.effective_nano * c.my_weight / nullif(c.weight, 0))) AS BIGINT) AS effective_nano,
            CAST(round(sum(h.billed_nano * c.my_weight / nullif(c.weight, 0))) AS BIGINT) AS billed_nano
        FROM cell AS c INNER JOIN cost_hour AS h
          ON h.hour = c.hour AND h.kind = 'usage' AND h.model = c.model AND h.token_class = c.token_class
          AND h.service_tier = c.service_tier AND h.claim_set_id = c.claim_set_id AND h.provider = c.provider
          AND h.account_id IS NOT DISTINCT FROM c.account_id AND h.region IS NOT DISTINCT FROM c.region
        WHERE h.currency = $2 AND h.cluster IS NULL
        GROUP BY ALL),
    -- the own fleet: within an hour, a claim set's tokens of a class cost all the same
    fleet_cell AS (
        SELECT day, hour, model, claim_set_id,
            CASE WHEN token_class LIKE 'cache_write%' THEN 'uncached_input' ELSE token_class END AS token_class,
            sum(tokens) AS logged, sum(CASE WHEN task_id = $1 THEN tokens ELSE 0 END) AS mine
        FROM class_row WHERE provider = 'self-hosted' GROUP BY ALL HAVING mine > 0),
    fleet_posted AS (
        SELECT c.day, h.provider, h.account_id, h.region, c.model, c.token_class, h.kind, h.basis, h.status, h.method,
            h.reason, h.service_name, h.line_class, h.cluster, h.pool,
            CAST(round(sum(CAST(h.tokens AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS tokens,
            CAST(round(sum(CAST(h.effective_nano AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS effective_nano,
            CAST(round(sum(CAST(h.billed_nano AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS billed_nano
        FROM fleet_cell AS c INNER JOIN cost_hour AS h
          ON h.hour = c.hour AND h.kind = 'usage' AND h.model = c.model AND h.token_class = c.token_class
          AND h.claim_set_id = c.claim_set_id AND h.provider = 'self-hosted' AND h.cluster IS NOT NULL
        WHERE h.currency = $2
        GROUP BY ALL)
"""


def postings(snapshot: Snapshot, where: Filters, long_context_tokens: int) -> list[Facts]:
    """Its part of each posting, and a row for what its hours cost it beside the day's rates."""
    found = rows(
        snapshot,
        f"""{POSTED}
        SELECT kind, basis, status, method, reason, provider, account_id, region, service_name, line_class,
            cluster, pool, model, token_class, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano, CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM (SELECT * FROM posted UNION ALL BY NAME SELECT * FROM fleet_posted)
        GROUP BY ALL ORDER BY effective_nano DESC NULLS LAST, basis, model, token_class, cluster, pool
        """,
        [where.task_id[0], snapshot.currency, long_context_tokens],
    )
    known = rows(
        snapshot,
        """
        SELECT sum(effective_nano) AS effective, sum(billed_nano) AS billed, sum(estimated_nano) AS estimated
        FROM task_day WHERE task_id = ? AND currency = ?
        """,
        [where.task_id[0], snapshot.currency],
    )[0]
    for basis, effective, billed in (("billed", "effective", "billed"), ("estimated", "estimated", "estimated")):
        mine = [row for row in found if row["basis"] == basis]
        rest = {
            "effective_nano": int(known[effective] or 0) - sum(row["effective_nano"] or 0 for row in mine),
            "billed_nano": int(known[billed] or 0) - sum(row["billed_nano"] or 0 for row in mine),
        }
        if any(rest.values()):
            blank = dict.fromkeys(found[0] if found else POSTING)
            about = {
                "kind": "usage",
                "basis": basis,
                "method": "difference",
                "reason": "its own hours against its claim set's and the day's rates",
            }
            found.append({**blank, **about, "tokens": 0, **rest})
    return found


def cells(snapshot: Snapshot, where: Filters, long_context_tokens: int) -> list[Facts]:
    """Its part of each bucket of a day."""
    columns = ", ".join(KEY)
    return rows(
        snapshot,
        f"""{POSTED}
        SELECT {columns}, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano, 0 AS unattributed_nano
        FROM posted WHERE {BUCKETED} GROUP BY ALL ORDER BY effective_nano DESC, {columns}
        """,
        [where.task_id[0], snapshot.currency, long_context_tokens],
    )
