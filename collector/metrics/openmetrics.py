"""Metrics as text: OpenMetrics 1.0 or Prometheus exposition format, one file after the other, in a folder or bucket.

What `promtool tsdb dump-openmetrics` writes and what a scrape saves. Samples need timestamps (seconds in OpenMetrics,
milliseconds in Prometheus's format), unless the file's name holds the instant: `...2026-11-02T10:00:00Z.prom`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa
from pydantic import Field

from collector.batches import object_batches
from collector.metrics.minutes import FILES, Target, begin, cut_minutes, judge, write
from collector.queries import NOT_THE_FILE, queries
from collector.source import Batch, Fetched, Kind, LoadResult, Moment, Refused, Source, SourceSettings, Staged, State
from collector.spool import cut, fetch_files
from collector.store import Store, open_store
from collector.usage.records import unreadable, use

SUFFIXES = tuple(f"{suffix}{packed}" for suffix in (".om", ".prom", ".txt") for packed in ("", ".gz"))
INSTANT = re.compile(r"(\d{4})-?(\d\d)-?(\d\d)T(\d\d)[:-]?(\d\d)[:-]?(\d\d)Z")
END = b"# EOF"


class OpenMetricsSettings(SourceSettings):
    """Files `*.om`, `*.prom`, `*.txt` (also `.gz`) of one cluster."""

    kind: Literal["openmetrics"]
    cluster: str = Field(min_length=1, description="name of the cluster; overrides a `cluster` label")


@dataclass(frozen=True)
class OpenMetrics:
    """Files of samples of one cluster. Batches: new files, folder by folder."""

    settings: OpenMetricsSettings
    store: Store
    family: str = "metrics"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [each for each in self.store.list() if each.key.endswith(SUFFIXES)]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        """Files one by one; a text that does not end as its format demands is refused, the others go on."""
        fetched = fetch_files(self.store, batch, spool)
        keys = dict(zip(fetched.members["path"].to_pylist(), fetched.members["key"].to_pylist(), strict=True))
        cut_short = {path: refused for path in fetched.files if (refused := _truncated(path, keys[str(path)]))}
        kept = [str(path) not in {str(each) for each in cut_short} for path in fetched.files]
        return replace(
            fetched,
            files=tuple(path for path in fetched.files if path not in cut_short),
            members=fetched.members.filter(pa.array(kept, pa.bool_())),
            refused=(*fetched.refused, *cut_short.values()),
        )

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        begin(connection, fetched, Target(self.name, self.settings.cluster), load_id, moment, _files(fetched))
        files = [str(path) for path in fetched.files]
        bad = _read_strictly(connection, files) if files else []
        if bad:
            _read_by_line(connection, fetched, bad)
        return cut_minutes(connection, fetched, load_id)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, staged)


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64))
        return file.read()


def _truncated(path: Path, key: str) -> Refused | None:
    tail = _tail(path)
    if key.removesuffix(".gz").endswith(".om") and tail.rstrip(b"\r\n").rpartition(b"\n")[2] != END:
        return Refused(key, "truncated_file", "does not end in `# EOF` as OpenMetrics must; deliver it anew")
    if tail and not tail.endswith(b"\n") and not tail.endswith(END):
        return Refused(key, "truncated_file", "its last line does not end; deliver it anew")
    return None


def _files(fetched: Fetched) -> pa.Table:
    keys = dict(zip(fetched.members["path"].to_pylist(), fetched.members["key"].to_pylist(), strict=True))
    rows = []
    for place, path in enumerate(fetched.files):
        named = INSTANT.search(keys[str(path)].rpartition("/")[2])
        instant = datetime.strptime("".join(named.groups()), "%Y%m%d%H%M%S") if named else None
        is_openmetrics = _tail(path).rstrip(b"\r\n").rpartition(b"\n")[2] == END
        rows.append({"place": place, "path": str(path), "is_openmetrics": is_openmetrics, "instant": instant})
    return pa.Table.from_pylist(rows, schema=FILES)


def _pass(connection: duckdb.DuckDBPyConnection, lines: str) -> None:
    sql = queries("metrics/openmetrics.sql")

    def read() -> None:
        for step in (lines, "read", "met", "series", "samples"):
            connection.execute(sql[step])

    judge(connection, read)


def _read_strictly(connection: duckdb.DuckDBPyConnection, files: list[str]) -> list[str]:
    """All files at once. Answers those in which something is refused: they are read again, line by line."""
    use(connection, {"files": files})
    try:
        _pass(connection, "strict")
    except NOT_THE_FILE:
        raise
    except duckdb.Error:
        return files
    rows = connection.execute(
        "SELECT path FROM metric_file SEMI JOIN (SELECT place FROM staged_sample WHERE reason IS NOT NULL) "
        "USING (place) ORDER BY place"
    ).fetchall()
    return [row[0] for row in rows]


def _read_by_line(connection: duckdb.DuckDBPyConnection, fetched: Fetched, bad: list[str]) -> None:
    for table in ("staged_sample", "left_out"):
        connection.execute(
            f"DELETE FROM {table} WHERE place IN (SELECT file.place FROM metric_file AS file WHERE file.path IN "
            "(SELECT unnest(CAST(? AS VARCHAR[]))))",
            [bad],
        )
    pieces = cut([Path(path) for path in bad], fetched.spool)
    connection.register("piece", pieces)
    use(connection, {"pieces": pieces.column("piece").to_pylist()})
    try:
        _pass(connection, "tolerant")
    except NOT_THE_FILE:
        raise
    except duckdb.Error:
        raise unreadable(fetched) from None
    finally:
        connection.unregister("piece")


def _open(settings: OpenMetricsSettings) -> Source:
    return OpenMetrics(settings, open_store(settings))


KIND = Kind("openmetrics", OpenMetricsSettings, _open)
