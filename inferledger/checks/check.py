"""One thing that was looked at."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Result = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """What is so, and what to do unless it is ok.

    `fail` stops figures from being right or from arriving, `warn` makes them less than they could be.
    """

    area: str
    subject: str
    result: Result
    detail: str
    remedy: str = ""


Checks = Iterator[Check]
