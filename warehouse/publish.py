"""Consistent, lock-free snapshots for readers.

A snapshot is a manifest naming immutable Parquet files, each called after its own content. A pointer names the
manifest and is replaced atomically, so a reader sees the old snapshot or the new one and waits for nobody. Only the
months and days that changed are written again. The same evidence and settings give the same bytes; what depends on
the history of loads (deliveries, revisions, rejected rows) is named by the pointer beside the manifest.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from warehouse import attribution, derived, marts
from warehouse.engine import Layout, transaction
from warehouse.settings import WarehouseSettings

FORMAT = 1
KEEP_UNNAMED_SECONDS = 24 * 3600
DETAIL = ("event", "bill_bucket")
SMALL = ("owner", "balance", "control")
Json = dict[str, Any]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class Publication:
    """What was published: the manifest's id, files written and carried over, and why nothing was if it was held."""

    manifest: str
    previous: str | None
    written: int
    carried: int
    held: tuple[str, ...]


def publish(
    connection: duckdb.DuckDBPyConnection,
    layout: Layout,
    settings: WarehouseSettings,
    progress: Progress = lambda _: None,
) -> Publication:
    """Write what changed since the last publication and move the pointer; keep the last snapshot if a control fails."""
    folder = layout.published
    for sub in ("files", "manifests"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    pointer = read_pointer(folder)
    previous = pointer.get("manifest") if pointer else None
    held = attribution.failing(connection)
    if held:
        _write_pointer(folder, {**(pointer or {}), "held": list(held[:50]), "held_count": len(held)})
        return Publication(previous or "", previous, 0, 0, held)
    before: Json = read_manifest(folder, previous) if previous else {"files": []}
    everything = _prepare(connection, settings, before)
    written: list[Json] = []
    replaced: dict[str, set[str]] = {}
    columns: dict[str, list[list[str]]] = {}
    for mart in (*marts.OWNED, *marts.WHOLE):
        progress(f"publishing {mart}")
        columns[mart] = _materialise(connection, mart)
        replaced[mart] = _replaced(connection, mart, everything)
        written += _write(connection, folder, mart)
    carried = [entry for entry in before["files"] if entry["partition"] not in replaced.get(entry["mart"], set())]
    carried = [] if everything else carried
    manifest: Json = {
        "format": FORMAT,
        "as_of": derived.state(connection, "as_of"),
        "model": derived.state(connection, "model"),
        "owners": _owners_digest(settings),
        "zone": settings.zone,
        "currency": settings.currency,
        "columns": columns,
        "files": sorted(
            carried + written, key=lambda e: (e["mart"], e["partition"], e["team"] or "", e["team"] is None)
        ),
    }
    body = json.dumps(manifest, sort_keys=True, indent=1).encode()
    name = hashlib.sha256(body).hexdigest()[:32]
    _write_atomically(folder / "manifests" / f"{name}.json", body)
    with transaction(connection):
        if previous and previous != name:
            _keep_revisions(connection, folder, before, previous, name)
        history = _history(connection, folder)
        _write_pointer(
            folder,
            {
                "manifest": name,
                "previous": previous if previous != name else pointer.get("previous") if pointer else None,
                "history": history,
                "published_at": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )
        connection.execute("DELETE FROM dirty_day")
        connection.execute("DELETE FROM dirty_period")
        derived.remember(connection, "published", name)
    _sweep(folder)
    return Publication(name, previous, len(written), len(carried), ())


def read_pointer(folder: Path) -> Json | None:
    """The pointer, None before the first publication."""
    path = folder / "current.json"
    if not path.exists():
        return None
    pointer: Json = json.loads(path.read_text())
    return pointer


def read_manifest(folder: Path, name: str) -> Json:
    """One manifest by its id."""
    manifest: Json = json.loads((folder / "manifests" / f"{name}.json").read_text())
    return manifest


def _owners_digest(settings: WarehouseSettings) -> str:
    rules = [rule.model_dump(mode="json", by_alias=True) for rule in settings.owners]
    return hashlib.sha256(json.dumps(rules, sort_keys=True).encode()).hexdigest()[:32]


def _prepare(connection: duckdb.DuckDBPyConnection, settings: WarehouseSettings, before: Json) -> bool:
    """Temporary tables that the marts read. True if every partition has to be written again."""
    everything = (
        before.get("format") != FORMAT
        or before.get("zone") != settings.zone
        or before.get("currency") != settings.currency
        or before.get("owners") != _owners_digest(settings)
        or before.get("model") != derived.state(connection, "model")
    )
    if everything:
        connection.execute(
            """
            INSERT INTO dirty_day SELECT DISTINCT local_day(hour, ?) FROM (
                SELECT hour FROM ledger_hour UNION SELECT hour FROM usage_hour UNION SELECT hour FROM match_hour)
            UNION SELECT DISTINCT day FROM ledger_overlay
            UNION SELECT DISTINCT local_day(charge_period_start, ?) FROM billing_line
            """,
            [settings.zone, settings.zone],
        )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_day AS SELECT DISTINCT day FROM dirty_day WHERE day IS NOT NULL;
        CREATE OR REPLACE TEMP TABLE work_month AS SELECT DISTINCT strftime(day, '%Y-%m') AS month FROM work_day;
        """
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE publish_parameter AS
        SELECT ? AS zone, ? AS currency,
            date_trunc('month', coalesce(min(day), DATE '2000-01-01'))::TIMESTAMP - INTERVAL 1 DAY AS first_hour,
            date_trunc('month', coalesce(max(day), DATE '2000-01-01'))::TIMESTAMP + INTERVAL 33 DAY AS last_hour
        FROM work_day
        """,
        [settings.zone, settings.currency],
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE task_month AS
        SELECT DISTINCT strftime(local_day(u.hour, p.zone), '%Y-%m') AS month
        FROM task_usage_hour AS u, publish_parameter AS p
        WHERE u.task_id IN (
            SELECT t.task_id FROM task_usage_hour AS t, publish_parameter AS q
            WHERE t.hour >= q.first_hour AND t.hour < q.last_hour
              AND strftime(local_day(t.hour, q.zone), '%Y-%m') IN (SELECT month FROM work_month))
        UNION SELECT month FROM work_month;
        CREATE OR REPLACE TEMP TABLE owned_hour AS
        SELECT l.*, o.team, o.app, o.cost_center, o.agent, o.environment
        FROM (SELECT h.*, local_day(h.hour, p.zone) AS day FROM ledger_hour AS h, publish_parameter AS p
              WHERE h.hour >= p.first_hour AND h.hour < p.last_hour) AS l
        SEMI JOIN work_month AS w ON w.month = strftime(l.day, '%Y-%m')
        LEFT JOIN claim_owner AS o
            ON o.claim_set_id = l.claim_set_id AND o.valid_from <= l.day AND l.day < o.valid_to;
        CREATE OR REPLACE TEMP TABLE owned_overlay AS
        SELECT l.*, o.team, o.app, o.cost_center, o.agent, o.environment
        FROM ledger_overlay AS l
        SEMI JOIN work_month AS w ON w.month = strftime(l.day, '%Y-%m')
        LEFT JOIN claim_owner AS o
            ON o.claim_set_id = l.claim_set_id AND o.valid_from <= l.day AND l.day < o.valid_to;
        CREATE OR REPLACE TEMP TABLE model_name AS
        SELECT alias, min_by(model, (origin <> 'configuration', model)) AS model FROM model_alias GROUP BY alias;
        """
    )
    return everything


def _materialise(connection: duckdb.DuckDBPyConnection, mart: str) -> list[list[str]]:
    """Run one mart into the temporary table `mart_<name>`; its columns and types."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE mart_{mart} AS {marts.text(mart)}")
    described = connection.execute(f"DESCRIBE mart_{mart}").to_arrow_table().to_pylist()
    return [
        [row["column_name"], row["column_type"]] for row in described if not row["column_name"].startswith("partition")
    ]


def _column(connection: duckdb.DuckDBPyConnection, query: str) -> list[str]:
    return [str(value) for value in connection.execute(query).to_arrow_table().column(0).to_pylist()]


def _replaced(connection: duckdb.DuckDBPyConnection, mart: str, everything: bool) -> set[str]:
    if everything or mart in SMALL:
        return set(_column(connection, f"SELECT DISTINCT partition FROM mart_{mart}")) | {"all"}
    if mart in DETAIL:
        return set(_column(connection, "SELECT strftime(day, '%Y-%m-%d') FROM work_day"))
    return set(_column(connection, f"SELECT month FROM {'task_month' if mart == 'task_cost' else 'work_month'}"))


def _write(connection: duckdb.DuckDBPyConnection, folder: Path, mart: str) -> list[Json]:
    parts = (
        connection.execute(
            f"SELECT partition, partition_team, count(*) AS rows FROM mart_{mart} GROUP BY ALL ORDER BY ALL"
        )
        .to_arrow_table()
        .to_pylist()
    )
    return [_write_part(connection, folder, mart, part) for part in parts]


def _write_part(connection: duckdb.DuckDBPyConnection, folder: Path, mart: str, part: Json) -> Json:
    """One Parquet file, named by its content. Rows are in a total order: same rows, same bytes."""
    temporary = folder / "files" / f".{mart}-{os.getpid()}.parquet"
    connection.execute("SET VARIABLE part = ?", [part["partition"]])
    connection.execute("SET VARIABLE team = ?", [part["partition_team"]])
    connection.execute(
        f"""
        COPY (SELECT * EXCLUDE (partition, partition_team) FROM mart_{mart}
              WHERE partition = getvariable('part')
                AND partition_team IS NOT DISTINCT FROM CAST(getvariable('team') AS VARCHAR)
              ORDER BY ALL)
        TO '{temporary}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)
        """
    )
    digest = hashlib.sha256(temporary.read_bytes()).hexdigest()[:32]
    final = folder / "files" / f"{mart}-{digest}.parquet"
    temporary.replace(final)
    return {
        "mart": mart,
        "partition": part["partition"],
        "team": part["partition_team"],
        "file": final.name,
        "rows": part["rows"],
        "bytes": final.stat().st_size,
    }


def _history(connection: duckdb.DuckDBPyConnection, folder: Path) -> list[Json]:
    entries: list[Json] = []
    for mart in marts.HISTORY:
        columns = _materialise(connection, mart)
        files = _write(connection, folder, mart)
        entries += [{**entry, "columns": columns} for entry in files] or [
            {"mart": mart, "file": None, "columns": columns}
        ]
    return entries


def _keep_revisions(
    connection: duckdb.DuckDBPyConnection, folder: Path, before: Json, previous: str, name: str
) -> None:
    """Figures of days that were published and now differ, kept before they are gone from the current snapshot."""
    months = set(_column(connection, "SELECT month FROM work_month"))
    files = [
        str(folder / "files" / entry["file"])
        for entry in before["files"]
        if entry["mart"] == "cost_day" and entry["partition"] in months
    ]
    if not files:
        return
    keys = "day, currency, team, provider, model, kind, basis"
    connection.execute("DELETE FROM ledger_revision WHERE manifest = ?", [name])
    connection.execute(
        f"""
        INSERT INTO ledger_revision
        SELECT ?, ?, {keys}, nano_before, nano_after FROM (
            SELECT {keys}, CAST(sum(nano_before) AS BIGINT) AS nano_before,
                   CAST(sum(nano_after) AS BIGINT) AS nano_after
            FROM (SELECT {keys}, effective_nano AS nano_before, NULL AS nano_after FROM read_parquet(?)
                  UNION ALL SELECT {keys}, NULL, effective_nano FROM mart_cost_day)
            GROUP BY ALL)
        WHERE nano_before IS DISTINCT FROM nano_after AND day <= (SELECT max(day) FROM read_parquet(?))
        ORDER BY ALL
        """,
        [name, previous, files, files],
    )


def _write_atomically(path: Path, body: bytes) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    with temporary.open("wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def _write_pointer(folder: Path, pointer: Json) -> None:
    _write_atomically(folder / "current.json", json.dumps(pointer, sort_keys=True, indent=1).encode())


def _sweep(folder: Path) -> None:
    """Remove files that neither the current nor the previous snapshot names, once they are a day old."""
    pointer = read_pointer(folder)
    if pointer is None:
        return
    kept = [name for name in (pointer.get("manifest"), pointer.get("previous")) if name]
    named = {entry["file"] for entry in pointer["history"] if entry["file"]}
    for name in kept:
        if (folder / "manifests" / f"{name}.json").exists():
            named |= {entry["file"] for entry in read_manifest(folder, name)["files"]}
    _unlink_old(path for path in (folder / "files").iterdir() if path.name not in named)
    _unlink_old(path for path in (folder / "manifests").iterdir() if path.stem not in kept)


def _unlink_old(paths: Iterable[Path]) -> None:
    horizon = time.time() - KEEP_UNNAMED_SECONDS
    for path in paths:
        if path.stat().st_mtime < horizon:
            path.unlink(missing_ok=True)
