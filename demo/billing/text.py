"""Values as AWS prints them in CSV: plain decimals, instants with Z, maps as JSON, blank for nothing."""

import duckdb

DIALECT = "FORMAT csv, HEADER, DELIMITER ',', QUOTE '\"', ESCAPE '\"'"
INSTANT = "%Y-%m-%dT%H:%M:%S.000Z"
LEGACY_INSTANT = "%Y-%m-%dT%H:%M:%SZ"


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def fixed(expression: str) -> str:
    """A DOUBLE as a plain decimal, digit for digit that of its shortest form: 1e-09 -> 0.000000001."""
    digits = f"CAST(CAST(CAST({expression} AS VARCHAR) AS DECIMAL(38, 18)) AS VARCHAR)"
    return f"rtrim(rtrim({digits}, '0'), '.')"


def query(connection: duckdb.DuckDBPyConnection, table: str, instant: str) -> str:
    """A SELECT of every column of the table as text."""
    described = connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE {table})").fetchall()
    columns = (f"{_as_text(quoted(name), kind, instant)} AS {quoted(name)}" for name, kind in described)
    return f"SELECT {', '.join(columns)} FROM {table}"


def _as_text(column: str, kind: str, instant: str) -> str:
    if kind == "DOUBLE":
        return fixed(column)
    if kind.startswith("TIMESTAMP"):
        return f"strftime({column}, {literal(instant)})"
    if kind.startswith("MAP"):
        return f"to_json({column})::VARCHAR"
    return f"nullif({column}, '')"
