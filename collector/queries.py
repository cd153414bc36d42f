"""SQL files with named statements: ``-- :name`` starts one, it ends where the next begins."""

import re
from functools import cache
from pathlib import Path

import duckdb

HERE = Path(__file__).parent

WRONG_SQL = (duckdb.BinderException, duckdb.CatalogException, duckdb.ParserException, duckdb.SyntaxException)
"""Errors of our own SQL, never of a file; they are not turned into findings."""

NOT_THE_FILE = (*WRONG_SQL, duckdb.OutOfMemoryException, duckdb.InterruptException)
"""Errors that say nothing about the file that was being read."""


@cache
def queries(path: str) -> dict[str, str]:
    """Statements of one SQL file by name; `path` is relative to the collector's folder, e.g. ``usage/litellm.sql``."""
    parts = re.split(r"^-- :(\w+)[^\n]*$", (HERE / path).read_text(), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def bare(statement: str) -> str:
    """A statement without its lines of comment."""
    return "\n".join(line for line in statement.splitlines() if not line.startswith("--")).strip()


def quoted(name: str) -> str:
    """A name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
