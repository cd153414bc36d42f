"""Exit codes, and the one place that turns what a person can mend into a message and a code."""

import errno
from enum import IntEnum

import duckdb
from sqlalchemy.exc import OperationalError

from collector.source import CollectError
from inferledger.yaml_file import ConfigError
from warehouse.attribution import EvidenceRefused
from warehouse.engine import WarehouseBusy
from warehouse.measures import UnknownMeasure
from warehouse.publish import NothingAttributed
from warehouse.snapshot import Forbidden, NothingPublished

DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class ExitCode(IntEnum):
    """What `inferledger` tells the shell."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    NOTHING_PUBLISHED = 3
    UNREACHABLE = 4
    BUSY = 5
    NOT_UPGRADED = 6
    DEFECT = 70
    INTERRUPTED = 130


MEANING: dict[ExitCode, str] = {
    ExitCode.OK: "done, nothing to complain about",
    ExitCode.FINDINGS: "done, and there is something a person should look at: it is printed with what to do",
    ExitCode.USAGE: "the command line or the configuration is wrong; nothing was done",
    ExitCode.NOTHING_PUBLISHED: "there is no published snapshot to read yet",
    ExitCode.UNREACHABLE: "a source, its evidence, the operations database or a file was refused or not reachable",
    ExitCode.BUSY: "another job holds the warehouse and did not end in time",
    ExitCode.NOT_UPGRADED: "a database is older than this version; `inferledger db upgrade` brings it up",
    ExitCode.DEFECT: "a defect of InferLedger; a log file in the data folder has the details",
    ExitCode.INTERRUPTED: "interrupted from the keyboard; what was committed stays",
}


class UsageError(Exception):
    """The command line asks for something that cannot be; the message says what can."""


class NotUpgraded(Exception):
    """A database is older (or newer) than this version."""

    def __init__(self, what: str, stands_at: str, head: str) -> None:
        super().__init__(
            f"The {what} stands at revision {stands_at}, this version of InferLedger needs {head}. "
            "Run `inferledger db upgrade` (make a copy of the data folder first)."
        )


class OperationsUnreachable(Exception):
    """The operations database cannot be reached or refuses."""

    def __init__(self, url: str, error: OperationalError) -> None:
        said = str(error.orig).strip().splitlines()
        super().__init__(
            f"The operations database {url} cannot be used: {said[0] if said else error}. "
            "Check operations.url, that it is up, and PGPASSWORD in the environment if it is PostgreSQL."
        )


class ControlsFailed(Exception):
    """Publication was held back, because the books do not balance somewhere."""

    def __init__(self, held: tuple[str, ...]) -> None:
        shown = "; ".join(held[:5]) + (f"; and {len(held) - 5} more" if len(held) > 5 else "")
        super().__init__(
            f"Nothing new was published: {len(held)} control(s) do not hold ({shown}). The last snapshot stays. "
            "This is a defect: please report it with the output of `inferledger doctor --format json`."
        )


class Stopped(Exception):
    """The daemon was told to end; the job at hand ended at a safe place."""


_CODES: tuple[tuple[type[BaseException], ExitCode], ...] = (
    (ConfigError, ExitCode.USAGE),
    (UsageError, ExitCode.USAGE),
    (UnknownMeasure, ExitCode.USAGE),
    (NothingPublished, ExitCode.NOTHING_PUBLISHED),
    (NothingAttributed, ExitCode.NOTHING_PUBLISHED),
    (Forbidden, ExitCode.UNREACHABLE),
    (CollectError, ExitCode.UNREACHABLE),
    (EvidenceRefused, ExitCode.UNREACHABLE),
    (OperationsUnreachable, ExitCode.UNREACHABLE),
    (OperationalError, ExitCode.UNREACHABLE),
    (PermissionError, ExitCode.UNREACHABLE),
    (WarehouseBusy, ExitCode.BUSY),
    (NotUpgraded, ExitCode.NOT_UPGRADED),
    (ControlsFailed, ExitCode.FINDINGS),
    (Stopped, ExitCode.OK),
    (KeyboardInterrupt, ExitCode.INTERRUPTED),
)


def explained(error: BaseException) -> tuple[ExitCode, str] | None:
    """Exit code and message of what a person can mend; None for what is a defect."""
    if isinstance(error, duckdb.IOException) and "lock on file" in str(error):
        return ExitCode.BUSY, (
            "Another program has the warehouse file open. Close it (a DuckDB shell, a notebook), and run this again."
        )
    if isinstance(error, duckdb.OutOfMemoryException):
        return (
            ExitCode.UNREACHABLE,
            "The engine ran out of memory. Raise engine.memory_limit, or make room on the disk.",
        )
    if isinstance(error, duckdb.IOException):
        said = (str(error).splitlines() or ["no answer"])[0]
        return (
            ExitCode.UNREACHABLE,
            f"The engine could not read or write a file: {said}. Check the data folder and its disk.",
        )
    if isinstance(error, OSError) and error.errno in DISK:
        return (
            ExitCode.UNREACHABLE,
            f"{error.filename or 'The disk'}: {error.strerror}. Make room, or point `data` elsewhere.",
        )
    for kind, code in _CODES:
        if isinstance(error, kind):
            return code, _message(error)
    return None


def _message(error: BaseException) -> str:
    if isinstance(error, PermissionError):
        return f"{error.filename} may not be used ({error.strerror}). Give the user that runs inferledger the right to."
    if isinstance(error, OperationalError):
        return f"The operations database refused: {str(error.orig).strip()}. Check operations.url and its server."
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted. What was committed stays; run it again to go on."
    if isinstance(error, Stopped):
        return "Stopped."
    return str(error)
