"""Which replica gets a request: sticky by conversation, by weight, among those that are ready."""

from collections.abc import Sequence

import numpy as np

from demo.fleet.nodes import Life, Replica

NOBODY = -1


def lives_of(replicas: Sequence[Replica]) -> list[tuple[Replica, Life]]:
    """Every process of the replicas."""
    return [(replica, life) for replica in replicas for life in replica.lives]


def choose(found: list[tuple[Replica, Life]], at_us: np.ndarray, trace: np.ndarray) -> np.ndarray:
    """Index of `found` for each request, NOBODY where none is ready.

    Weighted rendezvous hashing: a conversation stays where its prefixes are cached for as long as that replica takes
    requests, and a new replica takes its part of all conversations.
    """
    best = np.full(len(at_us), np.inf)
    chosen = np.full(len(at_us), NOBODY)
    for number, (replica, life) in enumerate(found):
        ready = (at_us >= life.ready_us) & (at_us < life.closed_us)
        key = -np.log(_uniform(trace, replica.number)) / replica.weight
        better = ready & (key < best)
        best[better] = key[better]
        chosen[better] = number
    return chosen


def _uniform(trace: np.ndarray, salt: int) -> np.ndarray:
    """A number in (0, 1) for each trace, other for another salt (splitmix64)."""
    x = trace.astype(np.uint64) + np.uint64((salt + 1) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return ((x >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
