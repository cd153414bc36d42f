"""Pieces that the tables of a summary are made of."""

from rich.markup import escape
from rich.padding import Padding
from rich.table import Table


def table(title: str, *columns: tuple[str, str]) -> Table:
    """A table without lines; columns are named, and `l`eft, `r`ight or `w`rapped."""
    made = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=None,
        padding=(0, 2, 0, 0),
        header_style="dim",
        pad_edge=False,
    )
    for named, justify in columns:
        made.add_column(
            named,
            justify="right" if justify == "r" else "left",
            no_wrap=justify != "w",
            overflow="fold" if justify == "w" else "ellipsis",
        )
    return made


def spaced(made: Table) -> Padding:
    """A table with air around it."""
    return Padding(made, (1, 1, 0, 2))


def name(value: str | None, nothing: str) -> str:
    """What something is called, or faintly that it is nobody's."""
    return f"[dim]{nothing}[/]" if value is None else escape(str(value))
