"""A delivery of a bill on disk, read back as DuckDB reads it."""

import gzip
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

from demo.billing import every_shape, export, legacy_names
from demo.billing.delivery import Delivery, Export, Format, Layout, layouts
from demo.billing.discounts import Discounts
from demo.clock import DAY

BILLS = every_shape.bills()
NOVEMBER, DECEMBER = BILLS.november, BILLS.december
TABLES = [bill.table(Discounts.COLUMNS) for bill in (NOVEMBER, DECEMBER)]
LATER = DECEMBER.month.period.start_us + 9 * DAY
EVERY = [(of, layout) for of in Format for layout in layouts(of)]


def number(column: str) -> str:
    return f"nullif({column}::VARCHAR, '')::DECIMAL(38, 18)"


@dataclass(frozen=True)
class Written:
    """A delivery on disk."""

    root: Path
    export: Export
    delivery: Delivery
    manifest: dict[str, Any]
    files: list[Path]

    @property
    def data(self) -> list[Path]:
        """What the manifest lists."""
        listed = self.manifest.get("dataFiles") or self.manifest["reportKeys"]
        return [self.root / key.removeprefix(f"s3://{self.export.bucket}/") for key in listed]

    def sql(self, question: str) -> list[tuple[Any, ...]]:
        """Rows of a question to the view `file`, whose columns are text where the files are."""
        paths = [str(self._plain(path)) for path in self.data]
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            if self.export.format.parquet:
                connection.execute(f"CREATE VIEW file AS FROM read_parquet({paths})")
            else:
                connection.execute(
                    f"CREATE VIEW file AS FROM read_csv({paths}, header = true, delim = ',', quote = '\"', "
                    "escape = '\"', all_varchar = true, auto_detect = false, "
                    f"columns = {dict.fromkeys(self.header, 'VARCHAR')})"
                )
            return connection.execute(question).fetchall()

    @property
    def header(self) -> list[str]:
        if self.export.format.parquet:
            return pq.read_schema(self.data[0]).names
        path = self._plain(self.data[0])
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        return [name.strip('"') for name in text.decode().splitlines()[0].split(",")]

    def _plain(self, path: Path) -> Path:
        """A file that DuckDB reads: a ZIP is unpacked beside."""
        if path.suffix != ".zip":
            return path
        with zipfile.ZipFile(path) as archive:
            (member,) = archive.namelist()
            assert path.name == f"{member}.zip"
            return Path(archive.extract(member, self.root / "unpacked"))


def write(root: Path, of: Format, layout: Layout, number: int = 0, made_us: int = LATER, **more: Any) -> Written:
    """Write November (0) or December (1)."""
    wanted = Export("bill", NOVEMBER.month.payer.id, of, layout, **more)
    delivery = Delivery((NOVEMBER, DECEMBER)[number].month.period, made_us)
    files = export.write(root, TABLES[number], wanted, delivery, TABLES)
    return Written(root, wanted, delivery, json.loads(files[-1].read_text()), files)


def name_in(of: Format, column: str) -> str:
    """A column of CUR 2.0 in a format, quoted."""
    return f'"{legacy_names.slash_name(column) if of.legacy and not of.parquet else column}"'
