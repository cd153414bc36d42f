"""Where text goes: results to standard output, progress and problems to standard error."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from collector.run import Step

WIDTH_WITHOUT_TERMINAL = 100


def out() -> Console:
    """Standard output. A file or pipe gets plain text, 100 columns wide."""
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False)


def err() -> Console:
    """Standard error."""
    return Console(
        file=sys.stderr, width=None if sys.stderr.isatty() else WIDTH_WITHOUT_TERMINAL, highlight=False, soft_wrap=True
    )


def say(text: str) -> None:
    """One line of a result; only a terminal breaks it."""
    out().print(text, markup=False, soft_wrap=True)


def print_json(value: object) -> None:
    """Machine-readable output: stable keys, money as decimal text."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def complain(lines: list[str] | tuple[str, ...], kind: str = "!") -> None:
    """Things a person should look at, one a line, on standard error."""
    console = err()
    for line in lines:
        console.print(f"[yellow]{kind}[/] {escape(line)}")


@contextmanager
def spinner(title: str) -> Iterator[Callable[[str], None]]:
    """Shows what a job is at while it runs; nothing where standard error is no terminal."""
    console = err()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(escape(title)) as status:
        yield lambda detail: status.update(escape(f"{title}: {detail}"))


@contextmanager
def batches() -> Iterator[Callable[[Step], None]]:
    """A bar a source, moved by the batches it loads; nothing where standard error is no terminal."""
    console = err()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[detail]}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        known = {"": bars.add_task("collecting", total=None, detail="")}

        def moved(step: Step) -> None:
            if "" in known:
                bars.update(known.pop(""), visible=False)
            if step.source not in known:
                known[step.source] = bars.add_task(escape(step.source), total=step.total, detail="")
            bars.update(known[step.source], completed=step.done, total=step.total, detail=escape(step.detail[:60]))

        yield moved
