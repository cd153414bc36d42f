"""Attempts at serving a request: what the gateway tries, and which engines worked on it."""

from dataclasses import dataclass, field
from enum import IntEnum

from demo.fleet.jobs import Job, State
from demo.fleet.nodes import Life, Replica

TO_ENGINE_NS = 8_000_000
FROM_ENGINE_US = 5_000
"""Network and gateway, there and back."""


class Outcome(IntEnum):
    """What became of an attempt, seen from the caller."""

    SUCCESS = 0
    TIMED_OUT = 1  # logged as a failure without tokens; the engine has worked
    CANCELLED = 2  # the client left the stream: no record at all
    LOST = 3  # the engine died: logged as a failure
    UNAVAILABLE = 4  # no replica is ready: logged as a failure, no engine has seen it
    RUNNING = 5  # not over at the end of the window: no record yet


@dataclass(slots=True, eq=False)
class Leg:
    """The work of one engine on an attempt."""

    job: Job
    replica: Replica
    life: Life
    gpu_us: tuple[int, int, int] = (0, 0, 0)  # prefill, cached tokens, decode; set when all is known
    cost_nano: int = 0


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt. `request`: row of the requests; `number`: failed attempts before it; instants in microseconds."""

    request: int
    number: int
    cluster: int
    start_us: int
    give_up_us: int
    cancels: bool  # who gives up at `give_up_us` is the client, in the middle of the stream
    legs: list[Leg] = field(default_factory=list)
    outcome: Outcome = Outcome.RUNNING
    first_us: int = 0
    end_us: int = 0

    def close(self) -> None:
        """Say how it ended, from its last leg."""
        if not self.legs:
            self.outcome, self.first_us = Outcome.UNAVAILABLE, self.start_us + FROM_ENGINE_US
            self.end_us = self.first_us
            return
        job = self.legs[-1].job
        self.end_us = job.end_ns // 1000 + FROM_ENGINE_US
        self.first_us = (job.first_token_ns // 1000 or self.end_us) + FROM_ENGINE_US
        if job.state == State.DONE:
            self.outcome = Outcome.SUCCESS
        elif job.state == State.ABORTED:
            self.outcome = Outcome.CANCELLED if self.cancels else Outcome.TIMED_OUT
            self.end_us = max(self.give_up_us, self.start_us)
        elif job.state == State.LOST:
            self.outcome = Outcome.LOST
        self.end_us = max(self.end_us, self.first_us if self.outcome == Outcome.SUCCESS else self.start_us + 1)
