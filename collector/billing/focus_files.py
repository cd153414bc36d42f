"""Reading the files of a FOCUS export as text: CSV, CSV.GZ and Parquet, by header, never sniffed."""

import csv
import gzip
import io
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import duckdb

from collector.queries import literal, quoted
from collector.source import CollectError

REQUIRED = (
    "BilledCost",
    "EffectiveCost",
    "BillingCurrency",
    "BillingPeriodStart",
    "ChargePeriodStart",
    "ChargePeriodEnd",
    "ChargeCategory",
)
REMEDY = "A bill is loaded whole or not at all; ask the provider about this file, or deliver it anew"
DIALECT = (
    "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', strict_mode = true, "
    "hive_partitioning = false, nullstr = ['', 'NULL', 'null'], filename = 'x_file_path'"
)


def open_files(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], where: str) -> list[str]:
    """The files as view `focus_file`, every value text; answers the columns that they have, by name."""
    parts, columns = [], dict[str, str]()
    for kind, header, paths in _alike(connection, files, where):
        twice = {name for name in header if [each.lower() for each in header].count(name.lower()) > 1}
        if twice or "x_file_path" in {name.lower() for name in header}:
            raise CollectError(f"two columns are called {', '.join(sorted(twice)) or 'x_file_path'}", where, REMEDY)
        for name in header:
            columns.setdefault(name.lower(), name)
        parts.append(_select(kind, header, paths))
    missing = [column for column in REQUIRED if column.lower() not in columns]
    if files and missing:
        raise CollectError(
            f"the export lacks columns that the bill cannot be understood without: {', '.join(missing)}",
            where,
            "FOCUS demands them; add them to the export, or ask the provider for them",
        )
    parts.append("SELECT *, NULL::VARCHAR AS x_file_path FROM focus_shape WHERE FALSE")
    connection.execute("CREATE OR REPLACE TEMP VIEW focus_file AS " + " UNION ALL BY NAME ".join(parts))
    return list(columns.values())


def _alike(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], where: str
) -> list[tuple[str, Mapping[str, str], list[Path]]]:
    """The files in groups of one header: (`parquet` or the CSV's compression, type by column, paths)."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Path]] = {}
    for path in files:
        with path.open("rb") as file:
            mark = file.read(4)
        if mark == b"PAR1":
            rows = connection.execute(
                "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [str(path)]
            ).fetchall()
            kind, header = "parquet", tuple((str(row[0]), str(row[1])) for row in rows)
        elif mark:
            kind = "gzip" if mark[:2] == b"\x1f\x8b" else "none"
            header = tuple((name, "VARCHAR") for name in _header(path, kind, where))
        else:
            continue  # a chunk that the export has no more rows for
        groups.setdefault((kind, header), []).append(path)
    return [(kind, dict(header), paths) for (kind, header), paths in groups.items()]


def _header(path: Path, compression: str, where: str) -> list[str]:
    """Names in the first line of a CSV file."""
    try:
        with gzip.open(path, "rb") if compression == "gzip" else path.open("rb") as file:
            return next(csv.reader(io.TextIOWrapper(file, "utf-8-sig", newline="")), [])
    except (UnicodeDecodeError, csv.Error, OSError, EOFError):
        raise CollectError(f"{path.name} is truncated, or no CSV in UTF-8", where, REMEDY) from None


def _select(kind: str, header: Mapping[str, str], paths: Sequence[Path]) -> str:
    """A SELECT over files of one header, every value text, nothing as NULL; never sniffed."""
    listed = "[" + ", ".join(literal(str(path)) for path in paths) + "]"
    if kind == "parquet":
        values = ", ".join(f"{_as_text(name, kind)} AS {quoted(name)}" for name, kind in header.items())
        options = "union_by_name = true, hive_partitioning = false, filename = 'x_file_path'"
        return f"SELECT {values}, x_file_path FROM read_parquet({listed}, {options})"
    types = ", ".join(f"{literal(name)}: 'VARCHAR'" for name in header)
    return f"SELECT * FROM read_csv({listed}, columns = {{{types}}}, compression = '{kind}', {DIALECT})"


def _as_text(name: str, kind: str) -> str:
    """A Parquet column as text: what is nested as JSON, a fraction as the shortest number that is it."""
    if re.search(r"[(\[]", kind) and not kind.startswith("DECIMAL"):
        return f"CAST(to_json({quoted(name)}) AS VARCHAR)"
    text = f"CAST({quoted(name)} AS VARCHAR)"
    return f"CASE WHEN {text} NOT IN ('', 'NULL', 'null') THEN {text} END" if kind == "VARCHAR" else text
