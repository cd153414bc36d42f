"""Log files about defects: where it happened, never what data it happened with."""

import re
import tempfile
import traceback
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import duckdb

QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'|`[^`]*`")


def write_log(error: BaseException, data: Path | None) -> Path:
    """Write a traceback to the data folder (or the system's temporary one); the file's path."""
    folder = data if data is not None and data.is_dir() else Path(tempfile.gettempdir())
    path = folder / f"inferledger-defect-{datetime.now(UTC):%Y%m%dT%H%M%S%f}.log"
    path.write_text(
        f"inferledger {version('inferledger')}, {datetime.now(UTC):%Y-%m-%d %H:%M:%SZ}\n{description(error)}"
    )
    return path


def description(error: BaseException) -> str:
    """The traceback of an error and of what caused it; what the engine quotes is left out, for it may be a prompt."""
    chain: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in chain:
        chain.append(each)
        each = each.__cause__ or each.__context__
    return "\n".join(
        f"{''.join(traceback.format_tb(each.__traceback__))}{type(each).__name__}: {_said(each)}\n"
        for each in reversed(chain)
    )


def _said(error: BaseException) -> str:
    if isinstance(error, duckdb.Error):
        return QUOTED.sub('"..."', (str(error).splitlines() or [""])[0])
    return str(error)
