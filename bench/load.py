"""Loading: a gateway's log and a bill into evidence, against a bare DuckDB read of the same files into a table.

The baseline reads the same columns of the same files in one statement each and stores them: nothing is checked or
refused, no object is remembered, no record known already is looked for, no money is made exact, no hour is marked as
touched, and a line that is broken ends it.
"""

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine

from bench import Measured, measure
from collector.queries import queries
from collector.run import collect
from collector.settings import CollectorSettings
from collector.usage.records import shape_of
from warehouse.engine import Layout
from warehouse.schema import metadata

DAYS = 10
AS_OF = datetime(2026, 12, 1, tzinfo=UTC)
SOURCES = ("gateway", "bill")


def main(argv: Sequence[str]) -> int:
    """Write a demonstration company's files, load them both ways, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench load", description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS, help=f"days of the company (default {DAYS})")
    parser.add_argument("--scale", type=float, default=1.0, help="1 is about 11,000 calls a day (default 1)")
    parser.add_argument("--files", type=Path, help="a folder with gateway/ and cur/ to load instead")
    given = parser.parse_args(list(argv))
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="inferledger-bench-"))
    try:
        files: Path = given.files or folder / "files"
        if given.files is None:
            with console.status(f"the files of {given.days} days"):
                measure(write, files, given.days, given.scale)
        with console.status("loading"):
            ours, again = measure(load, files, folder / "data"), measure(load, files, folder / "data")
            bare = measure(baseline, files, folder / "bare.duckdb")
        console.print(_table(files, ours, again, bare))
    finally:
        shutil.rmtree(folder)
    return 0


def write(files: Path, days: int, scale: float) -> None:
    """A demonstration company's gateway log and bill."""
    from demo import organisation

    organisation.write(files, days=days, scale=scale)


def load(files: Path, data: Path) -> dict[str, float]:
    """Collect both sources; rows read and seconds of each. A second time, only what is new."""
    if not data.exists():
        data.mkdir()
        engine = create_engine(f"duckdb:///{Layout(data).warehouse}")
        metadata.create_all(engine)
        engine.dispose()
    claims = {"tags": ["app", "env", "feature"], "metadata": ["agent"]}
    settings = CollectorSettings.model_validate(
        {
            "sources": [
                {"name": "gateway", "kind": "litellm", "location": str(files / "gateway"), "claims": claims},
                {"name": "bill", "kind": "bill", "location": str(files / "cur")},
            ]
        }
    )
    done: dict[str, float] = {}
    for source in SOURCES:
        began = time.perf_counter()
        report = collect(Layout(data), settings, {source}, AS_OF)
        if not report.ok:
            raise RuntimeError(str(report.findings[0]))
        done[f"{source} seconds"] = time.perf_counter() - began
        done[f"{source} rows"] = report.total("rows_read")
    return done


def baseline(files: Path, database: Path) -> dict[str, float]:
    """The same files by one statement each."""
    done: dict[str, float] = {}
    with duckdb.connect(str(database)) as connection:
        connection.execute("SET memory_limit = '4GB'")  # many small files need more than InferLedger's 2 GB this way
        connection.execute("SET preserve_insertion_order = false")
        connection.execute("SET enable_progress_bar = false")
        shape = shape_of(connection, queries("usage/litellm.sql")["columns"])
        statements = {
            "gateway": f"CREATE TABLE usage AS SELECT * FROM read_json('{files}/gateway/**/*.json*', "
            f"format = 'newline_delimited', columns = {shape})",
            "bill": f"CREATE TABLE bill AS SELECT * FROM read_parquet('{files}/cur/**/*.parquet', "
            "union_by_name = true)",
        }
        for source, statement in statements.items():
            began = time.perf_counter()
            row = connection.execute(statement).fetchone()
            done[f"{source} seconds"] = time.perf_counter() - began
            done[f"{source} rows"] = float(row[0]) if row else 0.0
    return done


def _table(files: Path, ours: Measured, again: Measured, bare: Measured) -> Table:
    size = sum(path.stat().st_size for path in files.rglob("*") if path.is_file() and "truth" not in path.parts)
    number = sum(1 for path in files.rglob("*") if path.is_file())
    table = Table("what", "rows", "wall", "rows/s", title=f"Loading {number:,} files, {size / 1e6:,.0f} MB")
    for source in SOURCES:
        for name, one in (("InferLedger", ours), ("bare DuckDB read", bare)):
            rows, seconds = one.value[f"{source} rows"], one.value[f"{source} seconds"]
            table.add_row(f"{source}, {name}", f"{rows:,.0f}", f"{seconds:.1f} s", f"{rows / seconds:,.0f}")
    for name, one in (("InferLedger, both", ours), ("bare, both", bare), ("InferLedger, nothing new", again)):
        table.add_row(
            f"{name}: cpu {one.cpu_seconds:.1f} s, peak {one.peak_mb:,.0f} MB", "", f"{one.seconds:.1f} s", ""
        )
    ratios = (ours.seconds / bare.seconds, ours.cpu_seconds / bare.cpu_seconds, ours.peak_mb / bare.peak_mb)
    table.add_row("ours / baseline: cpu {1:.1f} x, peak {2:.1f} x".format(*ratios), "", f"{ratios[0]:.1f} x", "")
    return table
