"""Where the files of a delivery lie, and its manifests, for both generations of exports (billing.md 2.1, 2.2)."""

import hashlib
import json
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from demo.billing.delivery import Delivery, Export, Layout
from demo.billing.legacy_names import athena_name
from demo.clock import instant, iso


def data_key(export: Export, delivery: Delivery, number: int) -> str:
    """Key of the data file with that number, from 1."""
    if not export.format.legacy:
        partition = f"{export.prefix}/{export.name}/data/BILLING_PERIOD={delivery.period.label}"
        return f"{partition}/{_run(export, delivery)}{export.name}-{number:05d}{export.format.suffix}"
    if export.format.parquet:
        year, month = delivery.period.label.split("-")
        partition = f"year={year}/month={month if export.month_padded else int(month)}"
        return f"{_root(export)}/{export.name}/{partition}/{export.name}-{number:05d}{export.format.suffix}"
    folder = f"{_root(export)}/{_dates(delivery)}/{_run(export, delivery)}"
    return f"{folder}{export.name}-{number}{export.format.suffix}"


def documents(
    export: Export, delivery: Delivery, schema: pa.Schema, keys: Sequence[str]
) -> Iterator[tuple[str, bytes]]:
    """(key, content) of every manifest and what lies beside it; the one that stands for the month comes last."""
    if export.format.legacy:
        folder, said = f"{_root(export)}/{_dates(delivery)}/", _legacy(export, delivery, schema, keys)
    else:
        folder = f"{export.prefix}/{export.name}/metadata/BILLING_PERIOD={delivery.period.label}/"
        said = _data_export(export, delivery, schema, keys)
    content = json.dumps(said, indent=2).encode()
    if export.format.legacy and export.format.parquet:
        # for Athena: a table that says whether the month is being written
        status = f"{_root(export)}/cost_and_usage_data_status/cost_and_usage_data_status.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"status": ["READY"]}), sink)
        yield status, sink.getvalue().to_pybytes()
    if run := _run(export, delivery):
        yield f"{folder}{run}{export.name}-Manifest.json", content
    yield f"{folder}{export.name}-Manifest.json", content


def _root(export: Export) -> str:
    return f"{export.prefix}/{export.name}"


def _dates(delivery: Delivery) -> str:
    """`20261101-20261201`: the end is the first day of the next month."""
    ends = (instant(at_us).strftime("%Y%m%d") for at_us in (delivery.period.start_us, delivery.period.end_us))
    return "-".join(ends)


def _run(export: Export, delivery: Delivery) -> str:
    """The folder of one run, with its slash; nothing where runs overwrite each other."""
    if export.layout is Layout.OVERWRITE:
        return ""
    execution = delivery.execution(export)
    # assumption: the exact form of AWS's <timestamp> is not documented; readers must not parse it
    return f"{execution}/" if export.format.legacy else f"{delivery.made}-{execution}/"


def _data_export(export: Export, delivery: Delivery, schema: pa.Schema, keys: Sequence[str]) -> dict[str, object]:
    # assumption: names of the keys as a public mock has them; AWS documents the content, not the names
    arn = f"arn:aws:bcm-data-exports:us-east-1:{export.account}:export/{export.name}"
    return {
        "executionId": delivery.execution(export),
        "exportArn": f"{arn}-{_code(export)[:8]}",
        "exportName": export.name,
        "exportExecutionStatus": "DELIVERY_SUCCESS",
        "createdAt": iso(delivery.made_us),
        "billingPeriod": {"start": iso(delivery.period.start_us), "end": iso(delivery.period.end_us)},
        "format": "PARQUET" if export.format.parquet else "TEXT_OR_CSV",
        "compression": "PARQUET" if export.format.parquet else "GZIP",
        "columns": [{"name": field.name, "type": _type(field.type)} for field in schema],
        "dataFiles": [f"s3://{export.bucket}/{key}" for key in keys],
    }


def _legacy(export: Export, delivery: Delivery, schema: pa.Schema, keys: Sequence[str]) -> dict[str, object]:
    month = delivery.period
    start, end = (instant(at_us).strftime("%Y%m%dT000000.000Z") for at_us in (month.start_us, month.end_us))
    gzip = "GZIP" if export.format.suffix.endswith(".gz") else "ZIP"
    return {
        "assemblyId": delivery.execution(export),
        "account": export.account,
        "columns": [_legacy_column(export, field) for field in schema],
        "charset": "UTF-8",
        "compression": "Parquet" if export.format.parquet else gzip,
        "contentType": "Parquet" if export.format.parquet else "text/csv",
        "reportId": _code(export),
        "reportName": export.name,
        "billingPeriod": {"start": start, "end": end},
        "bucket": export.bucket,
        "reportKeys": list(keys),
        "additionalArtifactKeys": [],
    }


def _code(export: Export) -> str:
    return hashlib.sha256(f"{export.account} {export.name}".encode()).hexdigest()


def _type(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<string,{'double' if pa.types.is_floating(kind.item_type) else 'string'}>"
    return "timestamp" if pa.types.is_timestamp(kind) else "double" if pa.types.is_floating(kind) else "string"


def _legacy_column(export: Export, field: pa.Field) -> dict[str, str]:
    category, name = field.name.split("/", 1)
    if export.format.parquet:
        # assumption: for Athena the manifest says category and name as the Parquet columns spell them
        category, name = athena_name(category), athena_name(name)
    kind = "DateTime" if pa.types.is_timestamp(field.type) else "OptionalString"
    return {
        "category": category,
        "name": name,
        "type": "OptionalBigDecimal" if pa.types.is_floating(field.type) else kind,
    }
