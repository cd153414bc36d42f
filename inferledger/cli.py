"""The command line: one entry point, one place where errors become messages and exit codes."""

import errno
import logging
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from inferledger import options
from inferledger.commands import (
    alerts,
    attribute,
    collect,
    dashboard,
    db,
    demo,
    doctor,
    explain,
    init,
    owners,
    publish,
    report,
    run,
    summary,
)
from inferledger.console import err
from inferledger.defects import write_log
from inferledger.exits import MEANING, ExitCode, explained

EPILOG = "Exit codes:\n\n" + "\n\n".join(f"{code.value}: {meaning}" for code, meaning in MEANING.items())


class Guarded(TyperGroup):
    """Turns what a person can mend into a message and an exit code, and a defect into a log file."""

    def invoke(self, ctx: Any) -> Any:
        options.begin()
        try:
            return super().invoke(ctx)
        except (typer.TyperException, typer.Exit, typer.Abort, SystemExit):
            raise
        except BaseException as error:
            if isinstance(error, OSError) and error.errno == errno.EPIPE:
                raise
            raise typer.Exit(report_error(error)) from error


def report_error(error: BaseException) -> ExitCode:
    """Print what happened; the exit code."""
    known = explained(error)
    if known is not None:
        code, message = known
        err().print(message, style="red" if code is not ExitCode.OK else None, markup=False)
        return code
    configuration = options.state().configuration
    log = write_log(error, configuration.data if configuration else None)
    err().print(
        f"Something went wrong inside InferLedger ({type(error).__name__}). What was committed stays as it is.\n"
        f"The details are in {log}; please report them.",
        style="red",
        markup=False,
    )
    return ExitCode.DEFECT


app = typer.Typer(
    name="inferledger",
    cls=Guarded,
    help="What a million tokens cost, for this model, this team, this agent task, and why. Reconciled to the bill.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.callback()
def _root(
    config: Annotated[
        Path | None, typer.Option("--config", "-c", metavar="FILE", help="Configuration file, for every command.")
    ] = None,
) -> None:
    options.state().named = config
    # What libraries warn of is told by the commands themselves; `run` writes a log of its own.
    logging.getLogger().addHandler(logging.NullHandler())


for _module in (
    *(demo, init, collect, attribute, publish, run),
    *(summary, explain, owners, report, alerts, dashboard, db, doctor),
):
    _module.add_to(app)


def main() -> None:
    """Entry point of the `inferledger` program."""
    app()
