"""Writes OTLP/JSON as a collector's file exporter does."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.collector.writing import START

Json = dict[str, Any]

TRACE = "5b8efff798038103d269b633813fc60c"
CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "openai",
    "gen_ai.request.model": "gpt-4o",
    "gen_ai.usage.input_tokens": 100,
    "gen_ai.usage.output_tokens": 20,
}
AGENT = CHAT | {"gen_ai.operation.name": "invoke_agent"}


def attribute(name: str, value: object) -> Json:
    kind = {bool: "boolValue", int: "intValue", float: "doubleValue"}.get(type(value), "stringValue")
    if isinstance(value, list):
        return {"key": name, "value": {"arrayValue": {"values": [{"stringValue": each} for each in value]}}}
    return {"key": name, "value": {kind: str(value) if kind == "intValue" else value}}


def span(
    number: int, attributes: Json | None = None, *, parent: int | None = None, trace: str = TRACE,
    start: float = 0, seconds: float = 2, **rest: Any,
) -> Json:  # fmt: skip
    """Span `number` of a trace, `start` seconds after START; without attributes an ordinary chat."""
    begun = int((START.timestamp() + start) * 1_000_000) * 1000
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "parentSpanId": f"{parent:016x}" if parent else "",
        "name": "a span",
        "startTimeUnixNano": str(begun),
        "endTimeUnixNano": str(begun + int(seconds * 1_000_000) * 1000),
        "attributes": [attribute(name, value) for name, value in (CHAT if attributes is None else attributes).items()],
        "status": {},
    } | rest


def document(spans: Sequence[Json], resource: Json | None = None, scope: str = "a.library") -> Json:
    own = [attribute(name, value) for name, value in (resource or {"service.name": "shop"}).items()]
    return {
        "resourceSpans": [{"resource": {"attributes": own}, "scopeSpans": [{"scope": {"name": scope}, "spans": spans}]}]
    }


def write_spans(path: Path, *spans: Json, resource: Json | None = None, scope: str = "a.library") -> None:
    """Append one document with these spans."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(document(spans, resource, scope)) + "\n")
