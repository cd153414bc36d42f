"""The waterfall's SQL for another engine: macros inlined, then rendered by sqlglot.

sqlglot is no gate: about nineteen constructs differ silently between engines. `forbidden` finds those by name, and the
tests execute every file on DuckDB and on Spark and compare rows.
"""

import re
from functools import cache

import sqlglot
from sqlglot import exp

from warehouse import waterfall
from warehouse.engine import MACROS

# Functions whose result differs between engines without an error, or that one of them lacks.
FORBIDDEN_FUNCTIONS = {
    "AVG": "store numerator and denominator",
    "ELEMENT_AT": "m['k']",
    "EPOCH": "date_diff('microsecond', TIMESTAMP '1970-01-01', t)",
    "EPOCH_US": "date_diff('microsecond', TIMESTAMP '1970-01-01', t)",
    "GENERATE_SERIES": "hour_calendar",
    "HASH": "md5 over text",
    "ISODOW": "date_diff('day', DATE '2024-01-01', d) % 7",
    "DAYOFWEEK": "date_diff('day', DATE '2024-01-01', d) % 7",
    "JSON_EXTRACT_STRING": "a column of its own",
    "LEN": "array_length",
    "LIST_EXTRACT": "l[1] behind an array_length test",
    "MAP_CONTAINS": "m['k'] IS NOT NULL",
    "QUANTILE_CONT": "bucket counts",
    "PERCENTILE_CONT": "bucket counts",
    "RANGE": "hour_calendar",
    "REGEXP_REPLACE": "another step's column; without 'g' it differs",
    "STRING_AGG": "not in the waterfall",
    "TIME_BUCKET": "truncate arithmetic",
    "TO_HOURS": "n * INTERVAL 1 HOUR",
    "TO_TIMESTAMP": "make_timestamp of microseconds",
    "BOOL_OR": "max(CASE WHEN ... THEN 1 ELSE 0 END)",
}


@cache
def macros() -> dict[str, tuple[tuple[str, ...], exp.Expr]]:
    """Name -> (parameters, body) of the shared expressions, read from macros.sql."""
    found: dict[str, tuple[tuple[str, ...], exp.Expr]] = {}
    for statement in sqlglot.parse(MACROS.read_text(), dialect="duckdb"):
        if statement is None:
            continue
        function = statement.find(exp.UserDefinedFunction)
        if function is None:
            raise ValueError(f"{MACROS.name} holds something that is no macro: {statement.sql()[:60]}")
        found[function.this.name.lower()] = (
            tuple(parameter.name for parameter in function.expressions),
            statement.expression,
        )
    return found


def inline(tree: exp.Expr) -> exp.Expr:
    """Replace calls of our macros by their bodies, inner calls first, until none is left."""

    def expand(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous) or node.name.lower() not in macros():
            return node
        parameters, body = macros()[node.name.lower()]
        arguments = dict(zip(parameters, node.expressions, strict=True))

        def bind(inner: exp.Expr) -> exp.Expr:
            if isinstance(inner, exp.Column) and not inner.table and inner.name in arguments:
                return exp.Paren(this=arguments[inner.name].copy())
            return inner

        return exp.Paren(this=inline(body.copy().transform(bind)))

    return tree.transform(expand)


def sql(name: str, dialect: str) -> str:
    """One waterfall step as text for `dialect` ("duckdb", "spark")."""
    tree = sqlglot.parse_one(waterfall.text(name), dialect="duckdb")
    return inline(tree).sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)


def forbidden(text: str) -> list[str]:
    """What in a SELECT would not mean the same on every engine, each with what to write instead."""
    tree = inline(sqlglot.parse_one(text, dialect="duckdb"))
    # Names as they are written: the parser calls many of them something else.
    called = {match.upper() for match in re.findall(r"\b(\w+)\s*\(", re.sub(r"--[^\n]*", "", text))}
    findings = [f"{name}: write {FORBIDDEN_FUNCTIONS[name]}" for name in sorted(called & FORBIDDEN_FUNCTIONS.keys())]
    for node in tree.walk():
        findings += _forbidden_shape(node)
    if not isinstance(tree, exp.Query):
        findings.append("not one SELECT: models only read, the runner writes")
    return findings


def _forbidden_shape(node: exp.Expr) -> list[str]:
    if isinstance(node, exp.IntDiv):
        return ["//: integer division is not the same everywhere; write CAST(floor(..) AS BIGINT)"]
    if isinstance(node, exp.Cast) and node.to.is_type("bigint", "int") and not _whole(node.this):
        return [f"{node.sql()}: engines truncate or round; write CAST(floor(..)) or CAST(round(..))"]
    if isinstance(node, exp.Sum) and not _ends_in_cast(node):
        return [f"{node.sql()}: a sum of BIGINT is HUGEINT in DuckDB; write CAST(sum(..) AS BIGINT)"]
    if isinstance(node, exp.Join) and (node.method or "").upper() == "ASOF":
        return ["ASOF JOIN: join on valid_from <= t and t < valid_to"]
    if isinstance(node, exp.In) and isinstance(node.parent, exp.Not) and node.args.get("query"):
        return ["NOT IN (SELECT): NULLs differ; write NOT EXISTS or an anti join"]
    if isinstance(node, exp.Pivot):
        return ["PIVOT: spell the columns"]
    if isinstance(node, exp.TimestampTrunc) and not isinstance(node.parent, exp.Cast):
        return [f"{node.sql()}: the type differs; write CAST(date_trunc(..) AS TIMESTAMP)"]
    if isinstance(node, exp.Select) and node.args.get("group") and node.args["group"].args.get("all"):
        return ["GROUP BY ALL hides the grain; spell it"]
    return []


def _ends_in_cast(node: exp.Expr) -> bool:
    """Whether a value is cast (or only compared) before it leaves its SELECT."""
    parent = node.parent
    while parent is not None and not isinstance(parent, exp.Select):
        if isinstance(parent, exp.Cast | exp.Having | exp.Predicate):
            return True
        parent = parent.parent
    return False


def _whole(value: exp.Expr) -> bool:
    """Whether a cast to an integer starts from something whole: an integer sum, a count, a rounded value."""
    kinds = (
        exp.Floor,
        exp.Round,
        exp.Ceil,
        exp.Sum,
        exp.Count,
        exp.Window,
        exp.Literal,
        exp.Null,
        exp.Extract,
        exp.Case,
        exp.Paren,
        exp.Sub,
    )
    if isinstance(value, exp.Coalesce):
        return _whole(value.this)
    return isinstance(value, kinds)
