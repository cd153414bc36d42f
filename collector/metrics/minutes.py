"""The steps that every source of samples shares, from `raw_sample` rows to minutes; see minutes.sql."""

from collections.abc import Callable
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from collector.metrics.catalogue import MINUTE_TABLES, catalogue_table
from collector.queries import queries
from collector.source import Fetched, LoadResult, Moment, Staged
from collector.usage.records import use

FILES = pa.schema(
    [("place", pa.int64()), ("path", pa.string()), ("is_openmetrics", pa.bool_()), ("instant", pa.timestamp("us"))]
)
"""`metric_file`: the files of a batch, numbered from 0 in the order of the variable `files`."""


@dataclass(frozen=True)
class Target:
    """Whose samples a batch holds.

    source   name of the source
    cluster  what ``metric_series.cluster`` says, whatever a `cluster` label says
    """

    source: str
    cluster: str


def begin(
    connection: duckdb.DuckDBPyConnection,
    fetched: Fetched,
    target: Target,
    load_id: str,
    moment: Moment,
    files: pa.Table,
) -> None:
    """Empty staging tables, the catalogue, and the variables that the SQL reads."""
    sql = queries("metrics/minutes.sql")
    use(
        connection,
        {"source": target.source, "cluster": target.cluster, "load_id": load_id, "latest": moment.latest},
    )
    connection.execute(sql["macros"])
    for name, table in (
        ("metric_catalogue", catalogue_table()),
        ("metric_file", files),
        ("member", fetched.members),
    ):
        connection.register("given", table)
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS FROM given")
        connection.unregister("given")
    connection.execute(sql["stage"])
    connection.execute(sql["known"])


def judge(connection: duckdb.DuckDBPyConnection, read: Callable[[], None]) -> None:
    """One pass over some files: `read` fills `met_series` and `staged_series` and defines `raw_sample`."""
    sql = queries("metrics/minutes.sql")
    read()
    for step in ("known", "judge", "left_out"):
        connection.execute(sql[step])


def cut_minutes(connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str) -> Staged:
    """Samples to minutes, still outside any transaction."""
    connection.execute(queries("metrics/minutes.sql")["new_minute"])
    return Staged(fetched, load_id)


def write(connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
    """Merge the staged minutes into evidence, inside a transaction."""
    sql = queries("metrics/minutes.sql")
    fetched = staged.fetched
    changed = 0
    for evidence in MINUTE_TABLES:
        connection.execute(sql["of_table"].replace("{{evidence}}", evidence))
        first, last = connection.execute(sql["span"]).fetchone() or (None, None)
        if first is None:
            continue
        use(connection, {"first_minute": first, "last_minute": last})
        for step in ("known_minute", "changed_minute", "replace", "insert", "touch"):
            connection.execute(sql[step].replace("{{evidence}}", evidence))
        row = connection.execute("SELECT count(*) FROM changed_minute").fetchone()
        changed += row[0] if row else 0
    connection.execute(sql["renamed_cluster"])
    connection.execute(sql["metric_series"])
    # the same batch again says again what it refused
    connection.execute("DELETE FROM rejected_row WHERE load_id = ?", [staged.load_id])
    connection.execute(sql["reject"])
    for refused in fetched.refused:
        connection.execute(
            "INSERT INTO rejected_row (load_id, source, location, reason, detail) "
            "VALUES (?, getvariable('source'), ?, ?, ?)",
            [staged.load_id, refused.key, refused.reason, refused.detail],
        )
    outcome = connection.execute(sql["outcome"])
    names = [column[0] for column in outcome.description or ()]
    figures = dict(zip(names, outcome.fetchone() or (), strict=True))
    for table in ("staged_sample", "staged_series", "known_series", "new_minute"):
        connection.execute(f"DROP TABLE {table}")

    notes = [f"{refused.key}: {refused.detail}" for refused in fetched.refused]
    if figures["other_metrics"]:
        notes.append("metrics that no catalogue has are left out; `rows_filtered` counts their samples")
    refused_count = figures["rows_rejected"] + len(fetched.refused)
    return LoadResult(
        rows_read=figures["rows_loaded"] + figures["rows_filtered"] + refused_count,
        rows_loaded=figures["rows_loaded"],
        rows_rejected=refused_count,
        rows_filtered=figures["rows_filtered"],
        first_at=figures["first_at"],
        last_at=figures["last_at"],
        sums={
            "series": str(figures["series"]),
            "minutes_changed": str(changed),
            "other_metrics": str(figures["other_metrics"]),
        },
        notes=tuple(notes),
    )
