"""Write a delivery of the bill as CUR 2.0: AWS Data Exports, Parquet, hourly, 'create new' layout (billing.md 2.1)."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from demo.clock import Period, instant, iso
from demo.cur_schema import MANIFEST_TYPES, SCHEMA
from demo.ledger import Ledger
from demo.models import PAYER

BUCKET = "acme-billing-exports"
PREFIX = "cur"
EXPORT = "inferledger-cur2"
EXPORT_ARN = f"arn:aws:bcm-data-exports:us-east-1:{PAYER.id}:export/{EXPORT}-6b1f0e2a-95c4-4d3b-8f7e-2a4c6d8e0f13"
CHUNKS = 2


@dataclass(frozen=True)
class Delivery:
    """One execution of the export for one month."""

    period: Period
    delivered_us: int
    number: int  # 1 for the first delivery of the month that is kept, 2 for the next

    @property
    def execution_id(self) -> str:
        digest = hashlib.blake2b(f"{EXPORT_ARN} {self.folder_time} {self.number}".encode(), digest_size=16).hexdigest()
        return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:]}"

    @property
    def folder_time(self) -> str:
        return instant(self.delivered_us).strftime("%Y%m%dT%H%M%SZ")

    @property
    def folder(self) -> str:
        # assumption: the exact form of AWS's <timestamp> is not documented; readers must not parse it
        return f"{self.folder_time}-{self.execution_id}"

    @property
    def partition(self) -> str:
        return f"BILLING_PERIOD={self.period.label}"


def line_ids(rng: np.random.Generator, n: int) -> list[str]:
    """Line ids: unique within a delivery, different in every delivery, as AWS's are."""
    text = rng.bytes(26 * n).hex()
    return [text[52 * number : 52 * (number + 1)] for number in range(n)]


def write_delivery(out: Path, ledger: Ledger, delivery: Delivery, rng: np.random.Generator) -> list[Path]:
    """Write data files and both manifests under `out`; returns the files."""
    rows = ledger.all_rows()
    table = ledger.table(rows, line_ids(rng, len(rows)))
    keys, files = [], []
    for number, part in enumerate(np.array_split(np.arange(len(rows)), CHUNKS), start=1):
        key = f"{PREFIX}/{EXPORT}/data/{delivery.partition}/{delivery.folder}/{EXPORT}-{number:05d}.snappy.parquet"
        file = out / key
        file.parent.mkdir(parents=True, exist_ok=True)
        chunk = table.slice(int(part[0]) if len(part) else 0, len(part))
        pq.write_table(chunk, file, compression="snappy", coerce_timestamps="ms")
        keys.append(key)
        files.append(file)
    manifest = json.dumps(manifest_of(delivery, keys), indent=2).encode()
    metadata = out / PREFIX / EXPORT / "metadata" / delivery.partition
    for folder in (metadata / delivery.folder, metadata):
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{EXPORT}-Manifest.json"
        file.write_bytes(manifest)
        files.append(file)
    return files


def manifest_of(delivery: Delivery, keys: list[str]) -> dict[str, object]:
    """The manifest: columns, data files as URLs, period, execution (billing.md 2.2)."""
    return {
        "executionId": delivery.execution_id,
        "exportArn": EXPORT_ARN,
        "exportName": EXPORT,
        "exportExecutionStatus": "DELIVERY_SUCCESS",
        "createdAt": iso(delivery.delivered_us),
        "billingPeriod": {"start": iso(delivery.period.start_us), "end": iso(delivery.period.end_us)},
        "format": "PARQUET",
        "compression": "PARQUET",
        "columns": [{"name": column.name, "type": MANIFEST_TYPES[column.type]} for column in SCHEMA],
        "dataFiles": [f"s3://{BUCKET}/{key}" for key in keys],
    }
