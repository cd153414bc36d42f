"""How AWS's legacy reports lie in a bucket: a folder per month by its dates, or Athena's partitions; billing.md 2.1."""

import json
import re
from dataclasses import dataclass
from datetime import date

from collector.billing.data_exports import content_id, half_written
from collector.billing.delivery import Delivery, made_at
from collector.source import StoredObject
from collector.store import Store

DATES = r"(?P<start>\d{4}(?:0[1-9]|1[0-2])01)-(?P<end>\d{4}(?:0[1-9]|1[0-2])01)"
MANIFEST = re.compile(rf"^(?P<root>.*?/)?{DATES}/(?P<assembly>[^/]+/)?[^/]*Manifest\.json$")
DATA = re.compile(rf"^(?P<root>.*?/)?(?P<dates>{DATES})/(?:[^/]+/)?[^/]+\.csv(?:\.gz|\.zip)?$")
PARTITION = re.compile(r"^(?P<root>(?:.*?/)?)[^/]+/year=(?P<year>\d{4})/month=(?P<month>\d{1,2})/[^/]+\.parquet$")


@dataclass(frozen=True)
class LegacyLayout:
    """Create-new (a folder per assembly), overwrite, and Parquet for Athena, whose months may be padded or not."""

    name: str = "legacy report"

    def is_manifest(self, key: str) -> bool:
        """Whether this key is a manifest of this layout."""
        return MANIFEST.match(key) is not None

    def place_of(self, key: str) -> str | None:
        """Folder in which the manifest of a data file must lie; None when the key is no data of this layout."""
        if match := DATA.match(key):
            return f"{match['root'] or ''}{match['dates']}/"
        if match := PARTITION.match(key):
            year, month = int(match["year"]), int(match["month"])
            if 1 <= month <= 12:
                ends = date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)
                return f"{match['root']}{ends[0]:%Y%m%d}-{ends[1]:%Y%m%d}/"
        return None

    def read(self, store: Store, found: StoredObject) -> Delivery:
        """What a manifest says; raises CollectError when it is half-written or none."""
        match = MANIFEST.match(found.key)
        assert match is not None
        root, dates = match["root"] or "", f"{match['start']}-{match['end']}"
        content = store.read(found)
        try:
            told = json.loads(content)
            keys = [root + _tail(key, dates) for key in told["reportKeys"]]
        except (ValueError, AttributeError, TypeError, KeyError):
            raise half_written(store, found, "a cost and usage report") from None
        return Delivery(
            export=str(told.get("reportName") or "") or found.key.rsplit("/", 1)[-1].removesuffix("-Manifest.json"),
            root=root,
            period=f"{match['start'][:4]}-{match['start'][4:6]}",
            execution=str(told.get("assemblyId") or content_id(content)),
            made_at=made_at(found),
            manifests=(found,),
            data=tuple(dict.fromkeys(keys)),
            layout=self.name,
            account=str(told.get("account") or "") or None,
        )


def _tail(key: str, dates: str) -> str:
    """Key relative to the report's folder; manifests name keys of the bucket, some with a leading `/`."""
    if (at := key.rfind(f"{dates}/")) >= 0:
        return key[at:]
    at = key.rindex("/year=")
    return key[key.rfind("/", 0, at) + 1 :]


LAYOUT = LegacyLayout()
