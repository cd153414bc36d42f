"""What several commands share: options, and the configuration that a command works with."""

from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

import typer

from inferledger import config as configurations
from inferledger.config import Configuration
from inferledger.console import err
from inferledger.exits import UsageError


class Format(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"


ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Configuration file. Default: $INFERLEDGER_CONFIG, then ./inferledger.yaml.",
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="`json` for machines: stable keys, money as decimal text.")
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="INSTANT",
        help="See the evidence as of this instant, e.g. 2026-11-30T14:00Z. Default: this hour.",
    ),
]


@dataclass
class State:
    """What one run of the command line knows: the file named before the command, and the configuration once loaded."""

    named: Path | None = None
    configuration: Configuration | None = None


_state: ContextVar[State] = ContextVar("state")


def begin() -> None:
    """A run of the command line begins."""
    _state.set(State())


def state() -> State:
    """The state of the run at hand."""
    return _state.get()


def loaded(named: Path | None) -> Configuration:
    """The configuration that the command works with; says so when it is the demo's for want of another."""
    run = state()
    path = configurations.find(named or run.named)
    if path == configurations.DEMO_FILE:
        err().print(
            f"[dim]Using the demo organisation ({path}); `inferledger init` writes a configuration of your own.[/]"
        )
    run.configuration = configurations.load(path)
    return run.configuration


def instant(text: str | None, zone: str) -> datetime | None:
    """An instant that a person wrote, in UTC; without a zone it is meant in the configured one."""
    if text is None:
        return None
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is no instant; write one such as 2026-11-30T14:00Z or 2026-11-30.") from error
    return (read if read.tzinfo else read.replace(tzinfo=ZoneInfo(zone))).astimezone(UTC)


def day(text: str | None) -> date | None:
    """A day that a person wrote."""
    if text is None:
        return None
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"`{text}` is no day; write one such as 2026-11-30.") from error
