"""Charts over days: cost, unit costs, one small chart per model."""

from collections.abc import Mapping, Sequence
from datetime import date

import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboards import theme, words
from dashboards.charts.style import HATCH, Colours, blank, day_axis, edges, shade_open, style

SERIES_LIMIT = 8
OTHER = "other"


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
        horizontal_spacing=0.06,
        vertical_spacing=0.3 / max(rows, 1),
        subplot_titles=[title for title, _, _ in panels],
    )
    style(figure, rows * row_height + 30, showlegend=False, margin={"l": 4, "r": 8, "t": 26, "b": 4})
    start, end = (day.isoformat() for day in days)
    for number, (title, colour, values) in enumerate(panels):
        row, column = number // columns + 1, number % columns + 1
        figure.add_trace(
            go.Scatter(
                x=list(values.index),
                y=values.to_numpy(),
                name=title,
                mode="lines+markers",
                cliponaxis=False,
                line={"color": colour, "width": 1.8},
                marker={
                    "size": 4.5,
                    "color": ["white" if day in estimated else colour for day in values.index],
                    "line": {"color": colour, "width": 1.2},
                },
                customdata=[words.unit_money(value, currency) for value in values],
                hovertemplate=f"<b>{title}</b><br>%{{x|%a %-d %b}}: %{{customdata}}<extra></extra>",
            ),
            row,
            column,
        )
        top = float(values.max()) if values.notna().any() else 1.0
        figure.update_yaxes(
            range=[0, (top or 1) * 1.12],
            nticks=4,
            tickprefix=words.symbol(currency),
            tickformat="~r",
            tickfont={"size": 10.5},
            row=row,
            col=column,
        )
        figure.update_xaxes(
            range=edges(*days),
            tickvals=[start, end],
            ticktext=[f"{day:%-d %b}" for day in days],
            tickfont={"size": 10.5},
            row=row,
            col=column,
        )
    figure.update_annotations(font={"size": 12.5, "color": theme.TEXT})
    return figure
