"""`inferledger dashboard`: the pages."""

import signal
from types import FrameType
from typing import Annotated

import typer

from dashboards import launch
from inferledger.config import Configuration
from inferledger.console import say
from inferledger.options import ConfigOption, loaded


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(dashboard)


def dashboard(
    config: ConfigOption = None,
    port: Annotated[
        int | None,
        typer.Option("--port", min=1, max=65535, envvar="STREAMLIT_SERVER_PORT", help="Default: dashboard.port."),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            "--host", envvar="STREAMLIT_SERVER_ADDRESS", help="Address to listen on. Default: dashboard.host."
        ),
    ] = None,
    headless: Annotated[
        bool, typer.Option("--headless", envvar="STREAMLIT_SERVER_HEADLESS", help="Open no browser.")
    ] = False,
) -> None:
    """Serve the pages until interrupted. They read the published snapshot only, and see a new one without a restart."""
    raise typer.Exit(serve(loaded(config), port, host, headless))


def serve(configuration: Configuration, port: int | None, host: str | None, headless: bool) -> int:
    """Serve until SIGINT or SIGTERM; the exit code."""
    settings = configuration.dashboard.model_copy(update={"host": host} if host else {})
    shown = "127.0.0.1" if settings.host in ("0.0.0.0", "::") else settings.host  # noqa: S104 (compared, not bound)
    say(f"Pages: http://{shown}:{port or settings.port}  (Ctrl+C ends)")
    signal.signal(signal.SIGTERM, _interrupt)
    return launch.run(configuration.layout.published, settings, port, headless)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
