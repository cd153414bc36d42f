"""Minutes: whatever way samples are split into loads, in whatever order, the same rows come out."""

import shutil
import tempfile
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.collector.conftest import Builder, House, python
from tests.collector.test_openmetrics import put, source, tokens

MINUTES = "SELECT * EXCLUDE (load_id) FROM {} ORDER BY series_id, minute"
TABLES = ("serving_minute", "gpu_minute", "kube_minute")

Sample = tuple[str, int, int]
"""Metric, second, value."""

NAMES = ("vllm:prompt_tokens_total", "vllm:num_requests_running", "DCGM_FI_DEV_FB_USED", "kube_pod_info")

samples = st.lists(st.tuples(st.sampled_from(NAMES), st.integers(0, 300), st.integers(0, 50)), min_size=1, max_size=40)


def line(sample: Sample) -> str:
    name, second, value = sample
    return tokens(value, second, name=name)


def minutes(house: House) -> dict[str, list[tuple[Any, ...]]]:
    found = {table: house.rows(MINUTES.format(table)) for table in TABLES}
    found["metric_series"] = house.rows("SELECT * EXCLUDE (load_id) FROM metric_series ORDER BY series_id")
    return found


def collected(loads: list[list[Sample]]) -> dict[str, list[tuple[Any, ...]]]:
    """What is there after several loads, each of one file."""
    folder = Path(tempfile.mkdtemp(prefix="minutes-"))
    try:
        house = House(folder / "data")
        for number, load in enumerate(loads):
            put(folder / "in", f"{number:03d}.om", *map(line, load))
            assert house.collect(source(folder / "in")).ok
        return minutes(house)
    finally:
        shutil.rmtree(folder)


def expected(samples: list[Sample]) -> dict[tuple[str, int], dict[str, Any]]:
    """The definition, in a loop: by metric and minute."""
    scale = {"DCGM_FI_DEV_FB_USED": 1_048_576}
    kept: dict[tuple[str, int], int] = {}
    for name, second, value in samples:
        kept[name, second] = max(kept.get((name, second), 0), value * scale.get(name, 1))
    found: dict[tuple[str, int], dict[str, Any]] = {}
    for (name, second), value in sorted(kept.items()):
        at = found.setdefault((name, second // 60), {"values": [], "seconds": [], "increase": 0})
        if at["values"]:
            at["increase"] += value - at["values"][-1] if value >= at["values"][-1] else value
        at["values"].append(value)
        at["seconds"].append(second)
    return found


@settings(max_examples=12, deadline=None)
@given(samples, st.data())
def test_any_split_into_loads_in_any_order_gives_the_same_minutes(
    all_samples: list[Sample], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(all_samples))
    again = data.draw(st.lists(st.sampled_from(all_samples), max_size=10))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(shuffled)), max_size=3)))
    edges = [0, *cuts, len(shuffled)]
    loads = [shuffled[a:b] for a, b in pairwise(edges)]
    assert collected([*loads, again]) == collected([all_samples])


@settings(max_examples=10, deadline=None)
@given(samples)
def test_a_minute_is_what_its_definition_says(all_samples: list[Sample]) -> None:
    found = collected([all_samples])
    metric = {row[0]: row[3] for row in found["metric_series"]}
    rows = {}
    for table in TABLES:
        for series, minute, first_at, first, last_at, last, increase, count, total, high, low, at, values in found[
            table
        ]:
            key = (metric[series], int((minute.replace(tzinfo=UTC) - START).total_seconds()) // 60)
            assert (first_at, last_at) == (at[0], at[-1])
            assert (first, last, count) == (values[0], values[-1], len(values))
            assert (total, high, low) == (sum(values), max(values), min(values))
            seconds = [int((each.replace(tzinfo=UTC) - START).total_seconds()) for each in at]
            rows[key] = {"values": values, "seconds": seconds, "increase": increase}
    wanted = expected(all_samples)
    for (name, _), row in wanted.items():
        if not name.endswith("_total"):
            row["increase"] = None
    assert rows == wanted


START = datetime(2026, 11, 2, 10, tzinfo=UTC)


def test_every_hour_that_a_changed_minute_reaches_is_touched(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", tokens(1, 0), tokens(2, 54 * 60), tokens(3, 55 * 60))
    house.collect(source(tmp_path / "in"))
    touched = "SELECT hour, reason FROM touched_hour ORDER BY ALL"
    assert house.rows(touched) == [(datetime(2026, 11, 2, 10), "metrics"), (datetime(2026, 11, 2, 11), "metrics")]


def test_a_load_that_brings_nothing_new_touches_nothing(build: Builder, tmp_path: Path) -> None:
    house = build()
    put(tmp_path / "in", "a.om", tokens(1, 0), tokens(2, 15), tokens(9, 4000))
    house.collect(source(tmp_path / "in"))
    before, loads = minutes(house), house.rows("SELECT DISTINCT load_id FROM serving_minute")
    empty(house)
    put(tmp_path / "in", "copy.om", tokens(2, 15), tokens(1, 0))
    report = house.collect(source(tmp_path / "in"))
    assert [each.result.rows_loaded for each in report.loaded] == [2]
    assert minutes(house) == before
    assert house.rows("SELECT DISTINCT load_id FROM serving_minute") == loads
    assert house.rows("SELECT * FROM touched_hour") == []


def test_one_late_sample_touches_its_own_hour_only(build: Builder, tmp_path: Path) -> None:
    house = build()
    put(tmp_path / "in", "a.om", tokens(1, 0), tokens(5, 30), tokens(9, 7200))
    house.collect(source(tmp_path / "in"))
    empty(house)
    put(tmp_path / "in", "late.om", tokens(3, 20), tokens(9, 7200))
    house.collect(source(tmp_path / "in"))
    assert house.rows("SELECT hour FROM touched_hour") == [(datetime(2026, 11, 2, 10),)]
    assert house.row("SELECT increase, sample_value FROM serving_minute WHERE sample_count = 3") == (4, [1, 3, 5])


def test_two_sources_of_one_cluster_stay_apart(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", tokens(1, 0))
    house.collect(source(tmp_path / "in"), source(tmp_path / "in", name="other"))
    assert house.row("SELECT count(DISTINCT series_id), count(DISTINCT target_id) FROM metric_series") == (2, 2)


def test_killed_while_it_loads_and_run_again_gives_what_one_run_gives(build: Builder, tmp_path: Path) -> None:
    whole, killed = build(), build()
    for number in range(6):
        put(tmp_path / "in" / f"{number}", "a.om.gz", *(tokens(n, number * 200 + n / 4) for n in range(3000)))
    whole.collect(source(tmp_path / "in"))
    script = (
        "import sys, threading, os, time\n"
        "from pathlib import Path\n"
        "from datetime import datetime, UTC\n"
        "from collector.run import collect\n"
        "from collector.settings import CollectorSettings\n"
        "from warehouse.engine import Layout\n"
        "threading.Thread(target=lambda: (time.sleep(float(sys.argv[3])), os._exit(9)), daemon=True).start()\n"
        "given = {'prices': {'catalogue': 'none'}, 'sources': [{'name': 'metrics', 'kind': 'openmetrics',\n"
        "    'location': sys.argv[2], 'cluster': 'east'}]}\n"
        "collect(Layout(Path(sys.argv[1])), CollectorSettings.model_validate(given), {'metrics'},\n"
        "    datetime(2026, 12, 1, tzinfo=UTC))\n"
    )
    for seconds in ("0.05", "0.15", "0.3", "0.5"):
        python(script, str(killed.data), str(tmp_path / "in"), seconds).wait(timeout=60)
    assert killed.collect(source(tmp_path / "in")).ok
    assert minutes(killed) == minutes(whole)


def empty(house: House) -> None:
    with duckdb.connect(str(house.layout.warehouse)) as connection:
        connection.execute("DELETE FROM touched_hour")
