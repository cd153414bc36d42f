"""The evidence warehouse: what Alembic builds is what warehouse/schema.py declares."""

from pathlib import Path

import duckdb
import pytest
import sqlalchemy as sa

from migrations import run
from warehouse import schema

COLUMNS = """
    SELECT table_name, column_name, column_index, column_default, is_nullable, data_type, numeric_precision,
        numeric_scale
    FROM duckdb_columns() WHERE NOT internal AND table_name <> 'alembic_version' ORDER BY ALL
"""


def columns(path: Path) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path)) as connection:
        return connection.execute(COLUMNS).fetchall()


@pytest.fixture
def migrated(tmp_path: Path) -> Path:
    path = tmp_path / "migrated.duckdb"
    run.upgrade("evidence", f"duckdb:///{path}")
    return path


def test_the_migrated_tables_are_the_declared_ones(tmp_path: Path, migrated: Path) -> None:
    declared = tmp_path / "declared.duckdb"
    engine = sa.create_engine(f"duckdb:///{declared}", poolclass=sa.pool.NullPool)
    schema.metadata.create_all(engine)
    engine.dispose()

    assert columns(migrated) == columns(declared)
    assert {row[0] for row in columns(migrated)} == set(schema.metadata.tables)


def test_there_are_no_keys_and_no_indexes(migrated: Path) -> None:
    """DuckDB's traps with them are measured in the design: integrity is a check in SQL."""
    with duckdb.connect(str(migrated)) as connection:
        kept = connection.execute(
            "SELECT table_name, constraint_type FROM duckdb_constraints() "
            "WHERE constraint_type <> 'NOT NULL' AND table_name <> 'alembic_version'"
        ).fetchall()
        indexes = connection.execute("SELECT index_name FROM duckdb_indexes()").fetchall()
    assert (kept, indexes) == ([], [])


def test_an_upgrade_stands_at_the_head_and_again_changes_nothing(migrated: Path) -> None:
    url = f"duckdb:///{migrated}"
    before = columns(migrated)
    run.upgrade("evidence", url)
    assert columns(migrated) == before
    assert run.current("evidence", url) == run.heads("evidence") == ("evidence_0004",)


def test_a_downgrade_takes_every_table_away(migrated: Path) -> None:
    run.downgrade("evidence", f"duckdb:///{migrated}", "base")
    assert columns(migrated) == []
