"""Loading metrics: OpenMetrics text of a small fleet into minutes, against a bare DuckDB scan of the same lines.

The baseline decompresses the files and splits every line into series, value and timestamp, in one statement: it parses
no label, refuses nothing, cuts no minutes, merges with nothing and stores text.
"""

import argparse
import gzip
import random
import shutil
import subprocess
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
from collector.run import collect
from collector.settings import CollectorSettings
from warehouse.engine import Layout
from warehouse.schema import metadata

SAMPLES = 1_000_000
SERIES = 2_500
FILES = 4
START = datetime(2026, 11, 2, tzinfo=UTC)
AS_OF = datetime(2026, 12, 31, tzinfo=UTC)
COUNTERS = ("prompt_tokens", "generation_tokens", "prefix_cache_hits", "prefix_cache_queries", "num_preemptions")
GAUGES = ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE")


def main(argv: Sequence[str]) -> int:
    """Write a history of counters and GPU gauges, load it both ways, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench load_metrics", description=__doc__)
    parser.add_argument("--samples", type=int, default=SAMPLES, help=f"how many (default {SAMPLES:,})")
    parser.add_argument("--interval", type=int, default=60, help="seconds between scrapes (default 60)")
    given = parser.parse_args(list(argv))
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="inferledger-bench-"))
    try:
        with console.status("writing the history"):
            measure(write, folder / "metrics", given.samples, given.interval)
        with console.status("loading"):
            ours = measure(load, folder / "metrics", folder / "data")
            again = measure(load, folder / "metrics", folder / "data")
            bare = measure(baseline, folder / "metrics", folder / "bare.duckdb")
        console.print(_table(folder / "metrics", ours, again, bare))
    finally:
        shutil.rmtree(folder)
    return 0


def write(folder: Path, samples: int, interval: int) -> None:
    """Some files of equal spans of time, families grouped and series contiguous."""
    folder.mkdir()
    rng = random.Random(1)
    engine = '{{engine="0",instance="10.0.{0}.7:8000",job="vllm",model_name="m",namespace="llm",pod="m-{0:05d}"}}'
    gpu = '{{gpu="{1}",UUID="GPU-{0:08d}",exported_namespace="llm",exported_pod="m-{0:05d}",Hostname="node-{0}"}}'
    series = [(f"vllm:{name}_total", engine.format(n), True) for name in COUNTERS for n in range(SERIES // 10)]
    series += [(name, gpu.format(n, n % 8), False) for name in GAUGES for n in range(SERIES // 8)]
    scrapes = max(1, samples // len(series) // FILES)
    for number in range(FILES):
        with gzip.open(folder / f"{number:02d}.om.gz", "wt", compresslevel=4) as file:
            for name, labels, is_counter in series:
                value = number * 10**7
                for n in range(scrapes):
                    value += rng.randrange(2000)
                    second = START.timestamp() + (number * scrapes + n) * interval + rng.random() / 2
                    file.write(f"{name}{labels} {value if is_counter else rng.random():.6g} {second:.3f}\n")
            file.write("# EOF\n")


def load(folder: Path, data: Path) -> dict[str, float]:
    """Collect the folder; samples read and seconds. A second time, nothing is new."""
    if not data.exists():
        data.mkdir()
        engine = create_engine(f"duckdb:///{Layout(data).warehouse}")
        metadata.create_all(engine)
        engine.dispose()
    source = {"name": "metrics", "kind": "openmetrics", "location": str(folder), "cluster": "bench"}
    settings = CollectorSettings.model_validate({"sources": [source]})
    began = time.perf_counter()
    report = collect(Layout(data), settings, {"metrics"}, AS_OF)
    if not report.ok:
        raise RuntimeError(str(report.findings[0]))
    return {"rows": report.total("rows_loaded"), "seconds": time.perf_counter() - began}


def baseline(folder: Path, database: Path) -> dict[str, float]:
    """The same lines, split by one statement."""
    began = time.perf_counter()
    for path in sorted(folder.glob("*.gz")):
        subprocess.run(["gzip", "-dkf", path], check=True)
    with duckdb.connect(str(database)) as connection:
        connection.execute("SET enable_progress_bar = false")
        row = connection.execute(
            "CREATE TABLE sample AS SELECT array_to_string(words[:-3], ' ') AS series, words[-2] AS value, "
            f"words[-1] AS told_at FROM (SELECT string_split(line, ' ') AS words FROM read_csv('{folder}/*.om', "
            "columns = {'line': 'VARCHAR'}, delim = chr(31), quote = '', escape = '', header = false, "
            "auto_detect = false) WHERE line[1] <> '#')"
        ).fetchone()
    return {"rows": float(row[0]) if row else 0.0, "seconds": time.perf_counter() - began}


def _table(folder: Path, ours: Measured, again: Measured, bare: Measured) -> Table:
    size = sum(path.stat().st_size for path in folder.glob("*.gz"))
    table = Table("what", "samples", "wall", "samples/s", title=f"Loading metrics, {size / 1e6:,.0f} MB of gzip text")
    for name, one in (("InferLedger", ours), ("bare DuckDB scan", bare)):
        rows, seconds = one.value["rows"], one.value["seconds"]
        said = f"{name}: cpu {one.cpu_seconds:.1f} s, peak {one.peak_mb:,.0f} MB"
        table.add_row(said, f"{rows:,.0f}", f"{seconds:.1f} s", f"{rows / seconds:,.0f}")
    table.add_row("InferLedger, nothing new", f"{again.value['rows']:,.0f}", f"{again.value['seconds']:.1f} s", "")
    table.add_row("ours / baseline", "", f"{ours.value['seconds'] / bare.value['seconds']:.1f} x", "")
    return table
