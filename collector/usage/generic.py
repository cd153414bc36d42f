"""Any usage log in CSV, JSON Lines or Parquet: the configuration says which expression fills which column.

`columns` maps columns of ``usage_record`` to SQL expressions over the file's own columns, `where` keeps the rows that
are calls, `claims` names what owner rules may use. Expressions are checked when the configuration is read, and against
the file's columns before anything is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
from pydantic import Field, field_validator, model_validator

from collector.batches import object_batches
from collector.expressions import check
from collector.queries import WRONG_SQL, queries
from collector.source import (
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
from collector.spool import fetch_files, fetch_lines
from collector.store import Store, open_store
from collector.usage.records import TRACE, Reading, json_lines, stage, use, write

ENDINGS = {
    "parquet": (".parquet",),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "jsonl": (".jsonl", ".ndjson", ".json", ".jsonl.gz", ".ndjson.gz", ".json.gz"),
}
TEXT = (
    "record_id", "provider_response_id", "operation_id", "parent_id", "session_id", "task_id", "agent", "parent_agent",
    "task_outcome", "user_id", "provider", "model_raw", "account_id", "region_id", "scope", "route", "service_tier",
    "status", "error_kind", "finish_reason",
)  # fmt: skip
INSTANTS = ("started_at", "first_token_at", "ended_at")
COUNTS = (
    "input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_5m_tokens", "cache_write_1h_tokens",
    "output_tokens", "reasoning_tokens", "total_tokens",
)  # fmt: skip
NEEDED = ("record_id", "started_at", "provider", "model_raw")
COLUMNS = ("attempt", "stream", "provider_cost_usd", "uncached_input_tokens", *TEXT, *INSTANTS, *COUNTS)


class GenericSettings(SourceSettings):
    """A log whose columns the configuration maps."""

    kind: Literal["generic"]
    format: Literal["csv", "jsonl", "parquet"]
    columns: dict[str, str] = Field(description="column of usage_record: SQL expression over the file's columns")
    where: str = Field(default="true", description="SQL condition; rows that do not meet it are left out and counted")
    claims: dict[str, str] = Field(default={}, description="claim name: SQL expression")
    semantics: Literal["disjoint", "inclusive"] = Field(
        default="disjoint",
        description="disjoint: uncached_input_tokens beside cache_*; inclusive: input_tokens is the whole prompt",
    )
    fields: dict[str, str] = Field(
        default={}, description="jsonl: name and DuckDB type of each field; default: looked up"
    )
    delimiter: str = Field(default=",", min_length=1, max_length=1, description="csv")

    @field_validator("columns")
    @classmethod
    def _known_columns(cls, value: dict[str, str]) -> dict[str, str]:
        for column, expression in value.items():
            if column not in COLUMNS:
                raise ValueError(f"`{column}` is no column of a usage record; there are {', '.join(sorted(COLUMNS))}")
            _checked(f"columns.{column}", expression)
        missing = [column for column in NEEDED if column not in value]
        if missing:
            raise ValueError(f"needs {', '.join(missing)} too")
        return value

    @field_validator("where")
    @classmethod
    def _condition(cls, value: str) -> str:
        return _checked("where", value)

    @field_validator("claims")
    @classmethod
    def _claims(cls, value: dict[str, str]) -> dict[str, str]:
        for name, expression in value.items():
            if not name.replace(".", "").replace("_", "").replace("-", "").isalnum():
                raise ValueError(f"`{name}`: a claim name has letters, digits, `_`, `.`, `-` only")
            _checked(f"claims.{name}", expression)
        return value

    @field_validator("fields")
    @classmethod
    def _types(cls, value: dict[str, str]) -> dict[str, str]:
        for name, kind in value.items():
            try:
                with duckdb.connect() as connection:
                    connection.execute(f"SELECT CAST(NULL AS {kind.replace(';', '')})")
            except duckdb.Error:
                raise ValueError(f"`{name}: {kind}` is no DuckDB type") from None
        return value

    @model_validator(mode="after")
    def _one_way_to_count_input(self) -> "GenericSettings":
        wrong = "input_tokens" if self.semantics == "disjoint" else "uncached_input_tokens"
        if wrong in self.columns:
            raise ValueError(
                f"columns.{wrong} does not go with `semantics: {self.semantics}` (disjoint: uncached_input_tokens; "
                "inclusive: input_tokens, the whole prompt)"
            )
        return self


def _checked(place: str, expression: str) -> str:
    try:
        return check(expression)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


@dataclass(frozen=True)
class Generic:
    """A mapped log. Batches: new files, folder by folder."""

    settings: GenericSettings
    store: Store
    family: str = "usage"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        listed = self.store.list()
        endings = ENDINGS[self.settings.format]
        is_one_file = len(listed) == 1 and listed[0].key == self.store.place.rsplit("/", 1)[-1]
        found = listed if is_one_file else [each for each in listed if each.key.endswith(endings)]
        return object_batches(state.unseen(self.name, found))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        fetch = fetch_lines if self.settings.format == "jsonl" else fetch_files
        return fetch(self.store, batch, spool)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        sql = queries("usage/generic.sql")
        settings = self.settings
        delimiter = _literal(settings.delimiter)
        types = (
            "columns = {" + _types(settings.fields) + "}" if settings.fields else "auto_detect = true, sample_size = -1"
        )

        def define() -> None:
            _mapped(connection, sql["mapped"], settings, fetched)

        def csv(paths: list[str], statement: str) -> None:
            headers = {path: _header(connection, path, fetched, delimiter) for path in paths}
            parts = [
                sql[statement]
                .replace("{{files}}", "[" + ", ".join(map(_literal, together)) + "]")
                .replace("{{columns}}", "{" + _types(dict.fromkeys(header, "VARCHAR")) + "}")
                .replace("{{delimiter}}", delimiter)
                for header, together in _groups(headers, statement == "csv_again")
            ]
            connection.execute("CREATE OR REPLACE TEMP VIEW payload AS " + " UNION ALL BY NAME ".join(parts))

        def files(paths: list[str]) -> None:
            if settings.format == "csv":
                csv(paths, "csv")
                return
            use(connection, {"files": paths})
            connection.execute(sql[settings.format].replace("{{types}}", types))

        def again_csv(paths: list[str]) -> None:
            csv(paths, "csv_again")
            connection.execute("SELECT max(hash(payload)) FROM payload").fetchall()
            # DuckDB makes its tables of refused rows only when there are any; they hold the rows' text, so they go.
            if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'csv_refused'").fetchone():
                connection.execute(sql["csv_refused"])
                connection.execute("DROP TABLE csv_refused; DROP TABLE csv_refused_scan")

        def again_jsonl(paths: list[str]) -> None:
            json_lines(connection, fetched, paths)
            good = _literal(str(fetched.spool / "good.jsonl"))
            wrapped = (
                "columns = {__path: 'VARCHAR', __line: 'BIGINT', row: 'STRUCT("
                + ", ".join(f"{_quoted(name)} {kind}" for name, kind in settings.fields.items()).replace("'", "''")
                + ")'}"
                if settings.fields
                else "auto_detect = true, sample_size = -1"
            )
            connection.execute(sql["jsonl_good"].replace("{{good}}", good))
            connection.execute(sql["jsonl_refused"])
            connection.execute(sql["jsonl_again"].replace("{{good}}", good).replace("{{wrapped_types}}", wrapped))

        again = {"csv": again_csv, "jsonl": again_jsonl, "parquet": None}[settings.format]
        reading = Reading(files, define, again, refusal=f"unreadable_{settings.format}")
        return stage(connection, fetched, self.name, TRACE, load_id, moment, reading)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        return write(connection, self.name, staged)


def _header(connection: duckdb.DuckDBPyConnection, path: str, fetched: Fetched, delimiter: str) -> tuple[str, ...]:
    """Names in the first line of a CSV file; DuckDB reads them from a file that has that line only."""
    alone = fetched.spool / "header.csv"
    with Path(path).open("rb") as file:
        alone.write_bytes(file.readline(1024 * 1024).rstrip(b"\r\n") + b"\n")
    rows = connection.execute(
        f"DESCRIBE SELECT * FROM read_csv({_literal(str(alone))}, header = true, all_varchar = true, "
        f"delim = {delimiter}, quote = '\"', escape = '\"')"
    ).fetchall()
    return tuple(row[0] for row in rows)


def _groups(headers: dict[str, tuple[str, ...]], each: bool) -> list[tuple[tuple[str, ...], list[str]]]:
    """Files that have the same header, together, or each by itself."""
    if each:
        return [(header, [path]) for path, header in headers.items()]
    found: dict[tuple[str, ...], list[str]] = {}
    for path, header in headers.items():
        found.setdefault(header, []).append(path)
    return list(found.items())


def _mapped(connection: duckdb.DuckDBPyConnection, sql: str, settings: GenericSettings, fetched: Fetched) -> None:
    """Define `mapped` over `payload`; raises CollectError that names the column whose expression does not fit."""
    available = [row[0] for row in connection.execute("DESCRIBE payload").fetchall()]
    row = ", ".join(_quoted(name) for name in available if not name.startswith("__")) or "NULL"
    kinds = {
        name: _kind(connection, f"columns.{name}", expression, fetched, available)
        for name, expression in settings.columns.items()
    }
    for name, expression in settings.claims.items():
        _kind(connection, f"claims.{name}", expression, fetched, available)
    if _kind(connection, "where", settings.where, fetched, available) != "BOOLEAN":
        raise CollectError("where: is no condition (true or false)", settings.location, "Correct the source's `where`")
    given = ", ".join(f"TRY(({expression}\n)) AS {_given(name)}" for name, expression in settings.columns.items())
    claims = ", ".join(
        f"struct_pack(n := {_literal(name)}, v := CAST(TRY(({expression}\n)) AS VARCHAR))"
        for name, expression in settings.claims.items()
    )
    connection.execute(
        sql.replace("{{where}}", f"coalesce(TRY(({settings.where}\n)), FALSE)")
        .replace("{{given}}", given)
        .replace("{{claims}}", f"CAST([{claims}] AS STRUCT(n VARCHAR, v VARCHAR)[])")
        .replace("{{row}}", row)
        .replace("{{record}}", ",\n    ".join(_record(settings, kinds)))
        .replace("{{semantics}}", settings.semantics)
    )


def _kind(
    connection: duckdb.DuckDBPyConnection, place: str, expression: str, fetched: Fetched, available: Sequence[str]
) -> str:
    try:
        found = connection.execute(f"DESCRIBE SELECT ({expression}\n) AS value FROM payload").fetchone()
    except WRONG_SQL as error:
        has = ", ".join(name for name in available if not name.startswith("__"))
        raise CollectError(
            f"{place}: `{expression}` does not fit the file ({str(error).splitlines()[0]})",
            fetched.batch.detail,
            f"Correct it; the file has the columns {has}",
        ) from None
    assert found is not None
    return str(found[1])


def _record(settings: GenericSettings, kinds: dict[str, str]) -> list[str]:
    """SQL for each column of `mapped`, from the mapped ones and from defaults."""
    columns = settings.columns

    def text(name: str) -> str:
        return f"CAST({_given(name)} AS VARCHAR)" if name in columns else "CAST(NULL AS VARCHAR)"

    def instant(name: str, otherwise: str) -> str:
        return _instant(name, kinds[name]) if name in columns else otherwise

    def one_of(name: str, default: str, values: Sequence[str]) -> str:
        if name not in columns:
            return _literal(default)
        listed = ", ".join(_literal(value) for value in values)
        return f"CASE WHEN lower({text(name)}) IN ({listed}) THEN lower({text(name)}) END"

    scope = one_of("scope", "", ("regional", "geo", "global"))
    if "scope" not in columns:
        scope = (
            f"CASE WHEN {text('provider')} LIKE 'aws.%' THEN coalesce(model_scope({text('model_raw')}), 'regional') "
            f"ELSE model_scope({text('model_raw')}) END"
        )
    special = {
        "scope": scope,
        "status": one_of("status", "success", ("success", "failure", "timeout", "cancelled")),
        "service_tier": one_of(
            "service_tier", "standard", ("standard", "batch", "flex", "priority", "latency_optimized")
        ),
        "started_at": _instant("started_at", kinds["started_at"]),
        "first_token_at": instant("first_token_at", "CAST(NULL AS TIMESTAMP)"),
        "ended_at": instant("ended_at", _instant("started_at", kinds["started_at"])),
        "input_tokens": text("input_tokens" if settings.semantics == "inclusive" else "uncached_input_tokens"),
    }
    plain = {name: text(name) for name in (*TEXT, *COUNTS) if name not in special}
    counted = [name for name in (*COUNTS, "uncached_input_tokens") if name in columns]
    counts = ", ".join(f"struct_pack(k := {_literal(name)}, v := {text(name)})" for name in counted)
    other = {
        "attempt": f"TRY_CAST({text('attempt')} AS INTEGER)",
        "stream": f"TRY_CAST({text('stream')} AS BOOLEAN)",
        "provider_cost": text("provider_cost_usd"),
        "other_units": "CAST(NULL AS MAP(VARCHAR, VARCHAR))",
        "raw_counts": f"map_from_entries(list_filter([{counts}], lambda given: given.v IS NOT NULL))"
        if counted
        else "CAST(NULL AS MAP(VARCHAR, VARCHAR))",
    }
    return [f"{expression} AS {name}" for name, expression in {**plain, **special, **other}.items()]


def _instant(name: str, kind: str) -> str:
    given = _given(name)
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        return f"CAST({given} AS TIMESTAMP)"
    return f"instant(CAST({given} AS VARCHAR))"


def _given(name: str) -> str:
    return f'"={name}"'


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _types(fields: dict[str, str]) -> str:
    return ", ".join(f"{_quoted(name)}: {_literal(kind)}" for name, kind in fields.items())


def _open(settings: GenericSettings) -> Source:
    return Generic(settings, open_store(settings))


KIND = Kind("generic", GenericSettings, _open)
