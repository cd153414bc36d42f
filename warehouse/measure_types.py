"""What a measure is: a sum over one mart, or one such sum divided by another."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal[
    "usd",
    "usd_per_mtok",
    "usd_each",
    "tokens",
    "count",
    "share",
    "milliseconds",
    "tokens_each",
    "gpu_ms",
    "tokens_per_second",
]


@dataclass(frozen=True)
class Component:
    """One sum over one mart. `where` selects rows; `money` restricts it to one currency.

    Rows on which `unknown` holds have an amount that nobody knows; by default those whose `column` is NULL. With
    `has_gaps` such rows are gaps beside known ones (hours that the bill has not reached): 0 of known rows is 0.
    """

    mart: str
    column: str
    where: str = "TRUE"
    money: bool = False
    distinct: bool = False
    unknown: str | None = None
    has_gaps: bool = False


@dataclass(frozen=True)
class Measure:
    """What a figure is called, where it comes from and what it says about itself."""

    title: str
    unit: Unit
    numerator: str
    denominator: str | None = None
    factor: float = 1
    about: str = ""
