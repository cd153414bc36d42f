"""Files of a bill that came without a manifest: each is a delivery of its own, and what it holds it says itself."""

import re
from collections.abc import Collection, Iterable

from collector.billing.delivery import Delivery, made_at
from collector.source import StoredObject

SUFFIXES = (".csv", ".csv.gz", ".csv.zip", ".parquet", ".zip")
NO_BILL = re.compile(r"(^|/)cost_and_usage_data_status/")
LAYOUT = "file"


def loose(found: Iterable[StoredObject], folders: Collection[str]) -> list[Delivery]:
    """A delivery per file that lies in none of `folders`, which hold exports with manifests ("" is all)."""
    return [
        Delivery(
            export=each.key,
            root="",
            period=None,
            execution=each.version,
            made_at=made_at(each),
            manifests=(each,),
            data=(each.key,),
            layout=LAYOUT,
            size=each.size,
        )
        for each in found
        if each.key.lower().endswith(SUFFIXES)
        and not NO_BILL.search(each.key)
        and not any(each.key.startswith(folder) for folder in folders)
    ]
