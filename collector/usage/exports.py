"""Reads what a tool exports as a table, in any of its file types: CSV, JSON (array, object), JSON Lines, Parquet.

Columns that a file lacks are NULL, columns that nobody asked for are never read, every value is text. Files are read
whole; a file with something to refuse is read once more by itself, so that each refused row has its number.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb

from collector.queries import NOT_THE_FILE, queries
from collector.source import Fetched
from collector.usage.records import Reading, json_lines, shape_of

JSON = (".json", ".jsonl", ".ndjson")
ENDINGS = (*(f"{ending}{packed}" for ending in (*JSON, ".csv") for packed in ("", ".gz")), ".parquet")


def reading(
    connection: duckdb.DuckDBPyConnection,
    fetched: Fetched,
    columns: Mapping[str, str],
    payload: str,
    define: Callable[[], None],
) -> Reading:
    """How an export is read.

    columns  name and DuckDB type of every column that is wanted; other types than VARCHAR occur in JSON alone
    payload  statement that defines the view `payload` over `exported` (columns, path, line_number, row_digest, broken)
    define   defines the view `mapped` over `payload`
    """
    keys = dict(zip(fetched.members["path"].to_pylist(), fetched.members["key"].to_pylist(), strict=True))
    sql = queries("usage/exports.sql")
    base = "SELECT " + ", ".join(f"CAST(NULL AS {kind}) AS {_quoted(name)}" for name, kind in columns.items())
    shape = shape_of(connection, _definitions(columns))

    def kind(path: str) -> str:
        ending = Path(str(keys[path]).removesuffix(".gz")).suffix.lower()
        return "json" if ending in JSON else ending.removeprefix(".")

    def export(parts: list[str]) -> None:
        empty = f"{base}, NULL::VARCHAR AS path, NULL::BIGINT AS line_number, NULL::VARCHAR AS row_digest, "
        empty += "NULL::VARCHAR AS broken WHERE FALSE"
        connection.execute("CREATE OR REPLACE TEMP VIEW exported AS " + " UNION ALL BY NAME ".join([empty, *parts]))
        connection.execute(payload)

    def table(paths: list[str], of: str, how: str) -> str:
        present = _columns(connection, paths[0], of)
        wanted = [_as_text(name, present[name]) for name in columns if name in present and columns[name] == "VARCHAR"]
        return (
            sql[how]
            .replace("{{wanted}}", "".join(f"{each}, " for each in wanted))
            .replace("{{files}}", _list(paths))
            .replace("{{columns}}", "{" + ", ".join(f"{_literal(name)}: 'VARCHAR'" for name in present) + "}")
        )

    def whole(paths: list[str], numbered: str) -> list[str]:
        by_kind = {each: [path for path in paths if kind(path) == each] for each in ("json", "csv", "parquet")}
        parts = []
        if by_kind["json"]:
            json_part = sql["json" + numbered].replace("{{shape}}", shape)
            parts.append(json_part.replace("{{files}}", _list(by_kind["json"])))
        for each in ("csv", "parquet"):
            parts.extend(table([path], each, each + numbered) for path in by_kind[each])
        return parts

    def again(paths: list[str]) -> None:
        parts = []
        lines = []
        for path in paths:
            of = kind(path)
            if numbered := _numbered(connection, whole, path):
                parts.extend(numbered)
            elif of == "json" and not _is_array(path):
                lines.append(path)
            else:
                parts.append(
                    sql["refused"].replace("{{path}}", _literal(path)).replace("{{reason}}", f"unreadable_{of}")
                )
        if lines:
            json_lines(connection, fetched, lines)
            parts.append(sql["json_by_line"].replace("{{columns}}", _definitions(columns)))
        export(parts)
        connection.execute("SELECT max(hash(payload)) FROM payload").fetchall()
        # DuckDB makes its tables of refused rows only when there are any; they hold the rows' text, so they go.
        if connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'csv_refused'").fetchone():
            connection.execute(queries("usage/generic.sql")["csv_refused"])
            connection.execute("DROP TABLE csv_refused; DROP TABLE csv_refused_scan")

    return Reading(lambda paths: export(whole(paths, "")), define, again)


def _numbered(
    connection: duckdb.DuckDBPyConnection, whole: Callable[[list[str], str], list[str]], path: str
) -> list[str]:
    """The statement that reads one file with its rows numbered; none where the engine cannot read it so."""
    try:
        parts = whole([path], "_numbered")
        connection.execute(f"SELECT max(hash(one)) FROM ({parts[0]}) AS one").fetchone()
    except NOT_THE_FILE:
        raise
    except duckdb.Error:
        parts = []
    connection.execute("DROP TABLE IF EXISTS csv_refused; DROP TABLE IF EXISTS csv_refused_scan")
    return parts


def _is_array(path: str) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def _columns(connection: duckdb.DuckDBPyConnection, path: str, of: str) -> dict[str, str]:
    """Columns of a file in its order, with their types."""
    if of == "parquet":
        rows = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [path]).fetchall()
        return {row[0]: row[1] for row in rows}
    # From a file that has the header alone: the engine's sniffer may take a ragged file for one column.
    alone = Path(path).with_suffix(".header")
    with Path(path).open("rb") as file:
        alone.write_bytes(file.readline(1024 * 1024).rstrip(b"\r\n") + b"\n")
    try:
        rows = connection.execute(
            "DESCRIBE SELECT * FROM read_csv(?, header = true, all_varchar = true, delim = ',', quote = '\"', "
            "escape = '\"')",
            [str(alone)],
        ).fetchall()
    finally:
        alone.unlink()
    return {row[0]: "VARCHAR" for row in rows}


def _as_text(name: str, kind: str) -> str:
    nested = kind.startswith(("STRUCT", "MAP")) or kind.endswith("[]")
    column = _quoted(name)
    return f"CAST({f'to_json({column})' if nested else column} AS VARCHAR) AS {column}"


def _definitions(columns: Mapping[str, str]) -> str:
    return ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())


def _list(paths: list[str]) -> str:
    return "[" + ", ".join(map(_literal, paths)) + "]"


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
