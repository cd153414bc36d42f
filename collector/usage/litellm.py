"""LiteLLM's StandardLoggingPayload: what its S3, GCS and file callbacks write for every attempt at a model call.

Objects may be JSON (one payload, compact or pretty-printed) or JSON Lines, plain or gzip, in folders per day.
Field semantics: reference/usage.md 2.0-2.2; checked against payloads that LiteLLM 1.110.2 wrote.
"""

import json
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
from collector.usage.records import GATEWAY, Reading, json_lines, shape_of, stage, use, write
from warehouse.settings import Settings

LINE_FILES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
PATH = re.compile(r"^(trace_id|session_id|metadata\.[A-Za-z0-9_.\-]+)$")


class ClaimNames(Settings):
    """What of a payload may become a claim beside the credential's own; anything else in it is left alone."""

    tags: tuple[str, ...] = Field(
        default=(), description="names of `name:value` request tags; become claims tag.<name>"
    )
    metadata: tuple[str, ...] = Field(
        default=(), description="keys of spend_logs_metadata; become claims metadata.<key>"
    )

    @field_validator("tags", "metadata")
    @classmethod
    def _plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[\w.\- ]+", name):
                raise ValueError(f"`{name}`: a claim name has letters, digits, `_`, `.`, `-` only")
        return value


class Deployment(Settings):
    """Where one of the gateway's deployments (its `model_id`) runs, for calls whose key does not say."""

    account: str | None = None
    region: str | None = None


class LiteLLMSettings(SourceSettings):
    """LiteLLM logs in a folder or bucket."""

    kind: Literal["litellm"]
    account: str | None = Field(default=None, description="cloud account of calls whose log does not name one")
    call_region: str | None = Field(
        default=None, description="region of calls whose log does not name one; default: `region`"
    )
    claims: ClaimNames = ClaimNames()
    deployments: dict[str, Deployment] = Field(default={}, description="by LiteLLM's model_id")
    task: str = Field(default="metadata.agent_task", description="trace_id, session_id or metadata.<key>")
    agent: str = "metadata.agent"
    parent_agent: str = "metadata.parent_agent"
    task_outcome: str = "metadata.task_outcome"

    @field_validator("task", "agent", "parent_agent", "task_outcome")
    @classmethod
    def _is_a_path(cls, value: str) -> str:
        if not PATH.fullmatch(value):
            raise ValueError(f"`{value}`: write trace_id, session_id or metadata.<key>")
        return value


@dataclass(frozen=True)
class LiteLLM:
    """One gateway's logs. Batches: new objects, folder by folder, up to some 400 MB of text each."""

    settings: LiteLLMSettings
    store: Store
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [each for each in self.store.list() if each.key.endswith(LINE_FILES)]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        return fetch_lines(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/litellm.sql")
        columns = sql["columns"].strip()
        settings = self.settings
        use(
            connection,
            {
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "claim_tags": list(settings.claims.tags),
                "claim_metadata": list(settings.claims.metadata),
            },
        )
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE provider_name AS FROM read_csv(?, header = true, all_varchar = true)",
            [str(HERE / "provider_name.csv")],
        )
        places = {name: place.model_dump() for name, place in settings.deployments.items()}
        connection.execute(sql["deployment"], [json.dumps(places)])
        mapped = sql["mapped"]
        for word in ("task", "agent", "parent_agent", "task_outcome"):
            mapped = mapped.replace("{{" + word + "}}", _value(getattr(settings, word)))

        def files(paths: list[str]) -> None:
            use(connection, {"files": paths})
            connection.execute(sql["payload"].replace("{{shape}}", shape_of(connection, columns)))

        def define() -> None:
            connection.execute(mapped)

        def again(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            connection.execute(sql["payload_by_line"].replace("{{columns}}", columns))

        return stage(connection, fetched, self.name, GATEWAY, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)


def _value(path: str) -> str:
    """SQL for a configured place in a payload."""
    if not path.startswith("metadata."):
        return f"nullif({path}, '')"
    key = path.removeprefix("metadata.")
    return (
        f"coalesce(nullif(json_extract_string(metadata.spend_logs_metadata, '$.\"{key}\"'), ''), "
        f"nullif(json_extract_string(metadata.requester_metadata, '$.\"{key}\"'), ''))"
    )


def _open(settings: LiteLLMSettings) -> Source:
    return LiteLLM(settings, open_store(settings))


KIND = Kind("litellm", LiteLLMSettings, _open)
