"""Looking at an engine's counters at given instants, also in the middle of a run of steps."""

from collections.abc import Callable

from demo.fleet.counters import Counters
from demo.fleet.steps import EngineSpec, steps_within

Progress = tuple[int, int, int]
"""Since the last change: whole steps, time with running requests, time on the GPU."""

Situation = tuple[int, int, int, int]
"""Decoding sequences, running requests, tokens of memory used, bit set of adapters."""


class Watch:
    """Takes a snapshot at each of the ascending `marks_ns`."""

    def __init__(self, spec: EngineSpec, marks_ns: list[int], counters: Counters) -> None:
        self._spec = spec
        self._marks = marks_ns
        self._next = 0
        self._counters = counters

    def due(self, until: int) -> bool:
        """There is a mark before `until`."""
        return self._next < len(self._marks) and self._marks[self._next] < until

    def still(self, until: int, since: int, situation: Situation, waiting: Callable[[int], int]) -> None:
        """Marks before `until`, while no step is taken."""
        self._look(until, since, situation, waiting, lambda _: (0, 0, 0))

    def one_step(self, until: int, since: int, situation: Situation, waiting: Callable[[int], int]) -> None:
        """Marks within one step that ends at `until`: what it computes is counted when it ends."""
        host_ns = self._spec.host_ns
        self._look(until, since, situation, waiting, lambda elapsed: (0, elapsed, max(0, elapsed - host_ns)))

    def decoding(
        self,
        until: int,
        since: int,
        situation: Situation,
        waiting: Callable[[int], int],
        first_ns: int,
        growth_ns: int,
    ) -> None:
        """Marks within a run of steps that only decode: the first takes `first_ns`, each next `growth_ns` more."""
        host_ns = self._spec.host_ns

        def progress(elapsed: int) -> Progress:
            steps = steps_within(elapsed, first_ns, growth_ns)
            in_step = elapsed - first_ns * steps - growth_ns * (steps * (steps - 1) // 2)
            return steps, elapsed, elapsed - host_ns * steps - min(in_step, host_ns)

        self._look(until, since, situation, waiting, progress)

    def _look(
        self,
        until: int,
        since: int,
        situation: Situation,
        waiting: Callable[[int], int],
        progress: Callable[[int], Progress],
    ) -> None:
        sequences, running, kv_tokens, adapters = situation
        while self._next < len(self._marks) and self._marks[self._next] < until:
            at_ns = self._marks[self._next]
            self._next += 1
            steps, running_ns, stepping_ns = progress(at_ns - since)
            decoded = steps * sequences
            self._counters.snapshot(
                at_ns,
                steps,
                decoded,
                running_ns,
                stepping_ns,
                running,
                waiting(at_ns),
                kv_tokens + decoded,
                adapters,
            )
