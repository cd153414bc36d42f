"""What is known about the metrics of every engine and exporter: one YAML file each beside this one.

A new engine is a new file here. Names, units and traps: reference/metrics.md 1-3.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

import pyarrow as pa
import yaml
from pydantic import Field, field_validator

from warehouse.settings import Settings

FOLDER = Path(__file__).parent
MINUTE_TABLES = ("serving_minute", "gpu_minute", "kube_minute")


class Name(Settings):
    """One exposed name, without the engine's prefix, and the releases that have it."""

    name: str = Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")
    since: str | None = Field(default=None, description="first release; NULL: always there")
    until: str | None = Field(default=None, description="first release without it")


class Metric(Settings):
    """One thing that is measured, whatever its name was over the years.

    scale            exposed value times scale, rounded, is the whole number that is stored
    minimum, maximum bounds of the exposed value; beyond them it says nothing (sentinels, spikes)
    where            label: pattern its whole value must match; an absent label is the empty text
    """

    names: tuple[Name, ...] = Field(min_length=1)
    concept: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    sample_kind: Literal["counter", "gauge", "info"]
    unit: str
    scale: int = Field(default=1, gt=0)
    minimum: float | None = None
    maximum: float | None = None
    semantics: str | None = None
    where: dict[str, str] = Field(default={})

    @field_validator("names", mode="before")
    @classmethod
    def _plain_names(cls, value: object) -> object:
        return (
            [{"name": each} if isinstance(each, str) else each for each in value] if isinstance(value, list) else value
        )


class LabelNames(Settings):
    """Labels that may hold a fact, the first non-empty one wins."""

    namespace: tuple[str, ...]
    pod: tuple[str, ...]
    node: tuple[str, ...]


class Catalogue(Settings):
    """The metrics of one engine or exporter."""

    engine: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    table: Literal["serving_minute", "gpu_minute", "kube_minute"]
    prefixes: tuple[str, ...] = ("",)
    labels: LabelNames
    metrics: tuple[Metric, ...]


@dataclass(frozen=True)
class Exposed:
    """One full exposed name and what it means.

    of_metric  of a `*_created` series: the counter whose birth it tells
    """

    name: str
    engine: str
    table: str
    labels: LabelNames
    metric: Metric
    of_metric: str | None = None


CREATED = {"sample_kind": "gauge", "unit": "microseconds_since_epoch", "scale": 1_000_000, "minimum": 0}


@cache
def exposed_names() -> dict[str, Exposed]:
    """Every catalogued name; `*_created` of each counter included. Raises ValueError where two files claim a name."""
    found: dict[str, Exposed] = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        engine = Catalogue.model_validate(yaml.safe_load(path.read_text()))
        for metric in engine.metrics:
            for each in metric.names:
                for prefix in engine.prefixes:
                    name = prefix + each.name
                    entries = [Exposed(name, engine.engine, engine.table, engine.labels, metric)]
                    if metric.sample_kind == "counter" and name.endswith(("_total", "_count")):
                        born = name.rsplit("_", 1)[0] + "_created"
                        created = Metric.model_validate(
                            {"names": [each.name], "concept": "created", **CREATED, "where": metric.where}
                        )
                        entries.append(Exposed(born, engine.engine, engine.table, engine.labels, created, name))
                    for entry in entries:
                        if entry.name in found:
                            raise ValueError(f"{path.name}: {entry.name} is catalogued twice")
                        found[entry.name] = entry
    return found


@cache
def catalogue_table() -> pa.Table:
    """The catalogue as the SQL reads it: one row per exposed name."""
    pairs, texts = pa.map_(pa.string(), pa.string()), pa.list_(pa.string())
    schema = pa.schema(
        [
            ("name", pa.string()), ("engine", pa.string()), ("evidence", pa.string()), ("concept", pa.string()),
            ("sample_kind", pa.string()), ("unit", pa.string()), ("scale", pa.float64()), ("minimum", pa.float64()),
            ("maximum", pa.float64()), ("semantics", pa.string()), ("of_metric", pa.string()), ("conditions", pairs),
            ("namespace_labels", texts), ("pod_labels", texts), ("node_labels", texts),
        ]
    )  # fmt: skip
    return pa.Table.from_pylist(
        [
            {
                "name": each.name,
                "engine": each.engine,
                "evidence": each.table,
                "concept": each.metric.concept,
                "sample_kind": each.metric.sample_kind,
                "unit": each.metric.unit,
                "scale": float(each.metric.scale),
                "minimum": 0.0 if each.metric.sample_kind == "counter" else each.metric.minimum,
                "maximum": each.metric.maximum,
                "semantics": each.metric.semantics,
                "of_metric": each.of_metric,
                "conditions": list(each.metric.where.items()),
                "namespace_labels": list(each.labels.namespace),
                "pod_labels": list(each.labels.pod),
                "node_labels": list(each.labels.node),
            }
            for each in exposed_names().values()
        ],
        schema=schema,
    )
