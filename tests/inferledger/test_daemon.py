"""`run`: one job at a time, a failing one is noted and the others go on, SIGTERM ends it at a safe place."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from inferledger import config, daemon, operations
from inferledger.daemon import Daemon
from tests.needs import ROOT
from warehouse.engine import Layout, locked


def runs(path):
    with operations.opened(config.load(path)) as engine:
        return {run.job: run for run in operations.last_jobs(engine)}


def test_once_runs_every_job_in_order_and_records_it(company, cli):
    result = cli("run", "--once")
    assert result.exit_code == 0, result.output
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == [
        "collect", "attribute", "publish", "alert", "report", "deliver",
    ]  # fmt: skip
    found = runs(company)
    assert set(found) == {"collect", "attribute", "publish", "alert", "report"}
    assert all(run.status in ("ok", "findings") and run.ended_at is not None for run in found.values())
    assert cli.json("summary")["totals"]["requests"] == 4


def test_a_job_without_a_schedule_is_left_out(company, cli):
    company.write_text(company.read_text() + "schedule: {alert: null, report: null, deliver: null}\n")
    result = cli("run", "--once")
    assert [line.split(":")[0] for line in result.stdout.splitlines()] == ["collect", "attribute", "publish"]


def test_a_failing_job_is_recorded_and_the_others_go_on(company, cli):
    company.write_text(company.read_text().replace("location: ./log", "location: ./nowhere"))
    result = cli("run", "--once")
    assert result.exit_code == 1
    found = runs(company)
    assert found["collect"].status == "findings"
    assert "no such file or folder" in found["collect"].detail
    assert found["publish"].status == "ok"


def test_a_job_that_finds_the_warehouse_held_is_recorded_with_the_holder(ledger, cli):
    with locked(Layout(Path("data").absolute()), "somebody"):
        result = cli("run", "--once")
    assert result.exit_code == 1
    found = runs(ledger)
    assert found["attribute"].status == "failed"
    assert "`somebody` (process " in found["attribute"].detail
    assert found["alert"].status == "ok"


def test_a_defect_in_one_job_stops_no_other(company, monkeypatch):
    def broken(_configuration, _say):
        raise ZeroDivisionError

    monkeypatch.setattr(daemon, "WORK", {**daemon.WORK, "collect": broken})
    outcomes = {outcome.job: outcome for outcome in Daemon(config.load(company)).once()}
    assert outcomes["collect"].status == "failed"
    assert "a defect of InferLedger (ZeroDivisionError)" in outcomes["collect"].detail
    assert outcomes["attribute"].status == "ok"
    assert runs(company)["collect"].status == "failed"


def test_an_operations_database_that_is_gone_does_not_stop_the_ledger(company):
    company.write_text(company.read_text() + "operations: {url: 'postgresql://nobody@127.0.0.1:1/none'}\n")
    outcomes = {outcome.job: outcome for outcome in Daemon(config.load(company)).once()}
    assert (outcomes["collect"].status, outcomes["attribute"].status) == ("ok", "ok")
    assert outcomes["alert"].status == "failed"
    assert (Path("data") / "published" / "current.json").exists()


def test_a_job_that_is_told_to_stop_rolls_back(ledger, cli):
    running = Daemon(config.load(ledger))
    running.stopping.set()
    assert running._run("attribute").status == "stopped"
    assert [outcome.status for outcome in running.once()] == ["stopped"] * 6
    with duckdb.connect("data/warehouse.duckdb") as connection:
        assert connection.execute("SELECT count(*) FROM ledger_hour").fetchone()[0] > 0


def test_old_runs_are_forgotten(ledger):
    with operations.opened(config.load(ledger)) as engine:
        operations.begin_job(engine, "ancient", datetime(2020, 1, 1, tzinfo=UTC))
        operations.begin_job(engine, "collect", datetime.now(UTC))
        assert [run.job for run in operations.last_jobs(engine)] == ["collect"]


@pytest.fixture
def started(company):
    """`inferledger run` as a process, past its first round."""
    process = subprocess.Popen(
        [sys.executable, "-m", "inferledger", "run"],
        cwd=company.parent,
        env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    lines = []
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        lines.append(line)
        if " report: " in line or not line:
            break
    yield process, lines
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(started, company, number):
    process, lines = started
    process.send_signal(number)
    rest = process.communicate(timeout=60)[0]
    said = "".join(lines) + rest
    assert process.returncode == 0, said
    assert f"{number.name}: ending" in rest
    assert rest.rstrip().endswith("ended")
    assert "Traceback" not in said
    order = [line.split()[3].rstrip(":") for line in lines if ": ok" in line or ": findings" in line]
    assert order == ["collect", "attribute", "publish", "alert", "report"]
    assert all(run.status != "running" for run in runs(company).values())
