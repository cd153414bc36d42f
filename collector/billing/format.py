"""What a format of a bill does: one new file with a ``FORMAT`` reads it, nothing else changes.

A format is found from the content of the files, never from their names: the header's columns decide.
"""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import duckdb

import collector.billing


@dataclass(frozen=True)
class Staging:
    """What a format says of the files that it turned into the temporary table `staged_line`.

    lines     rows read
    left_out  rows that are not money of the bill (split-cost rows repeat their parents'), kept elsewhere or not at all
    account   billing account, for the export's name; "" when the files do not say
    sums      exact decimal text of every cost column's sum, as it was read; with `basis` where a format chooses one
    notes     sentences for a person: what is missing and what that makes unavailable, choices that were made
    """

    lines: int
    left_out: int = 0
    account: str = ""
    sums: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@runtime_checkable
class Format(Protocol):
    """One format of bills.

    `stage` makes the temporary table or view `staged_line` (by `waiting.keep`) with exactly the columns of
    `billing_line` from `x_line_item_id` on (warehouse/schema.py), and raises CollectError to refuse the files whole.
    `period` is the billing period 'YYYY-MM' that all lines must be of, None when the files decide, and then each row
    carries its own. The temporary tables `staged_check` and `staged_split` (bill_check and split_cost_line from
    `billing_period` on) are there, empty, and may be replaced. The session variable `totals_only` is TRUE for a
    delivery that an already loaded, later one has replaced: then tags and x_other may be left NULL.
    """

    @property
    def name(self) -> str:
        """cur2, legacy_cur, focus."""

    def recognises(self, columns: frozenset[str]) -> bool:
        """Whether these header names, exactly as in the file, are this format's."""

    def stage(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[Path], period: str | None, where: str
    ) -> Staging:
        """The files, complete and unpacked (Parquet, CSV, CSV.GZ), as `staged_line`; `where` goes into errors."""


@cache
def formats() -> tuple[Format, ...]:
    """Every module of collector.billing that has a ``FORMAT``, in order of the format's name."""
    found: list[Format] = []
    for module in pkgutil.iter_modules(collector.billing.__path__, collector.billing.__name__ + "."):
        each = getattr(importlib.import_module(module.name), "FORMAT", None)
        if isinstance(each, Format):
            found.append(each)
    return tuple(sorted(found, key=lambda each: each.name))
