"""The baseline: what the ledger and the pages answer, asked of the evidence in bare DuckDB SQL."""

from collections.abc import Sequence

COST = """FROM cell AS c LEFT JOIN rate AS r USING (hour, account_id, model, token_class)
        LEFT JOIN owner AS o USING (claim_set_id)"""
BASELINE = {
    "cell": """
        CREATE TEMP TABLE cell AS
        SELECT date_trunc('hour', ended_at) AS hour, account_id, model, claim_set_id, task_id, user_id,
            unnest(['uncached_input', 'cache_read', 'cache_write_5m', 'output']) AS token_class,
            unnest([uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, output_tokens]) AS tokens
        FROM usage_record""",
    "rate": """
        CREATE TEMP TABLE rate AS
        SELECT charge_period_start AS hour, sub_account_id AS account_id, x_model AS model,
            x_token_class AS token_class, sum(effective_cost)::DOUBLE / sum(x_tokens) AS per_token
        FROM billing_line GROUP BY ALL""",
    "owner": """
        CREATE TEMP TABLE owner AS
        SELECT claim_set_id, claims['tag.team'] AS team, claims['key_alias'] AS app FROM claim_set""",
    "cost_hour": f"""
        SELECT c.hour, c.account_id, c.model, c.token_class, o.team, o.app, c.claim_set_id, sum(c.tokens) AS tokens,
            sum(c.tokens * r.per_token) AS effective
        {COST} WHERE c.tokens > 0 GROUP BY ALL""",
    "cost_day": f"""
        SELECT hour::DATE AS day, c.account_id, c.model, c.token_class, o.team, o.app, c.claim_set_id,
            sum(c.tokens) AS tokens, sum(c.tokens * r.per_token) AS effective
        {COST} WHERE c.tokens > 0 GROUP BY ALL""",
    "task_day": f"""
        SELECT hour::DATE AS day, c.task_id, o.team, o.app, sum(c.tokens) AS tokens,
            sum(c.tokens * r.per_token) AS effective
        {COST} GROUP BY ALL""",
    "user_day": f"""
        SELECT hour::DATE AS day, c.user_id, o.team, o.app, sum(c.tokens) AS tokens,
            sum(c.tokens * r.per_token) AS effective
        {COST} GROUP BY ALL""",
    "usage_day": """
        SELECT u.ended_at::DATE AS day, u.account_id, u.model, o.team, o.app, u.claim_set_id, count(*) AS requests,
            count(*) FILTER (status <> 'success') AS failed, sum(uncached_input_tokens) AS uncached_input,
            sum(cache_read_tokens) AS cache_read, sum(output_tokens) AS output,
            sum(date_diff('microsecond', started_at, ended_at)) AS duration_us
        FROM usage_record AS u LEFT JOIN owner AS o USING (claim_set_id) GROUP BY ALL""",
    "latency_day": """
        SELECT ended_at::DATE AS day, model, claim_set_id,
            ceil(12 * log10(date_diff('millisecond', started_at, ended_at)))::INTEGER AS bucket, count(*) AS requests
        FROM usage_record WHERE status = 'success' GROUP BY ALL""",
    "event": """
        SELECT u.ended_at::DATE AS day, u.record_id, u.operation_id, u.task_id, u.user_id, u.started_at, u.ended_at,
            u.model, u.status, u.uncached_input_tokens, u.cache_read_tokens, u.output_tokens, u.claim_set_id, o.team
        FROM usage_record AS u LEFT JOIN owner AS o USING (claim_set_id) ORDER BY u.ended_at""",
}  # fmt: skip

# What a page asks: over the marts through the measures, and over the evidence in bare SQL.
SINCE = "hour >= TIMESTAMP '2026-09-01'"
QUESTIONS: dict[str, tuple[Sequence[str], Sequence[str], str]] = {
    "cost by day": (
        ["inference_cost_usd"], ["day"],
        f"SELECT hour::DATE AS day, sum(tokens * per_token) {COST} WHERE {SINCE} GROUP BY ALL ORDER BY ALL",
    ),
    "cost and tokens by team": (
        ["inference_cost_usd", "total_tokens"], ["team"],
        f"SELECT team, sum(tokens * per_token), sum(tokens) {COST} WHERE {SINCE} GROUP BY ALL ORDER BY ALL",
    ),
    "cost per M tokens by model and day": (
        ["cost_per_mtok_usd"], ["model", "day"],
        f"SELECT model, hour::DATE AS day, sum(tokens * per_token) / sum(tokens) * 1e6 {COST} WHERE {SINCE} "
        "GROUP BY ALL ORDER BY ALL",
    ),
    "dearest tasks": (
        ["task_cost_usd"], ["task_id"],
        f"SELECT task_id, sum(tokens * per_token) AS cost {COST} WHERE {SINCE} AND task_id IS NOT NULL "
        "GROUP BY ALL ORDER BY cost DESC LIMIT 20",
    ),
    "cache hit ratio by app": (
        ["cache_hit_ratio"], ["app"],
        f"SELECT app, sum(tokens) FILTER (token_class = 'cache_read') / sum(tokens) FILTER (token_class <> 'output') "
        f"{COST} WHERE {SINCE} GROUP BY ALL ORDER BY ALL",
    ),
}  # fmt: skip
