"""Charts of the own fleet: what GPUs did over time, when money was idle, how fast tokens came."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from dashboards import theme, words
from dashboards.charts.style import blank, style

HOUR = timedelta(hours=1)


def time_axis(figure: go.Figure, span: tuple[datetime, datetime]) -> None:
    """Days or hours on the x axis, the whole period."""
    figure.update_xaxes(type="date", range=list(span), tickformat="%-d %b", hoverformat="%a %-d %b %H:%M")


def states(frame: pd.DataFrame, names: Sequence[str], span: tuple[datetime, datetime], is_hourly: bool) -> go.Figure:
    """GPU-hours by state, stacked, columns `at` and the states in milliseconds: the height is what was there."""
    figure = blank(300, barmode="stack", hovermode="x unified", bargap=0.12)
    # A bar stands in the middle of its day or hour.
    middle = frame["at"] + (HOUR / 2 if is_hourly else 12 * HOUR)
    for name in names:
        if not frame[name].fillna(0).any():
            continue
        figure.add_trace(
            go.Bar(
                x=middle,
                y=frame[name] / 3_600_000,
                name=theme.STATE_TITLES[name],
                marker={"color": theme.STATES[name], "line": {"width": 0}},
                customdata=[words.gpu_hours(value) for value in frame[name]],
                hovertemplate="%{customdata}",
            )
        )
    figure.update_yaxes(ticksuffix=" h", rangemode="tozero")
    time_axis(figure, span)
    figure.update_layout(legend={"traceorder": "reversed", "x": 1.01, "y": 1, "xanchor": "left", "yanchor": "top"})
    return figure


def rates(
    panels: Sequence[tuple[str, str, pd.Series, pd.Series]], times: pd.Series, span: tuple[datetime, datetime]
) -> go.Figure:
    """Tokens per GPU-second, one panel each: (title, colour, over time held, over busy time); scales of their own."""
    figure = make_subplots(1, len(panels), horizontal_spacing=0.06, subplot_titles=[title for title, *_ in panels])
    style(figure, 210, showlegend=False, margin={"l": 4, "r": 8, "t": 26, "b": 4})
    for column, (title, colour, held, busy) in enumerate(panels, 1):
        for values, dash, what in ((held, "solid", "held"), (busy, "dot", "busy")):
            figure.add_trace(
                go.Scatter(
                    x=times,
                    y=values,
                    name=title,
                    mode="lines",
                    connectgaps=False,
                    line={"color": colour, "width": 2 if dash == "solid" else 1.4, "dash": dash},
                    customdata=[words.rate(value) for value in values],
                    hovertemplate=f"%{{x|%a %-d %b %H:%M}}, {what}: %{{customdata}}<extra></extra>",
                ),
                1,
                column,
            )
        figure.update_yaxes(rangemode="tozero", nticks=4, tickfont={"size": 10.5}, row=1, col=column)
    time_axis(figure, span)
    figure.update_xaxes(nticks=5, tickfont={"size": 10.5})
    figure.update_annotations(font={"size": 12.5, "color": theme.TEXT})
    return figure


def day_by_hour(frame: pd.DataFrame, colour: str, currency: str, causes: Mapping[str, str]) -> go.Figure:
    """Money by day and hour of the day, columns `at`, `amount` and the causes: darker is more, white is unknown."""
    grid = frame.assign(day=frame["at"].dt.normalize(), clock=frame["at"].dt.hour)
    # The clock of autumn has an hour twice.
    grid = grid.groupby(["clock", "day"])[["amount", *causes]].sum(min_count=1).reset_index()
    days = pd.date_range(grid["day"].min(), grid["day"].max())
    amounts = grid.pivot(index="clock", columns="day", values="amount").reindex(index=range(24), columns=days)
    cell = grid.set_index(["clock", "day"])
    texts = [
        [_cell_text(cell.loc[(clock, day)], causes, currency) if (clock, day) in cell.index else "no metric, no bill"
         for day in days]
        for clock in range(24)
    ]  # fmt: skip
    figure = blank(60 + 15 * 24)
    figure.add_trace(
        go.Heatmap(
            x=days,
            y=list(range(24)),
            z=amounts.to_numpy(),
            customdata=texts,
            colorscale=[[0, "#F5F7F9"], [0.5, theme.lighter(colour, 0.45)], [1, colour]],
            zmin=0,
            zmax=float(np.nanmax(amounts.to_numpy())) or 1,
            xgap=1,
            ygap=1,
            hoverongaps=True,
            colorbar={
                "thickness": 10,
                "outlinewidth": 0,
                "tickprefix": words.symbol(currency),
                "tickfont": {"size": 11, "color": theme.MUTED},
            },
            hovertemplate="%{x|%a %-d %b}, %{y}:00<br>%{customdata}<extra></extra>",
        )
    )
    figure.update_xaxes(tickformat="%-d %b", nticks=min(len(days), 16))
    figure.update_yaxes(
        autorange="reversed",
        showgrid=False,
        tickvals=list(range(0, 24, 3)),
        ticktext=[f"{hour:02d}:00" for hour in range(0, 24, 3)],
    )
    return figure


def _cell_text(row: pd.Series, causes: Mapping[str, str], currency: str) -> str:
    parts = [f"{title}: {words.money(row[name], currency)}" for name, title in causes.items() if row[name] > 0]
    return "<br>".join([f"<b>{words.money(row['amount'], currency)}</b>", *parts])
