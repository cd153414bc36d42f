"""`inferledger init`: a configuration to begin with."""

from pathlib import Path
from typing import Annotated

import typer

from inferledger.config import FILE_NAME
from inferledger.console import say
from inferledger.exits import UsageError

TEMPLATE = Path(__file__).parents[1] / "template.yaml"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(init)


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(FILE_NAME),
) -> None:
    """Write a configuration with every section, its meaning and its default. Nothing is ever overwritten."""
    path = path / FILE_NAME if path.is_dir() else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text(encoding="utf-8"))
    except FileExistsError as error:
        raise UsageError(f"{path} is there already, and stays as it is. Name another file, or move it away.") from error
    say(f"Written: {path}. Name your bill and your log under `sources`, then run `inferledger doctor`.")
