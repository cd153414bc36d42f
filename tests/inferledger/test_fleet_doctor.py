"""`doctor` on a GPU fleet: what metrics leave unknown, and GPU instances on the bill that no cluster knows."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from inferledger.checks import fleet as fleet_checks
from inferledger.checks import ledger as ledger_checks
from inferledger.checks import setting_up
from inferledger.config import environment_variables, load
from tests import fleet
from tests.fleet_world import HOUR
from warehouse.snapshot import Scope, Snapshot


def found(world):
    snapshot = Snapshot.open(world.layout.published, Scope.everything("test"))
    checks = list(fleet_checks.fleet(snapshot))
    for check in checks:
        assert (check.result == "ok") == (check.remedy == ""), check
    return {check.subject: check for check in checks}


def test_every_gap_is_named_with_its_pods_and_its_remedy(with_fleet):
    checks = found(with_fleet)
    assert {subject: check.result for subject, check in checks.items()} == dict.fromkeys(
        ("instances", "routes", "engine metrics", "counters"), "warn"
    )
    assert checks["instances"].detail.endswith("in no cluster, $7.00 in the last 7 days: i-n9")
    assert "pool table" in checks["instances"].remedy
    assert checks["routes"].detail == "1 pod(s) hold GPUs and tell no model (2.0 GPU-hours): llm/stray-0"
    assert checks["engine metrics"].detail.startswith("2 pod(s) have no engine metrics and are unmeasured (4.0 GPU-ho")
    assert checks["engine metrics"].detail.endswith("llm/blind-0, llm/stray-0")
    assert "llm/qwen-0" in checks["counters"].detail


def test_an_instance_that_joined_a_pool_table_is_no_stranger_any_more(with_fleet):
    fleet.member(with_fleet, "i-n9", "qwen", "mixed")
    with_fleet.rows(f"INSERT INTO touched_hour VALUES (TIMESTAMP '{HOUR}', 'metrics')")
    with_fleet.publish()
    assert "instances" not in found(with_fleet)


def test_an_instance_that_both_a_pool_table_and_a_cluster_tell_is_named(world, published):
    fleet.serve(world, HOUR)
    fleet.machine(world, "n1", HOUR, "12")
    fleet.member(world, "i-n1", "qwen", "mixed")
    published()
    (check,) = [each for subject, each in found(world).items() if subject == "pool table"]
    assert check.detail == "1 instance(s) are in a pool table and in a cluster with metrics: i-n1"


def test_a_fleet_that_is_measured_whole_is_ok(world, published):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 60, born=[1_791_367_200_000_000] * 60)
    fleet.machine(world, "n1", HOUR, "12")
    published()
    (check,) = found(world).values()
    assert (check.result, check.detail) == ("ok", "every pod tells a model and has engine metrics (4.0 GPU-hours)")


def test_gaps_of_kube_state_metrics_are_told_with_their_money(world, published):
    gap = range(10, 40)
    fleet.node(world, "n1", HOUR, 60, skip=gap)
    fleet.pod(world, "p1", "n1", HOUR, 60, skip=gap, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 60)
    fleet.machine(world, "n1", HOUR, "12")
    published()
    assert "gaps of 2.0 GPU-hours in the lives of nodes, $6.00" in found(world)["node metrics"].detail


def test_calls_in_hours_that_no_bill_ever_paid_for_are_told(world, published):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.asked(world, "2026-10-05 10:30", {"key_alias": "search-1"}, uncached_input=2_000_000)
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=1_000_000)
    published()
    assert found(world)["qwen"].detail.startswith("2.000 M tokens were answered by the own fleet in hours without a b")


def test_without_a_fleet_nothing_is_looked_at(filled):
    snapshot = Snapshot.open(Path("data/published"), Scope.everything("test"))
    assert list(fleet_checks.fleet(snapshot)) == []


def test_metrics_have_an_age(with_fleet):
    snapshot = Snapshot.open(with_fleet.layout.published, Scope.everything("test"))
    (late,) = ledger_checks.freshness(snapshot, datetime(2026, 10, 9, tzinfo=UTC))
    assert (late.subject, late.result) == ("dcgm-and-vllm", "warn")
    assert "1 samples, the latest of 2026-10-07 10:59 UTC, 37 hours ago" in late.detail
    (fresh,) = ledger_checks.freshness(snapshot, datetime(2026, 10, 7, 12, tzinfo=UTC))
    assert fresh.result == "ok"


@pytest.fixture
def server() -> Iterator[str]:
    """Something that answers as Prometheus does under /up, and not at all elsewhere."""

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"status": "success", "data": {"resultType": "scalar", "result": [1, "1791367200"]}})
            self.send_response(200 if self.path.startswith("/up/") else 404)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    httpd = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}"
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_a_metrics_server_is_asked_for_its_clock(cli, server):
    Path("inferledger.yaml").write_text(
        "sources:\n"
        f"  - {{name: here, kind: prometheus, location: '{server}/up', cluster: east}}\n"
        f"  - {{name: gone, kind: prometheus, location: '{server}/no', cluster: east}}\n"
    )
    here, gone = setting_up.sources(load(Path("inferledger.yaml")))
    assert (here.result, here.detail) == ("ok", f"{server}/up answers; its clock says 2026-10-07 10:00 UTC")
    assert (gone.result, "answers 404" in gone.detail) == ("fail", True)
    assert "Correct `location`" in gone.remedy


def test_secrets_of_metrics_sources_are_among_those_that_must_be_set(cli):
    Path("inferledger.yaml").write_text(
        "sources:\n"
        "  - {name: east, kind: prometheus, location: 'http://p:9090', cluster: east, bearer_token_env: PROM_TOKEN,\n"
        "     headers_env: {X-Key: PROM_KEY}}\n"
    )
    assert environment_variables(load(Path("inferledger.yaml"))) == {
        "PROM_TOKEN": "sources.east.bearer_token_env",
        "PROM_KEY": "sources.east.headers_env.X-Key",
    }


def test_routes_without_metrics_are_told(cli):
    Path("inferledger.yaml").write_text("fleet: {routes: [{name: qwen}]}\n")
    checks = {check.subject: check for check in setting_up.config(load(Path("inferledger.yaml")))}
    assert "prometheus, openmetrics or pool_table" in checks["fleet"].remedy
