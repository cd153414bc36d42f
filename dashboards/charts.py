"""Charts from frames: no query, no Streamlit. What is estimated is hatched, days whose bill is open are shaded."""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from math import log10
from typing import Any

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboards import theme, words

Colours = Mapping[str | None, str]
CONFIG = {"displayModeBar": False, "responsive": True}
SERIES_LIMIT = 8
OTHER = "other"
HATCH = {"shape": "/", "solidity": 0.28, "size": 5}


def blank(height: int, **layout: Any) -> go.Figure:
    """An empty figure in the house style."""
    figure = go.Figure()
    style(figure, height, **layout)
    return figure


def style(figure: go.Figure, height: int, **layout: Any) -> None:
    """The house style: white, few lines, small grey ticks."""
    axis = {
        "showgrid": False,
        "zeroline": False,
        "linecolor": theme.LINE,
        "ticks": "",
        "title": None,
        "automargin": True,
        "tickfont": {"color": theme.MUTED, "size": 12},
    }
    figure.update_layout(
        height=height,
        margin={"l": 4, "r": 4, "t": 12, "b": 4},
        paper_bgcolor="white",
        plot_bgcolor="white",
        font={"family": theme.FONT, "size": 13, "color": theme.TEXT},
        bargap=0.22,
        hoverlabel={
            "bgcolor": "white",
            "bordercolor": theme.LINE,
            "font": {"family": theme.FONT, "size": 13, "color": theme.TEXT},
        },
        legend={"font": {"size": 12, "color": theme.TEXT}, "title": None, "itemsizing": "constant"},
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**{**axis, "showline": False, "showgrid": True, "gridcolor": theme.GRID})
    figure.update_layout(**layout)


def cost_per_day(
    frame: pd.DataFrame,
    group: str,
    colours: Colours,
    titles: Mapping[str | None, str],
    currency: str,
    open_from: date | None,
    days: tuple[date, date],
    height: int = 330,
) -> go.Figure:
    """Stacked cost per day: columns `day`, `group`, `basis`, `cost`. Billed is solid, estimated hatched."""
    figure = blank(height, barmode="relative", hovermode="x unified")
    known = frame.dropna(subset=["cost"])
    known = known[known["cost"] != 0]
    order = known.groupby(group, dropna=False)["cost"].sum().abs().sort_values(ascending=False).index.tolist()
    names = [None if words.is_unknown(name) else name for name in order]
    shown, rest = names[:SERIES_LIMIT], names[SERIES_LIMIT:]
    if len(rest) == 1:
        shown, rest = names, []
    series = [(name, known[_same(known[group], name)]) for name in shown]
    if rest:
        others = pd.concat([known[_same(known[group], name)] for name in rest])
        series.append((OTHER, others.groupby(["day", "basis"], as_index=False)["cost"].sum()))
    for name, part in series:
        colour = theme.OTHER if name == OTHER and rest else colours.get(name, theme.UNKNOWN)
        title = f"{len(rest)} others" if name == OTHER and rest else titles.get(name, name or words.UNKNOWN)
        for basis in ("billed", "estimated"):
            _add_days(figure, part[part["basis"] == basis], title, colour, basis == "estimated", currency)
    if (known["basis"] == "estimated").any():
        figure.add_trace(
            go.Bar(
                x=[None],
                y=[None],
                name="estimated",
                showlegend=True,
                marker={
                    "color": "white",
                    "line": {"width": 0},
                    "pattern": {**HATCH, "fgcolor": theme.MUTED, "bgcolor": "#EEF0F3"},
                },
            )
        )
    figure.update_yaxes(tickprefix=words.symbol(currency), tickformat="~s", rangemode="tozero")
    day_axis(figure, *days)
    shade_open(figure, open_from, *days)
    figure.update_layout(legend={"traceorder": "reversed", "x": 1.01, "y": 1, "xanchor": "left", "yanchor": "top"})
    return figure


def _add_days(figure: go.Figure, part: pd.DataFrame, title: str, colour: str, estimated: bool, currency: str) -> None:
    if part.empty and estimated:
        return
    pattern = {**HATCH, "fgcolor": colour, "bgcolor": theme.lighter(colour, 0.72)} if estimated else {"shape": ""}
    figure.add_trace(
        go.Bar(
            x=part["day"],
            y=part["cost"],
            name=title,
            legendgroup=title,
            showlegend=not estimated,
            marker={"color": colour, "line": {"width": 0}, "pattern": pattern},
            customdata=[words.money(value, currency) for value in part["cost"]],
            hovertemplate=f"{'estimated ' if estimated else ''}%{{customdata}}",
        )
    )


def _same(column: pd.Series, name: str | None) -> pd.Series:
    return column.isna() if name is None else column == name


def day_axis(figure: go.Figure, first: date, last: date, **where: Any) -> None:
    """Days on the x axis: every one if there are few, else weeks."""
    length = (last - first).days + 1
    step = 1 if length <= 10 else 2 if length <= 20 else 7 if length <= 90 else None
    figure.update_xaxes(
        type="date",
        range=[first - timedelta(hours=12), last + timedelta(hours=12)],
        tickformat="%-d %b",
        hoverformat="%a %-d %b %Y",
        **({"dtick": step * 86_400_000, "tick0": first.isoformat()} if step else {}),
        **where,
    )


def shade_open(figure: go.Figure, open_from: date | None, first: date, last: date) -> None:
    """Shade the days whose bill is not final yet, and say so."""
    if open_from is None or open_from > last:
        return
    start = max(open_from, first)
    edges = [day.isoformat() for day in (start, last)]
    figure.add_vrect(
        x0=f"{(start - timedelta(days=1)).isoformat()} 12:00",
        x1=f"{edges[1]} 12:00",
        fillcolor=theme.OPEN_BAND,
        line_width=0,
        layer="below",
    )
    figure.add_annotation(
        x=f"{(start - timedelta(days=1)).isoformat()} 12:00",
        y=1,
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        text="bill not final",
        showarrow=False,
        font={"size": 11, "color": theme.FAINT},
        xshift=2,
    )
    figure.update_layout(margin={"t": 22})


def lines_per_day(
    series: Sequence[tuple[str, str, str, pd.Series]],
    currency: str,
    days: tuple[date, date],
    estimated: set[date],
    height: int = 260,
) -> go.Figure:
    """Unit costs per day: (title, colour, dash, series by day). A day with an estimated part has a hollow mark."""
    figure = blank(height, hovermode="x unified")
    for title, colour, dash, values in series:
        hollow = [day in estimated and dash == "solid" for day in values.index]
        figure.add_trace(
            go.Scatter(
                x=list(values.index),
                y=values.to_numpy(),
                name=title,
                mode="lines+markers" if dash == "solid" else "lines",
                connectgaps=False,
                line={"color": colour, "width": 2 if dash == "solid" else 1.6, "dash": dash},
                marker={
                    "size": 6,
                    "color": ["white" if each else colour for each in hollow],
                    "line": {"color": colour, "width": 1.6},
                },
                customdata=[
                    words.unit_money(value, currency) + (", partly estimated" if each else "")
                    for value, each in zip(values, hollow, strict=True)
                ],
                hovertemplate="%{customdata}",
            )
        )
    figure.update_yaxes(tickprefix=words.symbol(currency), tickformat=".2~f", rangemode="tozero", nticks=6)
    day_axis(figure, *days)
    figure.update_layout(legend={"orientation": "h", "y": 1.02, "x": 0, "yanchor": "bottom"}, margin={"t": 30})
    return figure


def small_multiples(
    panels: Sequence[tuple[str, str, pd.Series]],
    currency: str,
    days: tuple[date, date],
    estimated: set[date],
    columns: int = 4,
    row_height: int = 150,
) -> go.Figure:
    """One small chart per model, each with a scale of its own from zero: what changed is seen, not what is dear."""
    rows = -(-len(panels) // columns)
    figure = make_subplots(
        rows,
        columns,
        shared_xaxes=False,
        horizontal_spacing=0.055,
        vertical_spacing=0.3 / max(rows, 1),
        subplot_titles=[title for title, _, _ in panels],
    )
    style(figure, rows * row_height + 30, showlegend=False, margin={"l": 4, "r": 8, "t": 26, "b": 4})
    for number, (title, colour, values) in enumerate(panels):
        row, column = number // columns + 1, number % columns + 1
        hollow = [day in estimated for day in values.index]
        top = float(values.max()) if values.notna().any() else 1.0
        figure.add_trace(
            go.Scatter(
                x=list(values.index),
                y=values.to_numpy(),
                name=title,
                mode="lines+markers",
                line={"color": colour, "width": 1.8},
                marker={
                    "size": 4.5,
                    "color": ["white" if each else colour for each in hollow],
                    "line": {"color": colour, "width": 1.2},
                },
                customdata=[words.unit_money(value, currency) for value in values],
                hovertemplate=f"<b>{title}</b><br>%{{x|%a %-d %b}}: %{{customdata}}<extra></extra>",
            ),
            row,
            column,
        )
        ticks = [0, top / 2, top] if top > 0 else [0]
        figure.update_yaxes(
            range=[0, top * 1.12],
            tickvals=ticks,
            ticktext=[words.unit_money(tick, currency) if tick else "0" for tick in ticks],
            tickfont={"size": 10.5},
            row=row,
            col=column,
        )
        edge = [day.isoformat() for day in days]
        figure.update_xaxes(
            range=edge,
            tickvals=edge,
            ticktext=[f"{days[0]:%-d %b}", f"{days[1]:%-d %b}"],
            tickfont={"size": 10.5},
            row=row,
            col=column,
        )
    figure.update_annotations(font={"size": 12.5, "color": theme.TEXT}, xanchor="center")
    return figure


def bars(
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    labels: Sequence[str],
    *,
    height: int | None = None,
    hover: Sequence[str] | None = None,
) -> go.Figure:
    """Horizontal bars, the first on top, the figure at the end of each."""
    figure = blank(height or 30 * len(names) + 24)
    figure.add_trace(
        go.Bar(
            x=list(values),
            y=list(names),
            orientation="h",
            marker={"color": list(colours)},
            text=list(labels),
            textposition="outside",
            cliponaxis=False,
            textfont={"size": 12, "color": theme.TEXT},
            width=0.62,
            customdata=list(hover or labels),
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        )
    )
    top, bottom = max([*values, 0]), min([*values, 0])
    span = (top - bottom) or 1
    figure.update_xaxes(visible=False, range=[bottom - (0.3 * span if bottom < 0 else 0), top + 0.42 * span])
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    return figure


def waterfall(names: Sequence[str], values: Sequence[float], total: str, currency: str, height: int = 320) -> go.Figure:
    """From nothing to the bill, kind by kind."""
    figure = blank(height)
    figure.add_trace(
        go.Waterfall(
            x=[*names, total],
            y=[*values, 0],
            measure=["relative"] * len(names) + ["total"],
            text=[words.money(value, currency) for value in [*values, sum(values)]],
            textposition="outside",
            cliponaxis=False,
            textfont={"size": 12},
            connector={"line": {"color": theme.LINE, "width": 1}},
            increasing={"marker": {"color": theme.PRIMARY}},
            decreasing={"marker": {"color": theme.KINDS["credit"]}},
            totals={"marker": {"color": theme.TEXT}},
            hovertemplate="%{x}: %{text}<extra></extra>",
        )
    )
    figure.update_yaxes(tickprefix=words.symbol(currency), tickformat="~s", rangemode="tozero")
    figure.update_xaxes(tickfont={"color": theme.TEXT, "size": 12})
    figure.update_layout(margin={"t": 26}, waterfallgap=0.4)
    return figure


def shares(
    frame: pd.DataFrame,
    names: str,
    parts: Sequence[str],
    colours: Mapping[str, str],
    titles: Mapping[str, str],
) -> go.Figure:
    """One bar of 100 % per row, cut by token class."""
    figure = blank(34 * len(frame) + 60, barmode="stack")
    total = frame[list(parts)].sum(axis=1)
    for part in parts:
        portion = (frame[part] / total).where(total > 0, 0)
        figure.add_trace(
            go.Bar(
                y=frame[names],
                x=portion,
                name=titles[part],
                orientation="h",
                marker={"color": colours[part]},
                width=0.66,
                text=[words.share(value) if value >= 0.06 else "" for value in portion],
                textposition="inside",
                insidetextanchor="middle",
                textangle=0,
                textfont={"size": 11, "color": theme.TEXT if part == "cache_read" else "white"},
                customdata=[
                    [words.tokens(value), words.share(each)] for value, each in zip(frame[part], portion, strict=True)
                ],
                hovertemplate=f"%{{y}}, {titles[part].lower()}: %{{customdata[0]}} tokens, %{{customdata[1]}}<extra></extra>",
            )
        )
    figure.update_xaxes(visible=False, range=[0, 1])
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "x": 0, "yanchor": "bottom", "traceorder": "normal"}, margin={"t": 34}
    )
    return figure


def percentiles(frame: pd.DataFrame, names: str, measure: str, colours: Colours) -> go.Figure:
    """P50, P95 and P99 of a latency per model on one logarithmic line."""
    known = frame.dropna(subset=[f"{measure}_p50_ms"])
    figure = blank(34 * len(known) + 54, showlegend=False)
    for _, row in known.iterrows():
        values = [row[f"{measure}_{quantile}_ms"] for quantile in ("p50", "p95", "p99")]
        colour = colours.get(row[names], theme.UNKNOWN)
        text = [words.milliseconds(value) for value in values]
        figure.add_trace(
            go.Scatter(
                x=values,
                y=[row[names]] * 3,
                mode="lines+markers",
                line={"color": theme.lighter(colour, 0.55), "width": 3},
                marker={
                    "size": [12, 9, 9],
                    "color": [colour, theme.lighter(colour, 0.4), "white"],
                    "line": {"color": colour, "width": 1.6},
                    "symbol": ["circle", "circle", "circle"],
                },
                customdata=[[name, each] for name, each in zip(("P50", "P95", "P99"), text, strict=True)],
                hovertemplate="%{y} %{customdata[0]}: %{customdata[1]}<extra></extra>",
            )
        )
    ticks = [value for value in (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000)]
    figure.update_xaxes(
        type="log",
        tickvals=ticks,
        ticktext=[_round_time(tick) for tick in ticks],
        showgrid=True,
        gridcolor=theme.GRID,
        side="bottom",
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    return figure


def _round_time(value: float) -> str:
    return f"{value} ms" if value < 1000 else f"{value // 1000} s" if value < 60_000 else f"{value / 60_000:.0f} min"


def histogram(frame: pd.DataFrame, marks: Mapping[str, float | None], currency: str, height: int = 280) -> go.Figure:
    """Tasks by bucket of cost on a logarithmic scale, with marked quantiles."""
    figure = blank(height, bargap=0.06, showlegend=False)
    labels = [
        f"{words.unit_money(a, currency)} to {words.unit_money(b, currency)}"
        for a, b in zip(frame["lower"], frame["upper"], strict=True)
    ]
    middle = (frame["lower"] * frame["upper"]) ** 0.5
    figure.add_trace(
        go.Bar(
            x=middle,
            y=frame["tasks"],
            width=(frame["upper"] - frame["lower"]) * 0.9,
            marker={"color": theme.lighter(theme.PRIMARY, 0.25)},
            customdata=[
                [label, words.money(cost, currency)] for label, cost in zip(labels, frame["cost"], strict=True)
            ],
            hovertemplate="%{customdata[0]}: %{y:,} tasks, %{customdata[1]} together<extra></extra>",
        )
    )
    for name, value in marks.items():
        if not words.is_unknown(value) and value:
            figure.add_vline(x=value, line={"color": theme.TEXT, "width": 1, "dash": "dot"})
            figure.add_annotation(
                x=log10(value),
                y=1,
                yref="paper",
                xref="x",
                yanchor="bottom",
                showarrow=False,
                text=f"{name} {words.unit_money(value, currency)}",
                font={"size": 12, "color": theme.TEXT},
            )
    ticks = [10.0**power for power in range(-5, 6)]
    figure.update_xaxes(
        type="log", tickvals=ticks, ticktext=[words.unit_money(tick, currency).removesuffix(".00") for tick in ticks]
    )
    figure.update_yaxes(tickformat=",d", rangemode="tozero")
    figure.update_layout(margin={"t": 26})
    return figure


def treemap(
    frame: pd.DataFrame, levels: Sequence[str], colours: Colours, currency: str, height: int = 420
) -> go.Figure:
    """Nested areas, columns `levels` and `cost`: team, app, model."""
    ids: list[str] = []
    labels: list[str] = []
    parents: list[str] = []
    values: list[float] = []
    fills: list[str] = []
    for depth in range(1, len(levels) + 1):
        keys = list(levels[:depth])
        grouped = frame.groupby(keys, dropna=False, sort=False)["cost"].sum().reset_index()
        for _, row in grouped.iterrows():
            path = [_label(row[key], key) for key in keys]
            first = None if words.is_unknown(row[keys[0]]) else row[keys[0]]
            ids.append("/".join(path))
            labels.append(path[-1])
            parents.append("/".join(path[:-1]))
            values.append(float(row["cost"]))
            fills.append(theme.lighter(colours.get(first, theme.UNKNOWN), (0.0, 0.42, 0.7)[depth - 1]))
    figure = blank(height)
    figure.add_trace(
        go.Treemap(
            ids=ids,
            labels=labels,
            parents=parents,
            values=values,
            branchvalues="total",
            marker={
                "colors": fills,
                "line": {"color": "white", "width": 1.2},
                "pad": {"t": 20, "l": 3, "r": 3, "b": 3},
            },
            text=[words.money(value, currency) for value in values],
            texttemplate="%{label}<br>%{text}",
            hovertemplate="%{id}<br>%{text}, %{percentRoot} of what is shown<extra></extra>",
            pathbar={"visible": False},
            tiling={"pad": 1},
            sort=True,
        )
    )
    figure.update_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, uniformtext={"minsize": 10, "mode": "hide"})
    return figure


def _label(value: object, level: str) -> str:
    return f"no {level}" if words.is_unknown(value) else str(value)
