"""Which hours changed; runs the waterfall for them, and only for them, in one transaction.

The result is a function of the evidence, the settings and `as_of`, never of the clock, of the order in which evidence
came, or of how often this ran.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from warehouse import derived, owners, waterfall
from warehouse.controls import HOUR_CONTROLS, PERIOD_CONTROLS
from warehouse.engine import transaction
from warehouse.settings import WarehouseSettings

LOOK_BACK = "INTERVAL 35 DAY"
# One amount in whole nano-units has to fit BIGINT, and hours are counted in a calendar that spans all evidence.
LARGEST_COST = 9_000_000_000
FIRST_INSTANT, LAST_INSTANT = "2000-01-01", "2100-01-01"
Progress = Callable[[str], None]


class EvidenceRefused(Exception):
    """Evidence that the ledger cannot hold exactly. Nothing was changed; the message names it and the remedy."""


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
    """Bring the ledger up to date with the evidence as seen at `as_of` (UTC if naive).

    Raises EvidenceRefused, with everything as it was, when a figure is beyond what the ledger holds exactly.
    """
    if as_of.tzinfo is not None:
        as_of = as_of.astimezone(UTC).replace(tzinfo=None)
    connection.execute(derived.BOOKKEEPING)
    try:
        with transaction(connection):
            _refuse_what_cannot_be_held(connection)
            rebuilt = _forget_if_model_changed(connection, settings)
            _parameters(connection, settings, as_of)
            progress("finding hours whose evidence changed")
            _watermarks(connection)
            _work_hours(connection, settings, as_of)
            events = _events(connection, rebuilt)
            hours = _run_hours(connection, progress)
            progress("sharing support, tax and credits")
            periods = _run_overlay(connection, as_of)
            owners.resolve(connection, settings)
            _rounding(connection)
            _finish(connection, settings, as_of)
    except (duckdb.ConversionException, duckdb.OutOfRangeException) as error:
        raise EvidenceRefused(
            f"A sum of amounts or tokens is beyond the {LARGEST_COST:,} currency units or 9e18 counts that the ledger "
            f"holds exactly, so nothing was attributed. Look for an absurd bill line, token count or price. ({error})"
        ) from error
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


def _refuse_what_cannot_be_held(connection: duckdb.DuckDBPyConnection) -> None:
    """A line or call that no ledger row could hold stops the run before anything is touched, and is named."""
    cost = "greatest(abs(billed_cost), abs(effective_cost), abs(coalesce(list_cost, 0)))"
    found = connection.execute(
        f"""
        SELECT 'bill line ' || coalesce(x_line_item_id, line_digest) || ' of ' || export_name || ' ' || billing_period
               || CASE WHEN {cost} > {LARGEST_COST} THEN ': its cost is above {LARGEST_COST:,}'
                       ELSE ': its charge period is ' || charge_period_start || ' to ' || charge_period_end END
        FROM billing_line
        WHERE {cost} > {LARGEST_COST}
           OR charge_period_start < TIMESTAMP '{FIRST_INSTANT}' OR charge_period_end > TIMESTAMP '{LAST_INSTANT}'
           OR charge_period_start > TIMESTAMP '{LAST_INSTANT}'
        UNION ALL
        SELECT 'usage record ' || record_id || ' of ' || source || ': it ended at ' || ended_at
        FROM usage_record
        WHERE ended_at < TIMESTAMP '{FIRST_INSTANT}' OR ended_at > TIMESTAMP '{LAST_INSTANT}'
        ORDER BY 1 LIMIT 1
        """
    ).fetchone()
    if found:
        raise EvidenceRefused(
            f"The ledger cannot hold {found[0]}. Nothing was attributed. Costs have to be below {LARGEST_COST:,} and "
            f"times between {FIRST_INSTANT} and {LAST_INSTANT}: correct the export or log and collect it again."
        )


def _forget_if_model_changed(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings) -> bool:
    row = connection.execute(
        """
        SELECT md5(coalesce(string_agg(digest, '' ORDER BY digest), '')) FROM (
            SELECT md5(CAST(to_json(row(book, provider, model, scope, service_tier, token_class, from_input_tokens,
                currency, per_mtok, valid_from, valid_to, day_start_second, day_end_second)) AS VARCHAR)) AS digest
            FROM price
            UNION ALL SELECT md5(CAST(to_json(row(alias, model, origin)) AS VARCHAR)) FROM model_alias)
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
               coalesce(nullif(sub_account_id, ''), billing_account_id) AS account_id,
               max(charge_period_end) AS watermark
        FROM billing_line
        WHERE x_token_class IS NOT NULL AND charge_period_start < (SELECT as_of FROM run_parameter)
        GROUP BY ALL
        """
    )


def _work_hours(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, as_of: datetime) -> None:
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_hour AS
        SELECT DISTINCT hour FROM touched_hour WHERE reason <> 'overlay'
        UNION
        -- hours whose buckets the moved bill settles, or opens again (a restated bill may reach less far)
        SELECT s.hour FROM settling AS s CROSS JOIN run_parameter AS p
        LEFT JOIN bill_watermark AS w ON w.provider = s.provider AND w.account_id = s.account_id
        WHERE s.is_settled <> CASE WHEN w.watermark >= s.period_end + p.settle_hours * INTERVAL 1 HOUR THEN 1 ELSE 0 END
        """
    )
    last = derived.state(connection, "as_of")
    if last is not None and last != as_of.isoformat():
        # hours that were still to come and now are not (or the other way round); calls may be ahead by the tolerance
        connection.execute(
            """
            INSERT INTO work_hour
            SELECT hour FROM hour_calendar
            WHERE hour >= date_trunc('hour', least(?::TIMESTAMP, ?::TIMESTAMP))
              AND hour <= greatest(?::TIMESTAMP, ?::TIMESTAMP) + to_minutes(?)
              AND hour NOT IN (SELECT hour FROM work_hour)
            """,
            [last, as_of, last, as_of, settings.attribution.clock_tolerance_minutes],
        )


def _whole_buckets(connection: duckdb.DuckDBPyConnection) -> None:
    """A bucket that spans more than a clock hour is worked on whole, and so are those that overlap with it."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE long_period AS
        SELECT DISTINCT CAST(date_trunc('hour', charge_period_start) AS TIMESTAMP) AS first_hour, charge_period_end
        FROM billing_line
        WHERE x_token_class IS NOT NULL
          AND charge_period_end > date_trunc('hour', charge_period_start) + INTERVAL 1 HOUR
        """
    )
    while _changed(
        connection,
        """
        INSERT INTO work_hour
        SELECT DISTINCT h.hour
        FROM (SELECT DISTINCT b.first_hour, b.charge_period_end FROM long_period AS b
              INNER JOIN work_hour AS w ON w.hour >= b.first_hour AND w.hour < b.charge_period_end) AS b
        INNER JOIN hour_calendar AS h ON h.hour >= b.first_hour AND h.hour < b.charge_period_end
        WHERE h.hour NOT IN (SELECT hour FROM work_hour)
        """,
    ):
        pass


def _events(connection: duckdb.DuckDBPyConnection, rebuilt: bool) -> int:
    """Derive the events of every operation that has a record or an event in the hours whose usage changed."""
    if not derived.exists(connection, "usage_event"):
        connection.execute("CREATE OR REPLACE TEMP TABLE work_record AS SELECT * FROM usage_record LIMIT 0")
        connection.execute(f"CREATE TABLE usage_event AS {waterfall.text('02_usage_event')}")
    if rebuilt:
        connection.execute("CREATE OR REPLACE TEMP TABLE work_record AS SELECT * FROM usage_record")
    else:
        _work_records(connection)
    _step(connection, "02_usage_event", into="new_event")
    if not rebuilt:
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE old_event AS
            SELECT e.event_key, e.hour FROM usage_event AS e, work_span AS s
            WHERE e.hour >= s.first_hour AND e.hour < s.last_hour
              AND e.event_key IN (SELECT event_key FROM work_operation);
            DELETE FROM usage_event USING (SELECT min(hour) AS first_hour, max(hour) AS last_hour FROM old_event) AS s
            WHERE usage_event.hour >= s.first_hour AND usage_event.hour <= s.last_hour
              AND usage_event.event_key IN (SELECT event_key FROM old_event);
            INSERT INTO work_hour
            SELECT DISTINCT hour FROM (SELECT hour FROM old_event UNION SELECT hour FROM new_event)
            WHERE hour NOT IN (SELECT hour FROM work_hour);
            """
        )
    connection.execute("INSERT INTO usage_event SELECT * FROM new_event ORDER BY hour, event_key")
    _whole_buckets(connection)
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_event AS
        SELECT e.* FROM usage_event AS e SEMI JOIN work_hour AS w ON w.hour = e.hour
        WHERE e.ended_at <= (SELECT as_of + tolerance_minutes * INTERVAL 1 MINUTE FROM run_parameter)
        """
    )
    return _count(connection, "work_event")


def _work_records(connection: duckdb.DuckDBPyConnection) -> None:
    """Records that have to be read together: same attempt or same operation, over as many steps as it takes."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE usage_work_hour AS
        SELECT DISTINCT hour FROM touched_hour WHERE reason NOT IN ('billing', 'overlay');
        CREATE OR REPLACE TEMP TABLE work_span AS
        SELECT min(hour) - {LOOK_BACK} AS first_hour, max(hour) + {LOOK_BACK} AS last_hour FROM usage_work_hour;
        CREATE OR REPLACE TEMP VIEW known_pair AS
        SELECT coalesce(nullif(r.operation_id, ''), r.event_key) AS operation_key, r.event_key
        FROM usage_record AS r, work_span AS s WHERE r.ended_at >= s.first_hour AND r.ended_at < s.last_hour;
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_operation AS
        SELECT DISTINCT coalesce(nullif(r.operation_id, ''), r.event_key) AS operation_key, r.event_key AS event_key
        FROM usage_record AS r SEMI JOIN usage_work_hour AS w ON w.hour = date_trunc('hour', r.ended_at)
        WHERE r.ended_at >= ? AND r.ended_at < ?
        UNION SELECT coalesce(e.operation_id, e.event_key), e.event_key
        FROM usage_event AS e SEMI JOIN usage_work_hour AS w ON w.hour = e.hour
        """,
        _span(connection, "usage_work_hour"),
    )
    while _changed(
        connection,
        """
        INSERT INTO work_operation
        SELECT DISTINCT k.operation_key, k.event_key FROM known_pair AS k
        ANTI JOIN work_operation AS w ON w.operation_key = k.operation_key AND w.event_key = k.event_key
        WHERE k.operation_key IN (SELECT operation_key FROM work_operation)
           OR k.event_key IN (SELECT event_key FROM work_operation)
        """,
    ):
        pass
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_record AS
        SELECT r.* FROM usage_record AS r, work_span AS s
        WHERE r.ended_at >= s.first_hour AND r.ended_at < s.last_hour
          AND r.event_key IN (SELECT event_key FROM work_operation)
        """
    )


def _run_hours(connection: duckdb.DuckDBPyConnection, progress: Progress) -> int:
    hours = _count(connection, "work_hour")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_line AS
        SELECT l.* FROM billing_line AS l
        SEMI JOIN work_hour AS w ON w.hour = date_trunc('hour', l.charge_period_start)
        WHERE l.charge_period_start >= ? AND l.charge_period_start < ?
        """,
        _span(connection, "work_hour"),
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
    _remember_what_goes(connection)
    for name in derived.BY_HOUR[1:]:
        table = waterfall.table(name)
        connection.execute(f"DELETE FROM {table} WHERE hour IN (SELECT hour FROM work_hour)")
        connection.execute(f"INSERT INTO {table} SELECT * FROM new_{table} ORDER BY ALL")
    connection.execute("DELETE FROM control_hour WHERE hour IN (SELECT hour FROM work_hour)")
    for name, sql in HOUR_CONTROLS.items():
        connection.execute(f"INSERT INTO control_hour SELECT '{name}', c.hour, c.lhs, c.rhs FROM ({sql}) AS c")
    connection.execute(
        """
        DELETE FROM settling WHERE hour IN (SELECT hour FROM work_hour);
        INSERT INTO settling
        SELECT DISTINCT charge_hour, provider, account_id, period_end, is_settled FROM bucket_match ORDER BY ALL;
        INSERT INTO changed_day SELECT DISTINCT local_day(hour, p.zone), TRUE FROM work_hour, run_parameter AS p;
        """
    )
    return hours


def _remember_what_goes(connection: duckdb.DuckDBPyConnection) -> None:
    """Bills and tasks that have, or had until now, something in the hours at hand."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE hour_period AS
        SELECT DISTINCT billing_period FROM work_line
        UNION SELECT DISTINCT billing_period FROM ledger_hour
        WHERE hour IN (SELECT hour FROM work_hour) AND billing_period IS NOT NULL;
        INSERT INTO changed_task
        SELECT DISTINCT t.task_id, strftime(local_day(t.started_at, p.zone), '%Y-%m')
        FROM (SELECT task_id, started_at FROM new_task_usage_hour
              UNION ALL SELECT task_id, started_at FROM task_usage_hour
              WHERE hour IN (SELECT hour FROM work_hour)) AS t, run_parameter AS p;
        """
    )


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
    last = derived.state(connection, "as_of") or as_of
    services = _api_services(connection)
    connection.execute("CREATE OR REPLACE TEMP TABLE overlay_before (billing_period VARCHAR, day DATE)")
    if derived.exists(connection, "ledger_overlay"):
        connection.execute("INSERT INTO overlay_before SELECT DISTINCT billing_period, day FROM ledger_overlay")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_period AS
        SELECT billing_period FROM hour_period
        -- a line of the overlay that is gone left its days behind
        UNION SELECT o.billing_period FROM overlay_before AS o
        WHERE o.day IN (SELECT local_day(w.hour, p.zone) FROM work_hour AS w, run_parameter AS p)
        UNION SELECT strftime(hour, '%Y-%m') FROM touched_hour WHERE reason = 'overlay'
        -- days that were to come and now are not, or the other way round
        UNION SELECT DISTINCT billing_period FROM billing_line
        WHERE charge_period_end >= least(?::TIMESTAMP, ?::TIMESTAMP)
          AND charge_period_start < greatest(?::TIMESTAMP, ?::TIMESTAMP)
        -- a service that now counts as a model API, or no longer, does so on every bill
        UNION SELECT billing_period FROM (FROM overlay_before SELECT billing_period
                                          UNION ALL FROM billing_line SELECT billing_period)
        WHERE ?::VARCHAR IS DISTINCT FROM ?::VARCHAR
        """,
        [last, as_of, last, as_of, derived.state(connection, "api_services"), services],
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
        INNER JOIN (SELECT coalesce(nullif(b.sub_account_id, ''), b.billing_account_id) AS account_id, b.billing_period,
                           min(b.billing_account_id) AS payer_id
                    FROM billing_line AS b SEMI JOIN work_period AS w ON w.billing_period = b.billing_period
                    GROUP BY ALL) AS p
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
        INSERT INTO changed_day SELECT DISTINCT day, FALSE FROM (
            -- the bill's own mart shows lines that the ledger adds up: changed lines may leave the sums as they were
            SELECT o.day FROM (FROM overlay_before UNION ALL SELECT billing_period, day FROM new_ledger_overlay) AS o
            WHERE o.billing_period IN (SELECT strftime(hour, '%Y-%m') FROM touched_hour WHERE reason = 'overlay')
            UNION ALL
            SELECT day FROM (
                SELECT * FROM ledger_overlay WHERE billing_period IN (SELECT billing_period FROM work_period)
                EXCEPT SELECT * FROM new_ledger_overlay)
            UNION ALL
            SELECT day FROM (SELECT * FROM new_ledger_overlay EXCEPT SELECT * FROM ledger_overlay));
        DELETE FROM ledger_overlay WHERE billing_period IN (SELECT billing_period FROM work_period);
        INSERT INTO ledger_overlay SELECT * FROM new_ledger_overlay ORDER BY ALL;
        DELETE FROM control_period WHERE billing_period IN (SELECT billing_period FROM work_period);
        """
    )
    for name, sql in PERIOD_CONTROLS.items():
        connection.execute(f"INSERT INTO control_period SELECT '{name}', c.* FROM ({sql}) AS c")
    derived.remember(connection, "api_services", services)
    return _count(connection, "work_period")


def _api_services(connection: duckdb.DuckDBPyConnection) -> str:
    """Fill `api_service`; its names as one text."""
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE api_service AS "
        "SELECT DISTINCT service_name FROM billing_line WHERE x_charge_family = 'model_api'"
    )
    row = connection.execute(
        "SELECT CAST(to_json(list(service_name ORDER BY service_name)) AS VARCHAR) FROM api_service"
    ).fetchone()
    return str(row[0]) if row else ""


def _rounding(connection: duckdb.DuckDBPyConnection) -> None:
    """What lies below a nano-dollar, one DECIMAL per load, currency and basis, for the bills at hand."""
    connection.execute("DELETE FROM ledger_rounding WHERE billing_period IN (SELECT billing_period FROM work_period)")
    for basis in ("billed", "effective"):
        connection.execute(
            f"""
            INSERT INTO ledger_rounding
            SELECT l.load_id, l.billing_period, l.billing_currency, '{basis}',
                   sum(l.{basis}_cost) - CAST(CAST(sum(nano(l.{basis}_cost)) AS DECIMAL(28, 0))
                       * CAST(0.000000001 AS DECIMAL(10, 9)) AS DECIMAL(38, 18))
            FROM billing_line AS l SEMI JOIN work_period AS p ON p.billing_period = l.billing_period GROUP BY ALL
            """
        )


def _finish(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, as_of: datetime) -> None:
    derived.remember(connection, "as_of", as_of.isoformat())
    # What the derived tables were made with; publication speaks of that, not of settings that came later.
    derived.remember(connection, "zone", settings.zone)
    derived.remember(connection, "currency", settings.currency)
    derived.remember(connection, "owners", owners.digest(settings))
    connection.execute("DELETE FROM touched_hour")


def _span(connection: duckdb.DuckDBPyConnection, hours: str) -> list[datetime]:
    """First hour and the end of the last one: said as constants, they let the engine skip the rest of history."""
    row = connection.execute(f"SELECT min(hour), max(hour) + INTERVAL 1 HOUR FROM {hours}").fetchone()
    if row is None or row[0] is None:
        return [datetime.fromisoformat(FIRST_INSTANT)] * 2
    return [row[0], row[1]]


def _changed(connection: duckdb.DuckDBPyConnection, insert: str) -> bool:
    """Run an INSERT; whether it added a row."""
    row = connection.execute(insert).fetchone()
    return bool(row and row[0])


def _step(connection: duckdb.DuckDBPyConnection, name: str, into: str | None = None) -> None:
    connection.execute(f"CREATE OR REPLACE TEMP TABLE {into or waterfall.table(name)} AS {waterfall.text(name)}")


def _count(connection: duckdb.DuckDBPyConnection, table: str) -> int:
    row = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    return int(row[0]) if row else 0
