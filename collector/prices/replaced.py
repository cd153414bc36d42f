"""Evidence that is replaced as a whole when its content changes: price books, exchange rates, model aliases.

It is a source like any other; its batch is the present content, its identity the content's digest.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from collector.queries import HERE, queries
from collector.source import MEMBERS, Batch, Fetched, LoadResult, Moment, Staged, State

EMPTY = hashlib.md5(b"", usedforsecurity=False).hexdigest()


@dataclass(frozen=True)
class Replaced:
    """One replaced content.

    name      of the source; the warehouse's ``load`` rows carry it
    sql       SQL file with the statements `rows` (temporary view `next_content`), `delete`, `insert`, `count`
    content   makes the content as JSON; b"" stands for none
    label     what a person recognises, e.g. a package and its version
    reason    what ``touched_hour`` says when a change reaches hours that hold usage or bill lines
    """

    name: str
    sql: str
    content: Callable[[], bytes]
    label: str
    reason: str
    family: str = "prices"
    is_remote: bool = False

    def discover(self, state: State) -> Sequence[Batch]:
        content = self.content()
        digest = hashlib.md5(content, usedforsecurity=False).hexdigest()
        identity = f"{self.label}:{digest}"
        current = state.current(self.name)
        if current == identity or (current is None and not content):
            return []
        return [Batch(identity=identity, detail=self.label, plan={"content": content})]

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        path = spool / "content.json"
        content = batch.plan["content"]
        assert isinstance(content, bytes)
        path.write_bytes(content or b"null")
        return Fetched(batch, (path,), spool, MEMBERS.empty_table())

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        connection.execute("SET VARIABLE load_id = ?", [load_id])
        connection.execute("SET VARIABLE origin = ?", [self.label])
        connection.execute("SET VARIABLE content = ?", [fetched.files[0].read_text()])
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE provider_name AS FROM read_csv(?, header = true, all_varchar = true)",
            [str(HERE / "provider_name.csv")],
        )
        return Staged(fetched, load_id)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        sql = queries(self.sql)
        for step in ("delete", "insert"):
            connection.execute(sql[step])
        row = connection.execute(sql["count"]).fetchone()
        connection.execute(queries("prices/touch.sql")["touch"], [self.reason])
        connection.execute("RESET VARIABLE content")
        rows = 0 if row is None else int(row[0])
        return LoadResult(rows_read=rows, rows_loaded=rows)
