"""How AWS Data Exports (CUR 2.0, FOCUS) lie in a bucket: `data` and `metadata` by billing period; billing.md 2."""

import hashlib
import json
import re
from dataclasses import dataclass

from collector.billing.delivery import Delivery, made_at
from collector.source import CollectError, StoredObject
from collector.store import Store

MANIFEST = re.compile(
    r"^(?P<root>.*?/)?metadata/BILLING_PERIOD=(?P<period>\d{4}-\d{2})/(?P<run>[^/]+/)?[^/]*Manifest\.json$"
)
DATA = re.compile(r"^(?P<root>.*?/)?data/BILLING_PERIOD=(?P<period>\d{4}-\d{2})/")
MADE_AT = ("createdAt", "executionTime", "lastUpdated", "timestamp")


@dataclass(frozen=True)
class DataExports:
    """Create-new and overwrite: the data files are wherever the manifest says, the manifest is written last."""

    name: str = "data export"

    def is_manifest(self, key: str) -> bool:
        """Whether this key is a manifest of this layout."""
        return MANIFEST.match(key) is not None

    def place_of(self, key: str) -> str | None:
        """Folder in which the manifest of a data file must lie; None when the key is no data of this layout."""
        match = DATA.match(key)
        return f"{match['root'] or ''}metadata/BILLING_PERIOD={match['period']}/" if match else None

    def read(self, store: Store, found: StoredObject) -> Delivery:
        """What a manifest says; raises CollectError when it is half-written or none."""
        match = MANIFEST.match(found.key)
        assert match is not None
        root, period = match["root"] or "", match["period"]
        content = store.read(found)
        try:
            told = json.loads(content)
            files = told.get("dataFiles", told.get("reportKeys", told.get("files")))
            keys = [root + _tail(file, period) for file in files]
        except (ValueError, AttributeError, TypeError, KeyError):
            raise half_written(store, found, "a data export") from None
        arn = re.match(r"arn:[^:]*:[^:]*:[^:]*:(\d+):", str(told.get("exportArn", "")))
        return Delivery(
            export=found.key.rsplit("/", 1)[-1].removesuffix("Manifest.json").rstrip("-") or "export",
            root=root,
            period=period,
            execution=str(told.get("executionId") or told.get("assemblyId") or content_id(content)),
            made_at=made_at(found, match["run"], *(told.get(word) for word in MADE_AT)),
            manifests=(found,),
            data=tuple(dict.fromkeys(keys)),
            layout=self.name,
            account=arn[1] if arn else None,
        )


def half_written(store: Store, found: StoredObject, of: str) -> CollectError:
    """The error of a manifest that cannot be understood."""
    return CollectError(
        f"the manifest is half-written or no manifest of {of}",
        f"{store.place}/{found.key}",
        "Nothing of this delivery was loaded; wait until AWS has finished it, or deliver it anew",
    )


def content_id(content: bytes) -> str:
    """What stands for an execution id where a manifest has none."""
    return hashlib.md5(content, usedforsecurity=False).hexdigest()


def _tail(file: object, period: str) -> str:
    """Key relative to the export's folder, of a data file that a manifest names by URL, key or object."""
    if isinstance(file, dict):
        file = file.get("key") or file.get("path") or file.get("url") or file["s3Uri"]
    at = str(file).rfind(f"data/BILLING_PERIOD={period}/")
    if at < 0:
        raise ValueError(file)
    return str(file)[at:]


LAYOUT = DataExports()
