"""The format of AWS's Cost and Usage Report 2.0 (Data Exports): Parquet, and CSV whose maps are JSON."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from collector.billing import aws
from collector.billing.format import Staging
from collector.billing.legacy_cur import is_legacy


@dataclass(frozen=True)
class Cur2:
    """Underscore names, `product` and `resource_tags` as maps."""

    name: str = "cur2"

    def recognises(self, columns: frozenset[str]) -> bool:
        """Whether a header is this format's."""
        return any(column.lower().startswith("line_item_") for column in columns) and not is_legacy(columns)

    def stage(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[Path], period: str | None, where: str
    ) -> Staging:
        """See ``collector.billing.aws.stage``."""
        return aws.stage(connection, files, period, where)


FORMAT = Cur2()
