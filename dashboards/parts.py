"""Parts that pages are made of: heading, figures with their change, charts, choices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd
import plotly.graph_objects as go
import streamlit as st

from dashboards import queries, theme, words
from dashboards.charts import days as day_charts
from dashboards.charts import style as chart_style
from dashboards.filters import DIMENSIONS, NOBODY, View
from dashboards.queries import Scalar
from warehouse.measures import MEASURES
from warehouse.snapshot import Snapshot

STALE_HOURS = 48

STYLE = """
<style>
.block-container {padding-top: 3.2rem; padding-bottom: 3rem; max-width: 1500px;}
h1 {font-size: 1.7rem !important; font-weight: 650 !important; padding: 0 !important;}
h3 {font-size: 1.08rem !important; font-weight: 650 !important; padding: 0.9rem 0 0 !important;}
[class*="st-key-by-"] {margin-top: 0.6rem;}
[class*="st-key-by-"] h3 {padding-top: 0 !important;}
[data-testid="stCaptionContainer"] p {font-size: 0.84rem; line-height: 1.35;}
[data-testid="stMetricValue"] {font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums;}
[data-testid="stMetricLabel"] p {font-size: 0.85rem; color: #66707C;}
[data-testid="stMetricDelta"] {font-size: 0.82rem;}
.st-key-figures {display: grid !important; grid-template-columns: repeat(auto-fit, minmax(148px, 1fr)); gap: 0.6rem;}
[data-testid="stCaptionContainer"], [data-testid="stCaptionContainer"] p {color: #5C6672; opacity: 1;}
.st-key-attention {margin-top: 0.4rem;}
.st-key-attention [data-testid="stMarkdownContainer"] p {font-size: 0.95rem;}
.st-key-figures > div {width: 100% !important; height: 100%;}
[class*="st-key-figure-"] {gap: 0.15rem; padding: 0.7rem 0.85rem !important; height: 100%;}
[class*="st-key-figure-"] [data-testid="stCaptionContainer"] p {font-size: 0.78rem; line-height: 1.3; color: #66707C;}
</style>
"""


@dataclass(frozen=True)
class Figure:
    """One headline figure: a measure, what is said below it, and whether more of it is worse.

    `is_absent`: there is nothing to divide by, which is neither zero nor unknown.
    """

    measure: str
    note: str = ""
    more_is: str = "worse"
    title: str = ""
    unsplit: str = "is not known by"
    is_absent: bool = False


def heading(snapshot: Snapshot, view: View, title: str) -> None:
    """The page's title and what its figures rest on: period, zone, basis, status, age."""
    st.title(title)
    st.caption(words.plain(f"**{view.period}** · {basis(snapshot, view)}"))
    chosen = [
        f"{DIMENSIONS.get(name, name)}: {', '.join(words.name(value or NOBODY) for value in values)}"
        for name, values in view.filters.chosen().items()
    ]
    if chosen:
        st.caption(words.plain("Only " + " · ".join(chosen)))


def basis(snapshot: Snapshot, view: View) -> str:
    """Zone, currency, cost basis, what the bill holds already, how old the data are."""
    reach = queries.coverage(snapshot, view.first_day, view.last_day)
    parts = [f"days in {snapshot.zone}", f"effective cost in {snapshot.currency}"]
    if not reach["billed_rows"]:
        parts.append("no bill for this period")
    elif reach["open_from"]:
        parts.append(f"bill not final from {words.day(reach['open_from'])}")
    else:
        parts.append("bill final")
    if reach["estimated_from"]:
        parts.append(f"partly estimated from {words.day(reach['estimated_from'])}")
    return " · ".join([*parts, f"data as of {as_of(snapshot)}"])


def as_of(snapshot: Snapshot) -> str:
    """The instant the snapshot speaks of, and how long ago that was; in orange once that is long."""
    local = snapshot.as_of.astimezone(ZoneInfo(snapshot.zone))
    old = datetime.now(UTC) - snapshot.as_of
    if old.total_seconds() <= 0:
        return words.instant(local)
    ago = f"{words.age(old)} ago"
    return f"{words.instant(local)}, {f':orange[{ago}]' if old.total_seconds() > STALE_HOURS * 3600 else ago}"


def banner(snapshot: Snapshot) -> None:
    """Say so when a control fails and the last good snapshot is shown."""
    if snapshot.held:
        listed = "".join(f"\n- {words.plain(words.name(name))}" for name in snapshot.held[:5])
        more = f"\n- and {len(snapshot.held) - 5} more" if len(snapshot.held) > 5 else ""
        st.error(
            f"**A control does not hold, so newer figures are held back.** These are the last ones that balanced, "
            f"as of {as_of(snapshot)}.{listed}{more}\n\n`inferledger doctor` says what to do.",
            icon=":material/gpp_bad:",
        )


def section(title: str, about: str = "") -> None:
    """A heading within the page, and one line on what is counted."""
    st.subheader(title, anchor=False)
    if about:
        st.caption(words.plain(about))


def figures(snapshot: Snapshot, view: View, wanted: Sequence[Figure]) -> dict[str, Scalar]:
    """Headline figures with their change against the period before; the values, exact."""
    names = tuple(figure.measure for figure in wanted if queries.splits(figure.measure, view.filters))
    now = queries.totals(snapshot, names, view.filters)
    before = queries.totals(snapshot, names, view.before) if view.before else {}
    with st.container(key="figures"):
        for figure in wanted:
            with st.container(border=True, key=f"figure-{figure.measure}"):
                _figure(snapshot, view, figure, now, before)
    return now


def _figure(
    snapshot: Snapshot, view: View, figure: Figure, now: Mapping[str, Scalar], before: Mapping[str, Scalar]
) -> None:
    measure = MEASURES[figure.measure]
    title = figure.title or measure.title
    if figure.measure not in now:
        chosen = ", ".join(view.filters.chosen())
        st.metric(title, "n/a", help=measure.about or None)
        st.caption(f"{figure.unsplit} {chosen}")
        return
    value, earlier = now[figure.measure], before.get(figure.measure)
    st.metric(
        title,
        "none" if figure.is_absent else words.plain(words.of_measure(figure.measure, value, snapshot.currency)),
        delta=moved(figure.measure, value, earlier),
        delta_color={"worse": "inverse", "better": "normal"}.get(figure.more_is, "off"),
        help=words.plain(measure.about) or None,
    )
    if figure.note:
        st.caption(words.plain(figure.note))


def moved(measure: str, value: Scalar, earlier: Scalar) -> str | None:
    """The change as people say it: points for a share, percent for the rest; None without a comparison."""
    if words.is_unknown(value) or words.is_unknown(earlier):
        return None
    assert value is not None
    assert earlier is not None
    if MEASURES[measure].unit == "share":
        points = (float(value) - float(earlier)) * 100
        return f"{points:+.{1 if abs(points) >= 0.95 or points == 0 else 2}f} points"
    return words.change(float(value) / float(earlier) - 1) if earlier else None


def against(view: View) -> str:
    """What changes are measured against."""
    if view.before is None:
        return f"No comparison: the data do not reach {view.length} days back from {words.day(view.first_day)}."
    assert view.before.first_day is not None
    assert view.before.last_day is not None
    return (
        f"Changes are against {words.days(view.before.first_day, view.before.last_day)}, the {view.length} days before."
    )


def chart(figure: go.Figure, key: str, alt: str) -> None:
    """Show a chart in the house style."""
    st.plotly_chart(figure, theme=None, config=chart_style.CONFIG, key=key, alt=alt)


def days_of(frame: pd.DataFrame, column: str = "day") -> pd.DataFrame:
    """The frame with days as `date`, whatever Arrow made of them."""
    return frame.assign(**{column: pd.to_datetime(frame[column]).dt.date})


def estimated_days(snapshot: Snapshot, view: View) -> set[Any]:
    """Days of which a part is estimated."""
    frame = days_of(queries.table(snapshot, ("estimated_cost_usd", "unknown_cost_tokens"), ("day",), view.filters))
    some = (frame["estimated_cost_usd"].fillna(1) != 0) | (frame["unknown_cost_tokens"].fillna(0) > 0)
    return set(frame.loc[some, "day"])


def cost_chart(snapshot: Snapshot, view: View, by: str, key: str, measure: str = "inference_cost_usd") -> None:
    """Cost per day, stacked by a dimension."""
    frame = days_of(
        queries.table(snapshot, (measure,), ("day", by, "basis"), view.filters).rename(columns={measure: "cost"})
    )
    if by == "kind":
        colours: Mapping[str | None, str] = theme.KINDS
        titles: Mapping[str | None, str] = theme.KIND_TITLES
    else:
        colours = theme.colours(queries.choices(snapshot)[by])
        titles = {None: f"no {by}"}
    if frame["cost"].fillna(0).eq(0).all():
        st.caption(f"No cost between {words.day(view.first_day)} and {words.day(view.last_day)} for this choice.")
        return
    reach = queries.coverage(snapshot, view.first_day, view.last_day)
    figure = day_charts.cost_per_day(
        frame, by, colours, titles, snapshot.currency, reach["open_from"], (view.first_day, view.last_day)
    )
    chart(figure, key, f"{MEASURES[measure].title} per day by {by}, {view.period}")
    unknown = queries.totals(snapshot, ("unknown_cost_tokens",), view.filters)["unknown_cost_tokens"]
    gap = f" The cost of {words.tokens(unknown)} tokens is unknown: they have no bar." if unknown else ""
    below = " Kinds are fully loaded: credits count below zero." if by == "kind" else ""
    st.caption(f"Solid is billed, hatched is estimated from the price book.{below}{gap}")


def section_by(title: str, label: str, options: Mapping[str, str], key: str) -> str:
    """A heading with a few ways to look at it beside; the way that is chosen. It is in the link."""
    titles = list(options.values())
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key=f"by-{key}"):
        st.subheader(title, anchor=False, width="content")
        picked = st.segmented_control(
            label,
            titles,
            default=titles[0],
            required=True,
            key=key,
            bind="query-params",
            persist_state="session",
            label_visibility="collapsed",
        )
    return next(name for name, title in options.items() if title == picked)


def nothing_if(condition: bool, text: str) -> bool:
    """Say why there is nothing to show."""
    if condition:
        st.info(words.plain(text), icon=":material/info:")
    return condition


def joined(parts: Iterable[str]) -> str:
    """The parts that say something, apart by dots."""
    return " · ".join(part for part in parts if part)
