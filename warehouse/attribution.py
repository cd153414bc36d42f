"""Which hours changed; runs the waterfall for them, and only for them, in one transaction.

The result is a function of the evidence, the settings and `as_of`, never of the clock, of the order in which evidence
came, or of how often this ran.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import duckdb

from warehouse import derived, fleet, fleet_facts, overlay, owners, steps, waterfall, work
from warehouse.controls import HOUR_CONTROLS
from warehouse.engine import transaction
from warehouse.settings import WarehouseSettings
from warehouse.steps import FIRST_INSTANT, LAST_INSTANT

# One amount in whole nano-units has to fit BIGINT, and hours are counted in a calendar that spans all evidence.
LARGEST_COST = 9_000_000_000
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
            work.watermarks(connection)
            work.work_hours(connection, settings, as_of)
            fleet.touch(connection)
            work.events(connection, rebuilt)
            _run_fleet(connection, progress)
            events = work.work_events(connection)
            hours = _run_hours(connection, progress)
            progress("sharing support, tax and credits")
            periods = overlay.run(connection, as_of)
            owners.resolve(connection, settings)
            overlay.rounding(connection)
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
        INSERT INTO touched_hour
        SELECT DISTINCT CAST(date_trunc('hour', minute) AS TIMESTAMP), 'model' FROM kube_minute;
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
                UNION ALL SELECT min(started_at), max(ended_at) FROM usage_record
                UNION ALL SELECT min(minute), max(minute) FROM kube_minute
            ) HAVING min(first_at) IS NOT NULL
        ) AS h
        """,
        [settings.zone],
    )
    steps.step(connection, "01_model_name")
    fleet_facts.prepare(connection, settings)


def _run_fleet(connection: duckdb.DuckDBPyConnection, progress: Progress) -> None:
    """What the own GPUs did in the hours at hand; a reference that moves brings in the hours of its week."""
    while True:
        fleet.calls(connection)
        progress("finding what the own GPUs did")
        fleet.samples(connection)
        for name in ("30_counter_minute", "31_pod_minute", "32_replica_minute", "33_replica_window", "34_node_hour"):
            steps.step(connection, name, into=f"new_{waterfall.table(name)}" if name in derived.BY_HOUR else None)
        derived.replace_hours(connection, "33_replica_window")
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE reference_window AS
            SELECT w.* FROM replica_window AS w, (
                SELECT date_trunc('week', min(hour)) - INTERVAL 7 DAY AS first_hour,
                       date_trunc('week', max(hour)) + INTERVAL 7 DAY AS last_hour FROM work_hour) AS s
            WHERE w.hour >= s.first_hour AND w.hour < s.last_hour
            """
        )
        steps.step(connection, "35_work_reference", into="new_work_reference")
        if not derived.exists(connection, "work_reference"):
            connection.execute("CREATE TABLE work_reference AS SELECT * FROM new_work_reference LIMIT 0")
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE old_work_reference AS
            SELECT r.* FROM work_reference AS r, (
                SELECT date_trunc('week', min(hour)) AS first_week, date_trunc('week', max(hour)) + INTERVAL 7 DAY
                    AS last_week FROM work_hour) AS s
            WHERE r.week_start >= s.first_week AND r.week_start <= s.last_week;
            DELETE FROM work_reference WHERE week_start IN (SELECT week_start FROM old_work_reference);
            INSERT INTO work_reference SELECT * FROM new_work_reference ORDER BY ALL;
            """
        )
        if not steps.changed(
            connection,
            """
            INSERT INTO work_hour
            SELECT DISTINCT w.hour FROM replica_window AS w
            SEMI JOIN ((FROM new_work_reference EXCEPT FROM old_work_reference) UNION ALL
                       (FROM old_work_reference EXCEPT FROM new_work_reference)) AS c
                ON c.week_start = date_trunc('week', w.hour)
            WHERE w.hour NOT IN (SELECT hour FROM work_hour)
            """,
        ):
            break
        work.whole_buckets(connection)
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE work_window AS "
        "SELECT r.* FROM replica_window AS r SEMI JOIN work_hour AS w ON w.hour = r.hour"
    )


def _run_hours(connection: duckdb.DuckDBPyConnection, progress: Progress) -> int:
    hours = steps.count(connection, "work_hour")
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_line AS
        SELECT l.* FROM billing_line AS l
        SEMI JOIN work_hour AS w ON w.hour = date_trunc('hour', l.charge_period_start)
        WHERE l.charge_period_start >= ? AND l.charge_period_start < ?
        """,
        steps.span(connection, "work_hour"),
    )
    for name in (
        "10_rate",
        "11_event_class",
        "12_usage_hour",
        "13_latency_hour",
        "14_task_usage_hour",
        "15_user_usage_hour",
        "20_bill_line",
        "40_node_share",
        "41_cluster_share",
        "50_pool_token",
        "51_fleet_use",
        "52_route_region",
        "53_fleet_cell",
        "54_engine_token",
        "54_fleet_match",
        "55_pool_class",
        "56_fleet_posting",
        "60_bill_bucket",
        "61_bill_amount",
        "62_event_cell",
        "63_bucket_match",
        "64_api_posting",
        "70_ledger_hour",
        "71_task_hour",
        "72_user_hour",
        "73_match_hour",
        "75_pool_hour",
        "76_ratio_hour",
        "77_fleet_match_hour",
        "78_fleet_class_hour",
        "79_fleet_line_hour",
    ):
        if name == "20_bill_line":
            fleet.line_clusters(connection)
        if name == "62_event_cell":
            _bucket_hours(connection)
        progress(f"{hours} hours: {name}")
        steps.step(connection, name, into=f"new_{waterfall.table(name)}" if name in derived.BY_HOUR else None)
    for name in derived.LEDGER_BY_HOUR:
        table = waterfall.table(name)
        if not derived.exists(connection, table):
            connection.execute(f"CREATE TABLE {table} AS SELECT * FROM new_{table} LIMIT 0")
    _remember_what_goes(connection)
    for name in derived.LEDGER_BY_HOUR:
        derived.replace_hours(connection, name)
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


def _finish(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, as_of: datetime) -> None:
    derived.remember(connection, "as_of", as_of.isoformat())
    # What the derived tables were made with; publication speaks of that, not of settings that came later.
    derived.remember(connection, "zone", settings.zone)
    derived.remember(connection, "currency", settings.currency)
    derived.remember(connection, "owners", owners.digest(settings))
    connection.execute("DELETE FROM touched_hour")
