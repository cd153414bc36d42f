"""Charts of a whole and its parts: bars, a waterfall, shares, nested areas."""

from collections.abc import Callable, Mapping, Sequence

import pandas as pd
import plotly.graph_objects as go

from dashboards import theme, words
from dashboards.charts.style import HATCH, Colours, blank


def bars(
    names: Sequence[str],
    values: Sequence[float],
    colours: Sequence[str],
    labels: Sequence[str],
    hatched: Sequence[bool] = (),
) -> go.Figure:
    """Horizontal bars, the first on top, what it says to the right of each. Hatched ones are estimated."""
    figure = blank(30 * len(names) + 24, showlegend=False)
    pattern = {
        "shape": ["/" if each else "" for each in hatched] or "",
        "fgcolor": list(colours),
        "bgcolor": [theme.lighter(colour, 0.72) for colour in colours],
        "solidity": HATCH["solidity"],
        "size": HATCH["size"],
    }
    figure.add_trace(
        go.Bar(
            x=list(values),
            y=list(names),
            orientation="h",
            marker={"color": list(colours), "pattern": pattern},
            width=0.62,
            customdata=list(labels),
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        )
    )
    # A label never stands to the left of a bar, where names are.
    figure.add_trace(
        go.Scatter(
            x=[max(value, 0) for value in values],
            y=list(names),
            mode="text",
            text=[f" {label}" for label in labels],
            textposition="middle right",
            textfont={"size": 12, "color": theme.TEXT},
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    top, bottom = max([*values, 0]), min([*values, 0])
    figure.update_xaxes(visible=False, range=[bottom, top + 1.1 * ((top - bottom) or 1)])
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    return figure


def waterfall(
    names: Sequence[str], values: Sequence[float], colours: Sequence[str], total: str, currency: str, height: int = 320
) -> go.Figure:
    """From nothing to the bill, part by part; each starts where the one before it ends."""
    figure = blank(height, showlegend=False)
    ends = pd.Series(list(values)).cumsum()
    starts = [0.0, *ends.tolist()[:-1]]
    whole = float(ends.iloc[-1]) if len(ends) else 0.0
    tops = [max(start, start + value) for start, value in zip(starts, values, strict=True)]
    shown, amounts = [*names, total], [*values, whole]
    text = [words.money(value, currency) for value in amounts]
    figure.add_trace(
        go.Bar(
            x=shown,
            y=amounts,
            base=[*starts, 0.0],
            width=0.6,
            marker={"color": [*colours, theme.TEXT]},
            customdata=text,
            hovertemplate="%{x}: %{customdata}<extra></extra>",
        )
    )
    figure.add_trace(
        go.Scatter(
            x=shown,
            y=[top + 0.012 * max([*tops, whole, 0]) for top in [*tops, max(whole, 0)]],
            mode="text",
            text=text,
            textposition="top center",
            textfont={"size": 12, "color": theme.TEXT},
            cliponaxis=False,
            hoverinfo="skip",
        )
    )
    figure.update_yaxes(
        tickprefix=words.symbol(currency), tickformat="~s", range=[min([*ends, 0]), max([*tops, whole, 0]) * 1.1 or 1]
    )
    figure.update_xaxes(tickfont={"color": theme.TEXT, "size": 12})
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
                hovertemplate=f"%{{y}}, {titles[part].lower()}: %{{customdata[0]}} tokens, %{{customdata[1]}}"
                "<extra></extra>",
            )
        )
    figure.update_xaxes(visible=False, range=[0, 1])
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "x": 0, "yanchor": "bottom", "traceorder": "normal"}, margin={"t": 34}
    )
    return figure


def stacked(
    frame: pd.DataFrame,
    names: str,
    parts: Sequence[str],
    colours: Mapping[str, str],
    titles: Mapping[str, str],
    read: Callable[[float], str],
) -> go.Figure:
    """One horizontal bar per row, cut into amounts; what it comes to stands to its right. Unknown parts are absent."""
    figure = blank(34 * len(frame) + 60, barmode="relative")
    amounts = frame[list(parts)].fillna(0)
    for part in parts:
        if not amounts[part].any():
            continue
        figure.add_trace(
            go.Bar(
                y=frame[names],
                x=amounts[part],
                name=titles[part],
                orientation="h",
                marker={"color": colours[part], "line": {"width": 0}},
                width=0.66,
                customdata=[read(value) for value in amounts[part]],
                hovertemplate=f"%{{y}}, {titles[part].lower()}: %{{customdata}}<extra></extra>",
            )
        )
    ends = amounts.clip(lower=0).sum(axis=1)
    figure.add_trace(
        go.Scatter(
            x=ends,
            y=frame[names],
            mode="text",
            text=[f" {read(value)}" for value in amounts.sum(axis=1)],
            textposition="middle right",
            textfont={"size": 12, "color": theme.TEXT},
            cliponaxis=False,
            hoverinfo="skip",
            showlegend=False,
        )
    )
    figure.update_xaxes(
        visible=False, range=[min(amounts.clip(upper=0).sum(axis=1).min(), 0), (ends.max() or 1) * 1.14]
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, tickfont={"color": theme.TEXT, "size": 12.5})
    figure.update_layout(
        legend={"orientation": "h", "y": 1.02, "x": 0, "yanchor": "bottom", "traceorder": "normal"}, margin={"t": 34}
    )
    return figure


def treemap(
    frame: pd.DataFrame, levels: Sequence[str], colours: Colours, currency: str, height: int = 420
) -> go.Figure:
    """Nested areas, columns `levels` and `cost`: team, app, model."""
    ids: list[str] = []
    labels: list[str] = []
    parents: list[str] = []
    values: list[float] = []
    texts: list[tuple[str, str]] = []
    fills: list[str] = []
    for depth in range(1, len(levels) + 1):
        keys = list(levels[:depth])
        for row in frame.groupby(keys, dropna=False, sort=False)["cost"].sum().reset_index().to_dict("records"):
            path = [_label(row[key], key) for key in keys]
            amount = words.money(float(row["cost"]), currency)
            is_leaf = depth == len(levels)
            ids.append("\x1f".join(path))
            parents.append("\x1f".join(path[:-1]))
            labels.append(path[-1] if is_leaf else f"{path[-1]}   {amount}")
            # The area of a branch is what its leaves add up to; a total beside them could miss it by a rounding.
            values.append(float(row["cost"]) if is_leaf else 0.0)
            texts.append((" / ".join(path), amount))
            first = None if words.is_unknown(row[keys[0]]) else row[keys[0]]
            fills.append(theme.lighter(colours.get(first, theme.UNKNOWN), (0.0, 0.42, 0.7)[depth - 1]))
    figure = blank(height)
    figure.add_trace(
        go.Treemap(
            ids=ids,
            labels=labels,
            parents=parents,
            values=values,
            branchvalues="remainder",
            marker={
                "colors": fills,
                "line": {"color": "white", "width": 1.2},
                "pad": {"t": 20, "l": 3, "r": 3, "b": 3},
            },
            customdata=texts,
            texttemplate=["%{label}<br>%{customdata[1]}" if value else "%{label}" for value in values],
            hovertemplate="%{customdata[0]}<br>%{customdata[1]}, %{percentRoot} of what is shown<extra></extra>",
            pathbar={"visible": False},
            tiling={"pad": 1},
            sort=True,
        )
    )
    figure.update_layout(margin={"l": 0, "r": 0, "t": 0, "b": 0}, uniformtext={"minsize": 10, "mode": "hide"})
    return figure


def _label(value: object, level: str) -> str:
    return f"no {level}" if words.is_unknown(value) else str(value)
