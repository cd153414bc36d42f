"""Raw samples out of a running Prometheus, or whatever speaks its HTTP API (Thanos, Mimir, VictoriaMetrics).

Windows of one hour, one instant query `family{...}[1h]` per catalogued name at the window's end: stored samples with
their own timestamps, never a rate or an increase (reference/metrics.md 4). A window is read again, whole, until it has
been over for `overlap_minutes`, because samples may come late.
"""

import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
from pydantic import Field, ValidationInfo, field_validator

from collector.metrics.catalogue import exposed_names
from collector.metrics.minutes import FILES, Target, begin, cut_minutes, judge, write
from collector.metrics.prometheus_client import Server, TooMuch, partial
from collector.queries import queries
from collector.source import (
    MEMBERS,
    Batch,
    CollectError,
    Fetched,
    Kind,
    LoadResult,
    Moment,
    Source,
    SourceSettings,
    Staged,
    State,
)
from collector.usage.records import use

HOUR = 3600
SHORTEST = 60
WINDOW_BYTES = 64 * 1024 * 1024
"""What a window takes on disk, roughly; so many are fetched before the warehouse is opened."""

VARIABLE = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")


class PrometheusSettings(SourceSettings):
    """One server and one cluster."""

    kind: Literal["prometheus"]
    location: str = Field(description="base URL of the server, e.g. http://prometheus.monitoring:9090")
    cluster: str = Field(min_length=1, description="name of the cluster; overrides a `cluster` label")
    match: tuple[str, ...] = Field(
        default=("{}",), description='selectors, e.g. `{namespace="llm"}`; a series must match one of them'
    )
    since: datetime | None = Field(default=None, description="first instant to read; default: `history_hours` ago")
    until: datetime | None = Field(default=None, description="read nothing from here on; default: the server's clock")
    history_hours: int = Field(default=168, ge=1, description="how far back a run looks for hours not loaded yet")
    settle_seconds: int = Field(default=120, ge=0, description="younger samples are left to the next run")
    overlap_minutes: int = Field(default=10, ge=0, description="an hour is read again until it is over for so long")
    timeout_seconds: float = Field(default=60, gt=0)
    headers_env: dict[str, str] = Field(
        default={}, description="header name: environment variable that holds its value"
    )
    bearer_token_env: str | None = Field(default=None, description="environment variable of a bearer token")
    tenant: str | None = Field(default=None, description="X-Scope-OrgID of Mimir and Cortex")

    @field_validator("location")
    @classmethod
    def _relative_to_the_configuration(cls, value: str, info: ValidationInfo) -> str:
        """A URL is relative to nothing."""
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("write the server's base URL, http://host:port or https://host/path")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("no user, password, query or fragment here; use `headers_env` or `bearer_token_env`")
        return value.rstrip("/")

    @field_validator("match")
    @classmethod
    def _are_selectors(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for selector in value:
            if not re.fullmatch(r"(?s)\{([^\"{}]|\"([^\"\\]|\\.)*\")*\}", selector) or "__name__" in selector:
                raise ValueError(f"`{selector}`: write label matchers in braces, without a metric name")
        return value or ("{}",)

    @field_validator("headers_env", "bearer_token_env")
    @classmethod
    def _names_variables(cls, value: dict[str, str] | str | None) -> dict[str, str] | str | None:
        for name in value.values() if isinstance(value, dict) else [value] if value else []:
            if not VARIABLE.fullmatch(name):
                raise ValueError("give the name of an environment variable, never the secret itself")
        return value

    @field_validator("since", "until")
    @classmethod
    def _utc(cls, value: datetime | None) -> datetime | None:
        return value.replace(tzinfo=UTC) if value is not None and value.tzinfo is None else value


@dataclass(frozen=True)
class Window:
    """Seconds since the epoch; `seen` is when a window was read that is to be read again, NULL of a final one."""

    start: int
    end: int
    seen: int | None


@dataclass(frozen=True)
class Prometheus:
    """One server. Batches: windows of an hour; the last one ends where the server's clock is."""

    settings: PrometheusSettings
    server: Server
    family: str = "metrics"
    is_remote: bool = True

    @property
    def name(self) -> str:
        return self.settings.name

    def discover(self, state: State) -> Sequence[Batch]:
        windows = [each for each in self._windows() if not state.is_loaded(self.name, self._identity(each))]
        if not windows:
            return []
        names = [
            name
            for name in self.server.names(
                [_selector("", [f'__name__=~"{_anything()}"'], match) for match in self.settings.match],
                windows[0].start,
                windows[-1].end,
            )
            if name in exposed_names()
        ]
        return [
            Batch(
                identity=self._identity(window),
                detail=f"{_text(window.start)} to {_text(window.end)}",
                order=f"{window.start:015d}",
                size=WINDOW_BYTES if names else 0,
                plan={"names": names, "start": window.start, "end": window.end},
            )
            for window in windows
        ]

    def _windows(self) -> Iterator["Window"]:
        """Hours, oldest first; the last one ends where samples have settled, at a full minute of the server's clock."""
        settings = self.settings
        settled = math.floor(self.server.clock()) - settings.settle_seconds
        until = settled // 60 * 60
        if settings.until is not None:
            until = min(until, math.floor(settings.until.timestamp()))
        if settings.since is not None:
            start = math.floor(settings.since.timestamp())
        else:
            start = (settled - settings.history_hours * HOUR) // HOUR * HOUR
        while start < until:
            end = min((start // HOUR + 1) * HOUR, until)
            is_whole = end % HOUR == 0 or (settings.until is not None and end == math.floor(settings.until.timestamp()))
            is_final = is_whole and settled >= end + 60 * settings.overlap_minutes
            yield Window(start, end, None if is_final else settled // 60 * 60)
            start = end

    def _identity(self, window: "Window") -> str:
        """Query set and window; what may still be late is asked for again under another name, a minute later."""
        asked = json.dumps([self.settings.match, sorted(exposed_names())])
        digest = hashlib.md5(asked.encode(), usedforsecurity=False).hexdigest()
        seen = "" if window.seen is None else f" seen {_text(window.seen)}"
        return f"{digest}:{_text(window.start)}/{_text(window.end)}{seen}"

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        """One file per answer; raises CollectError when the server refuses, or cannot be reached."""
        plan = batch.plan
        rows: list[tuple[str, str]] = []
        for name in plan["names"]:  # type: ignore[attr-defined]
            conditions = [
                f"{label}=~{json.dumps(value)}" for label, value in exposed_names()[name].metric.where.items()
            ]
            for match in self.settings.match:
                self._ask(_selector(name, conditions, match), int(plan["start"]), int(plan["end"]), spool, rows)  # type: ignore[call-overload]
        members = pa.Table.from_pylist(
            [{"path": path, "first_line": 1, "last_line": None, "key": query} for path, query in rows], schema=MEMBERS
        )
        return Fetched(batch, tuple(Path(path) for path, _ in rows), spool, members)

    def _ask(self, selector: str, start: int, end: int, spool: Path, rows: list[tuple[str, str]]) -> None:
        path = spool / f"{len(rows):06d}.json"
        # a millisecond more: newer servers leave the window's first instant out
        query = f"{selector}[{(end - start) * 1000 + 1}ms]"
        try:
            self.server.stream(query, end, path)
        except TooMuch as reason:
            if end - start <= SHORTEST:
                raise CollectError(
                    f"even one minute of {selector} is too much for the server ({reason})",
                    self.server.url,
                    "Narrow `match`, or raise the server's query limits",
                ) from None
            middle = start + (end - start) // 2
            self._ask(selector, start, middle, spool, rows)
            self._ask(selector, middle, end, spool, rows)
        else:
            rows.append((str(path), f"{query} @ {_text(end)}"))

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("metrics/prometheus.sql")
        paths = [str(path) for path in fetched.files]
        files = [{"place": place, "path": path} for place, path in enumerate(paths)]
        begin(
            connection,
            fetched,
            Target(self.name, self.settings.cluster),
            load_id,
            moment,
            pa.Table.from_pylist(files, schema=FILES),
        )
        if not paths:
            return cut_minutes(connection, fetched, load_id)
        use(connection, {"files": paths})
        size = max(1024, *(path.stat().st_size + 64 for path in fetched.files))
        try:
            connection.execute(sql["answer"].replace("{{size}}", str(size)))
        except duckdb.InvalidInputException:
            raise CollectError(
                "an answer is not whole JSON",
                self.server.url,
                "Nothing of the window was loaded; the next run asks again",
            ) from None
        unfit = connection.execute(sql["unfit"]).fetchone()
        if unfit is not None:
            where = str(fetched.members["key"][unfit[0]])
            if unfit[1] == "partial":
                raise partial(where)
            raise CollectError(f"the answer is not what was asked for ({unfit[1]})", where, "Check `location`")

        def read() -> None:
            for step in ("read", "met", "series", "samples"):
                connection.execute(sql[step])

        judge(connection, read)
        connection.execute("DROP TABLE told_series; DROP TABLE answer")
        return cut_minutes(connection, fetched, load_id)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, staged)


def _selector(name: str, conditions: Sequence[str], match: str) -> str:
    inside = ",".join(filter(None, [*conditions, match[1:-1].strip().rstrip(",")]))
    return f"{name}{{{inside}}}"


def _anything() -> str:
    return "|".join(sorted(exposed_names()))


def _text(second: int) -> str:
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _open(settings: PrometheusSettings) -> Source:
    server = Server(
        settings.location, settings.headers_env, settings.bearer_token_env, settings.tenant, settings.timeout_seconds
    )
    return Prometheus(settings, server)


KIND = Kind("prometheus", PrometheusSettings, _open)
