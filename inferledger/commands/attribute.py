"""`inferledger attribute`: bring the ledger up to date with the evidence."""

import typer

from inferledger import jobs
from inferledger.console import complain, print_json, say, spinner
from inferledger.exits import ExitCode
from inferledger.figures import count
from inferledger.options import AsOfOption, ConfigOption, Format, FormatOption, instant, loaded


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(attribute)


def attribute(config: ConfigOption = None, as_of: AsOfOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Attribute every cent of the bill to the tokens it bought; only hours whose evidence changed are worked on.

    Readers see the result after `inferledger publish`.
    """
    configuration = loaded(config)
    at = instant(as_of, configuration.zone) or jobs.now_to_the_hour()
    with spinner("attributing") as progress:
        done = jobs.attribute(configuration, at, progress)
    if format_ is Format.JSON:
        print_json(
            {
                "as_of": at.isoformat(),
                "hours": done.hours,
                "events": done.events,
                "billing_periods": done.billing_periods,
                "rebuilt": done.rebuilt,
                "failed_controls": list(done.failed_controls),
            }
        )
    else:
        say(
            f"{count(done.hours)} hours with {count(done.events)} calls and {count(done.billing_periods)} billing "
            f"period(s) attributed as of {at:%Y-%m-%d %H:%M} UTC."
        )
        complain([f"control does not hold: {name}" for name in done.failed_controls])
    if done.failed_controls:
        raise typer.Exit(ExitCode.FINDINGS)
