"""SQL expressions that a configuration may hold: one scalar expression over a file's columns, and nothing else.

sqlglot reads the structure; DuckDB's own catalogue says which functions are scalar and always give the same answer for
the same row. So no expression can read a file, a table, the environment or the clock, and loading twice gives the same.
"""

from functools import cache
from itertools import pairwise

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import TokenType

NOT_SCALAR: tuple[tuple[type[exp.Expr], str], ...] = (
    (exp.Query, "a subquery"),
    (exp.Table, "a table"),
    (exp.Window, "a window function"),
    (exp.AggFunc, "an aggregate"),
    (exp.Star, "`*`"),
    (exp.Placeholder, "a placeholder"),
    (exp.Parameter, "a parameter"),
    (exp.Alias, "an alias"),
)
FORMS = frozenset({"cast", "try_cast", "coalesce", "nullif", "extract", "struct", "decimal", "numeric", "varchar"})
"""Written like functions, but grammar."""

MACROS = frozenset(
    {"split_part", "array_to_string", "list_first", "list_last", "list_sum", "list_max", "list_min", "json", "date_add"}
)
"""DuckDB's own macros that are scalar; the catalogue does not say so."""

CLOCK = ("Current", "Localtime", "Localtimestamp", "Rand", "Uuid")
"""Beginnings of the names of sqlglot's classes for expressions whose value is not the row's alone."""

STATE = frozenset({"getvariable", "current_setting"})
"""Functions that DuckDB calls consistent and that read the session."""


def check(expression: str) -> str:
    """The expression, if it is one scalar expression; raises ValueError with what is wrong in a sentence."""
    try:
        trees = sqlglot.parse(f"SELECT ({expression}\n)", dialect="duckdb")
        tokens = sqlglot.tokenize(expression, dialect="duckdb")
    except SqlglotError:
        raise ValueError(f"`{expression}` is no SQL expression") from None
    tree = trees[0] if len(trees) == 1 else None
    selected = tree.expressions if isinstance(tree, exp.Select) else []
    if len(selected) != 1 or not isinstance(selected[0], exp.Paren) or set(_parts(tree)) - {"expressions"}:
        raise ValueError(f"`{expression}` is not one SQL expression")
    for kind, name in NOT_SCALAR:
        if selected[0].find(kind):
            raise ValueError(f"`{expression}` has {name}; only scalar expressions over one row's columns are possible")
    for part in selected[0].walk():
        if type(part).__name__.startswith(CLOCK):
            raise ValueError(f"`{expression}` depends on more than the row ({part.sql('duckdb')})")
    allowed = _functions() | FORMS | MACROS
    for token, following in pairwise(tokens):
        name = token.text.lower()
        if following.token_type is TokenType.L_PAREN and token.token_type is TokenType.VAR and name not in allowed:
            raise ValueError(
                f"`{expression}` uses {token.text}(), which is no scalar function of DuckDB that always gives the same "
                "answer for the same row"
            )
    for function in selected[0].find_all(exp.Anonymous):
        if function.name.lower() not in allowed:
            raise ValueError(f"`{expression}` uses {function.name}(), which is not possible here")
    return expression


def _parts(tree: exp.Expr | None) -> list[str]:
    return [] if tree is None else [name for name, part in tree.args.items() if part]


@cache
def _functions() -> frozenset[str]:
    with duckdb.connect() as connection:
        rows = connection.execute(
            "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
            "WHERE function_type = 'scalar' AND stability = 'CONSISTENT'"
        ).fetchall()
    return frozenset(row[0] for row in rows) - STATE
