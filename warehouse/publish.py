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

from warehouse import attribution, derived, marts, owners
from warehouse.engine import Layout, transaction
from warehouse.settings import WarehouseSettings

FORMAT = 3
KEEP_UNNAMED_SECONDS = 24 * 3600
DETAIL = ("event", "bill_bucket", "fleet_line", "fleet_pod", "fleet_match", "fleet_class")
SMALL = ("owner", "balance", "bill_bridge", "bill_reporting", "control")
Json = dict[str, Any]
Progress = Callable[[str], None]


class NothingAttributed(Exception):
    """There is no ledger to publish; the message says which command makes one."""


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
    """Write what changed since the last publication and move the pointer; keep the last snapshot if a control fails.

    Raises NothingAttributed when there is no ledger yet.
    """
    connection.execute(derived.BOOKKEEPING)
    if derived.state(connection, "owners") is None:
        raise NothingAttributed("There is no ledger to publish yet. Run `inferledger attribute` first.")
    folder = layout.published
    for sub in ("files", "manifests"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    pointer = read_pointer(folder)
    # Without its manifest or one of its files the last snapshot carries nothing over: everything is written again.
    previous = pointer.get("manifest") if pointer and _is_whole(folder, pointer.get("manifest")) else None
    held = attribution.failing(connection)
    if held:
        _write_pointer(folder, {**(pointer or {}), "held": list(held[:50]), "held_count": len(held)})
        return Publication(previous or "", previous, 0, 0, held)
    if pointer and previous:
        _finish_interrupted(connection, folder, pointer)
    before: Json = read_manifest(folder, previous) if previous else {"files": []}
    if derived.state(connection, "owners") != owners.digest(settings):
        with transaction(connection):
            owners.resolve(connection, settings)
            derived.remember(connection, "owners", owners.digest(settings))
    everything = _prepare(connection, before)
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
        "owners": derived.state(connection, "owners"),
        "zone": derived.state(connection, "zone"),
        "currency": derived.state(connection, "currency"),
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
            _keep_revisions(connection, folder, previous, name)
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
        connection.execute("DELETE FROM changed_day")
        connection.execute("DELETE FROM changed_task")
        derived.remember(connection, "published", name)
    # A snapshot ages from when it was replaced, not from when it was made: somebody may still read it.
    if previous and previous != name:
        os.utime(folder / "manifests" / f"{previous}.json")
    for entry in pointer["history"] if pointer and previous else ():
        if entry["file"] and (folder / "files" / entry["file"]).exists():
            os.utime(folder / "files" / entry["file"])
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


def _is_whole(folder: Path, name: str | None) -> bool:
    """Whether a manifest and every file it names are there."""
    if name is None or not (folder / "manifests" / f"{name}.json").exists():
        return False
    there = {path.name for path in (folder / "files").iterdir()}
    return all(entry["file"] in there for entry in read_manifest(folder, name)["files"])


def _prepare(connection: duckdb.DuckDBPyConnection, before: Json) -> bool:
    """Temporary tables that the marts read. True if every partition has to be written again."""
    everything = before.get("format") != FORMAT or any(
        before.get(name) != derived.state(connection, name) for name in ("zone", "currency", "owners", "model")
    )
    zone, currency = derived.state(connection, "zone"), derived.state(connection, "currency")
    if everything:
        connection.execute(
            """
            INSERT INTO changed_day SELECT local_day(hour, ?), TRUE FROM (
                SELECT hour FROM ledger_hour UNION SELECT hour FROM usage_hour UNION SELECT hour FROM match_hour
                UNION SELECT hour FROM usage_event UNION SELECT hour FROM pool_hour
                UNION SELECT date_trunc('hour', charge_period_start) FROM billing_line)
            UNION SELECT DISTINCT day, FALSE FROM ledger_overlay
            """,
            [zone],
        )
        connection.execute(
            "INSERT INTO changed_task "
            "SELECT DISTINCT task_id, strftime(local_day(started_at, ?), '%Y-%m') FROM task_usage_hour",
            [zone],
        )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE work_day AS SELECT DISTINCT day FROM changed_day;
        CREATE OR REPLACE TEMP TABLE detail_day AS SELECT DISTINCT day FROM changed_day WHERE has_calls;
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
        [zone, currency],
    )
    connection.execute(
        """
        CREATE OR REPLACE TEMP TABLE task_month AS
        SELECT month FROM changed_task
        UNION SELECT strftime(local_day(u.started_at, p.zone), '%Y-%m')
        FROM task_usage_hour AS u, publish_parameter AS p
        WHERE u.task_id IN (SELECT task_id FROM changed_task);
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
        return set(_column(connection, "SELECT strftime(day, '%Y-%m-%d') FROM detail_day"))
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
        TO '{str(temporary).replace("'", "''")}' (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 122880)
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


def _finish_interrupted(connection: duckdb.DuckDBPyConnection, folder: Path, pointer: Json) -> None:
    """A publisher that died between moving the pointer and committing left no revisions: they are made up for."""
    name, previous = str(pointer["manifest"]), pointer.get("previous")
    if derived.state(connection, "published") in (name, None) or previous is None or not _is_whole(folder, previous):
        return
    with transaction(connection):
        _keep_revisions(connection, folder, previous, name)
        derived.remember(connection, "published", name)


def _keep_revisions(connection: duckdb.DuckDBPyConnection, folder: Path, previous: str, name: str) -> None:
    """Figures of days that were published and now differ, kept before they are gone from the current snapshot.

    A function of the two manifests' own files, so it can be made up for later.
    """
    old, new = (
        {
            str(folder / "files" / entry["file"]): str(entry["partition"])
            for entry in read_manifest(folder, manifest)["files"]
            if entry["mart"] == "cost_day"
        }
        for manifest in (previous, name)
    )
    gone, came = sorted(old.keys() - new.keys()), sorted(new.keys() - old.keys())
    latest = sorted(file for file, month in old.items() if month == max(old.values()))
    connection.execute("DELETE FROM ledger_revision WHERE manifest = ? AND previous = ?", [name, previous])
    if not gone:
        return
    keys = "day, currency, team, provider, model, kind, basis"
    after = f"UNION ALL SELECT {keys}, NULL, effective_nano FROM read_parquet(?)" if came else ""
    connection.execute(
        f"""
        INSERT INTO ledger_revision
        SELECT ?, ?, {keys}, nano_before, nano_after FROM (
            SELECT {keys}, CAST(sum(nano_before) AS BIGINT) AS nano_before,
                   CAST(sum(nano_after) AS BIGINT) AS nano_after
            FROM (SELECT {keys}, effective_nano AS nano_before, NULL AS nano_after FROM read_parquet(?) {after})
            GROUP BY ALL)
        WHERE nano_before IS DISTINCT FROM nano_after AND day <= (SELECT max(day) FROM read_parquet(?))
        ORDER BY ALL
        """,
        [name, previous, gone, *([came] if came else []), latest],
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
    """Remove snapshots that were replaced more than a day ago, and files that no remaining one names."""
    pointer = read_pointer(folder)
    if pointer is None:
        return
    kept = {pointer.get("manifest"), pointer.get("previous")}
    _unlink_old(path for path in (folder / "manifests").iterdir() if path.stem not in kept)
    named = {entry["file"] for entry in pointer["history"]}
    for path in (folder / "manifests").glob("[!.]*.json"):
        named |= {entry["file"] for entry in read_manifest(folder, path.stem)["files"]}
    _unlink_old(path for path in (folder / "files").iterdir() if path.name not in named)


def _unlink_old(paths: Iterable[Path]) -> None:
    horizon = time.time() - KEEP_UNNAMED_SECONDS
    for path in paths:
        if path.stat().st_mtime < horizon:
            path.unlink(missing_ok=True)
