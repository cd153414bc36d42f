"""Writes FOCUS bills as providers do, and reads them with the format alone, on a connection as the collector's."""

import csv
import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb

from collector.billing.focus import FORMAT
from collector.billing.format import Staging
from collector.queries import HERE

CHARGE = {
    "BilledCost": "10.5",
    "EffectiveCost": "10.5",
    "ListCost": "12",
    "ContractedCost": "11",
    "BillingCurrency": "USD",
    "BillingAccountId": "acct-1",
    "SubAccountId": "sub-1",
    "BillingPeriodStart": "2026-11-01T00:00:00Z",
    "BillingPeriodEnd": "2026-12-01T00:00:00Z",
    "ChargePeriodStart": "2026-11-02T10:00:00Z",
    "ChargePeriodEnd": "2026-11-02T11:00:00Z",
    "ChargeCategory": "Usage",
    "ProviderName": "AWS",
    "ServiceName": "Amazon Elastic Compute Cloud",
    "ServiceCategory": "Compute",
}


def charge(**changes: str) -> dict[str, str]:
    """One row by FOCUS names; a changed value of `-` leaves the column out."""
    return {name: value for name, value in {**CHARGE, **changes}.items() if value != "-"}


def write(path: Path, rows: Sequence[dict[str, str]]) -> Path:
    """Rows of one set of columns as CSV, gzipped when the name says so."""
    with gzip.open(path, "wt", newline="") if path.suffix == ".gz" else path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


class Desk:
    """Stages files and answers what became of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.connection = duckdb.connect()
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("SET python_enable_replacements = false")
        for macros in ("model_name.sql", "money.sql"):
            self.connection.execute((HERE / macros).read_text())

    def stage(self, *rows: dict[str, str], period: str | None = None) -> Staging:
        return self.stage_files([write(self.folder / "bill.csv", rows)], period)

    def stage_files(self, files: Sequence[Path], period: str | None = None) -> Staging:
        return FORMAT.stage(self.connection, files, period, "bill")

    def rows(self, columns: str, rest: str = "") -> list[tuple[Any, ...]]:
        return self.connection.execute(f"SELECT {columns} FROM staged_line {rest}").fetchall()

    def row(self, columns: str) -> tuple[Any, ...]:
        (only,) = self.rows(columns)
        return only
