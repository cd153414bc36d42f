"""`usage` bodies of any provider's API, kept by an application: JSON Lines of {id, created, provider, model, usage}.

`usage` is what the API answered (OpenAI chat and responses, Anthropic, Bedrock Converse, Mistral, DeepSeek, ...);
Gemini's is `usageMetadata`, Cohere's `meta`. Times: `created` (epoch or ISO 8601), or `started_at` and `ended_at`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
from pydantic import Field, field_validator

from collector.batches import object_batches
from collector.queries import HERE, queries
from collector.source import Batch, Fetched, Kind, LoadResult, Moment, Source, SourceSettings, Staged, State
from collector.spool import fetch_lines
from collector.store import Store, open_store
from collector.usage.records import TRACE, Reading, json_lines, shape_of, stage, use, write

ENDINGS = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
TABLES = {"token_semantics": "usage/token_semantics.csv", "provider_name": "provider_name.csv"}


class UsageBodySettings(SourceSettings):
    """Usage bodies in a folder or bucket."""

    kind: Literal["usage_body"]
    provider: str | None = Field(default=None, description="who answered, where a line does not say")
    account: str | None = Field(default=None, description="cloud account of the calls, where a line does not say")
    call_region: str | None = Field(default=None, description="region of the calls; default: `region`")
    claims: tuple[str, ...] = Field(
        default=(), description="keys of a line's `metadata` that owner rules may use; become claims metadata.<key>"
    )

    @field_validator("claims")
    @classmethod
    def _plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[\w.\- ]+", name):
                raise ValueError(f"`{name}`: a claim name has letters, digits, `_`, `.`, `-` only")
        return value


@dataclass(frozen=True)
class UsageBodies:
    """One application's usage bodies. Batches: new files, folder by folder."""

    settings: UsageBodySettings
    store: Store
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
        return fetch_lines(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/usage_body.sql")
        columns = sql["columns"].strip()
        settings = self.settings
        use(
            connection,
            {
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "provider": settings.provider,
                "claim_metadata": list(settings.claims),
            },
        )
        for table, file in TABLES.items():
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS FROM read_csv(?, header = true, all_varchar = true)",
                [str(HERE / file)],
            )
        connection.execute(sql["macros"])

        def files(paths: list[str]) -> None:
            use(connection, {"files": paths})
            connection.execute(sql["payload"].replace("{{shape}}", shape_of(connection, columns)))

        def define() -> None:
            connection.execute(sql["mapped"])

        def again(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            connection.execute(sql["payload_by_line"].replace("{{columns}}", columns))

        return stage(connection, fetched, self.name, TRACE, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)


def _open(settings: UsageBodySettings) -> Source:
    return UsageBodies(settings, open_store(settings))


KIND = Kind("usage_body", UsageBodySettings, _open)
