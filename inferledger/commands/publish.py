"""`inferledger publish`: make a snapshot for readers."""

import typer

from inferledger import jobs
from inferledger.console import print_json, say, spinner
from inferledger.figures import count
from inferledger.options import ConfigOption, Format, FormatOption, loaded


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(publish)


def publish(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Publish what was attributed: immutable files that pages, reports and `summary` read without waiting for anybody.

    If a control does not hold, the last snapshot stays (exit code 1).
    """
    configuration = loaded(config)
    with spinner("publishing") as progress:
        done = jobs.publish(configuration, progress)
    if format_ is Format.JSON:
        print_json(
            {
                "manifest": done.manifest,
                "previous": done.previous,
                "written": done.written,
                "carried": done.carried,
                "changed": done.manifest != done.previous,
            }
        )
        return
    what = (
        "unchanged"
        if done.manifest == done.previous
        else f"{count(done.written)} files written, {count(done.carried)} kept"
    )
    say(f"Published snapshot {done.manifest[:8]}: {what}.")
