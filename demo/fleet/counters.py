"""What an engine counts, and the table of its counters at given instants."""

from dataclasses import dataclass, field

import numpy as np

SNAPSHOT = np.dtype(
    [
        ("at_ns", "i8"),
        ("prompt", "i8"),  # whole prompts, counted when their prefill is done
        ("generation", "i8"),  # live, at each step
        ("queries", "i8"),  # prompt tokens looked up in the prefix cache, at admission
        ("hits", "i8"),
        ("cached", "i8"),  # of `prompt`: found in the prefix cache
        ("transferred", "i8"),  # of `prompt`: computed by another engine
        ("computed", "i8"),  # prompt tokens computed so far, recomputed ones too
        ("stop", "i8"),
        ("length", "i8"),
        ("abort", "i8"),
        ("preemptions", "i8"),
        ("steps", "i8"),
        ("running", "i8"),
        ("waiting", "i8"),
        ("kv_tokens", "i8"),
        ("running_ns", "i8"),  # time so far with at least one running request
        ("stepping_ns", "i8"),  # time so far on the GPU
        ("adapters", "i8"),  # bit set of adapters of running requests
    ]
)


@dataclass
class Counters:
    """Totals since the process started."""

    prompt: int = 0
    generation: int = 0
    queries: int = 0
    hits: int = 0
    cached: int = 0
    transferred: int = 0
    computed: int = 0
    stop: int = 0
    length: int = 0
    abort: int = 0
    preemptions: int = 0
    steps: int = 0
    running_ns: int = 0
    stepping_ns: int = 0
    rows: list[tuple[int, ...]] = field(default_factory=list)

    def snapshot(
        self,
        at_ns: int,
        steps: int,
        generated: int,
        running_ns: int,
        stepping_ns: int,
        running: int,
        waiting: int,
        kv_tokens: int,
        adapters: int,
    ) -> None:
        """Keep the counters as they are at an instant: `steps`, `generated`, times are beyond the totals so far."""
        self.rows.append(
            (
                at_ns,
                self.prompt,
                self.generation + generated,
                self.queries,
                self.hits,
                self.cached,
                self.transferred,
                self.computed,
                self.stop,
                self.length,
                self.abort,
                self.preemptions,
                self.steps + steps,
                running,
                waiting,
                kv_tokens,
                self.running_ns + running_ns,
                self.stepping_ns + stepping_ns,
                adapters,
            )
        )

    def table(self) -> np.ndarray:
        """The snapshots (SNAPSHOT), in order of time."""
        return np.array(self.rows, dtype=SNAPSHOT)
