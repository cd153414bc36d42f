"""Benchmarks: our figure beside a baseline that the same run measures. `python -m bench [name ...] [options]`.

A benchmark is a module here with `main(argv) -> int`. What it measures runs in processes of their own, so that peak
memory is that of one thing.
"""

import multiprocessing
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any


class BenchmarkFailed(Exception):
    """What was to be measured did not end well; its own error is above."""


@dataclass(frozen=True)
class Measured:
    """What a function gave, how long it took (imports and start of its process left out), and its process's peak.

    `cpu_seconds` is of all its threads: on a busy machine it says more than the wall clock.
    """

    value: Any
    seconds: float
    cpu_seconds: float
    peak_mb: float


def measure(function: Callable[..., Any], *arguments: object) -> Measured:
    """Run a module-level function in a new process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(theirs, function, arguments))
    process.start()
    theirs.close()
    try:
        measured: Measured = ours.recv()
    except EOFError:
        process.join()
        raise BenchmarkFailed(f"{function.__name__} ended with exit code {process.exitcode}") from None
    process.join()
    return measured


def peak_mb() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():  # unlike getrusage, this does not count the parent's memory before exec
        held = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(held.split()[1]) / 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1024 * 1024) if sys.platform == "darwin" else most / 1024


def _run(pipe: Connection, function: Callable[..., Any], arguments: tuple[object, ...]) -> None:
    began, cpu = time.perf_counter(), time.process_time()
    value = function(*arguments)
    pipe.send(Measured(value, time.perf_counter() - began, time.process_time() - cpu, peak_mb()))
    pipe.close()
