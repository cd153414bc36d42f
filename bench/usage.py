"""Loading usage logs: JSON Lines, Parquet and Claude Code's sessions, against a bare DuckDB read and against ccusage.

The bare read takes the same columns of the same files into a table in one statement: it checks and refuses nothing,
knows no record that is there already, makes no claim sets and touches no hour. ccusage (npm) reads the same sessions
and prints its totals by day; where node is absent, or the package index, it is left out and the table says so.
"""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
from warehouse.settings import EngineSettings

CALLS = 300_000
LINES_A_FILE = 100_000
AS_OF = datetime(2026, 12, 1, tzinfo=UTC)
VERSION = "20.0.24"
CCUSAGE = f"ccusage@{VERSION}"
SOURCES: dict[str, dict[str, Any]] = {
    "JSON Lines (litellm)": {"kind": "litellm", "location": "litellm", "claims": {"tags": ["app", "env"]}},
    "Parquet (generic)": {
        "kind": "generic",
        "location": "parquet",
        "format": "parquet",
        "semantics": "inclusive",
        "columns": {
            name: name
            for name in (
                *("record_id", "provider_response_id", "started_at", "ended_at", "provider", "model_raw"),
                *("account_id", "region_id", "input_tokens", "cache_read_tokens", "output_tokens", "task_id"),
            )
        },
        "claims": {"key_alias": "key_alias"},
    },
    "sessions (claude_code)": {"kind": "claude_code", "location": "claude/projects"},
}


def main(argv: Sequence[str]) -> int:
    """Write the logs, load each both ways, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench usage", description=__doc__)
    parser.add_argument("--calls", type=int, default=CALLS, help=f"calls of each log (default {CALLS:,})")
    parser.add_argument("--memory", default="1500MB", help="limit of the engine, as DuckDB spells it (default 1500MB)")
    given = parser.parse_args(list(argv))
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="inferledger-bench-"))
    try:
        with console.status(f"{given.calls:,} calls three times"):
            measure(write, folder, given.calls)
        rows: list[tuple[str, Measured, Measured]] = []
        for name in SOURCES:
            with console.status(name):
                ours = measure(load, folder, name, given.memory)
                rows.append((name, ours, measure(bare, folder, name, given.memory)))
        with console.status(CCUSAGE):
            theirs = ccusage(folder / "claude")
        console.print(_table(given.calls, rows, theirs))
    finally:
        shutil.rmtree(folder)
    return 0


# --- The files ---


def write(folder: Path, calls: int) -> None:
    """The same calls as payloads of LiteLLM, as Parquet, and as sessions that write every answer twice."""
    sql = queries("../bench/usage_lines.sql")
    (folder / "litellm").mkdir(parents=True)
    (folder / "parquet").mkdir()
    (folder / "claude" / "projects" / "shop").mkdir(parents=True)
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false; SET TimeZone = 'UTC'")
        for number, first in enumerate(range(0, calls, LINES_A_FILE)):
            connection.execute("SET VARIABLE first = ?", [first])
            connection.execute("SET VARIABLE last = ?", [min(first + LINES_A_FILE, calls)])
            for name, target in (
                ("litellm", f"litellm/{number:03d}.jsonl"),
                ("parquet", f"parquet/{number:03d}.parquet"),
                ("claude", f"claude/projects/shop/{number:03d}.jsonl"),
            ):
                how = "FORMAT parquet" if name == "parquet" else "FORMAT json"
                connection.execute(f"COPY ({sql[name].strip().rstrip(';')}) TO '{folder / target}' ({how})")


# --- What is measured ---


def load(folder: Path, name: str, memory: str) -> dict[str, Any]:
    """Collect one log into an empty warehouse, as `inferledger collect` does."""
    source = SOURCES[name]
    data = folder / f"data-{source['kind']}"
    data.mkdir()
    engine = create_engine(f"duckdb:///{Layout(data).warehouse}")
    metadata.create_all(engine)
    engine.dispose()
    given = source | {"name": "log", "location": str(folder / source["location"])}
    settings = CollectorSettings.model_validate({"sources": [given]})
    began = time.perf_counter()
    report = collect(
        Layout(data), settings, {"log"}, AS_OF, engine=EngineSettings.model_validate({"memory_limit": memory})
    )
    seconds = time.perf_counter() - began
    if not report.ok:
        raise RuntimeError(str(report.findings[0]))
    found = {"rows": report.total("rows_read"), "seconds": seconds}
    if source["kind"] == "claude_code":
        found |= _events(data)
    return found


def _events(data: Path) -> dict[str, Any]:
    """Answers and tokens once each, as step 02 makes them of the records."""
    with duckdb.connect(str(Layout(data).warehouse), read_only=True) as connection:
        row = connection.execute(
            "SELECT count(*), sum(uncached_input_tokens), sum(cache_read_tokens), sum(output_tokens) FROM (SELECT * "
            "FROM usage_record QUALIFY row_number() OVER (PARTITION BY event_key ORDER BY output_tokens DESC) = 1)"
        ).fetchone()
    assert row is not None
    return dict(zip(("calls", "input", "cache_read", "output"), row, strict=True))


def bare(folder: Path, name: str, memory: str) -> dict[str, Any]:
    """The same columns of the same files by one statement."""
    source = SOURCES[name]
    place = folder / source["location"]
    with duckdb.connect(str(folder / f"bare-{source['kind']}.duckdb")) as connection:
        connection.execute(f"SET memory_limit = '{memory}'; SET enable_progress_bar = false")
        if source["kind"] == "generic":
            reader = f"read_parquet('{place}/*.parquet')"
        else:
            shape = shape_of(connection, queries(f"usage/{source['kind']}.sql")["columns"])
            reader = f"read_json('{place}/**/*.jsonl', format = 'newline_delimited', columns = {shape})"
        began = time.perf_counter()
        row = connection.execute(f"CREATE TABLE log AS SELECT * FROM {reader}").fetchone()
    return {"rows": row[0] if row else 0, "seconds": time.perf_counter() - began}


def ccusage(config: Path) -> dict[str, Any] | str:
    """What ccusage says of the same sessions, and how long its second run takes (the first fetches it); or why not."""
    if shutil.which("npx") is None:
        return "node is not installed"
    packages = ["-p", CCUSAGE, "-p", f"@ccusage/ccusage-linux-x64@{VERSION}"]
    command = ["npx", "--yes", *packages, "ccusage", "daily", "--json", "--offline"]
    environment = os.environ | {"CLAUDE_CONFIG_DIR": str(config), "LOG_LEVEL": "0"}
    for _ in range(2):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=600, check=False)
        seconds = time.perf_counter() - began
    try:
        totals = json.loads(done.stdout)["totals"]
    except (ValueError, KeyError):
        return f"it ended with exit code {done.returncode}"
    return {
        "seconds": seconds,
        "input": totals["inputTokens"],
        "cache_read": totals["cacheReadTokens"],
        "output": totals["outputTokens"],
    }


# --- What is printed ---


def _table(calls: int, rows: Sequence[tuple[str, Measured, Measured]], theirs: dict[str, Any] | str) -> Table:
    table = Table("log", "rows", "wall", "rows/s", "cpu", "peak memory", title=f"Usage logs of {calls:,} calls")
    captions = []
    for name, ours, plain in rows:
        for who, one in (("InferLedger", ours), ("bare DuckDB", plain)):
            count, seconds = one.value["rows"], one.value["seconds"]
            speed = f"{count / seconds:,.0f}"
            costs = (f"{seconds:.1f} s", speed, f"{one.cpu_seconds:.1f} s", f"{one.peak_mb:,.0f} MB")
            table.add_row(f"{name}, {who}", f"{count:,}", *costs)
        captions.append(f"{name}: {plain.value['seconds'] / ours.value['seconds']:.0%} of the bare read's speed")
    sessions = rows[-1][1].value
    said = f"{sessions['input']:,} in, {sessions['cache_read']:,} cached, {sessions['output']:,} out"
    if isinstance(theirs, str):
        captions.append(f"ccusage was not measured: {theirs}")
    else:
        table.add_row(f"sessions, {CCUSAGE}", "", f"{theirs['seconds']:.1f} s", "", "", "")
        same = all(theirs[name] == sessions[name] for name in ("input", "cache_read", "output"))
        captions.append(
            f"sessions: {sessions['calls']:,} answers, {said}; ccusage "
            + ("says the same" if same else f"says {theirs['input']:,}, {theirs['cache_read']:,}, {theirs['output']:,}")
        )
    table.caption = "\n".join(captions)
    return table
