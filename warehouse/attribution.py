"""Which hours changed; runs the waterfall for them, and only for them, in one transaction.

The result is a function of the evidence, the settings and `as_of`, never of the clock, of the order in which evidence
came, or of how often this ran.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import duckdb

from warehouse import derived, owners, waterfall
from warehouse.controls import HOUR_CONTROLS, PERIOD_CONTROLS
from warehouse.engine import transaction
from warehouse.settings import WarehouseSettings

LOOK_BACK = "INTERVAL 35 DAY"
Progress = Callable[[str], None]


@dataclass(frozen=True)
class AttributionReport:
    """What one run did."""

    hours: int
    events: int
    billing_periods: int
    rebuilt: bool
    failed_controls: tuple[str, ...]


def attribute(
    connection: duckdb.DuckDBPyConnection,
    settings: WarehouseSettings,
    as_of: datetime,
    progress: Progress = lambda _: None,
) -> AttributionReport:
    """Bring the ledger up to date with the evidence as seen at `as_of` (UTC, naive or aware)."""
    as_of = as_of.replace(tzinfo=None)
    connection.execute(derived.BOOKKEEPING)
    rebuilt = False
    with transaction(connection):
        rebuilt = _forget_if_model_changed(connection, settings)
        _parameters(connection, settings, as_of)
        progress("finding hours whose evidence changed")
        _watermarks(connection)
        _work_hours(connection, as_of)
        events = _events(connection)
        hours = _run_hours(connection, progress)
        progress("sharing support, tax and credits")
        periods = _run_overlay(connection, as_of)
        owners.resolve(connection, settings)
        _rounding(connection)
        _finish(connection, as_of)
    return AttributionReport(hours, events, periods, rebuilt, failing(connection))


def failing(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    """Names and subjects of the controls that do not hold."""
    rows = connection.execute(
        """
        SELECT name || ' at ' || strftime(hour, '%Y-%m-%d %H:00') FROM control_hour WHERE lhs <> rhs
        UNION ALL
        SELECT name || ' of ' || billing_period || ' ' || currency FROM control_period WHERE lhs <> rhs
        ORDER BY 1
        """
    ).to_arrow_table()
    return tuple(str(value) for value in rows.column(0).to_pylist())


def _forget_if_model_changed(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> bool:
    row = connection.execute(
        """
        SELECT md5(coalesce(string_agg(digest, '' ORDER BY digest), '')) FROM (
            SELECT md5(concat_ws('|', book, provider, model, scope, service_tier, token_class, from_input_tokens,
                currency, per_mtok, valid_from, valid_to, day_start_second, day_end_second)) AS digest FROM price
            UNION ALL SELECT md5(concat_ws('|', alias, model, origin)) FROM model_alias)
        """
    ).fetchone()
    stamp = f"{derived.model_hash(settings)} {row[0] if row else ''}"
    if derived.state(connection, "model") == stamp and derived.exists(connection, "usage_event"):
        return False
    derived.drop(connection)
    derived.remember(connection, "model", stamp)
    connection.execute(
        """
        INSERT INTO touched_hour
        SELECT DISTINCT CAST(date_trunc('hour', ended_at) AS TIMESTAMP), 'model' FROM usage_record;
        INSERT INTO touched_hour
        SELECT DISTINCT CAST(date_trunc('hour', charge_period_start) AS TIMESTAMP), 'model' FROM billing_line;
        DELETE FROM dirty_period; INSERT INTO dirty_period SELECT DISTINCT billing_period FROM billing_line;
        """
    )
    return True


def _parameters(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, as_of: datetime) -> None:
    choices = settings.attribution
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE run_parameter AS SELECT CAST(? AS TIMESTAMP) AS as_of, "
        "CAST(? AS BIGINT) AS settle_hours, CAST(? AS BIGINT) AS long_context_tokens, CAST(? AS VARCHAR) AS currency, "
        "CAST(? AS BIGINT) AS tolerance_minutes, CAST(? AS VARCHAR) AS zone",
        [
            as_of,
            choices.settle_after_hours,
            choices.long_context_tokens,
            settings.currency,
            choices.clock_tolerance_minutes,
            settings.zone,
        ],
    )
    connection.execute("CREATE OR REPLACE TEMP TABLE scope_service (name VARCHAR)")
    connection.execute("CREATE OR REPLACE TEMP TABLE scope_account (account_id VARCHAR)")
    connection.execute("INSERT INTO scope_service SELECT unnest(?::VARCHAR[])", [list(choices.scope.services)])
    connection.execute("INSERT INTO scope_account SELECT unnest(?::VARCHAR[])", [list(choices.scope.accounts)])
    # One calendar for everything that has to count hours; days are cut in the reporting zone.
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE hour_calendar AS
        SELECT h.hour AS hour, CAST((h.hour AT TIME ZONE 'UTC') AT TIME ZONE ? AS DATE) AS local_day
        FROM (
            SELECT unnest(generate_series(
                date_trunc('hour', min(first_at)) - INTERVAL 1 DAY, max(last_at) + INTERVAL 1 DAY, INTERVAL 1 HOUR
            )) AS hour
            FROM (
                SELECT min(charge_period_start) AS first_at,
                       max(greatest(charge_period_end, charge_period_start)) AS last_at FROM billing_line
                UNION ALL SELECT min(ended_at), max(ended_at) FROM usage_record
            ) HAVING min(first_at) IS NOT NULL
        ) AS h
        """,
        [settings.zone],
    )
    _step(connection, "01_model_name")


def _watermarks(connection: duckdb.DuckDBPyConnection) -> None:
    """How far the bill reaches, per provider and account: the end of its latest token-metered charge period."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE bill_watermark AS
        SELECT CASE WHEN provider_name = 'aws' THEN 'aws.bedrock' ELSE provider_name END AS provider,
               coalesce(sub_account_id, billing_account_id) AS account_id, max(charge_period_end) AS watermark
        FROM billing_line
        WHERE x_token_class IS NOT NULL AND charge_period_start < (SELECT as_of FROM run_parameter)
        GROUP BY ALL
        """
    )


def _work_hours(connection: duckdb.DuckDBPyConnection, as_of: datetime) -> None:
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_hour AS
        SELECT DISTINCT hour FROM touched_hour WHERE reason <> 'overlay'
        UNION
        -- hours that wait for the bill, and the bill has moved
        SELECT o.hour FROM open_hour AS o
        LEFT JOIN bill_watermark AS n ON n.provider = o.provider AND n.account_id = o.account_id
        LEFT JOIN used_watermark AS u ON u.provider = o.provider AND u.account_id = o.account_id
        WHERE n.watermark IS DISTINCT FROM u.watermark
        """
    )
    last = derived.state(connection, "as_of")
    if last is not None and last != as_of.isoformat():
        # hours that were still to come and now are not (or the other way round)
        connection.execute(
            """
            INSERT INTO work_hour
            SELECT hour FROM hour_calendar
            WHERE hour >= date_trunc('hour', least(?::TIMESTAMP, ?::TIMESTAMP))
              AND hour <= greatest(?::TIMESTAMP, ?::TIMESTAMP) + INTERVAL 1 HOUR
              AND hour NOT IN (SELECT hour FROM work_hour)
            """,
            [last, as_of, last, as_of],
        )
    # A bucket that spans more than an hour is worked on whole.
    connection.execute(
        """
        INSERT INTO work_hour
        SELECT DISTINCT h.hour
        FROM (SELECT DISTINCT charge_period_start, charge_period_end FROM billing_line
              WHERE x_token_class IS NOT NULL AND charge_period_end > charge_period_start + INTERVAL 1 HOUR) AS b
        INNER JOIN work_hour AS w ON w.hour >= b.charge_period_start AND w.hour < b.charge_period_end
        INNER JOIN hour_calendar AS h ON h.hour >= b.charge_period_start AND h.hour < b.charge_period_end
        WHERE h.hour NOT IN (SELECT hour FROM work_hour)
        """
    )


def _events(connection: duckdb.DuckDBPyConnection) -> int:
    """Derive the events of every operation that has a record or an event in the hours at hand."""
    if not derived.exists(connection, "usage_event"):
        connection.execute("CREATE OR REPLACE TEMP TABLE work_record AS SELECT * FROM usage_record LIMIT 0")
        connection.execute(f"CREATE TABLE usage_event AS {waterfall.text('02_usage_event')}")
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE work_span AS
        SELECT min(hour) - {LOOK_BACK} AS first_hour, max(hour) + {LOOK_BACK} AS last_hour FROM work_hour;
        CREATE OR REPLACE TEMP TABLE work_operation AS
        SELECT DISTINCT coalesce(r.operation_id, r.event_key) AS operation_key, r.event_key AS event_key
        FROM usage_record AS r SEMI JOIN work_hour AS w ON w.hour = date_trunc('hour', r.ended_at)
        UNION SELECT coalesce(e.operation_id, e.event_key), e.event_key
        FROM usage_event AS e SEMI JOIN work_hour AS w ON w.hour = e.hour;
        CREATE OR REPLACE TEMP TABLE work_record AS
        SELECT r.* FROM usage_record AS r, work_span AS s
        WHERE r.ended_at >= s.first_hour AND r.ended_at < s.last_hour
          AND (coalesce(r.operation_id, r.event_key) IN (SELECT operation_key FROM work_operation)
               OR r.event_key IN (SELECT event_key FROM work_operation));
        """
    )
    _step(connection, "02_usage_event", into="new_event")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE old_event AS
        SELECT e.event_key, e.hour FROM usage_event AS e, work_span AS s
        WHERE e.hour >= s.first_hour AND e.hour < s.last_hour
          AND (e.event_key IN (SELECT event_key FROM new_event)
               OR e.event_key IN (SELECT event_key FROM work_operation));
        DELETE FROM usage_event USING (SELECT min(hour) AS first_hour, max(hour) AS last_hour FROM old_event) AS s
        WHERE usage_event.hour >= s.first_hour AND usage_event.hour <= s.last_hour
          AND usage_event.event_key IN (SELECT event_key FROM old_event);
        INSERT INTO usage_event SELECT * FROM new_event ORDER BY hour, event_key;
        INSERT INTO work_hour
        SELECT DISTINCT hour FROM (SELECT hour FROM old_event UNION SELECT hour FROM new_event)
        WHERE hour NOT IN (SELECT hour FROM work_hour);
        CREATE OR REPLACE TEMP TABLE work_event AS
        SELECT e.* FROM usage_event AS e SEMI JOIN work_hour AS w ON w.hour = e.hour
        WHERE e.ended_at <= (SELECT as_of + tolerance_minutes * INTERVAL 1 MINUTE FROM run_parameter);
        """
    )
    return _count(connection, "work_event")


def _run_hours(connection: duckdb.DuckDBPyConnection, progress: Progress) -> int:
    hours = _count(connection, "work_hour")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_line AS
        SELECT l.* FROM billing_line AS l
        SEMI JOIN work_hour AS w ON w.hour = date_trunc('hour', l.charge_period_start)
        """
    )
    for name in (
        "10_rate",
        "11_event_class",
        "12_usage_hour",
        "13_latency_hour",
        "14_task_usage_hour",
        "15_user_usage_hour",
        "20_bill_line",
        "60_bill_bucket",
        "61_bill_amount",
        "62_event_cell",
        "63_bucket_match",
        "64_api_posting",
        "70_ledger_hour",
        "71_task_hour",
        "72_user_hour",
        "73_match_hour",
    ):
        if name == "62_event_cell":
            _bucket_hours(connection)
        progress(f"{hours} hours: {name}")
        _step(connection, name, into=f"new_{waterfall.table(name)}" if name in derived.BY_HOUR else None)
    for name in derived.BY_HOUR[1:]:
        table = waterfall.table(name)
        if not derived.exists(connection, table):
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM new_{table} LIMIT 0")
        connection.execute(f"DELETE FROM {table} WHERE hour IN (SELECT hour FROM work_hour)")
        connection.execute(f"INSERT INTO {table} SELECT * FROM new_{table} ORDER BY ALL")
    connection.execute("DELETE FROM control_hour WHERE hour IN (SELECT hour FROM work_hour)")
    for name, sql in HOUR_CONTROLS.items():
        connection.execute(f"INSERT INTO control_hour SELECT '{name}', c.hour, c.lhs, c.rhs FROM ({sql}) AS c")
    connection.execute(
        """
        DELETE FROM open_hour WHERE hour IN (SELECT hour FROM work_hour);
        INSERT INTO open_hour SELECT DISTINCT charge_hour, provider, account_id FROM bucket_match WHERE is_settled = 0;
        INSERT INTO dirty_day SELECT DISTINCT CAST((hour AT TIME ZONE 'UTC') AT TIME ZONE p.zone AS DATE)
        FROM work_hour, run_parameter AS p;
        """
    )
    return hours


def _bucket_hours(connection: duckdb.DuckDBPyConnection) -> None:
    """Bill buckets by the hours of their charge period, so that calls find them by an equality."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE bucket_hour AS
        SELECT h.hour, b.bucket_id, b.provider, b.account_id, b.region_id, b.model, b.token_class, b.service_tier,
               b.scope, b.context_tier,
               date_diff('second', b.charge_period_start, b.charge_period_end) AS period_seconds
        FROM bill_bucket AS b INNER JOIN hour_calendar AS h
          ON h.hour >= b.charge_hour AND (h.hour < b.charge_period_end OR h.hour = b.charge_hour)
        """
    )


def _run_overlay(connection: duckdb.DuckDBPyConnection, as_of: datetime) -> int:
    """Recompute the overlay of every billing period whose lines or whose usage moved, or whose future became past."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_period AS
        SELECT DISTINCT billing_period FROM billing_line
        WHERE billing_period IN (SELECT billing_period FROM dirty_period)
           OR billing_period IN (SELECT strftime(hour, '%Y-%m') FROM touched_hour WHERE reason = 'overlay')
           OR billing_period IN (SELECT DISTINCT billing_period FROM new_ledger_hour)
           OR billing_period IN (SELECT strftime(hour, '%Y-%m') FROM work_hour)
           OR charge_period_end > least(?::TIMESTAMP, ?::TIMESTAMP)
        """,
        [derived.state(connection, "as_of") or as_of, as_of],
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_line AS
        SELECT l.* FROM billing_line AS l SEMI JOIN work_period AS p ON p.billing_period = l.billing_period
        WHERE l.x_charge_family IN ('support', 'tax', 'credit', 'discount', 'commitment')
           OR l.charge_period_end > l.charge_period_start + INTERVAL 1 DAY;
        CREATE OR REPLACE TEMP TABLE period_usage AS
        SELECT l.billing_period, l.currency, p.payer_id, l.service_name, l.line_class,
               CAST(sum(l.effective_nano) AS BIGINT) AS effective_nano
        FROM ledger_hour AS l
        SEMI JOIN work_period AS w ON w.billing_period = l.billing_period
        INNER JOIN (SELECT coalesce(sub_account_id, billing_account_id) AS account_id, billing_period,
                           min(billing_account_id) AS payer_id FROM billing_line GROUP BY ALL) AS p
          ON p.account_id = l.account_id AND p.billing_period = l.billing_period
        WHERE l.kind <> 'future' AND l.basis = 'billed'
        GROUP BY ALL;
        CREATE OR REPLACE TEMP TABLE day_usage AS
        SELECT c.local_day AS day, l.billing_period, l.currency, l.claim_set_id,
               CAST(greatest(sum(l.effective_nano), 0) AS BIGINT) AS weight
        FROM ledger_hour AS l
        SEMI JOIN work_period AS w ON w.billing_period = l.billing_period
        INNER JOIN hour_calendar AS c ON c.hour = l.hour
        WHERE l.kind = 'usage' AND l.basis = 'billed'
        GROUP BY ALL;
        """
    )
    for name in ("20_bill_line", "80_overlay_scope", "81_overlay_day"):
        _step(connection, name)
    _step(connection, "82_ledger_overlay", into="new_ledger_overlay")
    if not derived.exists(connection, "ledger_overlay"):
        connection.execute("CREATE TABLE ledger_overlay AS SELECT * FROM new_ledger_overlay LIMIT 0")
    connection.execute(
        """
        INSERT INTO dirty_day SELECT DISTINCT day FROM (
            (SELECT * FROM ledger_overlay WHERE billing_period IN (SELECT billing_period FROM work_period)
             EXCEPT SELECT * FROM new_ledger_overlay)
            UNION ALL
            (SELECT * FROM new_ledger_overlay EXCEPT SELECT * FROM ledger_overlay));
        DELETE FROM ledger_overlay WHERE billing_period IN (SELECT billing_period FROM work_period);
        INSERT INTO ledger_overlay SELECT * FROM new_ledger_overlay ORDER BY ALL;
        DELETE FROM control_period WHERE billing_period IN (SELECT billing_period FROM work_period);
        """
    )
    for name, sql in PERIOD_CONTROLS.items():
        connection.execute(f"INSERT INTO control_period SELECT '{name}', c.* FROM ({sql}) AS c")
    return _count(connection, "work_period")


def _rounding(connection: duckdb.DuckDBPyConnection) -> None:
    """What lies below a nano-dollar, one DECIMAL per load, currency and basis."""
    connection.execute("DELETE FROM ledger_rounding")
    for basis in ("billed", "effective"):
        connection.execute(
            f"""
            INSERT INTO ledger_rounding
            SELECT load_id, billing_period, billing_currency, '{basis}',
                   sum({basis}_cost) - CAST(CAST(sum(nano({basis}_cost)) AS DECIMAL(28, 0))
                       * CAST(0.000000001 AS DECIMAL(10, 9)) AS DECIMAL(38, 18))
            FROM billing_line GROUP BY ALL
            """
        )


def _finish(connection: duckdb.DuckDBPyConnection, as_of: datetime) -> None:
    derived.remember(connection, "as_of", as_of.isoformat())
    connection.execute(
        """
        DELETE FROM used_watermark; INSERT INTO used_watermark SELECT * FROM bill_watermark;
        INSERT INTO dirty_period SELECT billing_period FROM work_period
            WHERE billing_period NOT IN (SELECT billing_period FROM dirty_period);
        DELETE FROM touched_hour;
        """
    )


def _step(connection: duckdb.DuckDBPyConnection, name: str, into: str | None = None) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {into or waterfall.table(name)} AS {waterfall.text(name)}")


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0
