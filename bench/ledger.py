"""The ledger: attribution and publication of a history, of one more hour, and the questions that pages ask.

The baseline answers the same GROUP BYs in bare DuckDB SQL: amounts as doubles, a plain pro rata share, one owner per
claim set; no events derived from records, no price tiers, no controls, nothing exact, nothing incremental.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from functools import partial
from pathlib import Path

import duckdb
from rich.console import Console
from rich.table import Table

from bench import Measured, measure, synthetic
from bench.bare_sql import BASELINE, QUESTIONS
from warehouse import attribution, measures, publish
from warehouse.engine import Layout, writing
from warehouse.measures import Filters
from warehouse.snapshot import Scope, Snapshot

DAYS = 30
HISTORIES = (30, 60, 90)  # days, with fewer calls a day, so that the longest stays short
THINNER = 15
REPEATS = 7
MONTH = Filters(first_day=date(2026, 9, 1), last_day=date(2026, 9, 30))


def main(argv: Sequence[str]) -> int:
    """Measure, and print three tables."""
    parser = argparse.ArgumentParser(prog="python -m bench ledger", description=__doc__)
    parser.add_argument("--events", type=int, default=300_000, help="calls in the longest history (default 300000)")
    events: int = parser.parse_args(list(argv)).events
    console, folder = Console(), Path(tempfile.mkdtemp(prefix="inferledger-bench-"))
    try:
        _measure(folder, events, console)
    finally:
        shutil.rmtree(folder)
    return 0


def _measure(folder: Path, events: int, console: Console) -> None:
    data = folder / "month"
    with console.status(f"{events:,} events"):
        measure(synthetic.create, data, DAYS, events)
        built, bare = measure(build, data), measure(baseline, data)
    console.print(_throughput(events, built, bare))
    with console.status("questions"):
        marts, evidence = measure(ask_marts, data), measure(ask_evidence, data)
    console.print(_questions(marts, evidence))
    shutil.rmtree(data)
    _hours(folder, events // THINNER, console)


def _hours(folder: Path, events_a_month: int, console: Console) -> None:
    table = Table("history", "events", "first build", "one more hour", "cpu", "bare SQL, all again", "cpu",
                  title="One more hour of calls and of the bill, attributed and published")  # fmt: skip
    for days in HISTORIES:
        data, events = folder / str(days), events_a_month * days // DAYS
        with console.status(f"{days} days, {events:,} events"):
            measure(synthetic.create, data, days, events)
            built = measure(build, data)
            measure(synthetic.one_more_hour, data, max(events // (days * 24), 1))
            more, bare = measure(build, data, 1), measure(baseline, data)
        table.add_row(
            f"{days} days", f"{events:,}", f"{built.seconds:.1f} s",
            f"{more.seconds:.2f} s", f"{more.cpu_seconds:.2f} s", f"{bare.seconds:.2f} s", f"{bare.cpu_seconds:.2f} s",
        )  # fmt: skip
        shutil.rmtree(data)
    console.print(table)


def _throughput(events: int, built: Measured, bare: Measured) -> Table:
    table = Table(
        "what", "wall", "events/s", "cpu", "peak memory", title=f"Attribution and publication of {events:,} events"
    )
    for name in ("attribute", "publish"):
        table.add_row(
            f"InferLedger, {name}", f"{built.value[name]:.1f} s", f"{events / built.value[name]:,.0f}", "", ""
        )
    for name, one in (("InferLedger, both", built), ("bare SQL, no controls", bare)):
        speed = f"{events / one.seconds:,.0f}"
        table.add_row(name, f"{one.seconds:.1f} s", speed, f"{one.cpu_seconds:.1f} s", f"{one.peak_mb:,.0f} MB")
    ratios = (built.seconds / bare.seconds, built.cpu_seconds / bare.cpu_seconds, built.peak_mb / bare.peak_mb)
    table.add_row("ours / baseline", f"{ratios[0]:.1f} x", "", f"{ratios[1]:.1f} x", f"{ratios[2]:.1f} x")
    table.caption = f"{built.value['files']:,} Parquet files published; all controls hold"
    return table


def _questions(marts: Measured, evidence: Measured) -> Table:
    table = Table("question over a month", "marts", "evidence, bare SQL", title="What a page waits for (median)")
    for name in ("open", *QUESTIONS):
        bare = f"{evidence.value[name]:.0f} ms" if name in evidence.value else "-"
        table.add_row("open the snapshot" if name == "open" else name, f"{marts.value[name]:.0f} ms", bare)
    table.add_row("peak memory", f"{marts.peak_mb:,.0f} MB", f"{evidence.peak_mb:,.0f} MB")
    return table


def build(data: Path, hours_later: int = 0) -> dict[str, float]:
    """Attribute and publish what changed; seconds of each and files written."""
    layout, as_of = Layout(data), synthetic.END + timedelta(hours=hours_later)
    with writing(layout, "bench") as connection:
        connection.execute("SET enable_progress_bar = false")
        began = time.perf_counter()
        report = attribution.attribute(connection, synthetic.SETTINGS, as_of)
        attributed = time.perf_counter()
        done = publish.publish(connection, layout, synthetic.SETTINGS)
        published = time.perf_counter()
    if report.failed_controls or done.held:
        raise RuntimeError(f"controls do not hold: {report.failed_controls or done.held}")
    return {"attribute": attributed - began, "publish": published - attributed, "files": done.written}


def baseline(data: Path) -> None:
    """The same groupings in bare SQL, written as one Parquet file each."""
    target = data / "baseline"
    target.mkdir(exist_ok=True)
    with writing(Layout(data), "bench") as connection:
        connection.execute("SET enable_progress_bar = false")
        for name, sql in BASELINE.items():
            made = sql.lstrip().startswith("CREATE")
            connection.execute(
                sql if made else f"COPY ({sql}) TO '{target}/{name}.parquet' (FORMAT parquet, COMPRESSION zstd)"
            )


def ask_marts(data: Path) -> dict[str, float]:
    """Milliseconds per question over the published snapshot."""
    published = Layout(data).published
    found = {"open": _median(lambda: Snapshot.open(published, Scope.everything("bench")).close())}
    snapshot = Snapshot.open(published, Scope.everything("bench"))
    for name, (wanted, by, _) in QUESTIONS.items():
        limit, order = (20, f"-{wanted[0]}") if name == "dearest tasks" else (None, None)
        found[name] = _median(partial(measures.table, snapshot, wanted, by, MONTH, order, limit))
    return found


def ask_evidence(data: Path) -> dict[str, float]:
    """Milliseconds per question over the evidence; each makes cells and rates of a month on its way."""
    found = {}
    with writing(Layout(data), "bench") as connection:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(BASELINE["owner"])
        cell, rate = (BASELINE[name].split(" AS\n", 1)[1] for name in ("cell", "rate"))
        for name, (_, _, sql) in QUESTIONS.items():
            whole = f"WITH cell AS ({cell} WHERE ended_at >= TIMESTAMP '2026-09-01'), rate AS ({rate}) {sql}"
            found[name] = _median(partial(_fetch, connection, whole))
    return found


def _fetch(connection: duckdb.DuckDBPyConnection, sql: str) -> object:
    return connection.execute(sql).fetchall()


def _median(ask: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        ask()
        taken.append((time.perf_counter() - began) * 1000)
    return statistics.median(taken)
