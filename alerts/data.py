"""What alerts read: published figures, cut by period and by the dimensions of a rule."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, Protocol
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc

from alerts.settings import AnomalyRule, ThresholdRule
from warehouse.measures import Filters

ESTIMATE = "estimated_cost_usd"
STAKE = "inference_cost_usd"  # the money that a figure which is no money is about
BILL = ("effective_cost_usd", "billed_cost_usd")  # bill measures, to which an estimate can be added
WHOLE = ("inference_cost_usd", "usage_cost_usd", "effective_cost_usd")  # measures of which the estimate is a part
HELD = "controls_failed"
OF_DELIVERIES = ("restated_usd",)  # measures of what a provider delivered: no estimate is a part of them
TOTAL = "total"


class Snapshot(Protocol):
    """One published state of the ledger; it never changes."""

    @property
    def manifest_id(self) -> str: ...

    @property
    def as_of(self) -> datetime:
        """Evidence is known up to this UTC instant."""
        ...

    @property
    def zone(self) -> str:
        """IANA zone in which its days are cut."""
        ...

    @property
    def currency(self) -> str: ...

    @property
    def held(self) -> tuple[str, ...]:
        """Controls that failed since and keep the next snapshot back; empty when nothing does."""
        ...


class Measures(Protocol):
    """Published figures; `warehouse.measures` is one. A column per dimension and per measure, a row per group."""

    def table(
        self,
        snapshot: Any,
        measures: Sequence[str],
        by: Sequence[str] = (),
        where: Filters | None = None,
        order: str | None = None,
        limit: int | None = None,
    ) -> pa.Table: ...


@dataclass(frozen=True)
class Point:
    """One series in one period. `value` is None when the figure is unknown; an absent point is no Point at all."""

    value: Decimal | None
    estimated: Decimal = Decimal(0)
    stake_usd: Decimal | None = None


Points = dict[str, Point]


@dataclass(frozen=True)
class Reading:
    """The figures of one rule. `covered` holds the periods for which the snapshot has any row, whatever the series."""

    series: dict[str, Points]
    covered: frozenset[str]


@dataclass(frozen=True)
class Periods:
    """The periods a rule looks at, as text that sorts by time: `2026-11-30`, `2026-11-30T14` (UTC hour), `total`."""

    closed: tuple[str, ...]
    open: str | None


def series_key(dimensions: Sequence[str], values: Sequence[str | None]) -> str:
    """The canonical text of a series, e.g. `{"team":"search"}`."""
    return json.dumps(dict(zip(dimensions, values, strict=True)), separators=(",", ":"), sort_keys=True)


def periods(rule: ThresholdRule | AnomalyRule, snapshot: Snapshot, count: int) -> Periods:
    """The newest `count` periods that ended by the snapshot's as_of, oldest first, and the one it stands in."""
    grain = rule.grain if isinstance(rule, ThresholdRule) else "day"
    if grain == "total":
        return Periods((TOTAL,), None)
    if grain == "hour":
        hour = snapshot.as_of.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return Periods(
            tuple(_period(hour - timedelta(hours=n), "hour") for n in range(count, 0, -1)), _period(hour, "hour")
        )
    today = local_day(snapshot)
    return Periods(tuple((today - timedelta(days=n)).isoformat() for n in range(count, 0, -1)), today.isoformat())


def local_day(snapshot: Snapshot) -> date:
    """The day that contains the snapshot's as_of, in its zone."""
    return snapshot.as_of.astimezone(ZoneInfo(snapshot.zone)).date()


def identity(snapshot: Snapshot) -> str:
    """What tells one set of figures from another: the manifest, and what holds the next one back."""
    if not snapshot.held:
        return snapshot.manifest_id
    return f"{snapshot.manifest_id}+{hashlib.sha256(chr(10).join(snapshot.held).encode()).hexdigest()[:12]}"


def read(
    measures: Measures,
    snapshot: Snapshot,
    rule: ThresholdRule | AnomalyRule,
    *,
    first: str,
    extra: Sequence[str] = (),
) -> Reading:
    """Every series of `rule`, from period `first` on; `extra` dimensions split it further.

    Raises what the measures raise on a name that they do not know.
    """
    grain = rule.grain if isinstance(rule, ThresholdRule) else "day"
    dimensions = (*rule.by, *extra)
    time = () if grain == "total" else (grain,)
    where = None if grain == "total" else Filters(first_day=date.fromisoformat(first[:10]))
    has_estimate = _in_usd(rule.measure) and rule.measure not in OF_DELIVERIES
    wanted = dict.fromkeys((rule.measure, *((ESTIMATE,) if has_estimate else ()), *_floor(rule)))
    table = measures.table(snapshot, tuple(wanted), (*time, *dimensions), where)
    covered = (_period(value, grain) for value in pc.unique(table[grain]).to_pylist()) if time else (TOTAL,)
    found: dict[str, Points] = {}
    for row in _only(table, rule).to_pylist():
        value, estimated = _decimal(row[rule.measure]), _decimal(row.get(ESTIMATE)) or Decimal(0)
        if rule.include_estimates and rule.measure in BILL and estimated:
            value = (value or Decimal(0)) + estimated
        if rule.measure == HELD and not dimensions:
            value = (value or Decimal(0)) + len(snapshot.held)
        period = _period(row[grain], grain) if time else TOTAL
        key = series_key(dimensions, [row[dimension] for dimension in dimensions])
        found.setdefault(key, {})[period] = Point(value, estimated, _decimal(row.get(STAKE)))
    return Reading(found, frozenset(covered))


def is_additive(measure: str) -> bool:
    """Whether parts add up to the whole and a day only grows until it ends; a ratio does neither."""
    return "_per_" not in measure and not measure.endswith(("_share", "_ratio", "_ms"))


def _in_usd(measure: str) -> bool:
    return measure.endswith("_usd") and is_additive(measure)


def _floor(rule: ThresholdRule | AnomalyRule) -> tuple[str, ...]:
    return (STAKE,) if rule.min_usd and not _in_usd(rule.measure) else ()


def _only(table: pa.Table, rule: ThresholdRule | AnomalyRule) -> pa.Table:
    for dimension, values in rule.where.items():
        column = table[dimension]
        keep = pc.is_in(column, pa.array([v for v in values if v is not None], pa.string()))
        table = table.filter(pc.or_(keep, pc.is_null(column)) if None in values else keep)
    return table


def _period(value: date, grain: str) -> str:
    if grain == "day" or not isinstance(value, datetime):
        return f"{value:%Y-%m-%d}"
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    return f"{aware.astimezone(UTC):%Y-%m-%dT%H}"


def _decimal(value: Any) -> Decimal | None:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    return value if isinstance(value, Decimal) else Decimal(str(value))
