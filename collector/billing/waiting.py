"""Where the lines of a delivery wait until they are judged: in memory, or in a file of their own when they are many.

Temporary tables hold rows uncompressed, and so does what of them spills: 20 million lines of a CUR are some 60 GB. In a
database file beside the spool they are compressed, a twentieth of that.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from collector.queries import literal

LARGE = 256 * 1024 * 1024
"""Bytes of a delivery's files from which on its lines wait in a file; Parquet has some 2 million lines in them."""

FILE = "staging"
"""The name under which that file is attached."""


def begin(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], folder: Path) -> None:
    """Forget what the delivery before left; lines of these files will wait in `folder` if they are many."""
    forget(connection, "staged_line")
    if connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [FILE]).fetchone():
        connection.execute(f"DETACH {FILE}")
    if sum(path.stat().st_size for path in files) > LARGE:
        (folder / "staging.duckdb").unlink(missing_ok=True)
        connection.execute(f"ATTACH {literal(str(folder / 'staging.duckdb'))} AS {FILE}")


def keep(connection: duckdb.DuckDBPyConnection, name: str, select: str) -> None:
    """The rows of a SELECT as `name`: a temporary table, or a temporary view of a table in the file."""
    forget(connection, name)
    if connection.execute("SELECT 1 FROM duckdb_databases() WHERE database_name = ?", [FILE]).fetchone():
        connection.execute(f"CREATE OR REPLACE TABLE {FILE}.{name} AS {select}")
        connection.execute(f"CREATE TEMP VIEW {name} AS FROM {FILE}.{name}")
    else:
        connection.execute(f"CREATE TEMP TABLE {name} AS {select}")


def forget(connection: duckdb.DuckDBPyConnection, name: str) -> None:
    """Drop what `keep` made, if it is there."""
    if connection.execute("SELECT 1 FROM duckdb_views() WHERE temporary AND view_name = ?", [name]).fetchone():
        connection.execute(f"DROP VIEW {name}; DROP TABLE IF EXISTS {FILE}.{name}")
    elif connection.execute("SELECT 1 FROM duckdb_tables() WHERE temporary AND table_name = ?", [name]).fetchone():
        connection.execute(f"DROP TABLE {name}")
