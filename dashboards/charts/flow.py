"""A Sankey: one amount through several ways to cut it; every level is the same total."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pandas as pd
import plotly.graph_objects as go

from dashboards import theme, words
from dashboards.charts.style import blank

LABEL_LENGTH = 24


def sankey(
    frame: pd.DataFrame,
    levels: Sequence[str],
    colours: Sequence[Mapping[str, str]],
    currency: str,
    height: int = 460,
) -> go.Figure:
    """Columns `levels` (names) and `amount` (all positive). Each level's nodes stand below each other."""
    nodes = {
        (depth, name): number
        for number, (depth, name) in enumerate(
            (depth, name)
            for depth, level in enumerate(levels)
            for name in frame.groupby(level)["amount"].sum().sort_values(ascending=False).index
        )
    }
    fills = [colours[depth].get(name, theme.OTHER) for depth, name in nodes]
    sums = [frame.loc[frame[levels[depth]] == name, "amount"].sum() for depth, name in nodes]
    sources, targets, values, links, texts = [], [], [], [], []
    for depth, (left, right) in enumerate(pairwise(levels)):
        for (start, end), amount in frame.groupby([left, right], sort=False)["amount"].sum().items():
            sources.append(nodes[depth, start])
            targets.append(nodes[depth + 1, end])
            values.append(amount)
            links.append(theme.lighter(fills[nodes[depth + 1, end]], 0.6))
            texts.append(f"{start} → {end}: {words.money(amount, currency)}")
    figure = blank(height)
    last = len(levels) - 1
    figure.add_trace(
        go.Sankey(
            arrangement="snap",
            node={
                "label": [
                    f"{_short(name)}  {_rounded(total, currency)}" for (_, name), total in zip(nodes, sums, strict=True)
                ],
                "color": fills,
                "x": [0.001 + 0.998 * depth / last for depth, _ in nodes],
                "y": _heights(nodes, sums, last),
                "pad": 14,
                "thickness": 12,
                "line": {"width": 0},
                "customdata": [
                    f"{name}: {words.money(total, currency)}" for (_, name), total in zip(nodes, sums, strict=True)
                ],
                "hovertemplate": "%{customdata}<extra></extra>",
            },
            link={
                "source": sources,
                "target": targets,
                "value": values,
                "color": links,
                "customdata": texts,
                "hovertemplate": "%{customdata}<extra></extra>",
            },
            textfont={"family": theme.FONT, "size": 12, "color": theme.TEXT, "shadow": "none"},
        )
    )
    figure.update_layout(margin={"l": 4, "r": 4, "t": 10, "b": 10})
    return figure


def _short(name: str) -> str:
    """A label that stays within its column; the whole name shows on hovering."""
    return name if len(name) <= LABEL_LENGTH else f"{name[: LABEL_LENGTH - 1].rstrip()}…"


def _rounded(amount: float, currency: str) -> str:
    return f"{words.symbol(currency)}{amount:,.0f}" if amount >= 1000 else words.money(amount, currency)


def _heights(nodes: Mapping[tuple[int, str], int], sums: Sequence[float], last: int) -> list[float]:
    """Where each node's middle stands: in order of size, the gaps between them equal."""
    found: list[float] = []
    for depth in range(last + 1):
        own = [total for (level, _), total in zip(nodes, sums, strict=True) if level == depth]
        gap = 0.05 if len(own) > 1 else 0.0
        scale = (1 - gap * (len(own) - 1)) / (sum(own) or 1)
        top = 0.0
        for total in own:
            found.append(min(max(top + total * scale / 2, 0.001), 0.999))
            top += total * scale + gap
    return found
