"""Four weeks of a small organisation whose figures are known: two teams, one caller without one, three models.

Every day search makes two calls to nova-pro (one retried), support runs agent tasks on claude, somebody unknown calls
nova-pro once. The bill ends a day early, knows tokens no log explains, and holds support and a database. From the
fifteenth day on search uses twice the tokens; `mystery` has no price; one task ran away.
"""

from pathlib import Path

import duckdb

from tests.world import World
from warehouse.engine import writing
from warehouse.settings import WarehouseSettings

DAYS = 28
FIRST_DAY, LAST_DAY = "2026-10-01", "2026-10-28"
AS_OF = "2026-10-29 00:00"
SETTINGS = WarehouseSettings.model_validate(
    {
        "owners": [
            {
                "when": {"key_alias": "search-*"},
                "set": {"team": "search", "app": "answers", "environment": "production"},
            },
            {
                "when": {"key_alias": "support-*"},
                "set": {"team": "support", "app": "helpdesk", "environment": "staging", "agent": "solver"},
            },
        ]
    }
)
PRICES = {
    "nova-pro": {"uncached_input": "1", "cache_read": "0.1", "output": "4"},
    "claude": {"uncached_input": "3", "cache_read": "0.3", "cache_write_5m": "3.75", "output": "15"},
}

# key alias, model, hour, input, read from the cache, written to it, output; one row a call and day.
CALLS = """
    ('search-1', 'nova-pro', 9, 400000, 100000, 0, 50000),
    ('search-1', 'nova-pro', 9, 400000, 100000, 0, 50000),
    ('support-1', 'claude', 10, 100000, 800000, 50000, 20000),
    ('stray', 'nova-pro', 11, 30000, 0, 0, 5000)
"""

USAGE = f"""
INSERT INTO usage_record (load_id, source, source_trust, record_id, event_key, record_digest, operation_id, task_id,
    agent, task_outcome, user_id, started_at, first_token_at, ended_at, provider, model_raw, model, account_id,
    region_id, scope, service_tier, stream, status, uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens,
    output_tokens, claim_set_id, semantics)
SELECT 'usage', 'gateway', 10, id, 's:gateway:' || id, id,
    CASE WHEN alias = 'search-1' THEN 'search-' || day_number ELSE id END,
    CASE WHEN alias = 'support-1' THEN 'task-' || day_number END,
    CASE WHEN alias = 'support-1' THEN 'solver' END,
    CASE WHEN alias = 'support-1' THEN CASE day_number % 3 WHEN 0 THEN 'merged' WHEN 1 THEN 'failed' END END,
    'user-' || day_number % 4, began, began + INTERVAL 1 SECOND, began + INTERVAL 8 SECOND, 'aws.bedrock', model, model,
    '111122223333', 'us-east-1', 'regional', 'standard', TRUE, 'success', input * times, cached * times,
    written * times, output * times, 'key_alias=' || alias, 'test'
FROM (
    SELECT *, 'logged-' || row_number() OVER (ORDER BY day_number, shape) AS id,
        TIMESTAMP '{FIRST_DAY}' + day_number * INTERVAL 1 DAY + hour * INTERVAL 1 HOUR
            + shape * INTERVAL 1 MINUTE AS began,
        CASE WHEN alias = 'search-1' AND day_number >= {DAYS // 2} THEN 2 ELSE 1 END AS times
    FROM (SELECT *, row_number() OVER () AS shape FROM (VALUES {CALLS})
              AS c(alias, model, hour, input, cached, written, output)),
        (SELECT unnest(range({DAYS})) AS day_number)
)
"""

RUNAWAY = """
INSERT INTO usage_record (load_id, source, source_trust, record_id, event_key, record_digest, task_id, agent, user_id,
    started_at, ended_at, provider, model, account_id, region_id, scope, service_tier, status, uncached_input_tokens,
    output_tokens, claim_set_id, semantics)
SELECT 'usage', 'gateway', 10, 'runaway-' || n, 's:gateway:runaway-' || n, 'runaway-' || n, 'task-runaway', 'solver',
    'user-0', TIMESTAMP '2026-10-20 20:00' + n * INTERVAL 1 MINUTE,
    TIMESTAMP '2026-10-20 20:00:30' + n * INTERVAL 1 MINUTE,
    'aws.bedrock', 'claude', '111122223333', 'us-east-1', 'regional', 'standard', 'success', 2000000, 10000,
    'key_alias=support-1', 'test'
FROM range(40) AS r(n)
"""

# Billed: what was logged until the last day, one hundred tokens in a thousand more of nova-pro's output.
BILL = f"""
INSERT INTO billing_line (load_id, export_name, billing_period, line_digest, provider_name, billing_account_id,
    sub_account_id, billing_currency, region_id, billing_period_start, billing_period_end, charge_period_start,
    charge_period_end, charge_category, service_name, billed_cost, effective_cost, list_cost, x_charge_family, x_model,
    x_token_class, x_tokens, x_scope, x_service_tier)
SELECT 'bill', 'export', '2026-10', md5(concat_ws('|', hour, model, class)), 'aws', '999988887777', '111122223333',
    'USD', 'us-east-1', TIMESTAMP '2026-10-01', TIMESTAMP '2026-11-01', hour, hour + INTERVAL 1 HOUR, 'Usage',
    'Amazon Bedrock', cost, cost, cost, 'model_api', model, class, tokens, 'regional', 'standard'
FROM (
    SELECT hour, model, class, CAST(tokens * factor AS BIGINT) AS tokens,
        CAST(tokens * factor * per_mtok / 1000000 AS DECIMAL(38, 18)) AS cost
    FROM (
        SELECT date_trunc('hour', ended_at)::TIMESTAMP AS hour, model, class, sum(tokens) AS tokens,
            any_value(CASE WHEN model = 'nova-pro' AND class = 'output' THEN 1.1 ELSE 1.0 END) AS factor
        FROM (
            SELECT ended_at, model,
                unnest(['uncached_input', 'cache_read', 'cache_write_5m', 'output']) AS class,
                unnest([uncached_input_tokens, cache_read_tokens, cache_write_5m_tokens, output_tokens]) AS tokens
            FROM usage_record WHERE model <> 'mystery'
        )
        WHERE tokens > 0 AND ended_at < TIMESTAMP '{LAST_DAY}' GROUP BY ALL
    ) AS used
    INNER JOIN (SELECT model AS price_model, token_class, per_mtok FROM price) AS p
        ON p.price_model = used.model AND p.token_class = used.class
)
"""

DELIVERIES = """
INSERT INTO bill_version
SELECT 'bill', 'export', '2026-10', v.delivery, TIMESTAMP '2026-10-27' + v.delivery * INTERVAL 1 DAY, 'd' || v.delivery,
    charge_period_start::DATE, service_name, 'USD', count(*),
    sum(billed_cost) + any_value(CASE WHEN charge_period_start::DATE = DATE '2026-10-03' THEN v.surplus ELSE 0 END),
    sum(effective_cost) + any_value(CASE WHEN charge_period_start::DATE = DATE '2026-10-03' THEN v.surplus ELSE 0 END)
FROM billing_line, (VALUES (1, 212.4), (2, 0.0)) AS v(delivery, surplus) WHERE x_token_class IS NOT NULL
GROUP BY v.delivery, charge_period_start::DATE, service_name
"""


def build(data: Path) -> World:
    """The organisation's evidence; publish it with `world.publish()`."""
    world = World(data, SETTINGS, as_of=AS_OF)
    for model, per_mtok in PRICES.items():
        world.price(model, **per_mtok)
    with writing(world.layout, "test") as connection:
        _usage(connection)
        connection.execute(BILL)
        connection.execute(DELIVERIES)
        _loads(connection)
        connection.execute(
            """
            INSERT INTO touched_hour SELECT DISTINCT date_trunc('hour', ended_at)::TIMESTAMP, 'usage' FROM usage_record;
            INSERT INTO touched_hour SELECT DISTINCT charge_period_start, 'billing' FROM billing_line;
            """
        )
    world.line("2026-10-01 00:00", "62", end="2026-11-01 00:00", service_name="AWS Support", x_charge_family="support",
               charge_category="Purchase")  # fmt: skip
    world.line("2026-10-02 10:00", "40.000000000123", service_name="Amazon RDS")
    world.call("2026-10-28 12:00", {"key_alias": "search-1"}, model="mystery", uncached_input=1_000_000, output=10_000)
    return world


def _usage(connection: duckdb.DuckDBPyConnection) -> None:
    for alias in ("search-1", "support-1", "stray"):
        connection.execute("INSERT INTO claim_set VALUES (?, MAP {'key_alias': ?})", [f"key_alias={alias}", alias])
    connection.execute(USAGE)
    connection.execute(RUNAWAY)


def _loads(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(
        """
        INSERT INTO load (load_id, source, kind, identity, rows_read, rows_loaded, rows_rejected, rows_filtered,
            first_at, last_at, loaded_at) VALUES
            ('usage', 'gateway', 'usage', 'a', 155, 153, 2, 0, '2026-10-01 09:01', '2026-10-28 12:00',
             '2026-10-29 00:05'),
            ('bill', 'aws-bill', 'billing', 'b', 200, 200, 0, 0, '2026-10-01', '2026-10-28', '2026-10-29 00:06');
        INSERT INTO rejected_row VALUES
            ('usage', 'gateway', 'gateway/2026-10-03.jsonl', 7, 'malformed_json', 'ends inside a string', 'x'),
            ('usage', 'gateway', 'gateway/2026-10-03.jsonl', 9, 'malformed_json', 'ends inside a string', 'y');
        """
    )
