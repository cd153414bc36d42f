"""Langfuse's exports: observations from blob storage (CSV, JSON, JSON Lines, Parquet), pages and traces of its API.

Column names are read as the blob export writes them (legacy and enriched) and as the API does. `usage_details` is
disjoint by convention; where the total says otherwise, the total is believed. The same observation exported again
replaces its older version (`updated_at`). Times are UTC.
Source: langfuse.com/docs/api-and-data-platform/features/blob-storage-export-fields; reference/usage.md 2.5.
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
from collector.spool import fetch_files
from collector.store import Store, open_store
from collector.usage.exports import ENDINGS, reading
from collector.usage.records import TRACE, use
from collector.usage.traces import AGENT_TOTALS, prepare, stage_spans, write_spans
from warehouse.settings import Settings

FIELDS = (
    "id", "trace_id", "project_id", "environment", "type", "parent_observation_id", "start_time", "end_time",
    "metadata", "level", "status_message", "provided_model_name", "model", "model_parameters", "usage_details",
    "completion_start_time", "total_cost", "updated_at", "user_id", "session_id", "trace_name", "tags", "release",
)  # fmt: skip
OTHER_TABLES = {"scores", "traces", "manifests"}
PLACE = re.compile(r"^(trace_id|session_id|metadata\.[A-Za-z0-9_.\-]+)$")


class LangfuseClaims(Settings):
    """What of a trace may become a claim beside project, environment and release."""

    tags: tuple[str, ...] = Field(default=(), description="names of `name:value` tags; become claims tag.<name>")
    metadata: tuple[str, ...] = Field(default=(), description="keys of metadata; become claims metadata.<key>")
    trace_name: bool = Field(default=False, description="whether the trace's name is a claim; not if it has ids in it")

    @field_validator("tags", "metadata")
    @classmethod
    def _plain(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[\w.\- ]+", name):
                raise ValueError(f"`{name}`: a claim name has letters, digits, `_`, `.`, `-` only")
        return value


class LangfuseSettings(SourceSettings):
    """Langfuse exports in a folder or bucket."""

    kind: Literal["langfuse"]
    provider: str | None = Field(
        default=None, description="of calls whose metadata names none; as OpenTelemetry spells it: openai, aws.bedrock"
    )
    account: str | None = Field(default=None, description="cloud account of the calls")
    agent_totals: bool = AGENT_TOTALS
    call_region: str | None = Field(default=None, description="region of the calls; default: `region`")
    claims: LangfuseClaims = LangfuseClaims()
    task: str = Field(default="metadata.agent_task", description="trace_id, session_id or metadata.<key>")
    agent: str = "metadata.agent"
    task_outcome: str = "metadata.task_outcome"

    @field_validator("task", "agent", "task_outcome")
    @classmethod
    def _is_a_place(cls, value: str) -> str:
        if not PLACE.fullmatch(value):
            raise ValueError(f"`{value}`: write trace_id, session_id or metadata.<key>")
        return value


@dataclass(frozen=True)
class Langfuse:
    """One project's exports. Batches: new files, folder by folder; scores, traces and manifests are left alone."""

    settings: LangfuseSettings
    store: Store
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        found = [
            each
            for each in self.store.list()
            if each.key.endswith(ENDINGS) and not OTHER_TABLES.intersection(Path(each.key).parts[:-1])
        ]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        return fetch_files(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/langfuse.sql")
        settings = self.settings
        prepare(connection, {})
        connection.execute(sql["macros"])
        use(
            connection,
            {
                "provider": settings.provider,
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "agent_totals": settings.agent_totals,
                "claim_tags": list(settings.claims.tags),
                "claim_metadata": list(settings.claims.metadata),
                "claim_trace_name": settings.claims.trace_name,
            },
        )
        mapped = sql["mapped"]
        for word in ("task", "agent", "task_outcome"):
            mapped = mapped.replace("{{" + word + "}}", _value(getattr(settings, word)))

        def define() -> None:
            connection.execute(mapped)

        how = reading(connection, fetched, _columns(), _payload(sql["payload"]), define)
        return stage_spans(connection, fetched, self.name, TRACE, load_id, moment, how)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write_spans(connection, self.name, staged)


def _names() -> list[str]:
    """Every field as the blob export and, where that differs, as the API spells it."""
    return list(dict.fromkeys(name for field in FIELDS for name in (field, _camel(field))))


def _columns() -> dict[str, str]:
    flat = dict.fromkeys(_names(), "VARCHAR")
    inner = ", ".join(f'"{name}" VARCHAR' for name in flat)
    of_trace = 'STRUCT("userId" VARCHAR, "sessionId" VARCHAR, tags VARCHAR)'
    return {**flat, "trace": of_trace, "observations": f"STRUCT({inner})[]", "data": f"STRUCT({inner})[]"}


def _payload(sql: str) -> str:
    fields = [
        f'o."{field}"' if _camel(field) == field else f'coalesce(o."{field}", o."{_camel(field)}") AS {field}'
        for field in FIELDS
    ]
    itself = "{" + ", ".join(f"'{name}': \"{name}\"" for name in _names()) + "}"
    return sql.replace("{{fields}}", ", ".join(fields)).replace("{{itself}}", itself)


def _camel(field: str) -> str:
    first, *rest = field.split("_")
    return first + "".join(map(str.capitalize, rest))


def _value(place: str) -> str:
    """SQL for a configured place in an observation."""
    if not place.startswith("metadata."):
        return f"nullif({place}, '')"
    return f"nullif(json_extract_string(meta, '$.\"{place.removeprefix('metadata.')}\"'), '')"


def _open(settings: LangfuseSettings) -> Source:
    return Langfuse(settings, open_store(settings))


KIND = Kind("langfuse", LangfuseSettings, _open)
