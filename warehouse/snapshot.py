"""What readers open: one published snapshot through one scope. No lock, no warehouse file, never half an hour."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.engine import MACROS
from warehouse.marts import HISTORY, OWNED, WHOLE
from warehouse.publish import FORMAT, Json, read_manifest, read_pointer


class NothingPublished(Exception):
    """There is no snapshot to read; the message says which command makes one."""


class SnapshotIncomplete(NothingPublished):
    """The pointer names something that is not there; the message says what and how to mend it."""


class Forbidden(Exception):
    """The scope does not admit what was asked for."""


@dataclass(frozen=True)
class Scope:
    """Who reads, and the teams they may see; `teams=None` is everything. Part of every cache key."""

    who: str
    teams: frozenset[str] | None

    @classmethod
    def everything(cls, who: str) -> "Scope":
        """The whole organisation: finance, the platform team, scheduled jobs."""
        return cls(who, None)

    @classmethod
    def of(cls, who: str, teams: Sequence[str]) -> "Scope":
        """Some teams only; totals of the organisation, from which others could be subtracted, stay out."""
        return cls(who, frozenset(teams))

    def admits(self, entry: Json) -> bool:
        """Whether a file of the manifest may be opened."""
        return self.teams is None or (entry["mart"] in OWNED and entry["team"] in self.teams)


class Snapshot:
    """One published state of the ledger. Marts are views of their own names; `sql` may be called from any thread."""

    def __init__(self, published: Path, scope: Scope, manifest_id: str, manifest: Json, pointer: Json) -> None:
        if manifest.get("format") != FORMAT:
            raise SnapshotIncomplete(
                f"The snapshot under {published} was published by another version of InferLedger (format "
                f"{manifest.get('format')}, this one reads {FORMAT}). Run `inferledger attribute` and `publish`."
            )
        self.scope = scope
        self.manifest_id = manifest_id
        self.as_of = datetime.fromisoformat(manifest["as_of"]).replace(tzinfo=UTC)
        self.zone: str = manifest["zone"]
        self.currency: str = manifest["currency"]
        self.published_at = datetime.fromisoformat(pointer["published_at"])
        self.held: tuple[str, ...] = tuple(pointer.get("held", ()))
        self._lock = threading.Lock()
        self._connection = duckdb.connect()
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET python_enable_replacements = false")
        self._connection.execute(MACROS.read_text().replace("TEMP MACRO", "MACRO"))
        admitted = [entry for entry in manifest["files"] if scope.admits(entry)]
        columns: dict[str, list[list[str]]] = dict(manifest["columns"])
        for entry in pointer["history"]:
            columns[entry["mart"]] = entry["columns"]
            if entry["file"] and scope.teams is None:
                admitted.append(entry)
        for entry in admitted:
            if not (published / "files" / entry["file"]).exists():
                raise SnapshotIncomplete(_incomplete(published, f"files/{entry['file']}"))
        for mart in (*OWNED, *WHOLE, *HISTORY):
            files = [str(published / "files" / entry["file"]) for entry in admitted if entry["mart"] == mart]
            self._view(mart, files, columns[mart])
        # Whatever SQL comes through here, it reads the files of this scope and writes none.
        self._connection.execute(
            "SET allowed_paths = ?", [[str(published / "files" / entry["file"]) for entry in admitted]]
        )
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")
        days = self.sql(
            "SELECT min(day) AS first_day, max(day) AS last_day FROM "
            "(SELECT day FROM cost_day WHERE kind <> 'future' UNION ALL SELECT day FROM usage_day)"
        ).to_pylist()[0]
        self.first_day: date = days["first_day"] or self.as_of.date()
        self.last_day: date = days["last_day"] or self.as_of.date()

    @classmethod
    def open(cls, published: Path, scope: Scope) -> "Snapshot":
        """The current snapshot under a `published` folder, seen through `scope`."""
        pointer = read_pointer(published)
        if pointer is None or not pointer.get("manifest"):
            raise NothingPublished(
                f"Nothing has been published under {published} yet. Run `inferledger collect`, `attribute` and "
                "`publish` (or `inferledger run`); `inferledger doctor` says what is missing."
            )
        name = pointer["manifest"]
        try:
            manifest = read_manifest(published, name)
        except FileNotFoundError as error:
            raise SnapshotIncomplete(_incomplete(published, f"manifests/{name}.json")) from error
        return cls(published, scope, name, manifest, pointer)

    def sql(self, query: str, parameters: Sequence[object] = ()) -> pa.Table:
        """Run one query over the marts; a cursor of its own per call, so threads do not meet."""
        with self._lock:
            cursor = self._connection.cursor()
        try:
            return cursor.execute(query, list(parameters)).to_arrow_table()
        finally:
            cursor.close()

    def close(self) -> None:
        """Release the engine."""
        self._connection.close()

    def _view(self, mart: str, files: list[str], columns: list[list[str]]) -> None:
        if files:
            names = ", ".join("'" + file.replace("'", "''") + "'" for file in files)
            body = f"SELECT * FROM read_parquet([{names}])"
        else:
            body = "SELECT " + ", ".join(f'CAST(NULL AS {kind}) AS "{name}"' for name, kind in columns) + " WHERE false"
        self._connection.execute(f'CREATE VIEW "{mart}" AS {body}')


def _incomplete(published: Path, what: str) -> str:
    return (
        f"The snapshot under {published} is not whole: {what} is missing. "
        "Run `inferledger publish`: it writes everything again from the warehouse."
    )
