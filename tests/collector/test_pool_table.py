"""The pool table, written by hand."""

from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.collector.conftest import House
from tests.collector.writing import Export, line

HEADER = "resource_id,cluster,region,route,pool,role,gpus,gpu_type,valid_from,valid_to"
INSTANCE = "i-0aaaaaaaaaaaaaaa1"


def table(path: Path, *rows: str, header: str = HEADER) -> dict[str, Any]:
    path.write_text("\n".join([header, *rows]) + "\n")
    return {"name": "pools", "kind": "pool_table", "location": str(path)}


def row(resource: str = INSTANCE, role: str = "mixed", gpus: str = "4", start: str = "", end: str = "") -> str:
    return f"{resource},east,us-east-1,qwen3-32b,east-{role},{role},{gpus},L40S,{start},{end}"


def test_a_row_says_what_a_resource_served_and_when(house: House, tmp_path: Path) -> None:
    report = house.collect(
        table(
            tmp_path / "pools.csv",
            row(end="2026-11-03T12:00:00+02:00"),
            row("arn:aws:ec2:us-east-1:1:instance/2", "prefill", "8", "2026-11-02", "2026-11-09T06:30:00Z"),
        )
    )
    assert report.ok, report.findings
    assert house.rows("SELECT * EXCLUDE (load_id) FROM pool_member ORDER BY resource_id DESC") == [
        ("pools", INSTANCE, "east", "us-east-1", "qwen3-32b", "east-mixed", "mixed", 4, "L40S",
         datetime(1970, 1, 1), datetime(2026, 11, 3, 10)),
        ("pools", "arn:aws:ec2:us-east-1:1:instance/2", "east", "us-east-1", "qwen3-32b", "east-prefill", "prefill", 8,
         "L40S", datetime(2026, 11, 2), datetime(2026, 11, 9, 6, 30)),
    ]  # fmt: skip


def test_the_table_is_replaced_as_a_whole_and_may_come_back(house: House, tmp_path: Path) -> None:
    path = tmp_path / "pools.csv"
    kept = "SELECT resource_id FROM pool_member ORDER BY ALL"
    house.collect(table(path, row("i-1"), row("i-2")))
    house.collect(table(path, row("i-2"), row("i-3")))
    assert house.rows(kept) == [("i-2",), ("i-3",)]
    house.collect(table(path, row("i-1"), row("i-2")))
    assert house.rows(kept) == [("i-1",), ("i-2",)]
    house.collect(table(path))
    assert house.rows(kept) == []


def test_a_file_written_anew_with_the_same_content_is_no_load(house: House, tmp_path: Path) -> None:
    house.collect(table(tmp_path / "pools.csv", row()))
    assert house.collect(table(tmp_path / "pools.csv", row())).loaded == ()


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (row(""), "missing_resource_id"),
        (row(role="training"), "unknown_role"),
        (row(gpus="0"), "invalid_gpus"),
        (row(gpus="1.5"), "invalid_gpus"),
        (row(gpus="many"), "invalid_gpus"),
        (row(start="yesterday"), "invalid_instant"),
        (row(start="2026-11-02", end="2026-11-02"), "empty_interval"),
        ("i-1,east,us-east-1,,pool,mixed,4,L40S,,", "missing_route"),
        ("i-1,east,us-east-1,route", "missing_pool"),
    ],
)
def test_a_row_that_cannot_be_is_refused_with_its_reason_and_line(
    bad: str, reason: str, house: House, tmp_path: Path
) -> None:
    report = house.collect(table(tmp_path / "pools.csv", row("i-0"), bad, row("i-9")))
    assert report.ok, report.findings
    assert house.refused() == [("pools.csv", 3, reason)]
    assert house.rows("SELECT resource_id FROM pool_member ORDER BY ALL") == [("i-0",), ("i-9",)]


def test_a_file_without_the_columns_refuses_every_row(house: House, tmp_path: Path) -> None:
    house.collect(table(tmp_path / "pools.csv", "a,b", header="x,y"))
    assert house.refused() == [("pools.csv", 2, "missing_resource_id")]


def test_two_pools_may_share_a_resource(house: House, tmp_path: Path) -> None:
    house.collect(table(tmp_path / "pools.csv", row(role="prefill"), row(role="decode"), row(role="decode")))
    assert house.rows("SELECT role FROM pool_member ORDER BY ALL") == [("decode",), ("prefill",)]
    assert house.row("SELECT rows_read, rows_loaded, rows_filtered FROM load") == (3, 2, 1)


def test_hours_of_bill_lines_of_changed_resources_are_touched(house: House, tmp_path: Path) -> None:
    lines = [
        line("Usage", 1.0, "AmazonEC2", hour, line_item_resource_id=resource)
        for hour, resource in ((3, INSTANCE), (5, INSTANCE), (5, "i-other"), (7, "i-other"))
    ]
    Export(tmp_path / "cur").deliver(lines)
    bill = {"name": "bill", "kind": "bill", "location": str(tmp_path / "cur")}
    path = tmp_path / "pools.csv"
    house.collect(bill, table(path, row("i-other")))
    forget(house)

    house.collect(bill, table(path, row("i-other"), row(start="2026-11-02T04:00:00Z")))
    touched = "SELECT hour, reason FROM touched_hour ORDER BY ALL"
    assert house.rows(touched) == [(datetime(2026, 11, 2, 5), "metrics")]
    forget(house)

    house.collect(bill, table(path, row(start="2026-11-02T04:00:00Z")))
    assert house.rows(touched) == [(datetime(2026, 11, 2, hour), "metrics") for hour in (5, 7)]


def forget(house: House) -> None:
    with duckdb.connect(str(house.layout.warehouse)) as connection:
        connection.execute("DELETE FROM touched_hour")
