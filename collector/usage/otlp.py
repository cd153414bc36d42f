"""Spans of model calls as OTLP/JSON: OpenTelemetry GenAI (every spelling so far) and OpenInference.

Files hold one ExportTraceServiceRequest, or JSON Lines of them, as the Collector's file and S3 exporters write them
(`marshaler: otlp_json`), plain or gzip. Token counts are inclusive, as the convention asks: the input holds cache reads
and writes, the output holds reasoning. Sources: open-telemetry/semantic-conventions-genai, Arize-ai/openinference,
traceloop/openllmetry, the Vercel AI SDK; reference/usage.md 2.4.
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
from collector.usage.records import TRACE, Reading, json_lines, shape_of, use
from collector.usage.traces import AGENT_TOTALS, Server, prepare, stage_spans, write_spans
from warehouse.settings import Settings

LINE_FILES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
TEXT = re.compile(
    r"^(gen_ai\.(prompt|completion|system_instructions|input\.messages|output\.messages|tool\.(call|definitions))"
    r"|llm\.(prompts|input_messages|output_messages|choices)|ai\.(prompt|response\.(text|object))"
    r"|(input|output)(\.value)?$|traceloop\.entity\.(in|out)put)"
)


class SpanClaims(Settings):
    """Attributes that owner rules may use. They are what a program says of itself: rules on credentials come first."""

    attributes: tuple[str, ...] = Field(default=(), description="of the span; become claims attribute.<name>")
    resource: tuple[str, ...] = Field(
        default=("service.name", "service.namespace", "deployment.environment.name"),
        description="of the resource; become claims resource.<name>",
    )

    @field_validator("attributes", "resource")
    @classmethod
    def _no_text(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if not re.fullmatch(r"[\w.\-/]+", name):
                raise ValueError(f"`{name}`: an attribute's name has letters, digits, `_`, `.`, `-`, `/` only")
            if TEXT.match(name) and name != "gen_ai.prompt.name":
                raise ValueError(f"`{name}` holds text of prompts or answers, which never enters the ledger")
        return value


class OtlpSettings(SourceSettings):
    """Spans in a folder or bucket."""

    kind: Literal["otlp"]
    account: str | None = Field(
        default=None, description="cloud account of calls; spans do not say whose bill they are on"
    )
    call_region: str | None = Field(
        default=None, description="region of calls whose address does not name one; default: `region`"
    )
    claims: SpanClaims = SpanClaims()
    agent_totals: bool = AGENT_TOTALS
    servers: dict[str, Server] = Field(
        default={}, description="by `server.address`: who answers there, for proxies and own servers"
    )
    exclusive_scopes: tuple[str, ...] = Field(
        default=(), description="instrumentation scopes whose input count leaves cached tokens out"
    )
    task: str = Field(
        default="agent.task.id", description="attribute, or trace_id; a call that names an agent is of its trace's task"
    )
    task_outcome: str = "agent.task.outcome"

    @field_validator("task", "task_outcome")
    @classmethod
    def _is_an_attribute(cls, value: str) -> str:
        if not re.fullmatch(r"[\w.\-/]+", value) or TEXT.match(value):
            raise ValueError(f"`{value}`: write the name of an attribute that holds no text of prompts or answers")
        return value


@dataclass(frozen=True)
class Otlp:
    """Exported spans. Batches: new files, folder by folder."""

    settings: OtlpSettings
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
        sql = queries("usage/otlp.sql")
        settings = self.settings
        asked = _asked(settings)
        prepare(connection, settings.servers)
        connection.execute(sql["macros"])
        connection.execute(sql["name"], [str(HERE / "usage" / "otlp_name.csv")])
        connection.execute(sql["asked"], [json.dumps(asked)])
        use(
            connection,
            {
                "account": settings.account,
                "region": settings.call_region or settings.region,
                "agent_totals": settings.agent_totals,
                "claim_names": [each["field"].removeprefix("claim:") for each in asked if ":" in each["field"]],
                "exclusive_scopes": list(settings.exclusive_scopes),
                "task_is_trace": settings.task == "trace_id",
            },
        )
        columns = sql["columns"].strip().replace("{{scopes}}", sql["scopes"].strip())
        columns = columns.replace("{{attributes}}", sql["attributes"].strip())
        payload = sql["payload"]

        def files(paths: list[str]) -> None:
            use(connection, {"files": paths})
            connection.execute(sql["document"].replace("{{shape}}", shape_of(connection, columns)))
            connection.execute(payload)

        def define() -> None:
            connection.execute(sql["mapped"])

        def again(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            connection.execute(sql["document_by_line"].replace("{{columns}}", columns))
            connection.execute(payload)

        return stage_spans(connection, fetched, self.name, TRACE, load_id, moment, Reading(files, define, again))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write_spans(connection, self.name, staged)


def _asked(settings: OtlpSettings) -> list[dict[str, str]]:
    """Fields that the configuration fills, each with the attribute it names; `resource/` marks a resource's own."""
    claims = settings.claims
    return [
        *({"field": f"claim:attribute.{name}", "name": name} for name in claims.attributes),
        *({"field": f"claim:resource.{name}", "name": f"resource/{name}"} for name in claims.resource),
        {"field": "task", "name": settings.task},
        {"field": "outcome", "name": settings.task_outcome},
    ]


def _open(settings: OtlpSettings) -> Source:
    return Otlp(settings, open_store(settings))


KIND = Kind("otlp", OtlpSettings, _open)
