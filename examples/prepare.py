"""Write an example's bill as AWS would deliver it: a CUR 2.0 export of Parquet files with manifests.

    python examples/prepare.py examples/deepseek-day

reads `bill.sql` of that folder, a SELECT with CUR 2.0 column names, and writes `export/` beside it.
"""

import json
import sys
from pathlib import Path

import duckdb

EXPORT = "example"


def prepare(folder: Path) -> Path:
    """Run `bill.sql` and write its rows, one delivery per billing period. Returns the export's folder.

    Raises FileNotFoundError where the bill is made from data that is not there.
    """
    out = folder / "export" / EXPORT
    connection = duckdb.connect()
    connection.execute(f"SET file_search_path = '{folder}'")
    try:
        connection.execute(f"CREATE TABLE bill AS {(folder / 'bill.sql').read_text()}")
    except duckdb.IOException as error:
        raise FileNotFoundError(f"{folder}/bill.sql reads data that is not there: {error}") from None
    columns = [{"name": name, "type": kind} for name, kind, *_ in connection.execute("DESCRIBE bill").fetchall()]
    periods = connection.execute(
        "SELECT strftime(bill_billing_period_start_date, '%Y-%m') AS period, bill_billing_period_start_date::DATE, "
        "bill_billing_period_end_date::DATE FROM bill GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    for period, start, end in periods:
        part = f"BILLING_PERIOD={period}"
        key = f"{EXPORT}/data/{part}/{EXPORT}-00001.snappy.parquet"
        for sub in ("data", "metadata"):
            (out / sub / part).mkdir(parents=True, exist_ok=True)
        connection.execute(
            "COPY (FROM bill WHERE strftime(bill_billing_period_start_date, '%Y-%m') = "
            f"'{period}') TO '{out / 'data' / part / f'{EXPORT}-00001.snappy.parquet'}' (FORMAT parquet)"
        )
        manifest = {
            "executionId": f"{EXPORT}-{period}",
            "exportArn": f"arn:aws:bcm-data-exports:us-east-1:999999999999:export/{EXPORT}",
            "exportName": EXPORT,
            "exportExecutionStatus": "DELIVERY_SUCCESS",
            "createdAt": f"{end}T06:00:00Z",
            "billingPeriod": {"start": f"{start}T00:00:00Z", "end": f"{end}T00:00:00Z"},
            "format": "PARQUET",
            "compression": "PARQUET",
            "columns": columns,
            "dataFiles": [f"s3://example-bucket/{key}"],
        }
        (out / "metadata" / part / f"{EXPORT}-Manifest.json").write_text(json.dumps(manifest, indent=2))
    return out


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        try:
            print(f"wrote {prepare(Path(argument).resolve())}")
        except FileNotFoundError as missing:
            sys.exit(str(missing))
