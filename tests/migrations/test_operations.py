"""The operations database: what Alembic builds is what the rooms declare, on SQLite and on PostgreSQL."""

import importlib
import multiprocessing
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, MetaData, inspect, text
from sqlalchemy.exc import DBAPIError

from migrations import run
from tests.needs import ROOT
from warehouse import operations

DECLARED_ELSEWHERE = {"job_run": "inferledger", "report_run": "reports"}
TABLES = {
    "alert_event",
    "alert_state",
    "audit_entry",
    "closed_period",
    "delivery_attempt",
    "job_run",
    "outbox_message",
    "publication",
    "report_run",
    "silence",
}


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/operations.db"
    return str(request.getfixturevalue("postgres_database"))


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = operations.connect(url)
    yield engine
    engine.dispose()


def test_an_upgrade_builds_every_table_and_stands_at_the_head(url: str, engine: Engine) -> None:
    assert run.current("operations", url) == ()

    run.upgrade("operations", url)

    assert set(inspect(engine).get_table_names()) == TABLES | {"alembic_version"}
    assert run.current("operations", url) == run.heads("operations") != ()


def test_the_migrated_schema_is_what_the_rooms_declare(url: str, engine: Engine) -> None:
    declared = _declared()
    run.upgrade("operations", url)
    migrated = {table: _shape(engine, table) for table in declared.tables}
    run.downgrade("operations", url, "base")

    declared.create_all(engine)

    assert {table: _shape(engine, table) for table in declared.tables} == migrated
    assert set(declared.tables) >= TABLES - set(DECLARED_ELSEWHERE)


def test_up_down_and_up_again_gives_the_same_schema(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    first = {table: _shape(engine, table) for table in sorted(TABLES)}

    run.downgrade("operations", url, "base")
    assert inspect(engine).get_table_names() == ["alembic_version"]
    run.upgrade("operations", url)

    assert {table: _shape(engine, table) for table in sorted(TABLES)} == first


def test_upgrading_twice_changes_nothing_and_keeps_the_rows(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    with engine.begin() as connection:
        operations.audit(connection, who="ada", what="test", reason="why not", now=datetime.now(UTC))

    run.upgrade("operations", url)

    with engine.connect() as connection:
        assert connection.execute(operations.audit_entry.select()).one().who == "ada"


def test_an_upgrade_that_fails_half_way_leaves_nothing_behind(url: str, engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE report_run (surprise INTEGER)"))

    with pytest.raises(DBAPIError, match="report_run"):
        run.upgrade("operations", url)

    assert set(inspect(engine).get_table_names()) <= {"report_run", "alembic_version"}
    assert run.current("operations", url) == ()


def test_two_processes_may_upgrade_at_once(url: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=run.upgrade, args=("operations", url)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)

    assert [process.exitcode for process in processes] == [0, 0]
    assert run.current("operations", url) == run.heads("operations")


def test_an_instant_comes_back_as_the_same_utc_instant(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    paris = datetime(2026, 7, 1, 1, 30, 0, 123456, timezone(timedelta(hours=2)))
    with engine.begin() as connection:
        operations.audit(connection, who="ada", what="test", reason="zones", now=paris)

    with engine.connect() as connection:
        found = connection.execute(operations.audit_entry.select()).one().recorded_at

    assert found == paris
    assert found.utcoffset() == timedelta(0)


def test_an_instant_without_a_zone_is_refused(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    naive = datetime(2026, 7, 1)
    with pytest.raises(Exception, match="has no zone"), engine.begin() as connection:
        operations.audit(connection, who="ada", what="test", reason="zones", now=naive)


def test_the_audit_trail_keeps_what_was_and_what_became(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    with engine.begin() as connection:
        operations.audit(connection, who="a", what="t", reason="r", now=datetime.now(UTC), after={"limit": "5.00"})

    with engine.connect() as connection:
        row = connection.execute(operations.audit_entry.select()).one()
        absent = connection.execute(text("SELECT count(*) FROM audit_entry WHERE before IS NULL")).scalar_one()

    assert (row.before, row.after, absent) == (None, {"limit": "5.00"}, 1)


def test_a_reader_does_not_wait_for_a_writer_and_writers_take_turns(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)
    with operations.begin_write(engine) as writer:
        operations.audit(writer, who="ada", what="test", reason="first", now=datetime.now(UTC))
        with engine.connect() as reader:
            assert reader.execute(operations.audit_entry.select()).all() == []

    with engine.connect() as reader:
        assert len(reader.execute(operations.audit_entry.select()).all()) == 1


def test_a_write_that_raises_leaves_no_trace(url: str, engine: Engine) -> None:
    run.upgrade("operations", url)

    def write_and_fail() -> None:
        with operations.begin_write(engine) as connection:
            operations.audit(connection, who="ada", what="test", reason="gone", now=datetime.now(UTC))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_and_fail()

    with engine.connect() as connection:
        assert connection.execute(operations.audit_entry.select()).all() == []


def test_the_folder_of_a_new_sqlite_database_is_made(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/not/there/yet/operations.db"
    run.upgrade("operations", url)
    assert run.current("operations", url) == run.heads("operations")


def test_a_kind_of_database_that_is_not_supported_is_named() -> None:
    with pytest.raises(ValueError, match="`mysql` is not supported; write sqlite:///PATH or postgresql://"):
        operations.connect("mysql://somewhere/db")


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
def test_postgresql_is_spoken_through_psycopg_however_it_is_written(scheme: str) -> None:
    assert operations.connect(f"{scheme}://user:p%40ss@host/db").dialect.driver == "psycopg"


def test_developers_may_use_the_alembic_command(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("alembic")
    arguments = ["-c", str(ROOT / "migrations" / "alembic.ini"), "-n", "operations"]
    environ = {"INFERLEDGER_OPERATIONS_URL": f"sqlite:///{tmp_path}/operations.db"}

    for step in (["upgrade", "head"], ["current"]):
        done = subprocess.run(
            [program, *arguments, *step], env=environ, cwd=tmp_path, capture_output=True, text=True, check=True
        )

    assert run.heads("operations")[0] in done.stdout


def test_the_evidence_environment_gives_the_file_back(tmp_path: Path) -> None:
    """DuckDB lets one process in: another one must be able to write right after an upgrade."""
    path = tmp_path / "warehouse.duckdb"
    run.upgrade("evidence", f"duckdb:///{path}")

    other = f"import duckdb; duckdb.connect({str(path)!r}).execute('CREATE TABLE mine (x INTEGER)')"
    subprocess.run([sys.executable, "-c", other], check=True, capture_output=True)

    assert run.current("evidence", f"duckdb:///{path}") == run.heads("evidence")


def _declared() -> MetaData:
    """All declarations in one MetaData; `job_run` and `report_run` when their rooms declare them."""
    sources = [operations.metadata]
    sources += [importlib.import_module(name).metadata for name in ("delivery.outbox", "alerts.state")]
    for table, room in DECLARED_ELSEWHERE.items():
        for path in sorted((ROOT / room).rglob("*.py")):
            if re.search(rf"Table\(\s*\"{table}\"|__tablename__ = \"{table}\"", path.read_text()):
                module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
                sources += {
                    id(value): value
                    for value in vars(module).values()
                    if isinstance(value, MetaData) and table in value.tables
                }.values()
    merged = MetaData()
    for source in sources:
        for each in source.sorted_tables:
            if each.name not in merged.tables:
                each.to_metadata(merged)
    return merged


def _shape(engine: Engine, table: str) -> dict[str, Any]:
    """What a database says about a table; names of constraints aside where a declaration may leave them open."""
    found = inspect(engine)
    return {
        "columns": [
            (c["name"], str(c["type"].compile(engine.dialect)), c["nullable"], bool(c.get("autoincrement")))
            for c in found.get_columns(table)
        ],
        "key": found.get_pk_constraint(table)["constrained_columns"],
        "unique": sorted(c["column_names"] for c in found.get_unique_constraints(table)),
        "foreign": sorted(
            (c["constrained_columns"], c["referred_table"], c["referred_columns"])
            for c in found.get_foreign_keys(table)
        ),
        "check": sorted(str(c["sqltext"]) for c in found.get_check_constraints(table)),
        "index": sorted(
            (str(i["name"]), i["column_names"]) for i in found.get_indexes(table) if not i.get("duplicates_constraint")
        ),
    }
