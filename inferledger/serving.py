"""Starts the dashboard: Streamlit in this process's place."""

import os
import sys
from pathlib import Path

from inferledger.config import Configuration
from inferledger.console import out


def serve(path: Path, configuration: Configuration, port: int | None = None, address: str | None = None) -> None:
    """Replace this process by the dashboard, which reads the published snapshot only."""
    raise NotImplementedError
