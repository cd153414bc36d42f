"""A report run in a process of its own, which dies at a chosen point.

python -m tests.reports.run_process PUBLISHED URL FOLDER before-page|after-page|before-commit|after-commit
"""

import os
import signal
import sys
from datetime import timedelta
from pathlib import Path

from sqlalchemy import Engine, event

from reports import run as runs
from reports.settings import ReportSettings
from warehouse import operations
from warehouse.snapshot import Snapshot


def die(*_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def main(published: str, url: str, folder: str, point: str) -> None:
    settings = ReportSettings(name="daily-cost")
    snapshot = Snapshot.open(Path(published), settings.scope())
    engine = operations.connect(url)
    write_page = runs.write_page
    if point == "before-page":
        runs.write_page = die
    elif point == "after-page":
        runs.write_page = lambda path, html: (write_page(path, html), die())
    elif point == "before-commit":
        _die_before_the_commit(engine)
    runs.run(snapshot, settings, engine, ("slack",), snapshot.as_of + timedelta(days=1), folder=Path(folder))
    die()


def _die_before_the_commit(engine: Engine) -> None:
    inserted: list[str] = []

    def executed(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "INSERT INTO outbox_message" in statement:
            inserted.append(statement)

    event.listen(engine, "after_cursor_execute", executed)
    event.listen(engine, "commit", lambda _: die() if inserted else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
