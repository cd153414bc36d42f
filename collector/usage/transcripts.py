"""Session logs that coding agents write on a developer's machine: JSON Lines, one file a session, growing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
from pydantic import Field

from collector.batches import object_batches
from collector.queries import queries
from collector.source import Batch, Fetched, LoadResult, Moment, SourceSettings, Staged, State
from collector.spool import fetch_files, fetch_lines
from collector.store import Store
from collector.usage.records import Reading, json_lines, shape_of, stage, use, write

TRANSCRIPT = 30
"""source_trust: transcripts hold placeholders while an answer grows; gateways and traces are believed before them."""

ENDINGS = (".jsonl", ".jsonl.gz")


class TranscriptSettings(SourceSettings):
    """Session logs in a folder or bucket."""

    account: str | None = Field(default=None, description="cloud account of the calls")
    call_region: str | None = Field(default=None, description="region of the calls; default: `region`")
    user: str | None = Field(default=None, description="whose sessions these are: a log does not say")
    claims: tuple[Literal["project", "branch", "client"], ...] = Field(
        default=("project",),
        description="what of a session owner rules may use: its folder's name, git branch, client and version",
    )


@dataclass(frozen=True)
class Transcripts:
    """Sessions of one client. Batches: files that are new or have grown.

    `sql` names the format's statements (columns, payload, payload_by_line, mapped); `by_file`: what a line means
    depends on the lines before it, so that files are not joined.
    """

    settings: TranscriptSettings
    store: Store
    sql: str
    provider: str
    by_file: bool = False
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [each for each in self.store.list() if each.key.endswith(ENDINGS)]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        return (fetch_files if self.by_file else fetch_lines)(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries(self.sql)
        columns = sql["columns"].strip()
        settings = self.settings
        use(
            connection,
            {
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "user": settings.user,
                "provider": self.provider,
                "claim_names": list(settings.claims),
            },
        )

        def files(paths: list[str]) -> None:
            use(connection, {"files": paths})
            connection.execute(sql["payload"].replace("{{shape}}", shape_of(connection, columns)))

        def define() -> None:
            connection.execute(sql["mapped"])

        def again(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            connection.execute(sql["payload_by_line"].replace("{{columns}}", columns))

        return stage(connection, fetched, self.name, TRANSCRIPT, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)
