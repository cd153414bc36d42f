"""`inferledger run`: the daemon."""

import logging
import signal
from typing import Annotated

import typer

from inferledger.console import say
from inferledger.daemon import Daemon
from inferledger.exits import ExitCode
from inferledger.options import ConfigOption, loaded


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(run)


def run(
    config: ConfigOption = None,
    once: Annotated[bool, typer.Option("--once", help="Run each job once, in order, and end.")] = False,
) -> None:
    """Collect, attribute, publish, alert and report on the configured schedules, one job at a time, until told to end.

    A job that fails is recorded and tried again at its next time. SIGTERM ends it at a safe place.
    """
    configuration = loaded(config)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)-7s %(message)s", force=True)
    # It warns whenever a job is due again while it still waits for its turn, which is as it should be.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    logging.getLogger("alembic").setLevel(logging.WARNING)
    daemon = Daemon(configuration)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, daemon.stop)
    if not once:
        daemon.serve()
        return
    outcomes = daemon.once()
    for outcome in outcomes:
        say(f"{outcome.job}: {outcome.status}{f': {outcome.detail}' if outcome.detail else ''}")
    if any(outcome.status in ("failed", "findings") for outcome in outcomes):
        raise typer.Exit(ExitCode.FINDINGS)
