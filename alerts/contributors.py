"""What a figure is made of: the largest parts of one series in one period, against their own past."""

import json
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from statistics import median
from typing import Any

from alerts.data import Measures, Points, Reading, Snapshot, is_additive, read
from alerts.detect import history
from alerts.settings import AnomalyRule, ThresholdRule
from warehouse.measures import Filters

DIMENSIONS = ("model", "app", "agent", "team")
# What did nothing has neither app nor team: it is of pools, and has a cause.
OF_GPUS = dict.fromkeys(("idle_cost_usd", "unmeasured_cost_usd"), ("pool", "cluster", "reason")) | {
    "under_used_cost_usd": ("pool", "cluster", "team")
}
OF_BILLS = {"restated_usd": ("name",), "bill_checks_failed": ("name",)}
TASK = "task"
TASK_COST = "task_cost_usd"
TASK_MEASURES = {"inference_cost_usd", "usage_cost_usd", "effective_cost_usd", TASK_COST}
TASK_DIMENSIONS = {"team", "app", "cost_center", "agent", "environment"}  # what a task's cost can be narrowed by
LARGEST = 3


@dataclass(frozen=True)
class Contributor:
    """One part: its figure in the period, and the median of its past days (None: it has no past)."""

    dimension: str
    name: str | None
    value: Decimal
    usual: Decimal | None


class Contributors:
    """Reads each split once per rule, and only when something is to be told."""

    def __init__(self, measures: Measures, snapshot: Snapshot) -> None:
        self._measures = measures
        self._snapshot = snapshot
        self._readings: dict[tuple[str, str], Reading] = {}

    def of(self, rule: ThresholdRule | AnomalyRule, series: str, period: str, first: str) -> tuple[Contributor, ...]:
        """The three largest parts by model, app, agent, team and agent task each, for measures whose parts add up;
        by pool, cluster and cause for GPUs that did nothing; by day and service for what a bill restated.

        An anomaly's parts are ordered by how far they lie above their own past, a threshold's by size.
        """
        if not is_additive(rule.measure):
            return ()
        splits = (extra for extra in (OF_GPUS | OF_BILLS).get(rule.measure, DIMENSIONS) if extra not in rule.by)
        parts = [part for extra in splits for part in self._split(rule, series, extra, period, first)]
        return (*parts, *self._tasks(rule, series, period))

    def _split(
        self, rule: ThresholdRule | AnomalyRule, series: str, extra: str, period: str, first: str
    ) -> list[Contributor]:
        if (rule.name, extra) not in self._readings:
            reading = read(self._measures, self._snapshot, rule, first=first, extra=(extra,))
            self._readings[rule.name, extra] = reading
        wanted = json.loads(series)
        parts = []
        for key, points in self._readings[rule.name, extra].series.items():
            dimensions = json.loads(key)
            name = dimensions.pop(extra)
            point = points.get(period)
            if dimensions == wanted and point is not None and point.value:
                parts.append(Contributor(extra, name, point.value, _usual(rule, points, period)))
        if all(part.name is None for part in parts):
            return []
        grown = isinstance(rule, AnomalyRule)
        parts.sort(key=lambda p: (-(p.value - ((p.usual or Decimal(0)) if grown else Decimal(0))), p.name or ""))
        return parts[:LARGEST]

    def _tasks(self, rule: ThresholdRule | AnomalyRule, series: str, period: str) -> list[Contributor]:
        """The dearest agent tasks of that day, where the measure is a cost and the series can be narrowed to them."""
        dimensions = json.loads(series)
        is_day = rule.kind == "anomaly" or rule.grain == "day"
        if not (rule.measure in TASK_MEASURES and TASK_DIMENSIONS.issuperset(dimensions) and is_day):
            return []
        day = date.fromisoformat(period)
        narrowed: dict[str, Any] = {name: (value,) for name, value in dimensions.items()}
        where = replace(Filters(first_day=day, last_day=day), **narrowed)
        table = self._measures.table(
            self._snapshot, (TASK_COST,), ("task_id",), where, order=f"-{TASK_COST}", limit=LARGEST
        )
        rows = [row for row in table.to_pylist() if row["task_id"] is not None and row[TASK_COST]]
        return [Contributor(TASK, row["task_id"], row[TASK_COST], None) for row in rows]


def _usual(rule: ThresholdRule | AnomalyRule, points: Points, period: str) -> Decimal | None:
    past = history(rule, points, period) if isinstance(rule, AnomalyRule) else ()
    return median(past) if past else None
