"""Metrics as text, from files to minutes."""

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from collector.metrics.catalogue import exposed_names
from tests import needs
from tests.collector.conftest import Builder, House

T = datetime(2026, 11, 2, 10, tzinfo=UTC).timestamp()
LABELS = '{engine="0",instance="10.0.0.1:8000",job="vllm",model_name="qwen3-32b",namespace="llm",pod="qwen-0"}'
SERVING = "SELECT minute, first_value, last_value, increase, sample_count FROM serving_minute ORDER BY ALL"


def put(folder: Path, name: str, *lines: str, end: str = "# EOF\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    text = "".join(f"{line}\n" for line in lines) + end
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def source(folder: Path, **settings: Any) -> dict[str, Any]:
    return {"name": "metrics", "kind": "openmetrics", "location": str(folder), "cluster": "east", **settings}


def tokens(value: object, second: float, labels: str = LABELS, name: str = "vllm:prompt_tokens_total") -> str:
    return f"{name}{labels} {value} {T + second:.3f}"


def test_samples_become_minutes_in_whole_units(house: House, tmp_path: Path) -> None:
    put(
        tmp_path / "in", "a.om.gz",
        "# HELP vllm:prompt_tokens Prompts.", "# TYPE vllm:prompt_tokens counter",
        tokens("100.0", 5), tokens("1.5e+02", 20), tokens(40, 50), tokens(41, 65),
        "# TYPE vllm:kv_cache_usage_perc gauge",
        tokens(0.4375, 5, name="vllm:kv_cache_usage_perc"),
    )  # fmt: skip
    report = house.collect(source(tmp_path / "in"))
    assert report.ok, report.findings
    at = datetime(2026, 11, 2, 10)
    assert house.rows(SERVING) == [
        (at, 100, 40, 50 + 40, 3),  # a decrease is a reset: what is counted since then counts whole
        (at, 437_500, 437_500, None, 1),
        (at.replace(minute=1), 41, 41, 0, 1),
    ]
    assert house.row(
        "SELECT value_sum, max_value, min_value, sample_value, second(sample_at[2]) FROM serving_minute "
        "WHERE sample_count = 3"
    ) == (290, 150, 40, [100, 150, 40], 20)


def test_a_series_says_what_it_is_and_where(house: House, tmp_path: Path) -> None:
    labels = '{cluster="wrong",exported_namespace="llm",exported_pod="qwen-0",gpu="3",pod="dcgm-7",Hostname="n1"}'
    put(tmp_path / "in", "a.om", tokens(97, 5, labels, "DCGM_FI_DEV_GPU_UTIL"))
    house.collect(source(tmp_path / "in"))
    assert house.row(
        "SELECT engine, concept, sample_kind, unit, cluster, namespace, pod, node, labels['cluster'] FROM metric_series"
    ) == ("dcgm", "gpu_utilisation", "gauge", "ppm", "east", "llm", "qwen-0", "n1", "wrong")
    assert house.row("SELECT max_value FROM gpu_minute") == (970_000,)


def test_the_birth_of_a_counter_is_told_by_its_created_series(house: House, tmp_path: Path) -> None:
    put(
        tmp_path / "in", "a.om", tokens(7, 5), tokens(T - 30.25, 5, name="vllm:prompt_tokens_created"),
        tokens(3, 5, name="vllm:iteration_tokens_total_count"),
        tokens(T, 5, name="vllm:iteration_tokens_total_created"),
    )  # fmt: skip
    house.collect(source(tmp_path / "in"))
    assert house.rows(
        "SELECT born.metric, counter.metric, counter.concept FROM metric_series AS born "
        "JOIN metric_series AS counter ON counter.series_id = born.of_series_id ORDER BY ALL"
    ) == [
        ("vllm:iteration_tokens_total_created", "vllm:iteration_tokens_total_count", "engine_steps"),
        ("vllm:prompt_tokens_created", "vllm:prompt_tokens_total", "prompt_tokens"),
    ]
    assert house.rows(
        "SELECT first_value FROM serving_minute JOIN metric_series USING (series_id) "
        "WHERE metric = 'vllm:prompt_tokens_created'"
    ) == [(round((T - 30.25) * 1_000_000),)]


def test_label_values_may_hold_anything(house: House, tmp_path: Path) -> None:
    hard = r'{ model_name = "a\"b\\n\\\nc, d=} # {x=\"1\"} 5 6" , pod="", namespace="grün",}'
    put(tmp_path / "in", "a.om", tokens(5, 5, hard))
    report = house.collect(source(tmp_path / "in"))
    assert house.refused() == []
    assert report.ok
    assert house.row("SELECT labels, pod FROM metric_series") == (
        {"model_name": 'a"b\\n\\\nc, d=} # {x="1"} 5 6', "namespace": "grün"},
        None,
    )


def test_labels_written_in_another_order_are_the_same_series(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", tokens(5, 5, '{a="1",pod="p"}'), tokens(9, 6, '{pod="p", a="1",empty=""}'))
    house.collect(source(tmp_path / "in"))
    assert house.row("SELECT count(*) FROM metric_series") == (1,)
    assert house.row("SELECT increase, sample_count FROM serving_minute") == (4, 2)


def test_exemplars_are_left_aside(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", f'{tokens(5, 5)} # {{trace_id="a b"}} 0.67 {T}', f"{tokens(6, 6)} # {{}} 1")
    house.collect(source(tmp_path / "in"))
    assert house.refused() == []
    assert house.row("SELECT first_value, last_value FROM serving_minute") == (5, 6)


def test_prometheus_text_has_milliseconds_and_no_end(house: House, tmp_path: Path) -> None:
    name = "vllm:prompt_tokens_total" + LABELS
    put(tmp_path / "in", "a.prom", f"{name}\t5 {T * 1000 + 1500:.0f}", f"{name}  9   {T * 1000 + 2500:.0f}\r", end="")
    house.collect(source(tmp_path / "in"))
    assert house.refused() == []
    assert house.row("SELECT first_at, last_value FROM serving_minute") == (datetime(2026, 11, 2, 10, 0, 1, 500_000), 9)


def test_without_timestamps_the_instant_in_the_name_of_the_file_counts(house: House, tmp_path: Path) -> None:
    name = "vllm:prompt_tokens_total" + LABELS
    put(tmp_path / "in", "scrape-2026-11-02T10:00:07Z.prom", f"{name} 5", end="")
    put(tmp_path / "in", "scrape-20261102T100122Z.txt", f"{name} 9", end="")
    put(tmp_path / "in", "scrape.prom", "# a comment", f"{name} 12", end="")
    house.collect(source(tmp_path / "in"))
    assert house.rows("SELECT first_at, first_value FROM serving_minute ORDER BY ALL") == [
        (datetime(2026, 11, 2, 10, 0, 7), 5),
        (datetime(2026, 11, 2, 10, 1, 22), 9),
    ]
    assert house.refused() == [("scrape.prom", 2, "no_timestamp")]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (tokens("NaN", 5), "not_a_number"),
        (tokens("+Inf", 5), "infinite"),
        (tokens(-1, 5), "negative_counter"),
        (tokens(1.5, 5, name="vllm:kv_cache_usage_perc"), "out_of_range"),
        (tokens(9223372036854775794, 5, name="DCGM_FI_DEV_FB_USED"), "out_of_range"),
        (tokens(1e17, 5), "out_of_range"),
        (tokens("five", 5), "malformed_line"),
        (f"vllm:prompt_tokens_total{LABELS} 5 soon", "malformed_line"),
        (f"vllm:prompt_tokens_total{LABELS} 5 {T} 6 7", "malformed_line"),
        (f'vllm:prompt_tokens_total{{pod="a" 5 {T}', "malformed_line"),
        (f'vllm:prompt_tokens_total{{pod=a}} 5 {T}', "malformed_line"),
        (f'vllm:prompt_tokens_total{{pod="a",pod="b"}} 5 {T}', "duplicate_label"),
        (f"vllm:prompt_tokens_total{LABELS} 5", "no_timestamp"),
        (f"vllm:prompt_tokens_total{LABELS} 5 12", "implausible_timestamp"),
        (tokens(5, 86400 * 365), "in_future"),
        ("{", "malformed_line"),
    ],
)  # fmt: skip
def test_what_cannot_be_believed_is_refused_with_its_reason_and_line(
    line: str, reason: str, house: House, tmp_path: Path
) -> None:
    put(tmp_path / "in", "a.om", "# TYPE x counter", tokens(4, 1), "", line, tokens(6, 9))
    report = house.collect(source(tmp_path / "in"))
    assert report.ok, report.findings
    assert house.refused() == [("a.om", 4, reason)]
    assert house.row("SELECT sum(sample_count) FROM serving_minute") == (2,)
    assert house.row("SELECT rows_read, rows_loaded, rows_rejected FROM load") == (3, 2, 1)


def test_a_file_that_is_no_text_does_not_take_its_neighbours_along(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", tokens(4, 1))
    path = put(tmp_path / "in", "b.om", tokens(5, 2), tokens(6, 3, '{pod="?"}'), tokens(7, 4, '{pod="\x1f"}'))
    path.write_bytes(path.read_bytes().replace(b"?", b"\xff"))
    house.collect(source(tmp_path / "in"))
    assert house.refused() == [("b.om", 2, "invalid_utf8")]
    assert house.row("SELECT sum(sample_count) FROM serving_minute") == (3,)


@pytest.mark.parametrize("end", ["", "# E", "# EOF \n#"])
def test_openmetrics_without_its_end_is_refused_whole(end: str, house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om.gz", tokens(4, 1), end=end)
    put(tmp_path / "in", "b.om", tokens(5, 2))
    house.collect(source(tmp_path / "in"))
    assert house.refused() == [("a.om.gz", None, "truncated_file")]
    assert house.row("SELECT first_value FROM serving_minute") == (5,)


def test_a_truncated_gzip_file_is_refused_whole(house: House, tmp_path: Path) -> None:
    path = put(tmp_path / "in", "a.om.gz", *(tokens(n, n) for n in range(500)))
    path.write_bytes(path.read_bytes()[:-100])
    house.collect(source(tmp_path / "in"))
    assert house.refused() == [("a.om.gz", None, "truncated_gzip")]
    assert house.rows(SERVING) == []


def test_many_refusals_of_one_kind_are_named_a_hundred_times_and_counted(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", *(tokens("NaN", n / 10) for n in range(250)))
    house.collect(source(tmp_path / "in"))
    assert house.row(
        "SELECT count(*), count(line_number), max(detail) FILTER (line_number IS NULL) FROM rejected_row"
    ) == (
        101,
        100,
        "150 more",
    )
    assert house.row("SELECT rows_rejected FROM load") == (250,)


def test_what_no_catalogue_has_is_counted_and_left_out(house: House, tmp_path: Path) -> None:
    other = [tokens(1, 5, name="go_goroutines"), tokens("NaN", 5, name="go_gc_seconds")]
    request = '{namespace="a",pod="p",resource="%s",unit="u"}'
    put(
        tmp_path / "in", "a.om", *other,
        tokens(8, 5, request % "nvidia_com_gpu", "kube_pod_container_resource_requests"),
        tokens(8, 5, request % "cpu", "kube_pod_container_resource_requests"),
        tokens(3, 5, '{tp_rank="0"}', "sglang:num_running_reqs"),
        tokens(3, 5, '{tp_rank="1"}', "sglang:num_running_reqs"),
    )  # fmt: skip
    report = house.collect(source(tmp_path / "in"))
    assert house.row("SELECT rows_read, rows_loaded, rows_filtered FROM load") == (6, 2, 4)
    assert len(report.notes) == 1
    assert house.rows("SELECT concept, labels['resource'] FROM metric_series ORDER BY ALL") == [
        ("pod_gpu_request", "nvidia_com_gpu"),
        ("requests_running", None),
    ]


def test_a_cluster_must_be_named(house: House, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cluster"):
        house.configure({"name": "m", "kind": "openmetrics", "location": str(tmp_path)})


@pytest.mark.samples
@pytest.mark.parametrize("release", ["vllm_0.8.5", "vllm_0.13.0", "vllm_0.33.0", "sglang_0.4.4", "sglang_0.5.23"])
def test_what_engines_really_expose_is_understood(release: str, house: House, tmp_path: Path) -> None:
    text = needs.samples("metrics", "generated", f"{release}.prom").read_text()
    put(tmp_path / "in", "2026-11-02T10:00:00Z.prom", end=text)
    report = house.collect(source(tmp_path / "in"))
    assert report.ok, report.findings
    assert house.refused() == []
    found = {row[0] for row in house.rows("SELECT concept FROM metric_series")}
    assert {"prompt_tokens", "generation_tokens", "requests_running", "requests_waiting", "created"} <= found
    if release not in ("vllm_0.8.5", "sglang_0.4.4"):
        assert {"prompt_tokens_cached", "kv_cache_usage"} <= found
    samples = sum(1 for line in text.splitlines() if line and not line.startswith("#"))
    assert house.row("SELECT rows_read FROM load") == (samples,)


@pytest.mark.samples
@pytest.mark.parametrize(
    "file",
    [
        "captured/dcgm_t4_datadog_trim.prom",
        "captured/vllm_0.5_kubeai.prom",
        "captured/triton_core_docs.prom",
        "captured/litellm_1.96.0_mock_full.prom",
        "expected/kube_state_metrics_pod.prom",
        "expected/kube_state_metrics_node.prom",
    ],
)
def test_captured_text_is_read_line_by_line_as_it_is(file: str, build: Builder, tmp_path: Path) -> None:
    text = needs.samples("metrics", *file.split("/")).read_text()
    put(tmp_path / "in", "2026-11-02T10:00:00Z.prom", end=text)
    house = build()
    assert house.collect(source(tmp_path / "in")).ok
    assert [row for row in house.refused() if row[2] not in ("out_of_range", "not_a_number")] == []
    samples = sum(1 for line in text.splitlines() if line.strip() and not line.startswith("#"))
    assert house.row("SELECT rows_read FROM load") == (samples,)


def test_every_alias_leads_to_one_meaning() -> None:
    names = exposed_names()
    assert names["vllm_prompt_tokens_total"].metric.concept == names["ray_vllm:prompt_tokens_total"].metric.concept
    assert names["vllm:gpu_prefix_cache_hits_total"].metric.concept != "prompt_tokens_cached"
    assert names["sglang_cached_tokens_total"].metric.concept == "prompt_tokens_cached"


def test_a_cluster_that_is_named_anew_keeps_its_past(house: House, tmp_path: Path) -> None:
    put(tmp_path / "in", "a.om", tokens(97, 5))
    assert house.collect(source(tmp_path / "in")).ok
    put(tmp_path / "in", "b.om", tokens(98, 65), tokens(3, 65, name="vllm:generation_tokens_total"))
    assert house.collect(source(tmp_path / "in", cluster="east-prod")).ok
    assert house.rows("SELECT DISTINCT cluster FROM metric_series") == [("east-prod",)]
    assert house.row("SELECT count(DISTINCT target_id) FROM metric_series") == (1,)
    assert house.row("SELECT count(*) FROM serving_minute") == (3,)
