"""`inferledger run`: every job on its schedule, one at a time. A job that fails is noted and tried again.

Told to end (SIGTERM, SIGINT), it lets the job at hand stop at its next safe place: between batches of a collection, or
by rolling a transaction back. What was committed stays; the next run goes on from there.
"""

import logging
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import FrameType
from zoneinfo import ZoneInfo

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.cron import CronTrigger

from inferledger import jobs, operations
from inferledger.config import Configuration
from inferledger.defects import description
from inferledger.exits import Stopped, explained
from inferledger.operations import Status

log = logging.getLogger("inferledger")


@dataclass(frozen=True)
class Outcome:
    """How one run of a job ended: a line for a person, and whether someone should look."""

    job: str
    status: Status
    detail: str


class Daemon:
    """Runs jobs one at a time and writes down how each ended."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.stopping = threading.Event()
        self._one_at_a_time = threading.Lock()
        self._scheduler: BlockingScheduler | None = None

    def once(self) -> list[Outcome]:
        """Every job that has a schedule, once, in order."""
        return [self.perform(name) for name in WORK if getattr(self.configuration.schedule, name) is not None]

    def serve(self) -> None:
        """Run on schedule until SIGTERM or SIGINT; everything runs once at the start."""
        zone = ZoneInfo(self.configuration.zone)
        scheduler = BlockingScheduler(
            executors={"default": ThreadPoolExecutor(max_workers=1)},
            job_defaults={"coalesce": True, "max_instances": 1, "misfire_grace_time": None},
            timezone=zone,
        )
        self._scheduler = scheduler
        start = datetime.now(zone)
        for number, name in enumerate(WORK):
            expression = getattr(self.configuration.schedule, name)
            if expression is not None:
                # Jobs that are due together are run in the order of their ids.
                scheduler.add_job(
                    self.perform,
                    CronTrigger.from_crontab(expression, timezone=zone),
                    args=(name,),
                    id=f"{number}-{name}",
                    name=name,
                    next_run_time=start,
                )
        log.info(
            "running: %s", ", ".join(f"{name} {getattr(self.configuration.schedule, name) or 'never'}" for name in WORK)
        )
        scheduler.start()
        with self._one_at_a_time:
            log.info("ended")

    def stop(self, signal_number: int, _frame: FrameType | None) -> None:
        """Signal handler: finish the job at hand at its next safe place, start no other."""
        log.info("%s: ending", signal.Signals(signal_number).name)
        self.stopping.set()
        if self._scheduler is not None and self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def say(self, _: object) -> None:
        """Progress of a job: the place where it can be told to end."""
        if self.stopping.is_set():
            raise Stopped

    def perform(self, name: str) -> Outcome:
        """Run one job, write down how it ended, and never raise."""
        with self._one_at_a_time:
            if self.stopping.is_set():
                return Outcome(name, "stopped", "not begun")
            identity = self._noted_begin(name)
            outcome = self._run(name)
            level = {"failed": logging.ERROR, "findings": logging.WARNING}.get(outcome.status, logging.INFO)
            if name != "deliver" or outcome.status != "ok" or outcome.detail:
                log.log(level, "%s: %s%s", name, outcome.status, f": {outcome.detail}" if outcome.detail else "")
            self._noted_end(identity, outcome)
            return outcome

    def _run(self, name: str) -> Outcome:
        try:
            problems, detail = WORK[name](self.configuration, self.say)
            return Outcome(
                name, "findings" if problems else "ok", "; ".join([*problems, detail] if detail else problems)
            )
        except Stopped:
            return Outcome(name, "stopped", "ended at a safe place")
        except Exception as error:  # the next job, and the next round, must come whatever one job does
            known = explained(error)
            if known is not None:
                return Outcome(name, "failed", known[1])
            log.error("defect in %s:\n%s", name, description(error))
            return Outcome(
                name, "failed", f"a defect of InferLedger ({type(error).__name__}), please report it with the log"
            )

    def _noted_begin(self, name: str) -> str | None:
        if name == "deliver":
            return None  # every minute; the outbox has its own record of attempts
        try:
            with operations.opened(self.configuration) as engine:
                return operations.begin_job(engine, name, datetime.now(UTC))
        except Exception as error:  # a job of the warehouse goes on without its record
            log.error("%s: its run cannot be recorded: %s", name, _reason(error))
            return None

    def _noted_end(self, identity: str | None, outcome: Outcome) -> None:
        if identity is None:
            return
        try:
            with operations.opened(self.configuration) as engine:
                operations.end_job(engine, identity, outcome.status, outcome.detail, datetime.now(UTC))
        except Exception as error:
            log.error("%s: the end of its run cannot be recorded: %s", outcome.job, _reason(error))


def _reason(error: Exception) -> str:
    known = explained(error)
    return known[1] if known else description(error)


Problems = list[str]
Work = Callable[[Configuration, Callable[[object], None]], tuple[Problems, str]]


def _collect(configuration: Configuration, say: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.collect(configuration, progress=say)
    return [str(each) for each in done.findings], f"{done.total('rows_loaded')} rows in {len(done.loaded)} batches"


def _attribute(configuration: Configuration, say: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.attribute(configuration, progress=say)
    return [f"control does not hold: {name}" for name in done.failed_controls], f"{done.hours} hours"


def _publish(configuration: Configuration, say: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.publish(configuration, say)
    return [], f"{done.manifest[:8]} {'unchanged' if done.manifest == done.previous else f'{done.written} files'}"


def _alert(configuration: Configuration, _: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.alert(configuration)
    return [*done.evaluation.problems, *done.delivery.problems], (
        f"{len(done.evaluation.firing)} firing, {done.evaluation.messages} new messages, {done.delivery.sent} sent"
    )


def _report(configuration: Configuration, _: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.report(configuration)
    made = [
        f"{run.report} {page.day} {page.outcome}"
        for run in done.runs
        for page in run.pages
        if page.messages or page.outcome != "known"
    ]
    return done.problems, ", ".join(made)


def _deliver(configuration: Configuration, _: Callable[[object], None]) -> tuple[Problems, str]:
    done = jobs.deliver(configuration)
    return list(done.problems), f"{done.sent} sent" if done.sent else ""


WORK: Mapping[str, Work] = {
    "collect": _collect,
    "attribute": _attribute,
    "publish": _publish,
    "alert": _alert,
    "report": _report,
    "deliver": _deliver,
}
