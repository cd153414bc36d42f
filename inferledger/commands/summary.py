"""`inferledger summary`: the ledger in one page."""

from typing import Annotated

import typer

from inferledger import jobs, summary_text
from inferledger import summary as figures
from inferledger.console import out, print_json
from inferledger.exits import UsageError
from inferledger.options import ConfigOption, Format, FormatOption, day, loaded
from warehouse.measures import Filters


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(summary)


def summary(
    config: ConfigOption = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            "--by",
            metavar="DIMENSION",
            help="Split by this instead, e.g. `day`, `app`, `agent,model`; may be repeated.",
        ),
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day, in the configured zone.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, included.")] = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Print what inference cost, for whom, per million tokens, whether the books balance, and what is unknown."""
    where = Filters(first_day=day(first), last_day=day(last))
    if where.first_day and where.last_day and where.first_day > where.last_day:
        raise UsageError(f"--from {first} is after --to {last}.")
    dimensions = [name.strip() for part in by or () for name in part.split(",") if name.strip()]
    configuration = loaded(config)
    facts = figures.summary(jobs.snapshot(configuration), where, dimensions)
    if format_ is Format.JSON:
        print_json(facts)
    else:
        summary_text.show(out(), facts)
