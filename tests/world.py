"""A small organisation written by hand: a few bill lines and calls in, a ledger out. For tests of every room."""

import atexit
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import sqlalchemy as sa

from warehouse import attribution, publish, schema
from warehouse.engine import Layout, writing
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot

CLASSES = ("uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")


@cache
def empty_warehouse() -> Path:
    """A warehouse file with empty evidence tables; made once a process, because it takes most of a second."""
    folder = tempfile.mkdtemp(prefix="inferledger-test-")
    atexit.register(shutil.rmtree, folder)
    layout = Layout(Path(folder))
    with writing(layout, "test"):
        pass
    engine = sa.create_engine(f"duckdb:///{layout.warehouse}", poolclass=sa.pool.NullPool)
    schema.metadata.create_all(engine)
    engine.dispose()
    return layout.warehouse


@dataclass
class World:
    """Evidence by the spoonful. Times are ISO text in UTC; money is decimal text."""

    data: Path
    settings: WarehouseSettings = field(default_factory=WarehouseSettings)
    as_of: str = "2026-10-10 00:00"
    calls: int = 0
    lines: int = 0

    def __post_init__(self) -> None:
        self.layout = Layout(self.data)
        self._open: duckdb.DuckDBPyConnection | None = None
        self.data.mkdir(parents=True, exist_ok=True)
        if not self.layout.warehouse.exists():
            shutil.copy(empty_warehouse(), self.layout.warehouse)

    @contextmanager
    def connected(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """The warehouse; nested blocks share one connection, so a block around many rows makes them fast."""
        if self._open is not None:
            yield self._open
            return
        with writing(self.layout, "test") as connection:
            self._open = connection
            try:
                yield connection
            finally:
                self._open = None

    def call(self, ended_at: str, claims: dict[str, str], **facts: Any) -> str:
        """One usage record; facts are columns of usage_record, token classes among them. Returns its record id."""
        self.calls += 1
        record_id = facts.pop("record_id", f"call-{self.calls}")
        row: dict[str, Any] = {
            "load_id": "usage",
            "source": "gateway",
            "source_trust": 10,
            "record_id": record_id,
            "event_key": f"s:gateway:{record_id}",
            "record_digest": f"{record_id}-{self.calls}",
            "started_at": ended_at,
            "ended_at": ended_at,
            "provider": "aws.bedrock",
            "model": "nova-pro",
            "account_id": "111122223333",
            "region_id": "us-east-1",
            "scope": "regional",
            "service_tier": "standard",
            "status": "success",
            "semantics": "test",
            **{f"{name}_tokens": facts.pop(name, None) for name in CLASSES if name in ("uncached_input", "output")},
            **facts,
        }
        for name in ("cache_read", "cache_write_5m", "cache_write_1h"):
            if name in row:
                row[f"{name}_tokens"] = row.pop(name)
        with self.connected() as c:
            row["claim_set_id"] = self._claim_set(c, claims)
            self._insert(c, "usage_record", row)
            c.execute("INSERT INTO touched_hour VALUES (date_trunc('hour', ?::TIMESTAMP), 'usage')", [row["ended_at"]])
        return str(record_id)

    def line(self, start: str, cost: str, *, end: str | None = None, **facts: Any) -> None:
        """One billing line; a token-metered one when `token_class` and `tokens` are given."""
        self.lines += 1
        token_class, tokens = facts.pop("token_class", None), facts.pop("tokens", None)
        with self.connected() as c:
            start_at = datetime.fromisoformat(start)
            period = facts.pop("billing_period", f"{start_at:%Y-%m}")
            row: dict[str, Any] = {
                "load_id": f"bill-{period}",
                "export_name": "export",
                "billing_period": period,
                "line_digest": f"line-{self.lines}",
                "provider_name": "aws",
                "billing_account_id": "999988887777",
                "sub_account_id": "111122223333",
                "billing_currency": "USD",
                "region_id": "us-east-1",
                "billing_period_start": f"{period}-01",
                "billing_period_end": f"{period}-01",
                "charge_period_start": start,
                "charge_period_end": end or start_at.replace(minute=59, second=59).isoformat(),
                "charge_category": "Usage",
                "service_name": "Amazon Bedrock",
                "billed_cost": cost,
                "effective_cost": cost,
                "list_cost": cost,
                "x_charge_family": "model_api" if token_class else "other",
                "x_model": "nova-pro" if token_class else None,
                "x_token_class": token_class,
                "x_tokens": tokens,
                **facts,
            }
            if end is None:
                row["charge_period_end"] = c.execute("SELECT ?::TIMESTAMP + INTERVAL 1 HOUR", [start]).fetchone()[0]
            self._insert(c, "billing_line", row)
            c.execute("INSERT INTO touched_hour VALUES (date_trunc('hour', ?::TIMESTAMP), 'billing')", [start])

    def price(self, model: str = "nova-pro", **per_mtok: str) -> None:
        """Catalogue prices per million tokens, by token class."""
        with self.connected() as c:
            for token_class, amount in per_mtok.items():
                self._insert(
                    c,
                    "price",
                    {
                        "load_id": "prices",
                        "book": "catalogue",
                        "provider": "aws.bedrock",
                        "model": model,
                        "service_tier": "standard",
                        "token_class": token_class,
                        "from_input_tokens": 0,
                        "currency": "USD",
                        "per_mtok": amount,
                        "valid_from": "1970-01-01",
                        "valid_to": "9999-12-31",
                        "match_reason": "test",
                        "origin": "test",
                    },
                )

    def attribute(self) -> attribution.AttributionReport:
        """Run the waterfall for what changed."""
        with self.connected() as c:
            return attribution.attribute(c, self.settings, datetime.fromisoformat(self.as_of))

    def publish(self) -> publish.Publication:
        """Attribute, then publish."""
        self.attribute()
        with self.connected() as c:
            return publish.publish(c, self.layout, self.settings)

    def snapshot(self, scope: Scope | None = None) -> Snapshot:
        """Publish and open what was published."""
        self.publish()
        return Snapshot.open(self.layout.published, scope or Scope.everything("test"))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of the warehouse itself."""
        with self.connected() as c:
            return c.execute(sql).fetchall()

    @staticmethod
    def _claim_set(c: duckdb.DuckDBPyConnection, claims: dict[str, str]) -> str:
        name = "&".join(f"{key}={value}" for key, value in sorted(claims.items()))
        if not c.execute("SELECT 1 FROM claim_set WHERE claim_set_id = ?", [name]).fetchone():
            c.execute(
                "INSERT INTO claim_set VALUES (?, MAP(?::VARCHAR[], ?::VARCHAR[]))",
                [name, list(claims), list(claims.values())],
            )
        return name

    @staticmethod
    def _insert(c: duckdb.DuckDBPyConnection, table: str, row: dict[str, Any]) -> None:
        c.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})", list(row.values()))
