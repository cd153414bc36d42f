"""When Prometheus scrapes a target: every so often, at an offset of its own, with a little jitter."""

import zlib

import numpy as np

from demo.clock import SECOND
from demo.fleet.nodes import Replica

ENGINE_EVERY = 60 * SECOND
DCGM_EVERY = 300 * SECOND
KUBE_EVERY = 60 * SECOND


def times(name: str, every_us: int, start_us: int, end_us: int) -> np.ndarray:
    """Instants in [start, end), whole milliseconds; the same target has the same rhythm all its life."""
    seed = zlib.crc32(name.encode())
    first = start_us // every_us
    count = max(0, end_us // every_us - first + 1)
    ticks = np.arange(first, first + count, dtype=np.int64)
    # a few milliseconds early or late, which depends on nothing but the target and the tick
    jitter = ((ticks * 2654435761 + seed) >> 7) % 37 - 18
    at_us = ticks * every_us + seed % (every_us // 1000) * 1000 + jitter * 1000
    return at_us[(at_us >= start_us) & (at_us < end_us)]


def scrape_times(replica: Replica, start_us: int, end_us: int) -> list[int]:
    """When the engine in a pod is scraped: it answers as soon as it is ready."""
    return times(f"{replica.pool.key} {replica.number}", ENGINE_EVERY, start_us, end_us).tolist()
