"""Evidence by the million: calls, and the bill for them, made by SQL inside the warehouse file."""

from datetime import datetime, timedelta
from pathlib import Path

import duckdb
import sqlalchemy as sa

from warehouse import schema
from warehouse.engine import Layout, transaction, writing
from warehouse.settings import WarehouseSettings

SETTINGS = WarehouseSettings.model_validate(
    {"owners": [{"when": {"key_alias": "*"}, "set": {"team": "{tag.team}", "app": "{key_alias}"}}]}
)
END = datetime(2026, 9, 30, 22)  # the month being published is the same, and as full, whatever the history

PRICES = """
    ('claude-sonnet-4-5', 3.0, 0.3, 3.75, 15.0), ('claude-haiku-4-5', 1.0, 0.1, 1.25, 5.0),
    ('claude-opus-4-5', 5.0, 0.5, 6.25, 25.0), ('nova-pro', 0.8, 0.2, 0.8, 3.2),
    ('nova-lite', 0.06, 0.015, 0.06, 0.24), ('nova-micro', 0.035, 0.00875, 0.035, 0.14)
"""

BOOK = f"""
INSERT INTO price BY NAME
SELECT 'prices' AS load_id, 'catalogue' AS book, 'aws.bedrock' AS provider, model, 'standard' AS service_tier,
    unnest(['uncached_input', 'cache_read', 'cache_write_5m', 'output']) AS token_class, 0 AS from_input_tokens,
    'USD' AS currency, unnest([i, r, w, o])::DECIMAL(38, 18) AS per_mtok, TIMESTAMP '1970-01-01' AS valid_from,
    TIMESTAMP '9999-12-31' AS valid_to, 'synthetic' AS match_reason, 'synthetic' AS origin
FROM (VALUES {PRICES}) AS p(model, i, r, w, o);
INSERT INTO claim_set SELECT 'app-' || n, MAP(['key_alias', 'tag.team'], ['app-' || n, 'team-' || n % 8])
FROM range(24) AS r(n);
"""

# $1 first hour, $2 hours, $3 events; every call is drawn from its number.
CALLS = """
INSERT INTO usage_record BY NAME
SELECT 'usage' AS load_id, 'gateway' AS source, 10 AS source_trust, 'c' || key AS record_id,
    's:gateway:c' || key AS event_key, md5(key) AS record_digest,
    CASE WHEN seed % 50 = 0 THEN 'o' || seed % 1000000 END AS operation_id,
    CASE WHEN app < 6 THEN 'task-' || strftime(hour, '%m%d') || '-' || app || '-' || (seed >> 9) % 20 END AS task_id,
    CASE WHEN app < 6 THEN 'agent-' || app END AS agent, 'user-' || (seed >> 5) % 400 AS user_id,
    ended_at - INTERVAL 5 SECOND AS started_at, ended_at - INTERVAL 4 SECOND AS first_token_at, ended_at,
    'aws.bedrock' AS provider,
    ['claude-sonnet-4-5', 'claude-haiku-4-5', 'claude-opus-4-5', 'nova-pro', 'nova-lite', 'nova-micro'][1 + app % 6]
        AS model,
    '11112222333' || app % 3 AS account_id, 'us-east-1' AS region_id, 'regional' AS scope, 'standard' AS service_tier,
    CASE WHEN seed % 89 = 3 THEN 'failure' ELSE 'success' END AS status,
    CASE WHEN seed % 89 <> 3 THEN 200 + seed % 3000 END AS uncached_input_tokens,
    CASE WHEN seed % 89 <> 3 THEN (seed >> 7) % 9000 END AS cache_read_tokens,
    CASE WHEN seed % 89 <> 3 THEN (seed >> 11) % 400 END AS cache_write_5m_tokens,
    CASE WHEN seed % 89 <> 3 THEN 20 + (seed >> 13) % 900 END AS output_tokens,
    'app-' || app AS claim_set_id, 'synthetic' AS semantics
FROM (
    SELECT $1::TIMESTAMP + (n % $2) * INTERVAL 1 HOUR AS hour, (hash(n, $1) >> 1)::BIGINT AS seed,
        (hash(n, $1, 7) % 24)::BIGINT AS app,
        strftime($1::TIMESTAMP, '%m%d%H') || '-' || n AS key,
        $1::TIMESTAMP + (n % $2) * INTERVAL 1 HOUR + (hash(n, $1) % 3599)::BIGINT * INTERVAL 1 SECOND AS ended_at
    FROM range($3) AS r(n)
)
"""

# 0.5 % more tokens than were logged.
BILL = """
INSERT INTO billing_line BY NAME
SELECT 'bill' AS load_id, 'export' AS export_name, strftime(hour, '%Y-%m') AS billing_period,
    md5(concat_ws('|', hour, account_id, model, token_class)) AS line_digest, 'aws' AS provider_name,
    '999988887777' AS billing_account_id, account_id AS sub_account_id, 'USD' AS billing_currency,
    date_trunc('month', hour)::TIMESTAMP AS billing_period_start,
    date_trunc('month', hour)::TIMESTAMP + INTERVAL 1 MONTH AS billing_period_end,
    hour AS charge_period_start, hour + INTERVAL 1 HOUR AS charge_period_end, 'Usage' AS charge_category,
    'Amazon Bedrock' AS service_name, 'us-east-1' AS region_id, cost AS billed_cost, cost AS effective_cost,
    cost AS list_cost, 'model_api' AS x_charge_family, model AS x_model, token_class AS x_token_class,
    tokens AS x_tokens
FROM (
    SELECT u.hour, u.account_id, u.model, u.token_class, u.tokens + u.tokens // 200 AS tokens,
        ((u.tokens + u.tokens // 200) * p.per_mtok / 1000000)::DECIMAL(38, 18) AS cost
    FROM (
        UNPIVOT (
            SELECT date_trunc('hour', ended_at)::TIMESTAMP AS hour, account_id, model,
                sum(uncached_input_tokens)::BIGINT AS uncached_input, sum(cache_read_tokens)::BIGINT AS cache_read,
                sum(cache_write_5m_tokens)::BIGINT AS cache_write_5m, sum(output_tokens)::BIGINT AS output
            FROM usage_record WHERE ended_at >= $1 GROUP BY ALL
        ) ON uncached_input, cache_read, cache_write_5m, output INTO NAME token_class VALUE tokens
    ) AS u INNER JOIN price AS p ON p.model = u.model AND p.token_class = u.token_class
    WHERE u.tokens > 0
)
"""

TOUCHED = """
INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', ended_at)::TIMESTAMP, 'usage' FROM usage_record
    WHERE ended_at >= $1
UNION ALL SELECT DISTINCT charge_period_start, 'billing' FROM billing_line WHERE charge_period_start >= $1
"""


def create(data: Path, days: int, events: int) -> None:
    """A new warehouse file with `events` calls in the `days` days before END, and the bill for them."""
    layout = Layout(data)
    data.mkdir(parents=True)
    engine = sa.create_engine(f"duckdb:///{layout.warehouse}", poolclass=sa.pool.NullPool)
    schema.metadata.create_all(engine)
    engine.dispose()
    with writing(layout, "bench") as connection:
        connection.execute(BOOK)
        _add(connection, END - timedelta(days=days), days * 24, events)


def one_more_hour(data: Path, events: int) -> None:
    """The calls of the hour that begins at END, and the bill for them."""
    with writing(Layout(data), "bench") as connection:
        _add(connection, END, 1, events)


def _add(connection: duckdb.DuckDBPyConnection, first: datetime, hours: int, events: int) -> None:
    connection.execute("SET enable_progress_bar = false")
    with transaction(connection):
        connection.execute(CALLS, [first, hours, events])
        connection.execute(BILL, [first])
        connection.execute(TOUCHED, [first])
