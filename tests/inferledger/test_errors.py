"""A user's mistake gives a message, a remedy and an exit code, never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from sqlalchemy.exc import OperationalError

from collector.source import CollectError
from inferledger import jobs
from inferledger.defects import description
from inferledger.exits import ControlsFailed, ExitCode, NotUpgraded, OperationsUnreachable, Stopped, explained
from inferledger.yaml_file import ConfigError
from tests.needs import ROOT
from warehouse.attribution import EvidenceRefused
from warehouse.engine import Layout, WarehouseBusy, locked
from warehouse.measures import UnknownMeasure
from warehouse.publish import NothingAttributed
from warehouse.snapshot import Forbidden, NothingPublished


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError(()), ExitCode.USAGE),
        (UnknownMeasure("x"), ExitCode.USAGE),
        (NothingPublished("x"), ExitCode.NOTHING_PUBLISHED),
        (CollectError("a", "b", "c"), ExitCode.UNREACHABLE),
        (Forbidden("x"), ExitCode.UNREACHABLE),
        (NothingAttributed("x"), ExitCode.NOTHING_PUBLISHED),
        (EvidenceRefused("x"), ExitCode.UNREACHABLE),
        (OSError(28, "No space left on device", "/data/x"), ExitCode.UNREACHABLE),
        (duckdb.IOException("IO Error: no such file"), ExitCode.UNREACHABLE),
        (OperationalError("select", {}, Exception("no route")), ExitCode.UNREACHABLE),
        (OperationsUnreachable("postgresql://h/d", OperationalError("s", {}, Exception("no"))), ExitCode.UNREACHABLE),
        (PermissionError(13, "Permission denied", "/data"), ExitCode.UNREACHABLE),
        (WarehouseBusy("x"), ExitCode.BUSY),
        (duckdb.IOException('IO Error: Could not set lock on file "x"'), ExitCode.BUSY),
        (NotUpgraded("warehouse", "a", "b"), ExitCode.NOT_UPGRADED),
        (ControlsFailed(("a", "b")), ExitCode.FINDINGS),
        (Stopped(), ExitCode.OK),
        (KeyboardInterrupt(), ExitCode.INTERRUPTED),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_every_known_error_has_its_code_and_a_message(error, code):
    known = explained(error)
    assert known is not None
    assert known[0] is code
    assert isinstance(known[1], str)


def test_what_nobody_foresaw_is_a_defect():
    assert explained(ZeroDivisionError()) is None


def test_a_defect_leaves_a_log_and_a_short_message(ledger, cli, monkeypatch):
    def broken(_configuration, _who="x"):
        raise ZeroDivisionError("half a sheep")

    monkeypatch.setattr(jobs, "snapshot", broken)
    result = cli("summary")
    assert result.exit_code == ExitCode.DEFECT
    assert "Something went wrong inside InferLedger (ZeroDivisionError)" in result.stderr
    (log,) = Path("data").glob("inferledger-defect-*.log")
    assert log.name in result.stderr.replace("\n", "")
    assert "half a sheep" in log.read_text()


def test_a_defects_log_leaves_out_what_the_engine_quotes():
    try:
        duckdb.sql("SELECT CAST('my secret prompt' AS INTEGER)").fetchall()
    except duckdb.Error as error:
        text = description(error)
    assert "ConversionException" in text
    assert "secret" not in text.partition("ConversionException")[2]


def test_reading_before_anything_is_published(company, cli):
    for words in (("summary",), ("explain",), ("report", "show"), ("alerts", "evaluate")):
        result = cli(*words)
        assert result.exit_code == ExitCode.NOTHING_PUBLISHED, words
        assert "Run `inferledger collect`, `attribute` and `publish`" in result.stderr
    result = cli("publish")
    assert result.exit_code == ExitCode.NOTHING_PUBLISHED
    assert "Run `inferledger attribute` first" in result.stderr


def test_a_mistake_in_the_configuration_stops_every_command(cli):
    Path("inferledger.yaml").write_text("zon: UTC\n")
    for words in (("summary",), ("collect",), ("run", "--once"), ("doctor",), ("db", "current")):
        result = cli(*words)
        assert result.exit_code == ExitCode.USAGE
        assert result.stderr == ("inferledger.yaml:1: zon: there is no such key; correct it (did you mean `zone`?)\n")


def test_the_configuration_may_be_named_before_or_after_the_command(ledger, cli, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for words in (
        ("--config", str(ledger), "summary"),
        ("summary", "--config", str(ledger)),
        ("-c", str(ledger), "summary"),
    ):
        assert cli(*words).exit_code == 0
    monkeypatch.setenv("INFERLEDGER_CONFIG", str(ledger))
    assert cli("summary").exit_code == 0


def test_the_demo_is_used_for_want_of_another_and_it_is_said(company, cli):
    Path(".demo").mkdir()
    company.rename(".demo/inferledger.yaml")
    result = cli("summary")
    assert "Using the demo organisation (.demo/inferledger.yaml)" in result.stderr


def test_a_source_that_fails_is_named_and_the_others_go_on(company, cli):
    company.write_text(company.read_text().replace("location: ./log", "location: ./nowhere"))
    result = cli("collect")
    assert result.exit_code == ExitCode.UNREACHABLE
    assert "prices.contract: 2 rows loaded" in result.stdout
    assert "calls" in result.stderr
    assert "no such file or folder. Correct the source's `location`" in result.stderr.replace("\n", " ")
    facts = cli.json("collect", code=ExitCode.UNREACHABLE)
    assert [finding["source"] for finding in facts["findings"]] == ["calls"]


def test_only_some_sources_may_be_collected(company, cli):
    facts = cli.json("collect", "--only", "prices")
    assert "calls" not in facts["sources"]
    facts = cli.json("collect", "--source", "calls")
    assert list(facts["sources"]) == ["calls"]
    assert facts["sources"]["calls"]["rows_loaded"] == 4
    for words, said in (
        (("--source", "cals"), "No source is called `cals`. There are:"),
        (("--only", "billing"), "No source is left"),
        (("--only", "usage", "--source", "prices.contract"), "No source is left"),
    ):
        result = cli("collect", *words)
        assert (result.exit_code, said in result.stderr) == (ExitCode.USAGE, True)


def test_an_instant_that_is_none_is_refused(company, cli):
    result = cli("attribute", "--as-of", "noon")
    assert result.exit_code == ExitCode.USAGE
    assert "`noon` is no instant; write one such as 2026-11-30T14:00Z" in result.stderr


def test_a_second_writer_is_refused_with_the_name_of_the_first(ledger, cli):
    with locked(Layout(Path("data").absolute()), "attribute"):
        for command in ("collect", "attribute", "publish"):
            result = cli(command)
            assert result.exit_code == ExitCode.BUSY
            assert "`attribute` (process " in result.stderr
            assert "raise engine.lock_wait_seconds" in result.stderr.replace("\n", " ")
        assert cli("summary").exit_code == 0  # readers wait for nobody


def test_an_operations_database_that_does_not_answer(ledger, cli):
    ledger.write_text(ledger.read_text() + "operations: {url: 'postgresql://nobody@127.0.0.1:1/none'}\n")
    result = cli("alerts", "list")
    assert result.exit_code == ExitCode.UNREACHABLE
    assert "The operations database postgresql+psycopg://nobody@127.0.0.1:1/none cannot be used" in result.stderr
    assert "PGPASSWORD" in result.stderr


def test_a_database_of_another_version_asks_for_the_upgrade(ledger, cli):
    with duckdb.connect("data/warehouse.duckdb") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'evidence_0000'")
    result = cli("attribute")
    assert result.exit_code == ExitCode.NOT_UPGRADED
    assert "stands at revision evidence_0000" in result.stderr
    assert "Run `inferledger db upgrade`" in result.stderr


def test_an_unknown_command_and_an_unknown_option_are_refused(cli):
    assert cli("sumary").exit_code == ExitCode.USAGE
    result = cli("summary", "--form", "json")
    assert (result.exit_code, "No such option" in result.output) == (ExitCode.USAGE, True)


def test_as_a_program_it_prints_json_only_and_ends_with_its_code(ledger):
    done = subprocess.run(
        [sys.executable, "-m", "inferledger", "summary", "--format", "json"],
        cwd=ledger.parent,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["currency"] == "USD"
    assert done.stderr == ""
