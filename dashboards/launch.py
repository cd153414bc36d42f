"""Starts the pages: Streamlit as a child process with the published folder and the settings in its environment."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dashboards import theme
from dashboards.settings import CONFIG, PUBLISHED, DashboardSettings

APP = Path(__file__).with_name("app.py")
STOP_SECONDS = 10


def run(published: Path, settings: DashboardSettings, port: int | None = None, headless: bool = False) -> int:
    """Serve the pages until interrupted; the exit code of the server. A browser opens unless `headless`."""
    with start(published, settings, port, headless) as server:
        try:
            return server.wait()
        except KeyboardInterrupt:
            return 0


@contextmanager
def start(
    published: Path, settings: DashboardSettings, port: int | None = None, headless: bool = True
) -> Iterator[subprocess.Popen[bytes]]:
    """The server as a process; it is stopped when the block ends."""
    with tempfile.TemporaryDirectory(prefix="inferledger-dashboard-") as folder:
        config = Path(folder) / "dashboard.yaml"
        config.write_text(json.dumps({"dashboard": settings.model_dump(mode="json")}))
        server = subprocess.Popen(
            command(settings, port or settings.port, headless), env=environment(published, config)
        )
        try:
            yield server
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def command(settings: DashboardSettings, port: int, headless: bool) -> list[str]:
    """The command line of the server; nothing is sent to anyone, nothing of an error is shown to readers."""
    options = {
        "server.address": settings.host,
        "server.port": port,
        "server.headless": headless,
        "server.showEmailPrompt": False,
        "server.fileWatcherType": "none",
        "browser.gatherUsageStats": False,
        "client.toolbarMode": "viewer",
        "client.showErrorDetails": "none",
        **{f"theme.{name}": value for name, value in theme.STREAMLIT.items()},
    }
    flags = [f"--{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in options.items()]
    return [sys.executable, "-m", "streamlit", "run", str(APP), *flags]


def environment(published: Path, config: Path) -> dict[str, str]:
    """The environment of the server: this project importable, the published folder and the settings named."""
    root = str(APP.parent.parent)
    path = os.pathsep.join(part for part in (root, os.environ.get("PYTHONPATH", "")) if part)
    return {**os.environ, "PYTHONPATH": path, PUBLISHED: str(published.absolute()), CONFIG: str(config)}


def wait_until_ready(server: subprocess.Popen[bytes], url: str, seconds: float = 60) -> None:
    """Return once the server answers; TimeoutError or RuntimeError if it does not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise RuntimeError(f"the dashboard ended with exit code {server.returncode} before it answered")
        try:
            with urllib.request.urlopen(f"{url}/_stcore/health", timeout=5) as answer:  # noqa: S310 (our own address)
                if answer.status == 200:
                    return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.2)
    raise TimeoutError(f"the dashboard did not answer at {url} within {seconds:.0f} s")
