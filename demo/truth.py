"""Write the truth, apart from all that the company's systems hold. Only tests and benches may read it."""

from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

FOLDER = "truth"


def write(out: Path, tables: dict[str, pa.Table], summary: dict[str, object]) -> list[Path]:
    """Write `out/truth/<name>.parquet` and `out/truth/truth.json`; returns the files."""
    folder = out / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in tables.items():
        files.append(folder / f"{name}.parquet")
        pq.write_table(table, files[-1], compression="zstd")
    files.append(folder / "truth.json")
    files[-1].write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
    return files
