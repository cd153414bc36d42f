"""Helicone's exports of requests: `npx @helicone/export` (CSV, JSON, JSON Lines) and rows of its ClickHouse table.

Counts are disjoint: Helicone takes cached tokens out of the prompt. In the table 0 and 0 tokens mean `not counted`, and
`cost` is in nano-dollars; negative status codes are its own (-1 timed out, -2 running, -3 cancelled, -4 blocked).
Source: Helicone/helicone, clickhouse/migrations and packages/cost; reference/usage.md 2.6. Import only.
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
from collector.usage.records import GATEWAY, use
from collector.usage.traces import prepare, stage_spans, write_spans

COLUMNS = (
    "request_id", "request_created_at", "response_created_at", "response_status", "status", "delay_ms", "latency",
    "time_to_first_token", "model", "request_model", "response_model", "model_override", "provider", "target_url",
    "prompt_tokens", "prompt_cache_read_tokens", "prompt_cache_write_tokens", "completion_tokens", "reasoning_tokens",
    "total_tokens", "cost", "costUSD", "cost_usd", "cache_reference_id", "user_id", "request_user_id",
    "organization_id", "proxy_key_id", "properties", "request_properties", "updated_at",
)  # fmt: skip


class HeliconeSettings(SourceSettings):
    """Helicone exports in a folder or bucket."""

    kind: Literal["helicone"]
    semantics: Literal["disjoint", "inclusive"] = Field(
        default="disjoint", description="inclusive: prompt_tokens hold cached tokens, as rows of before 2025 may"
    )
    account: str | None = Field(default=None, description="cloud account of the calls")
    call_region: str | None = Field(default=None, description="region of the calls; default: `region`")
    properties: tuple[str, ...] = Field(
        default=(), description="custom properties that owner rules may use; become claims property.<name>"
    )
    task: str = Field(default="Agent-Task", description="property; a call that names an agent is of its session's task")
    agent: str = "Agent"
    task_outcome: str = "Task-Outcome"

    @field_validator("properties", "task", "agent", "task_outcome")
    @classmethod
    def _plain(cls, value: tuple[str, ...] | str) -> tuple[str, ...] | str:
        for name in (value,) if isinstance(value, str) else value:
            if not re.fullmatch(r"[\w.\- ]+", name):
                raise ValueError(f"`{name}`: a property has letters, digits, `_`, `.`, `-` only")
        return value


@dataclass(frozen=True)
class Helicone:
    """One organization's requests. Batches: new files, folder by folder."""

    settings: HeliconeSettings
    store: Store
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        return object_batches(
            state.unseen(self.name, [each for each in self.store.list() if each.key.endswith(ENDINGS)])
        )

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        return fetch_files(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/helicone.sql")
        settings = self.settings
        prepare(connection, {})
        use(
            connection,
            {
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "claim_properties": list(settings.properties),
            },
        )
        mapped = sql["mapped"].replace("{{inclusive}}", str(settings.semantics == "inclusive").upper())
        mapped = mapped.replace("{{semantics}}", f"helicone:{settings.semantics}")
        for word in ("task", "agent", "task_outcome"):
            place = f"nullif(json_extract_string(props, '$.\"{getattr(settings, word)}\"'), '')"
            mapped = mapped.replace("{{" + word + "}}", place)

        def define() -> None:
            connection.execute(mapped)

        how = reading(connection, fetched, dict.fromkeys(COLUMNS, "VARCHAR"), sql["payload"], define)
        return stage_spans(connection, fetched, self.name, GATEWAY, load_id, moment, how)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write_spans(connection, self.name, staged)


def _open(settings: HeliconeSettings) -> Source:
    return Helicone(settings, open_store(settings))


KIND = Kind("helicone", HeliconeSettings, _open)
