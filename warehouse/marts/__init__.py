"""The published marts, one SELECT a file. What readers see, and all they see.

Every file yields `partition` (YYYY-MM, or YYYY-MM-DD for detail) and `partition_team` (NULL: nobody's) beside its
columns; the publisher writes one Parquet file per (mart, partition, team).
"""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent

# Marts that name an owner: a reader restricted to teams sees those teams' files.
OWNED = (
    "cost_day",
    "cost_hour",
    "usage_day",
    "latency_day",
    "task_day",
    "task_cost",
    "user_day",
    "event",
    "owner",
    "ratio_day",
)
# Marts about the whole organisation: readers with an unrestricted scope only.
WHOLE = (
    "bill_day",
    "balance",
    "bill_bridge",
    "bill_reporting",
    "match_day",
    "control",
    "bill_bucket",
    "pool_hour",
    "fleet_line",
    "fleet_pod",
    "fleet_match",
    "fleet_class",
)
# What happened on the way: depends on the history of loads, so it is published beside the manifest, not in it.
HISTORY = ("bill_version", "bill_check", "source_state", "rejected", "revision")


@cache
def text(name: str) -> str:
    """The SELECT of one mart."""
    return (FOLDER / f"{name}.sql").read_text()
