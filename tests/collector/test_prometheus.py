"""A running Prometheus, and servers that misbehave: real HTTP, no stand-ins inside the process."""

import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.collector.conftest import Builder, House
from tests.collector.misbehaving import Misbehaving
from tests.collector.test_metric_minutes import minutes
from tests.collector.test_openmetrics import T, put, source, tokens

AS_OF = datetime(2100, 1, 1, tzinfo=UTC)
"""The servers' clocks say what is the future here."""


def asked(url: str, **settings: Any) -> dict[str, Any]:
    return {
        "name": "metrics", "kind": "prometheus", "location": url, "cluster": "east", "timeout_seconds": 5,
        "since": "2026-11-02T10:00:00Z", "until": "2026-11-02T13:00:00Z", **settings,
    }  # fmt: skip


def history() -> list[str]:
    """Three hours of an engine, a GPU and a pod: a reset, samples at window edges, values of every kind."""
    engine = '{engine="0",instance="10.0.0.1:8000",job="vllm",model_name="qwen3-32b",namespace="llm",pod="qwen-0"}'
    gpu = '{exported_namespace="llm",exported_pod="qwen-0",gpu="0",instance="10.0.0.1:9400",job="dcgm"}'
    pod = '{namespace="llm",node="n1",pod="qwen-0",resource="%s",unit="integer"}'
    found = []
    families = [
        ("vllm:prompt_tokens", "counter", "_total", engine, lambda n: (n * 37) % 9000),
        ("vllm:kv_cache_usage_perc", "gauge", "", engine, lambda n: (n % 64) / 64),
        ("DCGM_FI_DEV_GPU_UTIL", "gauge", "", gpu, lambda n: n % 101),
        ("kube_pod_container_resource_requests", "gauge", "", pod % "nvidia_com_gpu", lambda n: 4),
        ("kube_pod_container_resource_requests", "gauge", "", pod % "cpu", lambda n: 2),
        ("go_goroutines", "gauge", "", engine, lambda n: n),
    ]
    for family, kind, suffix, labels, value in families:
        if f"# TYPE {family} {kind}" not in found:
            found.append(f"# TYPE {family} {kind}")
        found += [f"{family}{suffix}{labels} {value(n)} {T + 15 * n:.3f}" for n in range(3 * 240)]
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Prometheus over that history, backfilled by promtool; the limit of samples is low enough to be met."""
    prometheus, promtool = needs.prometheus(), needs.promtool()
    home = tmp_path_factory.mktemp("prometheus")
    text = put(home, "history.om", *history())
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", text, home / "data"], check=True, capture_output=True
    )
    (home / "prometheus.yml").write_text("global: {}\n")
    port = _free_port()
    with (home / "log").open("w") as log:
        process = subprocess.Popen(
            [prometheus, f"--config.file={home}/prometheus.yml", f"--storage.tsdb.path={home}/data",
             "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}",
             "--query.max-samples=200"],
            stdout=log, stderr=log, cwd=home,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/-/ready", timeout=5).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((home / "log").read_text()) from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=60)
        shutil.rmtree(home)


def _free_port() -> int:
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as listener:
        return int(listener.server_address[1])


@pytest.mark.prometheus
def test_a_server_gives_the_minutes_that_its_files_give(server: str, build: Builder, tmp_path: Path) -> None:
    """An hour of a series has 241 samples at most 200 of which may be asked for at once: windows are halved, too."""
    files, live = build(), build()
    put(tmp_path / "in", "history.om", *history())
    assert files.collect(source(tmp_path / "in"), as_of=AS_OF).ok
    report = live.collect(asked(server), as_of=AS_OF)
    assert report.ok, report.findings
    assert [each.detail for each in report.loaded] == [
        f"2026-11-02T{hour}:00:00Z to 2026-11-02T{hour + 1}:00:00Z" for hour in (10, 11, 12)
    ]
    assert files.row("SELECT count(*), sum(sample_count) FROM serving_minute") == (360, 1440)
    assert minutes(live) == minutes(files)


@pytest.mark.prometheus
def test_what_was_loaded_is_not_asked_for_again(server: str, house: House) -> None:
    house.collect(asked(server), as_of=AS_OF)
    before = minutes(house)
    assert house.collect(asked(server), as_of=AS_OF).loaded == ()
    assert minutes(house) == before


@pytest.mark.prometheus
def test_selectors_narrow_what_is_asked_for(server: str, house: House) -> None:
    assert house.collect(asked(server, match=['{job="dcgm"}', '{instance=~"nobody.*"}']), as_of=AS_OF).ok
    assert house.rows("SELECT concept FROM metric_series") == [("gpu_utilisation",)]


@pytest.fixture
def misbehaving() -> Iterator[Misbehaving]:
    server = Misbehaving()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int, misbehaving: Misbehaving, house: House) -> None:
    misbehaving.refusals = [(status, "busy")]
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF)
    assert report.ok, report.findings
    assert len(misbehaving.asked) == 2
    assert house.row("SELECT sum(sample_count) FROM serving_minute") == (241,)


def test_a_wrong_query_is_not_asked_again(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.refusals = [(400, "parse error")] * 9
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF)
    assert len(misbehaving.asked) == 1
    (finding,) = report.findings
    assert "400 (parse error)" in finding.what


def test_windows_are_halved_until_the_server_can_bear_them(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.most_seconds = 1000
    report = house.collect(asked(misbehaving.url), as_of=AS_OF)
    assert report.ok, report.findings
    assert house.row("SELECT sum(sample_count), sum(increase) FROM serving_minute") == (720, 720 // 4 * 3)


def test_a_minute_that_is_too_much_is_said_and_nothing_is_loaded(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.most_seconds = 10
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF)
    (finding,) = report.findings
    assert "too much" in finding.what
    assert house.rows("SELECT * FROM load") == []


@pytest.mark.parametrize("place", ["extra", "label_extra"])
def test_a_partial_answer_refuses_the_window(place: str, misbehaving: Misbehaving, house: House) -> None:
    setattr(misbehaving, place, {"warnings": ["a store could not be reached"]})
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF)
    (finding,) = report.findings
    assert "partial" in finding.what
    assert house.rows("SELECT * FROM load") == house.rows("SELECT * FROM serving_minute") == []
    setattr(misbehaving, place, {})
    assert house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF).ok
    assert house.row("SELECT count(*) FROM serving_minute") == (61,)


def test_an_answer_that_breaks_off_is_not_believed(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.cut = True
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z"), as_of=AS_OF)
    assert len(report.findings) == 1
    assert house.rows("SELECT * FROM load") == []


def test_a_server_that_does_not_answer_is_left_after_the_timeout(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.delay = 0.6
    report = house.collect(asked(misbehaving.url, until="2026-11-02T11:00:00Z", timeout_seconds=0.2), as_of=AS_OF)
    (finding,) = report.findings
    assert "no answer within 0.2 seconds" in finding.what


def test_no_server_is_one_finding(house: House) -> None:
    report = house.collect(asked(f"http://127.0.0.1:{_free_port()}"), as_of=AS_OF)
    (finding,) = report.findings
    assert "cannot be reached" in finding.what


def test_secrets_come_from_the_environment_only(
    misbehaving: Misbehaving, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"bearer_token_env": "TOKEN_HERE", "headers_env": {"X-Key": "KEY_HERE"}, "tenant": "team-a"}
    report = house.collect(asked(misbehaving.url, **settings), as_of=AS_OF)
    assert "TOKEN_HERE" in report.findings[0].what or "KEY_HERE" in report.findings[0].what
    monkeypatch.setenv("TOKEN_HERE", "t0ken")
    monkeypatch.setenv("KEY_HERE", "k3y")
    assert house.collect(asked(misbehaving.url, **settings), as_of=AS_OF).ok
    for sent in misbehaving.sent:
        assert (sent["Authorization"], sent["X-Key"], sent["X-Scope-OrgID"]) == ("Bearer t0ken", "k3y", "team-a")
    assert b"t0ken" not in house.bytes()
    with pytest.raises(ValueError, match="name of an environment variable"):
        house.configure(asked(misbehaving.url, bearer_token_env="Bearer t0ken"))
    with pytest.raises(ValueError, match="no user"):
        house.configure(asked("http://me:secret@host"))


def test_an_hour_is_read_again_until_nothing_late_is_expected(misbehaving: Misbehaving, house: House) -> None:
    """Half past ten; five past eleven, with late samples; a quarter past eleven, and never again."""
    late = [misbehaving.samples.pop(n) for n in (100, 50)]
    read = []
    settings = asked(misbehaving.url, until=None, settle_seconds=60)
    for minutes_later, arrived in ((31, False), (31, False), (66, True), (73, True), (80, True)):
        misbehaving.clock = T + 60 * minutes_later
        if arrived and late:
            misbehaving.samples = sorted([*misbehaving.samples, *late])
            late = []
        report = house.collect(settings, as_of=AS_OF)
        assert report.ok, report.findings
        read.append([each.detail[11:16] + each.detail[35:40] for each in report.loaded])
    assert read == [
        ["10:0010:30"],
        [],
        ["10:0011:00", "11:0011:05"],
        ["10:0011:00", "11:0011:12"],
        ["11:0011:19"],
    ]
    assert house.row("SELECT sum(sample_count) FROM serving_minute WHERE minute < '2026-11-02 11:00'") == (240,)


def test_without_a_beginning_a_week_is_looked_at(misbehaving: Misbehaving, house: House) -> None:
    misbehaving.names = []
    report = house.collect(asked(misbehaving.url, since=None, until=None), as_of=AS_OF)
    assert len(report.loaded) == 7 * 24 + 1
    assert misbehaving.asked == []


def test_windows_that_touch_share_their_edge_and_count_it_once(misbehaving: Misbehaving, house: House) -> None:
    assert house.collect(asked(misbehaving.url), as_of=AS_OF).ok
    queries = {(each["time"], each["query"]) for each in misbehaving.asked}
    assert len(queries) == 3
    assert house.row("SELECT sum(sample_count) FROM serving_minute") == (720,)


def test_a_history_from_files_goes_on_live_under_the_same_series(
    misbehaving: Misbehaving, house: House, tmp_path: Path
) -> None:
    put(tmp_path / "in", "a.om", tokens(0, -15, '{pod="qwen-0"}'))
    house.collect(source(tmp_path / "in"), as_of=AS_OF)
    house.collect(asked(misbehaving.url), as_of=AS_OF)
    assert house.row("SELECT count(*) FROM metric_series") == (1,)
