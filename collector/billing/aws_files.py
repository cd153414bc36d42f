"""Reading files of AWS's bills: Parquet and CSV of both generations, as `export_line` in the names of CUR 2.0.

Nothing is sniffed: the dialect is AWS's, every value is text, and a row that does not fit the header refuses the files.
Sources: reference/billing.md 2.5, 3.1, 3.2.
"""

import csv
import gzip
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from collector.queries import literal, quoted
from collector.source import CollectError

REMEDY = "Nothing of this delivery was loaded; copy the files again, or wait for the next delivery"
DIALECT = (
    "auto_detect = false, header = true, delim = ',', quote = '\"', escape = '\"', strict_mode = true, "
    "hive_partitioning = false, nullstr = '', filename = 'x_file_path'"
)
FLAT_PRODUCT = frozenset(
    (
        *("comment", "fee_code", "fee_description", "from_location", "from_location_type", "from_region_code"),
        *("instance_family", "instance_type", "instancesku", "location", "location_type", "operation", "pricing_unit"),
        *("product_family", "region_code", "servicecode", "sku", "to_location", "to_location_type", "to_region_code"),
        "usagetype",
    )
)
"""What of `product` CUR 2.0 has in columns of its own; all else is in its map."""

MAP_PRODUCT = frozenset(
    ["product_name", "instance_type_family", "operating_system", "region", "current_generation", "gpu"]
)
"""What of its map is read, or written in two ways: `product/ProductName`, `product/instanceTypeFamily`."""

MAPS = {"product_": "product", "resource_tags_": "resource_tags", "cost_category_": "cost_category"}
CATEGORIES = {"product": "product", "resourcetags": "resource_tags", "costcategory": "cost_category"}


@dataclass
class Column:
    """One column of `export_line`: the file's columns that say it, or, for a map, by key."""

    sources: list[str] = field(default_factory=list)
    keys: dict[str, list[str]] = field(default_factory=dict)


def header(connection: duckdb.DuckDBPyConnection, path: Path, where: str) -> dict[str, str]:
    """Type by column of one file, as the file spells them; nothing for an emptied chunk."""
    with path.open("rb") as file:
        mark = file.read(4)
    if not mark and path.suffix != ".parquet":
        return {}
    if path.suffix == ".parquet" or mark == b"PAR1":
        try:
            rows = connection.execute(
                "DESCRIBE SELECT * FROM read_parquet(?, hive_partitioning = false)", [str(path)]
            ).fetchall()
        except duckdb.Error:
            raise CollectError(f"the data file {path.name} is truncated or no Parquet", where, REMEDY) from None
        return {str(row[0]): str(row[1]) for row in rows}
    try:
        with gzip.open(path, "rb") if mark[:2] == b"\x1f\x8b" else path.open("rb") as packed:
            names = next(csv.reader(io.TextIOWrapper(packed, "utf-8-sig", newline="")), [])
    except (UnicodeDecodeError, csv.Error, OSError, EOFError):
        raise CollectError(f"the data file {path.name} is truncated, or no CSV in UTF-8", where, REMEDY) from None
    return dict.fromkeys(names, "VARCHAR")


def open_files(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], known: Mapping[str, str], where: str
) -> dict[str, str]:
    """The files as view `export_line`; answers type by column, of the columns that the files really have.

    `known`: columns of CUR 2.0 that are read, with their types; absent ones are NULL.
    """
    parts: list[str] = []
    found: dict[str, str] = {}
    for (kind, columns), paths in _alike(connection, files, where).items():
        listed = ", ".join(literal(str(path)) for path in paths)
        if kind == "parquet":
            source = (
                f"read_parquet([{listed}], union_by_name = true, hive_partitioning = false, filename = 'x_file_path')"
            )
        else:
            source = _csv(kind, [name for name, _ in columns], listed)
        selected = _selected(dict(columns), known, is_csv=kind != "parquet")
        found |= {name: known.get(name, "VARCHAR") for name in selected}
        said = ", ".join(f"{text} AS {quoted(name)}" for name, text in selected.items())
        parts.append(f"SELECT {said}, x_file_path FROM {source}")
    parts.append("SELECT *, '' AS x_file_path FROM aws_shape WHERE FALSE")
    connection.execute("CREATE OR REPLACE TEMP VIEW export_line AS " + " UNION ALL BY NAME ".join(parts))
    return found


def _alike(
    connection: duckdb.DuckDBPyConnection, files: Sequence[Path], where: str
) -> dict[tuple[str, tuple[tuple[str, str], ...]], list[Path]]:
    """The files in groups of one header and kind: `parquet`, or the compression of a CSV."""
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], list[Path]] = {}
    for path in files:
        columns = header(connection, path, where)
        if not columns:
            continue
        with path.open("rb") as file:
            mark = file.read(4)
        kind = "parquet" if mark == b"PAR1" else "gzip" if mark[:2] == b"\x1f\x8b" else "none"
        groups.setdefault((kind, tuple(columns.items())), []).append(path)
    return groups


def _csv(compression: str, names: Sequence[str], listed: str) -> str:
    """A header may hold one name twice, in other cases of letters: columns are read by their places."""
    types = ", ".join(f"'c{number}': 'VARCHAR'" for number in range(len(names)))
    return f"read_csv([{listed}], columns = {{{types}}}, compression = '{compression}', {DIALECT})"


def _selected(columns: Mapping[str, str], known: Mapping[str, str], *, is_csv: bool) -> dict[str, str]:
    """SQL by column of CUR 2.0: what of the file's columns says it."""
    wanted = {squashed(name): name for name in known}
    found: dict[str, Column] = {}
    for number, (name, kind) in enumerate(columns.items()):
        source = f"c{number}" if is_csv else quoted(name)
        if kind.startswith("MAP"):
            found.setdefault(name.lower(), Column()).sources.append(source)
            continue
        target, key = canonical(name, wanted)
        column = found.setdefault(target, Column())
        if key is None:
            column.sources.append(source)
        else:
            column.keys.setdefault(key, []).append(source)
    return {name: _read(name, column, known.get(name, "VARCHAR"), is_csv) for name, column in found.items()}


def canonical(name: str, wanted: Mapping[str, str]) -> tuple[str, str | None]:
    """Column of CUR 2.0 that a column says, and the key when it is one of a map's."""
    category, slash, rest = name.partition("/")
    if slash and category.lower().replace("_", "") in CATEGORIES:
        column = CATEGORIES[category.lower().replace("_", "")]
        key = rest if column != "product" else PRODUCT.get(squashed(rest), snake(rest))
        return (f"product_{key}", None) if column == "product" and key in FLAT_PRODUCT else (column, key)
    if not slash and name.lower() not in wanted.values():
        for prefix, column in MAPS.items():
            key = name.lower().removeprefix(prefix)
            if name.lower().startswith(prefix) and (column != "product" or key not in FLAT_PRODUCT):
                return column, key
    return wanted.get(squashed(name), snake(name)), None


def _read(name: str, column: Column, kind: str, is_csv: bool) -> str:
    if column.keys:
        keys = ", ".join(literal(key) for key in column.keys)
        values = ", ".join(_first(sources) for sources in column.keys.values())
        entries = f"map_entries(MAP([{keys}], [{values}]))"
        return f"map_from_entries(list_filter({entries}, lambda entry: entry.value IS NOT NULL))"
    text = _first(column.sources) if is_csv else column.sources[0]
    if kind.startswith("MAP"):
        return f"CAST(CAST({text} AS JSON) AS MAP(VARCHAR, VARCHAR))" if is_csv else text
    if kind == "TIMESTAMP":
        time = f"CAST({text} AS TIMESTAMP)"
        if not is_csv:
            return time
        # that cast drops an offset from UTC
        zoned = f"regexp_matches({text}, ':[0-9]{{2}}([.][0-9]+)?[+-][0-9]')"
        return f"CASE WHEN {zoned} THEN CAST(CAST({text} AS TIMESTAMPTZ) AS TIMESTAMP) ELSE {time} END"
    return f"CAST({text} AS VARCHAR)"


def _first(sources: Iterable[str]) -> str:
    """The first of several columns that says something."""
    said = [f"nullif(CAST({source} AS VARCHAR), '')" for source in sources]
    return f"coalesce({', '.join(said)}, NULL)"


def snake(name: str) -> str:
    """`lineItem/UsageType` -> `line_item_usage_type`, as AWS names columns for Athena."""
    spaced = re.sub(r"(?=[A-Z])", "_", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")


def squashed(name: str) -> str:
    """A name without case and signs: what is the same in every spelling."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


PRODUCT = {squashed(name): name for name in FLAT_PRODUCT | MAP_PRODUCT}
