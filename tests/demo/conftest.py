"""Companies of different size, written once a session, and readers of what they hold."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pytest

from demo.clock import Window
from demo.organisation import Organisation, write
from demo.simulation import Simulation, simulate

MODEL_PRODUCTS = ("AmazonBedrock", "AmazonBedrockService", "7h2kq9v4m1x8c3d6p0w5z2n4b", "b3t8y1r6f0j5s9g2l7e4u8a1k")


@dataclass(frozen=True)
class Company:
    """A written company, and queries over it."""

    organisation: Organisation

    @property
    def out(self) -> Path:
        return self.organisation.out

    @property
    def truth(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.out / "truth" / "truth.json").read_text())
        return found

    def incident(self, name: str) -> dict[str, Any]:
        return next(incident for incident in self.truth["incidents"] if incident["name"] == name)

    def sql(self, query: str) -> list[tuple[Any, ...]]:
        """Run a query over cur (with `nano`, the cost), by_hour, by_hour_restated, by_call, by_task and fleet_*."""
        connection = duckdb.connect()
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute(
            f"""
            CREATE VIEW cur AS
            SELECT *, round(line_item_unblended_cost * 1e9)::BIGINT AS nano,
                   line_item_product_code IN {MODEL_PRODUCTS} AND line_item_line_item_type = 'Usage' AS of_model
            FROM read_parquet('{self.out}/cur/*/data/*/*/*.parquet')
            """
        )
        for name, file in (
            ("by_hour", "cost_by_hour_first"),
            ("by_hour_restated", "cost_by_hour_restated"),
            ("by_call", "cost_by_call"),
            ("by_task", "cost_by_task"),
            ("fleet_request", "fleet_request"),
            ("fleet_replica_minute", "fleet_replica_minute"),
            ("fleet_node_hour", "fleet_node_hour"),
        ):
            connection.execute(f"CREATE VIEW {name} AS SELECT * FROM '{self.out}/truth/{file}.parquet'")
        return connection.execute(query).fetchall()

    def log(self) -> Iterator[dict[str, Any]]:
        """Every payload of the gateway's log."""
        for file in sorted((self.out / "gateway").rglob("*")):
            if file.name.endswith(".jsonl.gz"):
                yield from map(json.loads, gzip.decompress(file.read_bytes()).splitlines())
            elif file.suffix == ".json":
                yield json.loads(file.read_bytes())


@pytest.fixture(scope="session")
def company(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """Ten days with all incidents; one billing month."""
    return Company(write(tmp_path_factory.mktemp("company"), days=10, scale=0.08))


@pytest.fixture(scope="session")
def every_record(company: Company) -> list[dict[str, Any]]:
    return list(company.log())


@pytest.fixture(scope="session")
def records(every_record: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls of managed models."""
    return [one for one in every_record if one["custom_llm_provider"] == "bedrock"]


@pytest.fixture(scope="session")
def fleet_records(every_record: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Calls of the company's own GPU fleet."""
    return [one for one in every_record if one["custom_llm_provider"] == "hosted_vllm"]


@pytest.fixture(scope="session")
def turn_of_month(tmp_path_factory: pytest.TempPathFactory) -> Company:
    """Ten days around the end of a month that has since been invoiced, seen from the 8th."""
    return Company(write(tmp_path_factory.mktemp("turn"), days=10, scale=0.01, end=date(2026, 11, 8)))


@pytest.fixture(scope="session")
def full_month() -> Simulation:
    """The default company's calls, not written."""
    return simulate(7, Window(30, date(2026, 11, 15)), 1.0)
