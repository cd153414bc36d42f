"""Envoy AI Gateway's access log: JSON lines with the token counts of its dynamic metadata (`io.envoy.ai_gateway`).

Counts are inclusive. A line is one request of a caller; Envoy's own retries are within it. The log format belongs to
its operator: keys with names of their own are given as `keys`. Source: envoyproxy/ai-gateway, site/docs/capabilities/
observability/accesslogs.md and llmRequestCosts of AIGatewayRoute.
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
from collector.usage.traces import Server, prepare

LINE_FILES = (".json", ".jsonl", ".ndjson", ".log", ".json.gz", ".jsonl.gz", ".ndjson.gz", ".log.gz")
FIELDS = (
    "request_id", "start", "duration", "code", "flags", "attempts", "path", "request_model", "override_model",
    "response_model", "backend", "input", "output", "total", "cache_read", "cache_write", "reasoning", "error",
    "session", "task", "agent", "user",
)  # fmt: skip


class EnvoyAIGatewaySettings(SourceSettings):
    """Access logs of Envoy AI Gateway in a folder or bucket."""

    kind: Literal["envoy_ai_gateway"]
    provider: str | None = Field(default=None, description="of all calls, where `backends` and their names do not say")
    account: str | None = Field(default=None, description="cloud account of calls whose backend does not say")
    call_region: str | None = Field(
        default=None, description="region of calls whose backend does not say; default: `region`"
    )
    backends: dict[str, Server] = Field(default={}, description="by name of the AIServiceBackend: who answers there")
    keys: dict[str, str] = Field(
        default={}, description=f"field: key of the log that holds it, for own names; fields are {', '.join(FIELDS)}"
    )
    claims: dict[str, str] = Field(
        default={}, description="claim: key of the log, such as one that the gateway fills from a verified credential"
    )

    @field_validator("keys", "claims")
    @classmethod
    def _plain(cls, value: dict[str, str]) -> dict[str, str]:
        for name in (*value, *value.values()):
            if not re.fullmatch(r"[\w.\-:/]+", name):
                raise ValueError(f"`{name}`: a key has letters, digits, `_`, `.`, `-`, `:`, `/` only")
        return value

    @field_validator("keys")
    @classmethod
    def _known(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if name not in FIELDS:
                raise ValueError(f"`{name}` is no field; there are {', '.join(FIELDS)}")
        return value


@dataclass(frozen=True)
class EnvoyAIGateway:
    """One gateway's access logs. Batches: new files, folder by folder."""

    settings: EnvoyAIGatewaySettings
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
        sql = queries("usage/envoy_ai_gateway.sql")
        settings = self.settings
        asked = [
            *({"field": field, "name": key} for field, key in settings.keys.items()),
            *({"field": f"claim {claim}", "name": key} for claim, key in settings.claims.items()),
        ]
        # every field is there, with or without a key
        absent = [{"field": field, "name": f"(no key for {field})"} for field in ("task", "user")]
        prepare(connection, {})
        connection.execute(sql["asked"], [json.dumps(asked + absent)])
        connection.execute(sql["names"], [str(HERE / "usage" / "envoy_name.csv")])
        connection.execute(sql["backend"], [json.dumps({k: v.model_dump() for k, v in settings.backends.items()})])
        fields = ", ".join(row[0] for row in connection.execute(sql["fields"]).fetchall())
        keys = connection.execute(
            "SELECT arg_min(name, rowid) FROM envoy_name GROUP BY lower(name) ORDER BY 1"
        ).fetchall()
        columns = ", ".join(f'"{row[0]}" VARCHAR' for row in keys)
        use(
            connection,
            {
                "provider": settings.provider,
                "account": settings.account,
                "region": settings.call_region or settings.region,
            },
        )
        claims = ", ".join(f"struct_pack(n := '{name}', v := \"said claim {name}\")" for name in settings.claims)
        mapped = sql["mapped"].replace("{{claims}}", claims)

        def files(paths: list[str]) -> None:
            use(connection, {"files": paths})
            payload = sql["payload"].replace("{{shape}}", shape_of(connection, columns))
            connection.execute(payload.replace("{{fields}}", fields))

        def define() -> None:
            connection.execute(mapped)

        def again(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            payload = sql["payload_by_line"].replace("{{columns}}", columns)
            connection.execute(payload.replace("{{fields}}", fields))

        return stage(connection, fetched, self.name, GATEWAY, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)


def _open(settings: EnvoyAIGatewaySettings) -> Source:
    return EnvoyAIGateway(settings, open_store(settings))


KIND = Kind("envoy_ai_gateway", EnvoyAIGatewaySettings, _open)
