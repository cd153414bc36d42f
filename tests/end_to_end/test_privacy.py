"""No prompt or response text anywhere: the customers' words are planted as canaries, and the bytes are searched."""

import gzip
from pathlib import Path

import duckdb
import pytest

CANARY = b"CANARY-"


@pytest.fixture(scope="module")
def loaded(company, tmp_path_factory):
    """Everything loaded, with broken objects among the logs."""
    site = company.copy(tmp_path_factory.mktemp("privacy") / "acme")
    day = sorted((site.folder / "gateway").iterdir())[-1]
    text = "CANARY-broken tell me about the merger"
    (day / "broken.json").write_text('{"id": "x", "messages": [{"content": "' + text + '"}')
    (day / "negative.json").write_text(
        '{"id": "chatcmpl-neg", "status": "success", "startTime": 1795000000.0, "endTime": 1795000001.0, "model": "m", '
        '"prompt_tokens": -5, "completion_tokens": 1, "total_tokens": -4, "messages": "' + text + '", "metadata": {}}'
    )
    (day / "typed.json").write_text('{"id": "chatcmpl-t", "status": "' + text + '", "prompt_tokens": "' + text + '"}')
    packed = gzip.compress(('{"id": "y", "messages": "' + text + '"}\n').encode() * 1000)
    (day / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    report = site.collect()
    site.attribute()
    site.publish()
    return site, report


def test_the_canaries_are_really_in_what_was_read(loaded):
    site, _ = loaded
    raw = b"".join(
        gzip.decompress(path.read_bytes()) for path in sorted((site.folder / "gateway").rglob("litellm-*.gz"))[:3]
    )
    assert raw.count(CANARY) >= 5


def test_no_canary_is_in_any_byte_that_was_written(loaded):
    site, _ = loaded
    files = [path for path in (site.folder / "data").rglob("*") if path.is_file()]
    assert any(path.name == "warehouse.duckdb" for path in files)
    assert [path for path in files if CANARY in path.read_bytes()] == []


def test_no_canary_is_in_any_column_uncompressed(loaded, tmp_path):
    site, _ = loaded
    connection = duckdb.connect(str(site.folder / "data" / "warehouse.duckdb"), read_only=True)
    connection.execute(f"EXPORT DATABASE '{tmp_path / 'tables'}' (FORMAT csv)")
    tables = list((tmp_path / "tables").glob("*.csv"))
    assert len(tables) > 15
    assert [path.name for path in tables if CANARY in path.read_bytes()] == []
    for number, path in enumerate(sorted((site.folder / "data" / "published" / "files").glob("*.parquet"))):
        connection.execute(f"COPY (FROM '{path}') TO '{tmp_path / f'{number}.csv'}'")
    assert [path.name for path in tmp_path.glob("*.csv") if CANARY in path.read_bytes()] == []


def test_refused_rows_say_where_and_why_and_nothing_of_the_text(loaded):
    site, report = loaded
    connection = duckdb.connect(str(site.folder / "data" / "warehouse.duckdb"), read_only=True)
    rows = connection.execute("SELECT location, reason, coalesce(detail, '') FROM rejected_row ORDER BY ALL").fetchall()
    refused = {Path(location).name for location, *_ in rows}
    assert {"broken.json", "negative.json", "typed.json", "cut.jsonl.gz"} <= refused
    assert "CANARY" not in str(rows)
    assert "CANARY" not in str(report)


def test_the_spool_is_empty_after_a_run_and_after_a_killed_one(loaded):
    site, _ = loaded
    spool = site.folder / "data" / "spool"
    assert not spool.exists()
    spool.mkdir()
    (spool / "left.jsonl").write_bytes(CANARY)
    site.collect()
    assert not spool.exists()
