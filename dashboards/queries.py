"""What pages ask of a snapshot. Unit costs and ratios come from `warehouse.measures`; here is only what is no measure.

Every answer is cached by what was asked and by the snapshot's identity: manifest, publication and scope.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Literal

import pandas as pd
import streamlit as st

from warehouse import measures
from warehouse.measures import COMPONENTS, DIMENSIONS, MEASURES, Filters
from warehouse.snapshot import Snapshot

Row = dict[str, Any]
Scalar = Decimal | int | float | None
QUANTILES = (0.5, 0.95, 0.99)
SELF_HOSTED = "self-hosted"
# Kinds that know a model; the others are of a whole bill or day.
OF_MODELS = "'usage', 'unattributed', 'under_used', 'idle', 'unmeasured'"


def identity(snapshot: Snapshot) -> str:
    """What distinguishes this snapshot, seen through this scope, from any other."""
    teams = "everything" if snapshot.scope.teams is None else sorted(snapshot.scope.teams)
    return repr((snapshot.manifest_id, snapshot.published_at, snapshot.held, snapshot.scope.who, teams))


cached: Callable[[Callable[..., Any]], Callable[..., Any]] = partial(
    st.cache_data, max_entries=512, show_spinner=False, hash_funcs={Snapshot: identity, Filters: repr}
)


@cached
def table(
    snapshot: Snapshot,
    names: tuple[str, ...],
    by: tuple[str, ...] = (),
    where: Filters | None = None,
    order: str | None = None,
    limit: int | None = None,
) -> pd.DataFrame:
    """Measures as a frame; amounts and ratios are floats, for a table or a chart. NULL is NaN."""
    return frame(measures.table(snapshot, names, by, where, order, limit), names)


@cached
def totals(snapshot: Snapshot, names: tuple[str, ...], where: Filters | None = None) -> dict[str, Scalar]:
    """Measures of everything that `where` admits, exact."""
    row: dict[str, Scalar] = measures.table(snapshot, names, where=where).to_pylist()[0]
    return row


def splits(name: str, where: Filters) -> bool:
    """Whether a measure knows every dimension that is restricted; a task, for one, has several models."""
    measure = MEASURES[name]
    return all(knows(COMPONENTS[part].mart, where) for part in (measure.numerator, measure.denominator) if part)


def knows(mart: str, where: Filters) -> bool:
    """Whether a mart has every dimension that is restricted."""
    return all(dimension in DIMENSIONS[mart] for dimension in where.chosen())


def only(where: Filters, **chosen: tuple[str | None, ...]) -> Filters:
    """The same rows, some dimensions restricted to these values."""
    return replace(where, **chosen)  # type: ignore[arg-type]


def managed(snapshot: Snapshot, where: Filters) -> Filters | None:
    """The same rows of managed APIs, which a price book prices; None if none is chosen."""
    chosen = where.provider or choices(snapshot)["provider"]
    left = tuple(name for name in chosen if name != SELF_HOSTED)
    return where if SELF_HOSTED not in chosen else only(where, provider=left) if left else None


@cached
def latencies(snapshot: Snapshot, by: tuple[str, ...], where: Filters) -> pd.DataFrame:
    """Percentiles of duration and time to first token, in milliseconds, with the calls they rest on."""
    found: pd.DataFrame | None = None
    for measure in ("duration", "ttft"):
        for quantile in QUANTILES:
            name = f"p{round(quantile * 100)}_ms"
            part = measures.percentile(snapshot, _latency(measure), quantile, by, where).to_pandas()
            renamed = part.rename(columns={name: f"{measure}_{name}", "requests": f"{measure}_requests"})
            if found is not None:
                renamed = renamed.drop(columns=[f"{measure}_requests"] if f"{measure}_requests" in found else [])
                found = found.merge(renamed, how="outer", on=list(by))
            else:
                found = renamed
    assert found is not None
    return found


def _latency(measure: str) -> Literal["duration", "ttft"]:
    return "ttft" if measure == "ttft" else "duration"


@cached
def choices(snapshot: Snapshot) -> dict[str, tuple[str | None, ...]]:
    """Values of the shared filters and of agents, over the whole snapshot, so that they do not jump with the period."""
    columns = ("team", "app", "model", "provider", "environment", "agent")
    return {name: _values(snapshot, name) for name in columns}


def _values(snapshot: Snapshot, column: str) -> tuple[str | None, ...]:
    rows = snapshot.sql(
        f"SELECT DISTINCT {column} AS value FROM ("
        f"SELECT {column} FROM usage_day UNION SELECT {column} FROM cost_day "
        f"WHERE kind IN ({OF_MODELS})) ORDER BY 1 NULLS LAST"
    )
    return tuple(rows.column(0).to_pylist())


@cached
def coverage(snapshot: Snapshot, first: date, last: date) -> Row:
    """How far the bill is final and how far it reaches: days of the period by status and basis."""
    return one(
        snapshot.sql(
            f"""
            SELECT min(day) FILTER (basis = 'billed' AND status = 'open' AND kind IN ({OF_MODELS}))
                    AS open_from,
                min(day) FILTER (basis = 'estimated') AS estimated_from,
                max(day) FILTER (basis = 'billed' AND status = 'final') AS final_until,
                count(*) FILTER (basis = 'billed') AS billed_rows
            FROM cost_day WHERE day BETWEEN ? AND ? AND kind <> 'future'
            """,
            [first, last],
        )
    )


@cached
def claims(snapshot: Snapshot) -> pd.DataFrame:
    """What the claim sets of no team say: `name: value`, or nothing at all."""
    return frame(
        snapshot.sql(
            """
            SELECT claim_set_id, nullif(array_to_string(list_transform(json_keys(claims),
                lambda name: name || ': ' || json_extract_string(claims, '$."' || name || '"')), ', '), '') AS claims
            FROM (SELECT claim_set_id, min(claims) AS claims FROM owner WHERE team IS NULL GROUP BY claim_set_id)
            """
        )
    )


@cached
def other_currencies(snapshot: Snapshot) -> list[Row]:
    """Amounts on the bill in currencies other than the reporting one; they are never added up."""
    return rows(
        snapshot.sql(
            "SELECT currency, sum(bill_usd) AS bill FROM balance WHERE cost_basis = 'effective' AND currency <> ? "
            "GROUP BY currency ORDER BY currency",
            [snapshot.currency],
        )
    )


def frame(found: Any, amounts: Iterable[str] = ()) -> pd.DataFrame:
    """An Arrow table as a frame; decimals become floats at this last step."""
    shown: pd.DataFrame = found.to_pandas()
    decimals = {name for name in shown.columns if shown[name].dtype == object and _is_decimal(shown[name])}
    for name in decimals | {name for name in amounts if name in shown.columns}:
        shown[name] = pd.to_numeric(shown[name].astype("float64"))
    return shown


def _is_decimal(column: pd.Series) -> bool:
    known = column.dropna()
    return not known.empty and isinstance(known.iloc[0], Decimal)


def rows(found: Any) -> list[Row]:
    """An Arrow table as dictionaries, exact."""
    listed: list[Row] = found.to_pylist()
    return listed


def one(found: Any) -> Row:
    """The one row of an Arrow table."""
    return rows(found)[0]
