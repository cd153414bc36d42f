"""The pool table: which billed resource serves which pool, written by hand where no Kubernetes tells it.

CSV with a header: resource_id, cluster, region, route, pool, role, gpus, gpu_type, valid_from, valid_to; one file or a
folder of them. The table is always replaced as a whole, like contract prices.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb

from collector.queries import queries
from collector.source import Batch, Fetched, Kind, LoadResult, Moment, Source, SourceSettings, Staged, State
from collector.spool import fetch_files
from collector.store import Store, open_store
from collector.usage.records import unreadable, use


class PoolTableSettings(SourceSettings):
    """A CSV file, or a folder of them."""

    kind: Literal["pool_table"]


@dataclass(frozen=True)
class PoolTable:
    """One hand-written table. Its only batch is its present content, its identity the content's digest."""

    settings: PoolTableSettings
    store: Store
    family: str = "metrics"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [each for each in self.store.list() if each.key.endswith((".csv", ".csv.gz"))]
        digest = hashlib.md5(usedforsecurity=False)
        for each in found:
            content = hashlib.md5(self.store.read(each), usedforsecurity=False).hexdigest()
            digest.update(f"{each.key}\0{content}\n".encode())
        identity = f"table:{digest.hexdigest()}"
        current = state.current(self.name)
        if current == identity or (current is None and not found):
            return []
        detail = ", ".join(each.key for each in found) or "no file"
        # not as `objects`: content, not the file's version, decides whether anything is new
        return [Batch(identity=identity, detail=detail, plan={"found": tuple(found)})]

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        listed = Batch(batch.identity, batch.detail, objects=batch.plan["found"])  # type: ignore[arg-type]
        fetched = fetch_files(self.store, listed, spool)
        return Fetched(batch, fetched.files, spool, fetched.members, fetched.refused)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("metrics/pool_table.sql")
        files = [str(path) for path in fetched.files]
        use(connection, {"load_id": load_id, "source": self.name})
        connection.register("given", fetched.members)
        connection.execute("CREATE OR REPLACE TEMP TABLE member AS FROM given")
        connection.unregister("given")
        connection.execute(sql["stage"])
        for path in files:
            try:
                use(connection, {"files": [path]})
                connection.execute(sql["read"])
                connection.execute(sql["judge"])
            except (duckdb.InvalidInputException, duckdb.ConversionException):
                raise unreadable(fetched) from None
        connection.execute(sql["repeated"])
        return Staged(fetched, load_id)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        sql = queries("metrics/pool_table.sql")
        for step in ("changed", "delete", "insert", "touch", "forget_refused", "reject"):
            connection.execute(sql[step])
        for refused in staged.fetched.refused:
            connection.execute(
                "INSERT INTO rejected_row (load_id, source, location, reason, detail) VALUES (?, ?, ?, ?, ?)",
                [staged.load_id, self.name, refused.key, refused.reason, refused.detail],
            )
        read, loaded, rejected, repeated = connection.execute(sql["outcome"]).fetchone() or (0, 0, 0, 0)
        connection.execute("DROP TABLE staged_member; DROP TABLE changed_member; DROP TABLE member")
        files = len(staged.fetched.refused)
        return LoadResult(
            rows_read=read + files, rows_loaded=loaded, rows_rejected=rejected + files, rows_filtered=repeated
        )


def _open(settings: PoolTableSettings) -> Source:
    return PoolTable(settings, open_store(settings))


KIND = Kind("pool_table", PoolTableSettings, _open)
