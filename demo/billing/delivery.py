"""What is delivered: formats, layouts, a configured export and one run of it (billing.md 1, 2.1)."""

import hashlib
from dataclasses import dataclass
from enum import Enum

from demo.clock import Period, instant


class Format(Enum):
    """What AWS delivers. The value is (table, suffix of a data file)."""

    CUR2_PARQUET = ("cur2", ".snappy.parquet")
    CUR2_CSV = ("cur2", ".csv.gz")
    LEGACY_CSV_GZIP = ("legacy", ".csv.gz")
    LEGACY_CSV_ZIP = ("legacy", ".csv.zip")
    LEGACY_PARQUET = ("legacy", ".snappy.parquet")
    FOCUS_1_0_PARQUET = ("focus 1.0", ".snappy.parquet")
    FOCUS_1_0_CSV = ("focus 1.0", ".csv.gz")
    FOCUS_1_2_PARQUET = ("focus 1.2", ".snappy.parquet")
    FOCUS_1_2_CSV = ("focus 1.2", ".csv.gz")

    @property
    def table(self) -> str:
        return self.value[0]

    @property
    def suffix(self) -> str:
        return self.value[1]

    @property
    def legacy(self) -> bool:
        return self.table == "legacy"

    @property
    def parquet(self) -> bool:
        return self.suffix.endswith(".parquet")


class Layout(Enum):
    CREATE_NEW = "create new"
    OVERWRITE = "overwrite"


def layouts(of: Format) -> tuple[Layout, ...]:
    """Legacy Parquet is made for Athena, which forces overwriting (billing.md 2.1)."""
    return (Layout.OVERWRITE,) if of is Format.LEGACY_PARQUET else (Layout.CREATE_NEW, Layout.OVERWRITE)


@dataclass(frozen=True)
class Export:
    """A configured export. `account`: the payer; `month_padded`: `month=07` where AWS writes `month=7` (Athena)."""

    name: str
    account: str
    format: Format
    layout: Layout = Layout.CREATE_NEW
    prefix: str = "exports"
    bucket: str = "acme-billing-exports"
    chunks: int = 2
    month_padded: bool = False

    def __post_init__(self) -> None:
        if self.layout not in layouts(self.format):
            raise ValueError(f"{self.format.name} is never delivered in the layout '{self.layout.value}'")


@dataclass(frozen=True)
class Delivery:
    """One run of an export for one month. `number`: 1, 2, ... within the month."""

    period: Period
    made_us: int
    number: int = 1

    def execution(self, export: Export) -> str:
        """The execution or assembly id."""
        told = f"{export.account} {export.name} {self.period.label} {self.made_us} {self.number}"
        digest = hashlib.blake2b(told.encode(), digest_size=16).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"

    @property
    def made(self) -> str:
        return instant(self.made_us).strftime("%Y%m%dT%H%M%SZ")
