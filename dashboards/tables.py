"""Tables whose cells read like text and sort like numbers. NULL reads `unknown`, unless it means something else."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dashboards import words
from warehouse.measures import MEASURES

Format = Callable[[Any], str]


@dataclass(frozen=True)
class Column:
    """A column: its title, how a value reads, what it means. `absent` is what NULL means here, if it is not unknown."""

    title: str
    format: Format | None = None
    help: str = ""
    absent: str | None = None
    width: Any = None
    pinned: bool = False
    is_bar: bool = False
    right: bool = False


def measured(name: str, currency: str, title: str = "", about: str = "", absent: str | None = None) -> Column:
    """The column of a measure."""
    measure = MEASURES[name]
    return Column(
        title or measure.title,
        lambda value: words.of_measure(name, value, currency),
        about or measure.about,
        absent,
    )


def named(title: str, nobody: str = words.UNKNOWN, pinned: bool = False) -> Column:
    """A column of names; the one without a name is named too."""
    return Column(title, str, absent=nobody, pinned=pinned)


def share(title: str, about: str) -> Column:
    """A share as a number."""
    return Column(title, words.share, about)


def bar(title: str, about: str) -> Column:
    """A share as a small bar, for a table with room."""
    return Column(title, help=about, is_bar=True)


def table(
    frame: pd.DataFrame, columns: Mapping[str, Column], *, empty: str, key: str | None = None, rows: int = 40
) -> None:
    """Show the columns of a frame that are described; a longer table scrolls."""
    if frame.empty:
        st.caption(empty)
        return
    cells, texts = {}, {}
    for name, column in columns.items():
        cells[name], text = _cells(frame[name], column)
        if text:
            texts[name] = text
    st.dataframe(
        pd.DataFrame(cells).style.format(texts),
        hide_index=True,
        height="content" if len(frame) <= rows else 35 * (rows + 1) + 3,
        column_config={name: _configured(column) for name, column in columns.items()},
        placeholder=words.UNKNOWN,
        key=key,
    )


def _cells(values: pd.Series, column: Column) -> tuple[pd.Series, Format | None]:
    """Values as they sort, and how they read."""
    reads = column.format
    if column.is_bar:
        return values * 100, None
    if reads is None:
        return values, None
    if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
        if column.absent is None or not values.isna().any():
            return values, reads
        # A NULL cell takes no text of its own in Streamlit; infinity does.
        return values.astype(float).fillna(
            math.inf
        ), lambda value: str(column.absent) if value == math.inf else reads(value)
    if pd.api.types.is_datetime64_any_dtype(values) and not values.isna().any():
        return values, reads
    absent = words.UNKNOWN if column.absent is None else column.absent
    return values.map(lambda value: absent if pd.isna(value) else reads(value)).astype(object), None


def _configured(column: Column) -> Any:
    about = words.plain(column.help) or None
    if column.is_bar:
        return st.column_config.ProgressColumn(column.title, help=about, min_value=0, max_value=100, format="%.1f %%")
    return st.column_config.Column(
        column.title,
        help=about,
        width=column.width,
        pinned=column.pinned or None,
        alignment="right" if column.right else None,
    )
