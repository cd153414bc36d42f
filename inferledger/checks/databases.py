"""The warehouse, the operations database, and what it says of messages and jobs."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy.exc import OperationalError

from delivery import outbox
from inferledger import evidence
from inferledger import operations as operations_database
from inferledger.checks.check import Check, Checks
from inferledger.config import Configuration
from migrations import run as migrations
from warehouse.engine import WarehouseBusy, writing
from warehouse.operations import connect

STUCK_JOB = timedelta(hours=6)


def warehouse(configuration: Configuration) -> Checks:
    """Whether the warehouse file is there and of this version; a job that has it open is not disturbed."""
    layout = configuration.layout
    if not layout.warehouse.exists():
        yield Check(
            "databases", "warehouse", "warn", f"{layout.warehouse} is not there yet", "run `inferledger collect`"
        )
        return
    if not os.access(layout.data, os.W_OK):
        yield Check("databases", "warehouse", "ok", "may only be read here")
        return
    at_once = configuration.engine.model_copy(update={"lock_wait_seconds": 0.0})
    try:
        with writing(layout, "doctor", at_once) as connection:
            stands_at = evidence.revision(connection)
    except WarehouseBusy as error:
        yield Check("databases", "warehouse", "ok", f"in use: {str(error).partition(' Wait ')[0]}")
        return
    yield _revision("warehouse", stands_at, migrations.heads("evidence")[0])


def operations(configuration: Configuration, now: datetime) -> Checks:
    """Whether the operations database answers and is of this version; stuck messages and failed jobs."""
    if configuration.operations.url is None and not configuration.layout.operations.exists():
        yield Check(
            "databases",
            "operations",
            "warn",
            f"{configuration.layout.operations} is not there yet",
            "run `inferledger db upgrade`",
        )
        return
    engine = connect(configuration.operations_url)
    shown = engine.url.render_as_string(hide_password=True)
    try:
        stands_at, head = operations_database.revision(engine), migrations.heads("operations")[0]
        yield _revision("operations", stands_at, head)
        if stands_at == head:
            with engine.connect() as connection:
                waiting = outbox.problems(connection, now=now)
            yield from _outbox(waiting)
            yield from _jobs(operations_database.last_jobs(engine), now)
    except OperationalError as error:
        said = (str(error.orig).strip().splitlines() or ["no answer"])[0]
        yield Check(
            "databases",
            "operations",
            "fail",
            f"{shown}: {said}",
            "check operations.url, that it is up, and PGPASSWORD in the environment if it is PostgreSQL",
        )
    finally:
        engine.dispose()


def _revision(name: str, stands_at: str | None, head: str) -> Check:
    if stands_at == head:
        return Check("databases", name, "ok", f"at revision {head}")
    return Check(
        "databases",
        name,
        "fail",
        f"at revision {stands_at or 'none'}, and {head} is needed",
        "run `inferledger db upgrade`",
    )


def _outbox(problems: Sequence[str]) -> Checks:
    if not problems:
        yield Check("outbox", "messages", "ok", "none is stuck")
    for problem in problems:
        what, _, remedy = problem.partition(". Look there; then ")
        yield Check(
            "outbox", "messages", "fail" if remedy else "warn", what.rstrip("."), remedy or "check the channel above"
        )


def _jobs(runs: Sequence[operations_database.JobRun], now: datetime) -> Checks:
    for job in runs:
        began = f"began {job.started_at:%Y-%m-%d %H:%M} UTC"
        if job.status == "failed":
            yield Check(
                "jobs",
                job.job,
                "fail",
                f"failed ({began}): {job.detail}",
                "mend what it says; it is tried again on schedule",
            )
        elif job.status == "findings":
            yield Check(
                "jobs", job.job, "warn", f"{began}: {job.detail}", "mend what it says; it is tried again on schedule"
            )
        elif job.status == "running" and now - job.started_at > STUCK_JOB:
            yield Check(
                "jobs",
                job.job,
                "warn",
                f"{began} and has not ended",
                "see whether `inferledger run` still runs; start it again",
            )
        else:
            yield Check("jobs", job.job, "ok", f"{job.status}, {began}")
