"""Amazon Bedrock's model invocation logs in S3: AWSLogs/<account>/BedrockModelInvocationLogs/<region>/YYYY/MM/DD/HH.

Off by default, per account and region. Bodies that Bedrock keeps apart (`.../data/`) are never read.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
from pydantic import Field, field_validator

from collector.batches import object_batches
from collector.queries import queries
from collector.source import Batch, Fetched, Kind, LoadResult, Moment, Source, SourceSettings, Staged, State
from collector.spool import fetch_lines
from collector.store import Store, open_store
from collector.usage.records import Reading, json_lines, shape_of, stage, use, write

PROVIDER_LOG = 15
"""source_trust: what the provider logged, after the gateway that knows the caller and before traces."""

ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz")
BODIES = re.compile(r"(^|/)data/[^/]+$|amazon-bedrock-logs-permission-check")
"""Large bodies in objects of their own, and the empty object by which Bedrock tries its permission."""


class BedrockSettings(SourceSettings):
    """Bedrock model invocation logs in a folder or bucket."""

    kind: Literal["bedrock"]
    claims: tuple[str, ...] = Field(
        default=(), description="keys of `requestMetadata` that owner rules may use; become claims metadata.<key>"
    )
    task: str = Field(default="agent_task", description="key of `requestMetadata` that names the agent task")
    agent: str = Field(default="agent", description="key of `requestMetadata` that names the agent")
    session: str = Field(default="session_id", description="key of `requestMetadata` that names the session")

    @field_validator("claims", "task", "agent", "session")
    @classmethod
    def _plain(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for name in (value,) if isinstance(value, str) else value:
            if not re.fullmatch(r"[\w.\- ]+", name):
                raise ValueError(f"`{name}`: a key has letters, digits, `_`, `.`, `-` only")
        return value


@dataclass(frozen=True)
class Bedrock:
    """The logs of one or many accounts and regions. Batches: new objects, folder by folder."""

    settings: BedrockSettings
    store: Store
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [each for each in self.store.list() if each.key.endswith(ENDINGS) and not BODIES.search(each.key)]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        return fetch_lines(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/bedrock.sql")
        columns = sql["columns"].strip()
        settings = self.settings
        use(
            connection,
            {
                "claim_metadata": list(settings.claims),
                "task_key": settings.task,
                "agent_key": settings.agent,
                "session_key": settings.session,
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

        return stage(connection, fetched, self.name, PROVIDER_LOG, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)


def _open(settings: BedrockSettings) -> Source:
    return Bedrock(settings, open_store(settings))


KIND = Kind("bedrock", BedrockSettings, _open)
