"""The overlay: support, tax, credits, commitments and whatever spans more than a day, by billing period."""

from datetime import datetime

import duckdb

from warehouse import derived, fleet, steps
from warehouse.controls import PERIOD_CONTROLS


def run(connection: duckdb.DuckDBPyConnection, as_of: datetime) -> int:
    """Recompute the overlay of every billing period whose lines or whose usage moved, or whose future became past."""
    last = derived.state(connection, "as_of") or as_of
    services = _api_services(connection)
    commitments = _names(connection, "SELECT commitment_discount_id FROM fleet_commitment")
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
        WHERE ?::VARCHAR IS DISTINCT FROM ?::VARCHAR OR ?::VARCHAR IS DISTINCT FROM ?::VARCHAR
        """,
        [
            *(last, as_of, last, as_of, derived.state(connection, "api_services"), services),
            *(derived.state(connection, "fleet_commitments"), commitments),
        ],
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_line AS
        SELECT l.* FROM billing_line AS l SEMI JOIN work_period AS p ON p.billing_period = l.billing_period
        WHERE l.x_charge_family IN ('support', 'tax', 'credit', 'discount', 'commitment')
           OR l.charge_period_end > l.charge_period_start + INTERVAL 1 HOUR;
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
        SELECT c.local_day AS day, l.billing_period, l.currency, p.part, l.claim_set_id,
               CAST(greatest(sum(l.effective_nano), 0) AS BIGINT) AS weight
        FROM ledger_hour AS l
        SEMI JOIN work_period AS w ON w.billing_period = l.billing_period
        INNER JOIN hour_calendar AS c ON c.hour = l.hour
        INNER JOIN (VALUES ('all'), ('fleet')) AS p(part) ON p.part = 'all' OR l.cluster IS NOT NULL
        WHERE l.kind = 'usage' AND l.basis = 'billed'
        GROUP BY ALL;
        """
    )
    fleet.line_clusters(connection)
    for name in ("20_bill_line", "80_overlay_scope", "81_overlay_day"):
        steps.step(connection, name)
    steps.step(connection, "82_ledger_overlay", into="new_ledger_overlay")
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
    derived.remember(connection, "fleet_commitments", commitments)
    return steps.count(connection, "work_period")


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


def _names(connection: duckdb.DuckDBPyConnection, query: str) -> str:
    """The texts of one column, as one text."""
    row = connection.execute(f"SELECT CAST(to_json(list(n ORDER BY n)) AS VARCHAR) FROM ({query}) AS t(n)").fetchone()
    return str(row[0]) if row else ""


def rounding(connection: duckdb.DuckDBPyConnection) -> None:
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
