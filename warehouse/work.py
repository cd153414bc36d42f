"""Which hours have to be worked on, and the calls in them."""

from datetime import datetime

import duckdb

from warehouse import derived, fleet, steps, waterfall
from warehouse.settings import WarehouseSettings

LOOK_BACK = "INTERVAL 35 DAY"


def watermarks(connection: duckdb.DuckDBPyConnection) -> None:
    """How far the bill reaches, per provider and account: the end of its latest token-metered charge period."""
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE bill_watermark AS
        SELECT CASE provider_name WHEN 'aws' THEN 'aws.bedrock' WHEN 'azure' THEN 'azure.ai.openai'
                   WHEN 'gcp' THEN 'gcp.vertex_ai' ELSE provider_name END AS provider,
               coalesce(nullif(sub_account_id, ''), billing_account_id) AS account_id,
               max(charge_period_end) AS watermark
        FROM billing_line
        WHERE x_token_class IS NOT NULL AND charge_period_start < (SELECT as_of FROM run_parameter)
        GROUP BY ALL
        """
    )


def work_hours(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, as_of: datetime) -> None:
    """Fill `work_hour`: hours that were touched, that the bill's reach settles or opens, that are no longer future."""
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


def whole_buckets(connection: duckdb.DuckDBPyConnection) -> None:
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
    while steps.changed(
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


UNITS = """
CREATE OR REPLACE TEMP TABLE work_unit AS
WITH said AS (
    SELECT event_key, unit.key AS unit, TRY_CAST(unit.value AS BIGINT) AS units
    FROM (SELECT event_key, unnest(map_entries(other_units)) AS unit FROM work_event
          WHERE is_fleet = 0 AND other_units IS NOT NULL)
),
known AS (
    SELECT event_key, unit, units,
        CASE WHEN regexp_full_match(unit, 'input_(audio|image|video)_tokens') THEN 'uncached_input'
             WHEN regexp_full_match(unit, 'cache_(audio|image|video)_read_tokens') THEN 'cache_read'
             WHEN regexp_full_match(unit, 'output_(audio|image|video|citation)_tokens') THEN 'output' END AS part_of,
        regexp_replace(unit, '_tokens$', '') AS price_class,
        regexp_replace(regexp_replace(unit, '_tokens$', ''), '^cache_(.*)_read$', 'input_\\1') AS uncached_class
    FROM said WHERE units > 0
)
-- what is said of audio, images, video in the input holds what of it was read from the cache
SELECT k.event_key, k.unit, k.part_of, k.price_class, k.uncached_class,
    k.units - CASE WHEN k.part_of = 'uncached_input' THEN coalesce(c.units, 0) ELSE 0 END AS units
FROM known AS k
LEFT JOIN known AS c
    ON c.event_key = k.event_key AND c.part_of = 'cache_read' AND c.uncached_class = k.price_class
WHERE k.part_of IS NOT NULL OR (k.unit <> 'requests' AND k.unit NOT LIKE '%\\_tokens' ESCAPE '\\')
"""
"""What calls used beside tokens (searches, images, seconds) and what of their tokens has prices of its own."""


def events(connection: duckdb.DuckDBPyConnection, rebuilt: bool) -> None:
    """Derive the events of every operation that has a record or an event in the hours whose usage changed."""
    if not derived.exists(connection, "usage_event"):
        connection.execute("CREATE OR REPLACE TEMP TABLE work_record AS SELECT * FROM usage_record LIMIT 0")
        connection.execute(f"CREATE TABLE usage_event AS {waterfall.text('02_usage_event')}")
    if rebuilt:
        connection.execute("CREATE OR REPLACE TEMP TABLE work_record AS SELECT * FROM usage_record")
    else:
        _work_records(connection)
    steps.step(connection, "02_usage_event", into="new_event")
    if not rebuilt:
        connection.execute(
            """
            CREATE OR REPLACE TEMP TABLE old_event AS
            SELECT e.event_key, e.hour, e.provider, e.started_at FROM usage_event AS e, work_span AS s
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
    # calls that were still to come and now are not, or the other way round, were worked on in earlier hours
    last = derived.state(connection, "as_of")
    connection.execute(
        f"""
        INSERT INTO work_hour
        SELECT DISTINCT h.hour FROM (
            SELECT DISTINCT e.hour AS last_hour, date_trunc('hour', e.started_at) AS first_hour
            FROM usage_event AS e, run_parameter AS p
            WHERE e.provider = '{fleet.SELF_HOSTED}' AND e.started_at < e.hour
              AND e.ended_at > least(p.as_of, ?::TIMESTAMP) AND p.as_of <> ?::TIMESTAMP) AS e
        INNER JOIN hour_calendar AS h ON h.hour >= e.first_hour AND h.hour < e.last_hour
        WHERE h.hour NOT IN (SELECT hour FROM work_hour)
        """,
        [last, last],
    )
    # what the own fleet answers is paid in the hours in which it was worked on
    connection.execute(
        f"""
        INSERT INTO work_hour
        SELECT DISTINCT h.hour FROM (
            SELECT DISTINCT hour AS last_hour, date_trunc('hour', started_at) AS first_hour FROM (
                SELECT hour, started_at, provider FROM new_event
                {"" if rebuilt else "UNION ALL SELECT hour, started_at, provider FROM old_event"})
            WHERE provider = '{fleet.SELF_HOSTED}' AND started_at < hour) AS e
        INNER JOIN hour_calendar AS h ON h.hour >= e.first_hour AND h.hour < e.last_hour
        WHERE h.hour NOT IN (SELECT hour FROM work_hour)
        """
    )
    whole_buckets(connection)


def work_events(connection: duckdb.DuckDBPyConnection) -> int:
    """Fill `work_event`: the calls that ended in the hours at hand; those of the own fleet by its route's name."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE work_event AS
        SELECT e.* REPLACE (coalesce(r.route, e.model) AS model),
               CASE WHEN r.route IS NULL THEN 0 ELSE 1 END AS is_fleet
        FROM usage_event AS e SEMI JOIN work_hour AS w ON w.hour = e.hour
        LEFT JOIN fleet_route AS r ON e.provider = '{fleet.SELF_HOSTED}' AND r.model = e.model
        WHERE e.ended_at <= (SELECT as_of + tolerance_minutes * INTERVAL 1 MINUTE FROM run_parameter)
        """
    )
    connection.execute(UNITS)
    return steps.count(connection, "work_event")


def _work_records(connection: duckdb.DuckDBPyConnection) -> None:
    """Records that have to be read together: same attempt or same operation, over as many steps as it takes."""
    connection.execute(
        f"""
        CREATE OR REPLACE TEMP TABLE usage_work_hour AS
        SELECT DISTINCT hour FROM touched_hour WHERE reason NOT IN ('billing', 'overlay', 'metrics');
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
        steps.span(connection, "usage_work_hour"),
    )
    while steps.changed(
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
