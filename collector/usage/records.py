"""The steps that every usage log shares, from `mapped` rows to usage records; see record.sql."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from collector.queries import NOT_THE_FILE, queries
from collector.source import CollectError, Fetched, LoadResult, Moment, Staged
from collector.spool import cut

MANY_CLAIM_SETS = 5_000

GATEWAY, TRACE = 10, 20
"""source_trust: who is believed when several sources saw the same call; lower is believed more."""


def use(connection: duckdb.DuckDBPyConnection, variables: Mapping[str, Any]) -> None:
    """Bind session variables, which the SQL reads by ``getvariable``."""
    for name, value in variables.items():
        connection.execute(f"SET VARIABLE {name} = ?", [value])


def shape_of(connection: duckdb.DuckDBPyConnection, columns: str) -> str:
    """Column definitions (``a VARCHAR, b STRUCT(...)``) as the literal that ``read_json(columns = ...)`` takes."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE log_shape ({columns})")
    found = connection.execute(queries("usage/record.sql")["shape"]).fetchone()
    assert found is not None
    return str(found[0])


@dataclass(frozen=True)
class Reading:
    """How one format is read; the parts that the shared steps need.

    files    defines the temporary view `payload` over whole files; reading it raises duckdb.Error on a bad line
    define   defines the temporary view `mapped` over `payload`
    again    defines `payload` over bad files, each row with its number, what is wrong with it marked or already staged
             as refused; None for a format whose files are read or refused whole
    refusal  reason code of a file that is refused whole
    """

    files: Callable[[list[str]], None]
    define: Callable[[], None]
    again: Callable[[list[str]], None] | None
    refusal: str = "unreadable_file"


def json_lines(connection: duckdb.DuckDBPyConnection, fetched: Fetched, paths: list[str]) -> None:
    """Define the temporary view `json_line` (path, line_number, line, broken) over the lines of JSON files."""
    pieces = cut([Path(path) for path in paths], fetched.spool)
    connection.register("piece", pieces)
    use(connection, {"pieces": pieces.column("piece").to_pylist()})
    connection.execute(queries("usage/record.sql")["json_line"])


def stage(
    connection: duckdb.DuckDBPyConnection,
    fetched: Fetched,
    source: str,
    trust: int,
    load_id: str,
    moment: Moment,
    reading: Reading,
) -> Staged:
    """Judge one batch into temporary tables, outside any transaction.

    Files that cannot be read strictly, or in which there is something to refuse, go through a tolerant pass line by
    line, so that the rest of them is kept and each refused line is named.
    """
    sql = queries("usage/record.sql")
    connection.execute(sql["macros"])
    use(
        connection,
        {"source": source, "load_id": load_id, "source_trust": trust, "latest": moment.latest, "bad_files": []},
    )
    connection.register("member", fetched.members)
    connection.execute(sql["stage"])

    files = [str(path) for path in fetched.files]
    bad = _judge_files(connection, files, reading) if files else []
    if bad:
        use(connection, {"bad_files": bad})
        connection.execute(sql["drop_files"])
    if bad and reading.again is None:
        use(connection, {"refusal": reading.refusal})
        connection.execute(sql["refuse_files"])
    if bad and reading.again is not None:
        try:
            reading.again(bad)
            reading.define()
            connection.execute(sql["judge"])
        except NOT_THE_FILE:
            raise
        except duckdb.Error:
            raise unreadable(fetched) from None
    return Staged(fetched, load_id)


def write(connection: duckdb.DuckDBPyConnection, source: str, staged: Staged) -> LoadResult:
    """Store what was staged, inside a transaction."""
    fetched, load_id = staged.fetched, staged.load_id
    sql = queries("usage/record.sql")
    use(connection, {"object_keys": [each.key for each in fetched.batch.objects]})
    for step in ("digest", "claim_sets", "insert", "forget_refused", "reject", "touch"):
        connection.execute(sql[step])
    for refused in fetched.refused:
        connection.execute(
            "INSERT INTO rejected_row (load_id, source, location, reason, detail) VALUES (?, ?, ?, ?, ?)",
            [load_id, source, refused.key, refused.reason, refused.detail],
        )
    outcome = connection.execute(sql["outcome"])
    names = [column[0] for column in outcome.description or ()]
    figures = dict(zip(names, outcome.fetchone() or (), strict=True))
    connection.unregister("member")
    connection.execute("DROP TABLE staged_record; DROP TABLE fresh_record; DROP TABLE combination")

    notes = [f"{refused.key}: {refused.detail}" for refused in fetched.refused]
    if figures["claim_sets"] > MANY_CLAIM_SETS:
        notes.append(
            f"{figures['claim_sets']:,} claim sets in one load: is one of the source's `claims` unique to a call?"
        )
    return LoadResult(
        rows_read=figures["rows_read"] + len(fetched.refused),
        rows_loaded=figures["rows_loaded"],
        rows_rejected=figures["rows_rejected"] + len(fetched.refused),
        rows_filtered=figures["rows_filtered"],
        first_at=figures["first_at"],
        last_at=figures["last_at"],
        sums={name: figures[name] for name in names if name.endswith("_tokens")},
        notes=tuple(notes),
    )


def _judge_files(connection: duckdb.DuckDBPyConnection, files: list[str], reading: Reading) -> list[str]:
    """Judge all files at once, without those that cannot be read. Answers the files that need the tolerant pass."""
    unread: list[str] = []
    try:
        _judge(connection, files, reading)
    except NOT_THE_FILE:
        raise
    except duckdb.Error:
        unread = [file for file in files if not _is_readable(connection, file, reading)]
        rest = [file for file in files if file not in set(unread)]
        if not unread:
            raise
        if rest:
            _judge(connection, rest, reading)
    refusing = connection.execute(queries("usage/record.sql")["bad_files"]).fetchall()
    return unread + ([row[0] for row in refusing] if reading.again else [])


def _judge(connection: duckdb.DuckDBPyConnection, files: list[str], reading: Reading) -> None:
    reading.files(files)
    reading.define()
    connection.execute(queries("usage/record.sql")["judge"])


def _is_readable(connection: duckdb.DuckDBPyConnection, file: str, reading: Reading) -> bool:
    try:
        reading.files([file])
        connection.execute("SELECT max(hash(payload)) FROM payload").fetchone()
    except NOT_THE_FILE:
        raise
    except duckdb.Error:
        return False
    return True


def unreadable(fetched: Fetched) -> CollectError:
    """A batch that the engine cannot read at all. The engine's own message may quote the file, so it stays out."""
    return CollectError(
        "cannot be read as what the configuration says it is",
        fetched.batch.detail,
        "Nothing of it was loaded; check that the source's `kind` and `format` fit its files and that they are whole",
    )
