"""The format of AWS's legacy Cost and Usage Report: a column per tag and attribute; slash names in CSV."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from collector.billing import aws
from collector.billing.format import Staging

NEVER = ("line_item_iam_principal",)
"""What only CUR 2.0 has; saying that it is missing would help nobody."""


def is_legacy(columns: frozenset[str]) -> bool:
    """Whether a header of a Cost and Usage Report is of the legacy one."""
    names = {column.lower() for column in columns}
    if any(name.startswith("lineitem/") for name in names):
        return True
    maps = {"product", "resource_tags"} & names
    return not maps and any(
        name.startswith(("resource_tags_", "cost_category_")) or name == "product_product_name" for name in names
    )


@dataclass(frozen=True)
class LegacyCur:
    """`lineItem/UsageType` in CSV, `line_item_usage_type` in Parquet; columns change from month to month."""

    name: str = "legacy_cur"

    def recognises(self, columns: frozenset[str]) -> bool:
        """Whether a header is this format's."""
        return any(re.match(r"(?i)line_?item[/_]", column) for column in columns) and is_legacy(columns)

    def stage(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[Path], period: str | None, where: str
    ) -> Staging:
        """See ``collector.billing.aws.stage``."""
        return aws.stage(connection, files, period, where, NEVER)


FORMAT = LegacyCur()
