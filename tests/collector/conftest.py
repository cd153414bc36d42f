"""A warehouse with empty evidence tables, and collections into it from a configuration given as a dictionary."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from collector.run import CollectReport, collect
from collector.settings import CollectorSettings
from tests.world import empty_warehouse
from warehouse.engine import Layout

AS_OF = datetime(2026, 12, 1, tzinfo=UTC)
ROOT = Path(__file__).resolve().parents[2]


class House:
    """One installation under test."""

    def __init__(self, data: Path) -> None:
        data.mkdir(parents=True)
        self.data = data
        self.layout = Layout(data)
        self.settings = CollectorSettings.model_validate({"prices": {"catalogue": "none"}})
        shutil.copy(empty_warehouse(), self.layout.warehouse)

    def configure(self, *sources: dict[str, Any], **rest: Any) -> None:
        given = {"prices": {"catalogue": "none"}, "sources": list(sources), **rest}
        self.settings = CollectorSettings.model_validate(given, context={"base": self.data.parent})

    def collect(self, *sources: dict[str, Any], as_of: datetime = AS_OF, only: set[str] | None = None) -> CollectReport:
        """Collect what is configured, or what is given now; model aliases apart, which every warehouse has."""
        if sources:
            self.configure(*sources)
        only = only or {source.name for source in self.settings.sources}
        return collect(self.layout, self.settings, only, as_of)

    def rows(self, query: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.layout.warehouse), read_only=True) as connection:
            connection.execute("SET TimeZone = 'UTC'")
            return connection.execute(query, list(parameters)).fetchall()

    def row(self, query: str) -> tuple[Any, ...]:
        (only,) = self.rows(query)
        return only

    def attributed(self) -> None:
        """Forget which hours changed, as attribution does once it has worked them out."""
        with duckdb.connect(str(self.layout.warehouse)) as connection:
            connection.execute("DELETE FROM touched_hour")

    def refused(self) -> list[tuple[Any, ...]]:
        """(location, line number, reason) of what was refused."""
        return self.rows("SELECT location, line_number, reason FROM rejected_row ORDER BY ALL")

    def evidence(self) -> dict[str, list[tuple[Any, ...]]]:
        """Everything that attribution reads, without the names of loads: the same evidence is the same value."""
        tables = (
            "billing_line", "cross_check_line", "bill_export", "bill_check", "split_cost_line", "bill_version",
            "usage_record", "claim_set", "price", "fx_rate", "model_alias",
            "metric_series", "serving_minute", "gpu_minute", "kube_minute", "pool_member",
        )  # fmt: skip
        found = {}
        for table in tables:
            kept = [
                f'CAST("{name}" AS VARCHAR)'
                for (name,) in self.rows(f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{table}'")
                if name != "load_id"
            ]
            found[table] = self.rows(f"SELECT {', '.join(kept)} FROM {table} ORDER BY ALL")
        found["touched_hour"] = self.rows("SELECT DISTINCT hour, reason FROM touched_hour ORDER BY ALL")
        found["rejected_row"] = self.rows(
            "SELECT DISTINCT source, location, line_number, reason, row_digest FROM rejected_row ORDER BY ALL"
        )
        return found

    def bytes(self) -> bytes:
        """All that the installation keeps on disk."""
        return b"".join(path.read_bytes() for path in sorted(self.data.rglob("*")) if path.is_file())


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "data")


@pytest.fixture
def build(tmp_path: Path) -> "Builder":
    return Builder(tmp_path)


class Builder:
    """Makes further installations beside the first."""

    def __init__(self, tmp_path: Path) -> None:
        self._tmp_path = tmp_path
        self._number = 0

    def __call__(self) -> House:
        self._number += 1
        return House(self._tmp_path / f"data-{self._number}")


def python(script: str, *arguments: str, timeout: float = 60) -> subprocess.Popen[bytes]:
    """A Python process of its own with the project on its path."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments], env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT
    )
