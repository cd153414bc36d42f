"""Loading a bill: CUR 2.0 lines by the million into evidence, against a bare DuckDB copy and against pandas.

The bare copy is one `CREATE TABLE AS SELECT * FROM read_parquet` of the same files into a new database file, with the
same limits: it checks and refuses nothing, makes no money exact, knows no kinds of lines and cannot replace a month.
pandas reads the same files whole, maps a few columns, and sums by service and day, in floats.
"""

import argparse
import json
import re
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
from rich.console import Console
from rich.table import Table
from sqlalchemy import create_engine

from bench import Measured, measure, peak_mb
from collector.run import collect
from collector.settings import CollectorSettings
from warehouse.engine import Layout, configure
from warehouse.schema import metadata
from warehouse.settings import EngineSettings

LINES = 1_000_000
LINES_A_FILE = 500_000
PANDAS_LINES = 1_000_000  # what pandas is given at most: it holds everything in memory
MONTH, HOURS = "2026-10", 31 * 24
AS_OF = datetime(2026, 12, 1, tzinfo=UTC)
EXPORT = "bench-cur2"
WORTH_NAMING = 0.01  # of the load's time


def main(argv: Sequence[str]) -> int:
    """Write a month's lines, load them three ways, load them again as a restatement, and print two tables."""
    parser = argparse.ArgumentParser(prog="python -m bench billing", description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES, help=f"lines of the bill (default {LINES:,})")
    parser.add_argument("--memory", default="2GB", help="limit of the engine, as DuckDB spells it (default 2GB)")
    parser.add_argument("--folder", type=Path, help="where the files go, and are removed again (default: the system's)")
    parser.add_argument("--restate", action="store_true", help="also load a second delivery of the same month")
    given = parser.parse_args(list(argv))
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="inferledger-bench-", dir=given.folder))
    try:
        with console.status(f"{given.lines:,} lines"):
            measure(write, folder / "cur", given.lines)
        with console.status("loading"):
            ours = measure(load, folder / "cur", folder / "data", given.memory)
            again = None
            if given.restate:
                deliver(folder / "cur", 2)
                again = measure(load, folder / "cur", folder / "data", given.memory)
        with console.status("the baselines"):
            bare = measure(bare_copy, folder / "cur", folder / "bare", given.memory)
            pandas = measure(by_pandas, folder / "cur")
        console.print(_table(given.lines, folder, ours, bare, pandas))
        console.print(_steps(f"Where the time of {given.lines:,} lines goes", ours))
        if again:
            console.print(_steps("A second delivery of the month", again))
    finally:
        shutil.rmtree(folder)
    return 0


# --- The files ---


def write(export: Path, lines: int) -> None:
    """A month's export in AWS's overwrite layout: data files, then the manifest. One file at a time is held."""
    from collector.queries import queries
    from demo.cur_schema import SCHEMA

    sql = queries("../bench/billing_lines.sql")
    data = export / f"data/BILLING_PERIOD={MONTH}"
    data.mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(sql["shapes"])
        connection.execute("SET VARIABLE month_start = CAST(? AS TIMESTAMP_MS)", [f"{MONTH}-01"])
        connection.execute("SET VARIABLE hours = ?", [HOURS])
        connection.register("cur2", SCHEMA.empty_table())
        for number, first in enumerate(range(0, lines, LINES_A_FILE), start=1):
            connection.execute("SET VARIABLE first_line = ?", [first])
            connection.execute("SET VARIABLE last_line = ?", [min(first + LINES_A_FILE, lines)])
            connection.execute(
                f"COPY (SELECT * FROM cur2 UNION ALL BY NAME ({sql['lines'].rstrip().rstrip(';')})) "
                f"TO '{data}/{EXPORT}-{number:05d}.snappy.parquet' (FORMAT parquet, COMPRESSION snappy)"
            )
    deliver(export, 1)


def deliver(export: Path, number: int) -> None:
    """The manifest, of the delivery of that number; the data files stay what they are."""
    told = export / f"metadata/BILLING_PERIOD={MONTH}"
    told.mkdir(parents=True, exist_ok=True)
    files = sorted(path.relative_to(export).as_posix() for path in export.rglob("*.parquet"))
    manifest = {
        "executionId": f"execution-{number}",
        "exportArn": f"arn:aws:bcm-data-exports:us-east-1:999988887777:export/{EXPORT}",
        "createdAt": f"2026-11-{number:02d}T06:00:00Z",
        "dataFiles": [f"s3://bench/{file}" for file in files],
    }
    (told / f"{EXPORT}-Manifest.json").write_text(json.dumps(manifest))


# --- What is measured ---


@dataclass(frozen=True)
class Step:
    """One statement: wall and CPU seconds, and the process's peak memory during it."""

    name: str
    seconds: float
    cpu_seconds: float
    peak_mb: float


@dataclass(frozen=True)
class Timed:
    """A connection that remembers what each statement took."""

    connection: duckdb.DuckDBPyConnection
    steps: list[Step]

    def execute(self, statement: str, *arguments: Any) -> Any:
        return self._timed(_name(statement), self.connection.execute, statement, *arguments)

    def commit(self) -> None:
        self._timed("commit", self.connection.commit)

    def close(self) -> None:
        self._timed("close (checkpoint)", self.connection.close)

    def _timed(self, name: str, function: Any, *arguments: Any) -> Any:
        _forget_peak()
        began, cpu = time.perf_counter(), time.process_time()
        try:
            return function(*arguments)
        finally:
            self.steps.append(Step(name, time.perf_counter() - began, time.process_time() - cpu, peak_mb()))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


def load(export: Path, data: Path, memory: str) -> dict[str, Any]:
    """Collect the export the way `inferledger collect` does; rows, steps, and the size of the warehouse."""
    layout = Layout(data)
    if not data.exists():
        data.mkdir()
        engine = create_engine(f"duckdb:///{layout.warehouse}")
        metadata.create_all(engine)
        engine.dispose()
    settings = CollectorSettings.model_validate(
        {"sources": [{"name": "bill", "kind": "bill", "location": str(export)}]}
    )
    steps: list[Step] = []
    connect = duckdb.connect
    duckdb.connect = lambda *arguments, **named: Timed(connect(*arguments, **named), steps)  # type: ignore[assignment]
    began = time.perf_counter()
    report = collect(layout, settings, {"bill"}, AS_OF, engine=EngineSettings.model_validate({"memory_limit": memory}))
    seconds = time.perf_counter() - began
    duckdb.connect = connect
    if not report.ok:
        raise RuntimeError(str(report.findings[0]))
    return {
        "rows": report.total("rows_read"),
        "loaded": report.total("rows_loaded"),
        "seconds": seconds,
        "steps": steps,
        "peak": max(step.peak_mb for step in steps),
        "bytes": layout.warehouse.stat().st_size,
    }


def bare_copy(export: Path, folder: Path, memory: str) -> dict[str, Any]:
    """The same files into a table, by one statement; closed, so that all of it is on disk."""
    folder.mkdir()
    began = time.perf_counter()
    with duckdb.connect(str(folder / "bare.duckdb")) as connection:
        configure(connection, EngineSettings.model_validate({"memory_limit": memory}), folder / "temp")
        row = connection.execute(
            f"CREATE TABLE line AS SELECT * FROM read_parquet('{export}/data/**/*.parquet', union_by_name = true, "
            "hive_partitioning = false)"
        ).fetchone()
    seconds = time.perf_counter() - began
    return {
        "rows": row[0] if row else 0,
        "seconds": seconds,
        "peak": peak_mb(),
        "bytes": (folder / "bare.duckdb").stat().st_size,
    }


def by_pandas(export: Path) -> dict[str, Any]:
    """As many whole files as make PANDAS_LINES: read, a few columns mapped, costs summed by service and day."""
    import pandas as pd

    files = sorted(export.rglob("*.parquet"))[: max(1, PANDAS_LINES // LINES_A_FILE)]
    began = time.perf_counter()
    lines = pd.concat([pd.read_parquet(file) for file in files], ignore_index=True)
    rows = len(lines)
    lines = lines[lines["split_line_item_parent_resource_id"].isna()]
    kind = lines["line_item_line_item_type"]
    mapped = pd.DataFrame(
        {
            "service": lines["product"].map(lambda entries: dict(entries).get("product_name")),
            "team": lines["resource_tags"].map(lambda entries: dict(entries).get("user_team")),
            "day": lines["line_item_usage_start_date"].dt.floor("D"),
            "billed_cost": lines["line_item_unblended_cost"],
            "effective_cost": lines["line_item_unblended_cost"]
            .mask(kind == "SavingsPlanCoveredUsage", lines["savings_plan_savings_plan_effective_cost"])
            .mask(kind == "DiscountedUsage", lines["reservation_effective_cost"])
            .mask(kind == "SavingsPlanNegation", 0.0),
        }
    )
    mapped.groupby(["service", "team", "day"], dropna=False)[["billed_cost", "effective_cost"]].sum()
    return {"rows": rows, "seconds": time.perf_counter() - began, "peak": peak_mb(), "bytes": 0}


def _name(statement: str) -> str:
    """What a person calls a statement: what it makes, fills or asks."""
    text = re.sub(r"--[^\n]*", "", statement)
    for pattern, said in (
        (r"^\s*CREATE (?:OR REPLACE )?(?:TEMP )?(TABLE|VIEW) (\w+)", "{0} {1}"),
        (r"^\s*(INSERT INTO|DELETE FROM|UPDATE|DROP TABLE|DROP VIEW) (\w+)", "{0} {1}"),
        (r"^\s*(SELECT|WITH)\b.*\bFROM\s+([\w.]+)", "{0} ... {1}"),
    ):
        match = re.match(pattern, text, re.DOTALL | re.IGNORECASE)
        if match:
            return said.format(match[1].upper(), match[2])
    return " ".join(text.split())[:40]


def _forget_peak() -> None:
    """Let Linux measure the process's peak anew; elsewhere the peak is that of all steps so far."""
    reset = Path("/proc/self/clear_refs")
    if reset.exists():
        reset.write_text("5")


# --- What is printed ---


def _table(lines: int, folder: Path, ours: Measured, bare: Measured, pandas: Measured) -> Table:
    size = sum(path.stat().st_size for path in (folder / "cur").rglob("*.parquet"))
    table = Table("what", "lines", "wall", "lines/s", "cpu", "peak memory", "on disk",
                  title=f"A bill of {lines:,} lines, {size / 1e6:,.0f} MB of Parquet")  # fmt: skip
    for name, one in (("InferLedger", ours), ("bare DuckDB copy", bare), ("pandas, floats", pandas)):
        rows, seconds, peak = one.value["rows"], one.value["seconds"], one.value["peak"]
        table.add_row(
            name, f"{rows:,}", f"{seconds:.1f} s", f"{rows / seconds:,.0f}", f"{one.cpu_seconds:.1f} s",
            f"{peak:,.0f} MB", f"{one.value['bytes'] / 1e6:,.0f} MB" if one.value["bytes"] else "-",
        )  # fmt: skip
    ours_a_second, bare_a_second, pandas_a_second = (
        one.value["rows"] / one.value["seconds"] for one in (ours, bare, pandas)
    )
    table.caption = (
        f"Our speed is {ours_a_second / bare_a_second:.0%} of the bare copy's (by CPU "
        f"{bare.cpu_seconds / ours.cpu_seconds:.0%}) and {ours_a_second / pandas_a_second:.1f} x pandas'; "
        f"pandas holds {pandas.value['peak'] / ours.value['peak']:.1f} x our memory for {pandas.value['rows']:,} lines"
    )
    return table


def _steps(title: str, one: Measured) -> Table:
    """The statements that take most, by name; the others together."""
    table = Table("step", "wall", "cpu", "share of cpu", "peak memory", title=title)
    took: dict[str, list[Step]] = {}
    for step in one.value["steps"]:
        took.setdefault(step.name, []).append(step)
    rest = [one.value["seconds"], one.cpu_seconds]
    for name, steps in took.items():
        seconds, cpu = sum(step.seconds for step in steps), sum(step.cpu_seconds for step in steps)
        if max(seconds / one.value["seconds"], cpu / one.cpu_seconds) < WORTH_NAMING:
            continue
        rest = [rest[0] - seconds, rest[1] - cpu]
        peak = max(step.peak_mb for step in steps)
        table.add_row(name, f"{seconds:.2f} s", f"{cpu:.2f} s", f"{cpu / one.cpu_seconds:.0%}", f"{peak:,.0f} MB")
    table.add_row("everything else", f"{rest[0]:.2f} s", f"{rest[1]:.2f} s", f"{rest[1] / one.cpu_seconds:.0%}", "")
    return table
