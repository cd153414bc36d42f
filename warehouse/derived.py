"""The derived tables: filled by the waterfall, stamped with the model that filled them, rebuilt when it changes."""

import hashlib
import json
from typing import Any

import duckdb

from warehouse import fleet, waterfall
from warehouse.engine import MACROS
from warehouse.settings import WarehouseSettings

# step -> column by which its rows are replaced. The rest of the steps live for one run only.
BY_HOUR = (
    "02_usage_event",
    "12_usage_hour",
    "13_latency_hour",
    "14_task_usage_hour",
    "15_user_usage_hour",
    "33_replica_window",
    "70_ledger_hour",
    "71_task_hour",
    "72_user_hour",
    "73_match_hour",
    "75_pool_hour",
    "76_ratio_hour",
    "77_fleet_match_hour",
    "78_fleet_class_hour",
    "79_fleet_line_hour",
)
LEDGER_BY_HOUR = tuple(name for name in BY_HOUR if name not in ("02_usage_event", "33_replica_window"))
BY_PERIOD = ("82_ledger_overlay",)
BY_WEEK = ("35_work_reference",)

# Tables that are not one step's output but belong to the run.
#   settling      what each hour's buckets wait for: the bill's watermark past their end
#   changed_day   days that a publication has to write again; has_calls: their calls and bill lines, not only sums
#   changed_task  tasks whose calls changed, with the month in which those calls began
BOOKKEEPING = f"""{fleet.BOOKKEEPING}
CREATE TABLE IF NOT EXISTS attribution_state (name VARCHAR, value VARCHAR);
CREATE TABLE IF NOT EXISTS settling (
    hour TIMESTAMP, provider VARCHAR, account_id VARCHAR, period_end TIMESTAMP, is_settled INTEGER);
CREATE TABLE IF NOT EXISTS changed_day (day DATE, has_calls BOOLEAN);
CREATE TABLE IF NOT EXISTS changed_task (task_id VARCHAR, month VARCHAR);
CREATE TABLE IF NOT EXISTS control_hour (
    name VARCHAR, hour TIMESTAMP, lhs DECIMAL(38, 0), rhs DECIMAL(38, 0));
CREATE TABLE IF NOT EXISTS control_period (
    name VARCHAR, billing_period VARCHAR, currency VARCHAR, lhs DECIMAL(38, 0), rhs DECIMAL(38, 0));
CREATE TABLE IF NOT EXISTS ledger_rounding (
    load_id VARCHAR, billing_period VARCHAR, currency VARCHAR, cost_basis VARCHAR, amount DECIMAL(38, 18));
CREATE TABLE IF NOT EXISTS ledger_revision (
    manifest VARCHAR, previous VARCHAR, day DATE, currency VARCHAR, team VARCHAR, provider VARCHAR, model VARCHAR,
    kind VARCHAR, basis VARCHAR, effective_nano_before BIGINT, effective_nano_after BIGINT);
"""


def model_hash(settings: WarehouseSettings) -> str:
    """What the derived rows depend on beside evidence: the SQL, the zone and the attribution choices."""
    digest = hashlib.sha256()
    digest.update(MACROS.read_bytes())
    digest.update(BOOKKEEPING.encode())
    for name in waterfall.names():
        digest.update(waterfall.text(name).encode())
    choices: dict[str, Any] = settings.attribution.model_dump(mode="json")
    choices["fleet"] = settings.fleet.model_dump(mode="json")
    digest.update(json.dumps([choices, settings.zone, settings.currency], sort_keys=True).encode())
    return digest.hexdigest()


def exists(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    """Whether a table of that name is in the warehouse."""
    found = connection.execute(
        "SELECT count(*) FROM duckdb_tables() WHERE table_name = ? AND NOT temporary", [name]
    ).fetchone()
    return bool(found and found[0])


def state(connection: duckdb.DuckDBPyConnection, name: str) -> str | None:
    """One remembered value of the last attribution, None if there is none."""
    row = connection.execute("SELECT value FROM attribution_state WHERE name = ?", [name]).fetchone()
    return None if row is None else str(row[0])


def remember(connection: duckdb.DuckDBPyConnection, name: str, value: str) -> None:
    """Keep one value for the next attribution; part of the caller's transaction."""
    connection.execute("DELETE FROM attribution_state WHERE name = ?", [name])
    connection.execute("INSERT INTO attribution_state VALUES (?, ?)", [name, value])


def replace_hours(connection: duckdb.DuckDBPyConnection, step: str) -> None:
    """Put a step's new rows (`new_<table>`) in the place of those of the hours at hand."""
    table = waterfall.table(step)
    if not exists(connection, table):
        connection.execute(f"CREATE TABLE {table} AS SELECT * FROM new_{table} LIMIT 0")
    connection.execute(f"DELETE FROM {table} WHERE hour IN (SELECT hour FROM work_hour)")
    connection.execute(f"INSERT INTO {table} SELECT * FROM new_{table} ORDER BY ALL")


def drop(connection: duckdb.DuckDBPyConnection) -> None:
    """Remove every table that a step fills; they come back with the next run."""
    for step in (*BY_HOUR, *BY_PERIOD, *BY_WEEK):
        connection.execute(f"DROP TABLE IF EXISTS {waterfall.table(step)}")
    connection.execute("DROP TABLE IF EXISTS claim_owner")
    # another version may have other columns
    for name in (*fleet.TABLES, "settling", "control_hour", "control_period", "ledger_rounding"):
        connection.execute(f"DROP TABLE IF EXISTS {name}")
    connection.execute(BOOKKEEPING)
