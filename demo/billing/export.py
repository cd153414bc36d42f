"""Write one delivery of a bill: any format, any layout, data files first and manifests last, as AWS does."""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from demo.billing import focus, legacy, legacy_names, manifest, text
from demo.billing.delivery import Delivery, Export, Format


def write(out: Path, bill: pa.Table, export: Export, delivery: Delivery, others: Sequence[pa.Table] = ()) -> list[Path]:
    """Write the delivery under `out` (the bucket); returns the files, manifests last.

    `bill`: columns of CUR 2.0. For FOCUS the discounts must be in its columns, not in lines of their own (`focus`);
    `others`: the payer's other months, in which a Capacity Block of this month may have been paid.
    """
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        # groups come in one order only if one thread makes them
        connection.execute("SET threads = 1")
        connection.register("bill", bill)
        table = _shaped(connection, export, others)
        keys, files = [], []
        # a shrinking overwrite leaves chunks that are emptied, not removed (billing.md 2.3): a chunk may have no row
        for number, part in enumerate(np.array_split(np.arange(len(table)), export.chunks), start=1):
            key = manifest.data_key(export, delivery, number)
            path = out / key
            path.parent.mkdir(parents=True, exist_ok=True)
            chunk = table.slice(int(part[0]) if len(part) else 0, len(part))
            if export.format is Format.LEGACY_PARQUET:
                chunk = chunk.rename_columns([legacy_names.athena_name(name) for name in chunk.column_names])
            connection.register("chunk", chunk)
            _write_file(connection, path, export.format)
            keys.append(key)
            files.append(path)
    for key, content in manifest.documents(export, delivery, table.schema, keys):
        path = out / key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        files.append(path)
    return files


def _shaped(connection: duckdb.DuckDBPyConnection, export: Export, others: Sequence[pa.Table]) -> pa.Table:
    """The rows under the names of the format; the slash names of the legacy CUR whatever the file."""
    if export.format.legacy:
        query = legacy.query(connection, "bill")
    elif export.format.table == "cur2":
        query = "SELECT * FROM bill"
    else:
        query = focus.query(connection, export.format.table.removeprefix("focus "), others)
    return connection.sql(query).to_arrow_table()


def _write_file(connection: duckdb.DuckDBPyConnection, path: Path, of: Format) -> None:
    if of.parquet:
        connection.execute(f"COPY chunk TO '{path}' (FORMAT parquet, COMPRESSION snappy)")
        return
    query = text.query(connection, "chunk", text.LEGACY_INSTANT if of.legacy else text.INSTANT)
    if of is not Format.LEGACY_CSV_ZIP:
        connection.execute(f"COPY ({query}) TO '{path}' ({text.DIALECT}, COMPRESSION gzip)")
        return
    plain = path.with_suffix("")
    connection.execute(f"COPY ({query}) TO '{plain}' ({text.DIALECT}, COMPRESSION none)")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(plain, plain.name)
    plain.unlink()
