"""The house style: white, few lines, small grey ticks; what is estimated is hatched."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import plotly.graph_objects as go

from dashboards import theme

Colours = Mapping[str | None, str]
CONFIG = {"displayModeBar": False, "responsive": True}
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
        legend={"font": {"size": 12, "color": theme.TEXT}, "title": None, "itemsizing": "trace"},
    )
    figure.update_xaxes(**axis)
    figure.update_yaxes(**{**axis, "showline": False, "showgrid": True, "gridcolor": theme.GRID})
    figure.update_layout(**layout)


def edges(first: date, last: date) -> list[str]:
    """Where days begin and end on the axis: a day's bar stands on its midnight."""
    return [f"{(first - timedelta(days=1)).isoformat()} 12:00", f"{last.isoformat()} 12:00"]


def day_axis(figure: go.Figure, first: date, last: date) -> None:
    """Days on the x axis: every one if there are few, else every second, else weeks."""
    length = (last - first).days + 1
    step = 1 if length <= 10 else 2 if length <= 20 else 7 if length <= 90 else None
    figure.update_xaxes(
        type="date",
        range=edges(first, last),
        tickformat="%-d %b",
        hoverformat="%a %-d %b %Y",
        **({"dtick": step * 86_400_000, "tick0": first.isoformat()} if step else {}),
    )


def shade_open(figure: go.Figure, open_from: date | None, first: date, last: date) -> None:
    """Shade the days whose bill is not final yet, and say so."""
    if open_from is None or open_from > last:
        return
    start, end = edges(max(open_from, first), last)
    figure.add_vrect(x0=start, x1=end, fillcolor=theme.OPEN_BAND, line_width=0, layer="below")
    figure.add_annotation(
        x=start,
        y=1,
        yref="paper",
        xanchor="left",
        yanchor="bottom",
        text="bill not final yet",
        showarrow=False,
        font={"size": 11, "color": theme.MUTED},
    )
    figure.update_layout(margin={"t": 22})
