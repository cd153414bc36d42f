"""`doctor`: what is wrong, what to do about it, and an exit code for machines."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text

from delivery import outbox
from delivery.message import Message
from inferledger import config, operations
from inferledger.checks import ledger as ledger_checks
from tests.collector.spans import AGENT, span, write_spans
from warehouse.engine import Layout, locked


@pytest.fixture
def checks(cli):
    """Run `doctor`; its checks as `area subject: result`, and the whole."""

    def run(code):
        facts = cli.json("doctor", code=code)
        for check in facts["checks"]:
            assert (check["result"] == "ok") == (check["remedy"] == ""), check
        return {(check["area"], check["subject"]): check for check in facts["checks"]}, facts

    return run


def test_an_installation_that_works_has_nothing_failed(ledger, cli, checks):
    found, facts = checks(0)
    assert facts["fail"] == 0
    assert facts["result"] == "warn"
    for subject in (
        ("config", "file"),
        ("sources", "calls"),
        ("databases", "warehouse"),
        ("databases", "operations"),
        ("outbox", "messages"),
        ("rows", "rejected"),
        ("controls", "books"),
    ):
        assert found[subject]["result"] == "ok", found[subject]
    assert found["config", "bill"]["result"] == "warn"
    assert "mystery-9" in {subject for area, subject in found if area == "prices"}
    assert found["freshness", "calls"]["remedy"].endswith("run `inferledger collect`")
    output = cli("doctor").output
    assert "→ add the cloud bill's export under `sources`" in output
    assert max(map(len, output.splitlines())) <= 100


def test_spans_that_repeat_their_children_are_in_order_and_other_refusals_are_not(cli, checks):
    log = Path("spans/a.jsonl")
    write_spans(log, span(1, AGENT, seconds=9), span(2, parent=1, start=1))
    Path("inferledger.yaml").write_text("sources: [{name: spans, kind: otlp, location: ./spans}]\n")
    for command in ("collect", "attribute", "publish"):
        assert cli(command).exit_code == 0
    found, _ = checks(0)
    assert found["rows", "spans"]["result"] == "ok"
    assert "1 refused as repeats_children" in found["rows", "spans"]["detail"]
    assert "refused" not in cli("summary").output
    log.open("a").write("{}\n")
    for command in ("collect", "attribute", "publish"):
        cli(command)
    found = [(each["result"], each["detail"].split()[3]) for each in checks(0)[1]["checks"] if each["area"] == "rows"]
    assert found == [("warn", "no_spans"), ("ok", "repeats_children")]
    assert "1 row(s) of `spans` were refused" in " ".join(cli("summary").output.split())


def test_on_an_empty_installation_it_says_what_to_do_first(cli, checks):
    Path("inferledger.yaml").write_text("")
    found, facts = checks(1)
    assert facts["result"] == "fail"
    assert found["snapshot", "published"]["detail"] == "nothing has been published yet"
    assert "inferledger collect" in found["snapshot", "published"]["remedy"]
    assert found["databases", "warehouse"]["result"] == "warn"
    assert found["config", "owners"]["result"] == "warn"


def test_a_location_that_is_gone_and_one_that_is_empty(ledger, checks):
    Path("log/calls.csv").unlink()
    assert checks(0)[0]["sources", "calls"]["result"] == "warn"
    Path("log").rmdir()
    found, _ = checks(1)
    assert found["sources", "calls"]["result"] == "fail"
    assert "Correct the source's `location`" in found["sources", "calls"]["remedy"]


@pytest.mark.s3
def test_a_store_that_refuses_says_why(ledger, checks, s3):
    text_ = ledger.read_text().replace("location: ./log", f"location: s3://nobody/here\n    endpoint_url: {s3}")
    ledger.write_text(text_)
    found, _ = checks(1)
    assert "there is no bucket `nobody`" in found["sources", "calls"]["detail"]
    assert found["sources", "calls"]["remedy"].startswith("Correct the source's `location`")


def test_a_secret_that_is_not_set_fails(ledger, checks, monkeypatch):
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)
    ledger.write_text(ledger.read_text() + "delivery: {channels: {slack: {kind: slack}}}\n")
    found, _ = checks(1)
    credential = found["credentials", "SLACK_WEBHOOK_URL"]
    assert (credential["result"], "export SLACK_WEBHOOK_URL=" in credential["remedy"]) == ("fail", True)
    assert found["channels", "slack"]["result"] == "fail"


def test_refused_rows_are_shown_with_an_example(company, cli, checks):
    Path("log/calls.csv").write_text(Path("log/calls.csv").read_text() + "e,2026-10-02T09:30:00Z,m,support-1,,-5,1\n")
    for words in (("collect",), ("attribute", "--as-of", "2026-10-10T00:00Z"), ("publish",)):
        cli(*words)
    found, _ = checks(0)
    assert "1 refused as negative_tokens" in found["rows", "calls"]["detail"]
    assert "calls.csv" in found["rows", "calls"]["detail"]
    assert any("were refused" in note for note in cli.json("summary")["notes"])


def test_a_message_that_waits_for_a_person_fails(ledger, cli, checks):
    with operations.opened(config.load(ledger)) as engine, engine.begin() as connection:
        outbox.enqueue(connection, key="k", channel="slack", message=Message(subject="Cost", text="up"))
        connection.execute(text("UPDATE outbox_message SET status = 'uncertain', detail = 'no answer'"))
    found, _ = checks(1)
    assert "Message 1 on `slack` (Cost) may or may not have arrived" in found["outbox", "messages"]["detail"]
    assert "inferledger alerts release 1" in found["outbox", "messages"]["remedy"]


def test_a_failed_job_fails_and_one_that_hangs_warns(ledger, checks):
    now = datetime.now(UTC)
    with operations.opened(config.load(ledger)) as engine:
        operations.end_job(engine, operations.begin_job(engine, "collect", now), "failed", "no route to host", now)
        operations.begin_job(engine, "attribute", datetime(2026, 10, 1, tzinfo=UTC))
    found, _ = checks(1)
    assert found["jobs", "collect"]["result"] == "fail"
    assert "no route to host" in found["jobs", "collect"]["detail"]
    assert found["jobs", "attribute"]["result"] == "warn"


def test_a_warehouse_in_use_is_left_alone(ledger, checks):
    with locked(Layout(Path("data").absolute()), "attribute"):
        found, _ = checks(0)
    assert found["databases", "warehouse"]["detail"].startswith("in use: `attribute` (process ")


def test_an_operations_database_that_does_not_answer_fails_and_the_rest_goes_on(ledger, checks):
    ledger.write_text(ledger.read_text() + "operations: {url: 'postgresql://nobody@127.0.0.1:1/none'}\n")
    found, _ = checks(1)
    assert found["databases", "operations"]["result"] == "fail"
    assert "PGPASSWORD" in found["databases", "operations"]["remedy"]
    assert found["controls", "books"]["result"] == "ok"


def test_books_that_do_not_balance_fail(world, published, checks):
    world.line("2026-10-01 10:00", "1.00", token_class="output", tokens=10)
    published()
    world.rows("UPDATE control_period SET lhs = lhs + 1")
    from warehouse import publish
    from warehouse.engine import writing

    with writing(world.layout, "test") as connection:
        assert publish.publish(connection, world.layout, world.settings).held
    found, _ = checks(1)
    assert (
        "a newer state is held back: bill = ledger (billed) of 2026-10 USD" in found["snapshot", "published"]["detail"]
    )


def test_a_first_snapshot_that_is_held_back_is_told_from_none(world, checks):
    world.line("2026-10-01 10:00", "1.00", token_class="output", tokens=10)
    world.attribute()
    world.rows("UPDATE control_period SET lhs = lhs + 1")
    from warehouse import publish
    from warehouse.engine import writing

    with writing(world.layout, "test") as connection:
        publish.publish(connection, world.layout, world.settings)
    Path("inferledger.yaml").write_text(f"data: {world.data}\n")
    found, _ = checks(1)
    assert "the first snapshot is held back" in found["snapshot", "published"]["detail"]


def test_a_clock_that_is_ahead_warns(world, published):
    from warehouse.snapshot import Scope, Snapshot

    world.rows(
        "INSERT INTO load VALUES ('l', 'gateway', 'usage', 'i', 'd', 1, 1, 0, 0, '2026-10-01', '2026-10-02', NULL, "
        "'2026-10-01')"
    )
    published()
    snapshot = Snapshot.open(world.layout.published, Scope.everything("test"))
    (check,) = ledger_checks.freshness(snapshot, datetime(2026, 10, 1, tzinfo=UTC))
    assert (check.result, "still to come" in check.detail) == ("warn", True)
