"""Charts of how figures spread: percentiles of latency, tasks by cost."""

from collections.abc import Mapping
from math import log10

import pandas as pd
import plotly.graph_objects as go

from dashboards import theme, words
from dashboards.charts.style import Colours, blank


def percentiles(frame: pd.DataFrame, names: str, measure: str, colours: Colours) -> go.Figure:
    """P50, P95 and P99 of a latency per model on one logarithmic line; a model without one keeps its row."""
    figure = blank(34 * len(frame) + 54, showlegend=False)
    for row in frame.to_dict("records"):
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
                    "opacity": 1,
                    "color": [colour, theme.lighter(colour, 0.4), "white"],
                    "line": {"color": colour, "width": 1.6},
                },
                customdata=[[name, each] for name, each in zip(("P50", "P95", "P99"), text, strict=True)],
                hovertemplate="%{y} %{customdata[0]}: %{customdata[1]}<extra></extra>",
            )
        )
    ticks = {
        10: "10 ms",
        100: "100 ms",
        1000: "1 s",
        10_000: "10 s",
        60_000: "1 min",
        600_000: "10 min",
        3_600_000: "1 h",
    }
    figure.update_xaxes(
        type="log",
        tickvals=list(ticks),
        ticktext=list(ticks.values()),
        tickangle=0,
        showgrid=True,
        gridcolor=theme.GRID,
    )
    figure.update_yaxes(
        type="category",
        categoryorder="array",
        categoryarray=frame[names].tolist(),
        range=[len(frame) - 0.5, -0.5],
        showgrid=False,
        tickfont={"color": theme.TEXT, "size": 12.5},
    )
    return figure


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
    last, shift = None, 0
    for name, value in marks.items():
        if not words.is_unknown(value) and value:
            # Labels of marks that are close stand above each other.
            shift = shift + 15 if last is not None and log10(value) - last < 0.9 else 0
            last = log10(value)
            figure.add_vline(x=value, line={"color": theme.TEXT, "width": 1, "dash": "dot"})
            figure.add_annotation(
                x=log10(value),
                y=1,
                yref="paper",
                xref="x",
                yanchor="bottom",
                yshift=shift,
                showarrow=False,
                text=f"{name} {words.unit_money(value, currency)}",
                font={"size": 12, "color": theme.TEXT},
            )
    ticks = [10.0**power for power in range(-5, 6)]
    figure.update_xaxes(
        type="log", tickvals=ticks, ticktext=[f"{words.symbol(currency)}{tick:,g}" for tick in ticks], tickangle=0
    )
    figure.update_yaxes(tickformat=",d", rangemode="tozero")
    figure.update_layout(margin={"t": 52})
    return figure
