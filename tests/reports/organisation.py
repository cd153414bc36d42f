"""Thirty days of an organisation with six teams and six models, in bulk: for reports that look like real ones.

What happened is known: the assistant's cache stopped hitting on the last whole day, a coding agent ran away the same
day, one model became dearer, a new one has no price, some traffic carries no owner, and the bill knows a few tokens
that no log explains. The bill ends 20 hours before as_of, so the last whole day is partly an estimate.
"""

from pathlib import Path

import duckdb

from tests.world import World
from warehouse.engine import writing
from warehouse.settings import WarehouseSettings

FIRST, AS_OF, BILLED_UNTIL = "2026-10-01 00:00", "2026-10-31 07:00", "2026-10-30 11:00"
LAST_DAY = "2026-10-30"

SETTINGS = WarehouseSettings.model_validate(
    {
        "zone": "Europe/Paris",
        "owners": [
            {
                "when": {"key_alias": f"{team}-*"},
                "set": {"team": team, "app": "{tag.app}", "cost_center": f"cc-{team}", "environment": "production"},
            }
            for team in ("search", "support", "platform", "data", "growth", "finance")
        ],
    }
)

# team, app, model, calls a working day, input, share of it read from the cache, output, agent
SHAPES = """
    ('search', 'assistant', 'claude-sonnet-4-5', 900, 6000, 0.72, 420, NULL),
    ('search', 'reranker', 'nova-micro', 2400, 900, 0.0, 40, NULL),
    ('support', 'helpdesk', 'claude-haiku-4-5', 1100, 3200, 0.55, 260, NULL),
    ('support', 'summaries', 'nova-lite', 700, 2500, 0.0, 300, NULL),
    ('platform', 'code-agent', 'claude-sonnet-4-5', 800, 21000, 0.84, 620, 'coder'),
    ('platform', 'reviewer', 'claude-opus-4-5', 60, 14000, 0.30, 900, 'reviewer'),
    ('data', 'extraction', 'nova-pro', 1500, 4100, 0.0, 350, NULL),
    ('growth', 'campaigns', 'claude-haiku-4-5', 300, 1500, 0.10, 700, NULL),
    ('finance', 'invoices', 'nova-pro', 240, 5200, 0.0, 180, NULL),
    ('growth', 'pilot', 'nova-premier-2', 40, 2600, 0.0, 500, NULL),
    (NULL, 'unknown', 'nova-lite', 120, 1800, 0.0, 200, NULL)
"""

PRICES = """
    ('claude-sonnet-4-5', 3.0, 0.3, 3.75, 15.0), ('claude-haiku-4-5', 1.0, 0.1, 1.25, 5.0),
    ('claude-opus-4-5', 5.0, 0.5, 6.25, 25.0), ('nova-pro', 0.8, 0.2, 0.8, 3.2),
    ('nova-lite', 0.06, 0.015, 0.06, 0.24), ('nova-micro', 0.035, 0.00875, 0.035, 0.14)
"""

CALLS = f"""
CREATE TEMP TABLE call AS
WITH shape AS (
    SELECT *, row_number() OVER () AS shape FROM (VALUES {SHAPES})
        AS s(team, app, model, per_day, input, cached, output, agent)
),
day AS (
    SELECT unnest(generate_series(TIMESTAMP '{FIRST}', TIMESTAMP '{AS_OF}', INTERVAL 1 DAY)) AS day
),
drawn AS (
    SELECT s.*, d.day, n.number, hash(s.shape, d.day, n.number) AS seed,
        d.day::DATE = DATE '{LAST_DAY}' AS is_last,
        per_day * CASE WHEN dayofweek(d.day) IN (0, 6) THEN 0.35 ELSE 1 END
            * (0.92 + 0.16 * (hash(s.shape, d.day) % 1000) / 1000.0) * :scale
            * CASE WHEN s.app = 'code-agent' AND d.day::DATE = DATE '{LAST_DAY}' THEN 1.45 ELSE 1 END AS wanted
    FROM shape AS s CROSS JOIN day AS d
    CROSS JOIN (SELECT unnest(generate_series(1, 4000)) AS number) AS n
),
timed AS (
    SELECT *,
        day + INTERVAL 5 HOUR + (seed % 61200) * INTERVAL 1 SECOND + (seed % 997) * INTERVAL 1 MILLISECOND AS ended_at,
        input * (0.6 + 0.8 * ((seed >> 8) % 1000) / 1000.0) AS in_tokens,
        CASE WHEN app = 'assistant' AND is_last THEN 0.06 ELSE cached END AS hit
    FROM drawn WHERE number <= wanted
)
SELECT *, (in_tokens * hit)::BIGINT AS read_tokens, (in_tokens * hit * 0.06)::BIGINT AS write_tokens,
    (output * (0.5 + ((seed >> 18) % 1000) / 1000.0))::BIGINT AS out_tokens,
    'call-' || shape || '-' || strftime(day, '%m%d') || '-' || number AS record_id,
    CASE WHEN seed % 97 = 3 THEN 'failure' WHEN seed % 389 = 5 THEN 'timeout' ELSE 'success' END AS status,
    CASE WHEN seed % 61 = 9 THEN number - 1 ELSE number END AS operation
FROM timed WHERE ended_at < TIMESTAMP '{AS_OF}'
"""

CLAIMS = """
CREATE TEMP TABLE claimed AS
SELECT DISTINCT coalesce(team, 'anonymous') || '-key&' || app AS claim_set_id, team, app FROM call;
INSERT INTO claim_set SELECT claim_set_id,
    MAP(['key_alias', 'tag.app'], [coalesce(team, 'anonymous') || '-key', app]) FROM claimed
"""

RECORDS = """
INSERT INTO usage_record BY NAME
SELECT 'usage' AS load_id, 'gateway' AS source, 10 AS source_trust, record_id, 's:gateway:' || record_id AS event_key,
    md5(record_id) AS record_digest, shape || '-' || day::DATE || '-' || operation AS operation_id,
    CASE WHEN agent IS NOT NULL THEN agent || '-' || strftime(day, '%m%d') || '-'
        || CASE WHEN is_last AND seed % 3 = 0 AND app = 'code-agent' THEN 'loop' ELSE (seed % 40)::VARCHAR END
    END AS task_id,
    CASE WHEN agent IS NOT NULL AND number % 25 = 0 THEN 'merged' END AS task_outcome,
    agent, 'user-' || seed % 50 AS user_id, ended_at - INTERVAL 4 SECOND AS started_at,
    ended_at - INTERVAL 3 SECOND AS first_token_at, ended_at, 'aws.bedrock' AS provider, model,
    '111122223333' AS account_id,
    'us-east-1' AS region_id, 'regional' AS scope, 'standard' AS service_tier, status,
    CASE WHEN status = 'success' THEN (in_tokens)::BIGINT - read_tokens - write_tokens END AS uncached_input_tokens,
    CASE WHEN status = 'success' THEN read_tokens END AS cache_read_tokens,
    CASE WHEN status = 'success' THEN write_tokens END AS cache_write_5m_tokens,
    CASE WHEN status = 'success' THEN out_tokens END AS output_tokens,
    coalesce(team, 'anonymous') || '-key&' || app AS claim_set_id, 'test' AS semantics
FROM call;
INSERT INTO touched_hour SELECT DISTINCT CAST(date_trunc('hour', ended_at) AS TIMESTAMP), 'usage' FROM usage_record
"""

BOOK = f"""
CREATE TEMP TABLE book AS
SELECT model, token_class, per_mtok FROM (
    SELECT model, unnest(['uncached_input', 'cache_read', 'cache_write_5m', 'output']) AS token_class,
        unnest([i, r, w, o])::DECIMAL(38, 18) AS per_mtok
    FROM (VALUES {PRICES}) AS p(model, i, r, w, o));
INSERT INTO price BY NAME
SELECT 'prices' AS load_id, 'catalogue' AS book, 'aws.bedrock' AS provider, model, 'standard' AS service_tier,
    token_class,
    0 AS from_input_tokens, 'USD' AS currency, per_mtok, TIMESTAMP '1970-01-01' AS valid_from,
    TIMESTAMP '9999-12-31' AS valid_to, 'test' AS match_reason, 'test' AS origin FROM book
"""

# 1 % more tokens than were logged; nova-pro is 25 % dearer on the last day, for which the price book is not told.
BILL = f"""
INSERT INTO billing_line BY NAME
SELECT 'bill' AS load_id, 'export' AS export_name, '2026-10' AS billing_period,
    md5(concat_ws('|', hour, model, token_class)) AS line_digest, 'aws' AS provider_name,
    '999988887777' AS billing_account_id, '111122223333' AS sub_account_id,
    'USD' AS billing_currency, TIMESTAMP '2026-10-01' AS billing_period_start,
    TIMESTAMP '2026-11-01' AS billing_period_end,
    hour AS charge_period_start, hour + INTERVAL 1 HOUR AS charge_period_end, 'Usage' AS charge_category,
    'Amazon Bedrock' AS service_name, 'us-east-1' AS region_id, amount AS billed_cost, amount AS effective_cost,
    amount AS list_cost, 'model_api' AS x_charge_family, model AS x_model, token_class AS x_token_class,
    tokens AS x_tokens
FROM (
    SELECT hour, model, token_class, tokens + tokens // 100 AS tokens,
        ((tokens + tokens // 100) * per_mtok / 1000000
            * CASE WHEN model = 'nova-pro' AND hour >= TIMESTAMP '{LAST_DAY}' THEN 1.25 ELSE 1 END
        )::DECIMAL(38, 18) AS amount
    FROM (
        UNPIVOT (
            SELECT date_trunc('hour', ended_at)::TIMESTAMP AS hour, model,
                sum(uncached_input_tokens)::BIGINT AS uncached_input, sum(cache_read_tokens)::BIGINT AS cache_read,
                sum(cache_write_5m_tokens)::BIGINT AS cache_write_5m, sum(output_tokens)::BIGINT AS output
            FROM usage_record WHERE ended_at < TIMESTAMP '{BILLED_UNTIL}' GROUP BY ALL
        ) ON uncached_input, cache_read, cache_write_5m, output INTO NAME token_class VALUE tokens
    ) INNER JOIN book USING (model, token_class) WHERE tokens > 0
);
INSERT INTO touched_hour SELECT DISTINCT charge_period_start, 'billing' FROM billing_line
"""

LOADS = f"""
INSERT INTO load BY NAME
SELECT *, 1 AS rows_read, 1 AS rows_loaded, 0 AS rows_rejected, 0 AS rows_filtered FROM (VALUES
    ('usage', 'gateway', 'usage', 'u', TIMESTAMP '{FIRST}', TIMESTAMP '{AS_OF}', TIMESTAMP '{AS_OF}'),
    ('bill', 'aws-bill', 'billing', 'b', TIMESTAMP '{FIRST}', TIMESTAMP '{BILLED_UNTIL}', TIMESTAMP '{AS_OF}')
) AS l(load_id, source, kind, identity, first_at, last_at, loaded_at)
"""


def organisation(data: Path, *, scale: float = 1.0) -> World:
    """The organisation's evidence, loaded but not attributed. `scale` multiplies the calls of a day."""
    world = World(data, SETTINGS, as_of=AS_OF)
    with writing(world.layout, "test") as connection:
        connection.begin()
        _run(connection, CALLS.replace(":scale", str(scale)), CLAIMS, RECORDS, BOOK, BILL, LOADS)
        connection.commit()
    for name, cost, family, service in (
        ("support", "620.00", "support", "AWS Support"),
        ("credit", "-75.00", "credit", "Amazon Bedrock"),
        ("rest", "1834.20", "other", "Amazon EC2"),
    ):
        world.line(
            "2026-10-01 00:00",
            cost,
            end="2026-11-01 00:00",
            service_name=service,
            x_charge_family=family,
            charge_category="Credit" if name == "credit" else "Usage",
        )
    return world


def _run(connection: duckdb.DuckDBPyConnection, *scripts: str) -> None:
    for script in scripts:
        connection.execute(script)
