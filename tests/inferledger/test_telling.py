"""`alerts` and `report`: silences, held messages, messages as files, reports by hand."""

import json
from pathlib import Path

import pytest
from sqlalchemy import text

from delivery import outbox
from delivery.message import Message
from inferledger import config, jobs, operations
from inferledger.folder_channel import folder_channel


@pytest.fixture
def hold(ledger):
    """Put a message into the outbox that waits for a person."""

    def put(status):
        with operations.opened(config.load(ledger)) as engine, engine.begin() as connection:
            outbox.enqueue(connection, key=status, channel="slack", message=Message(subject="Cost", text="up"))
            connection.execute(text("UPDATE outbox_message SET status = :s WHERE key = :s"), {"s": status})

    return put


def test_what_fires_is_listed_with_its_reason(ledger, cli):
    assert cli.json("alerts", "evaluate")["firing"] == []  # what happened is further back than look_back
    ledger.write_text(ledger.read_text() + "alerts: {look_back: 31}\n")
    facts = cli.json("alerts", "evaluate", code=1)
    assert {"rule": "unpriced-tokens", "series": {"model": "mystery-9"}} in facts["firing"]
    assert any("had no channel to go to" in problem for problem in facts["problems"])
    states = cli.json("alerts", "list")["states"]
    assert states[0]["state"] == "firing"
    assert states[0]["value"] == "7100"
    output = cli("alerts", "list").output
    assert "unpriced-tokens" in output
    assert "model mystery-9" in output


def test_a_silence_comes_and_goes(ledger, cli):
    cli("alerts", "list")
    result = cli("alerts", "silence", "rule=unpriced-*", "--for", "8h", "--reason", "known", "--who", "ada")
    assert result.exit_code == 0, result.output
    (silence,) = cli.json("alerts", "list")["silences"]
    assert (silence["matchers"], silence["who"]) == ({"rule": "unpriced-*"}, "ada")
    assert "silenced until" in cli("alerts", "list").output
    assert cli("alerts", "unsilence", silence["id"]).exit_code == 0
    assert cli.json("alerts", "list")["silences"] == []
    assert cli("alerts", "unsilence", silence["id"]).exit_code == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("colour=red", "--for", "8h", "-r", "x"), "`colour` cannot be matched"),
        (("team", "--for", "8h", "-r", "x"), "`team` says not what to match"),
        (("team=a", "-r", "x"), "Say how long"),
        (("team=a", "--for", "soon", "-r", "x"), "`soon` is no span of time"),
        (("team=a", "--until", "2020-01-01", "-r", "x"), "has passed"),
    ],
)
def test_a_silence_that_cannot_be_is_refused(ledger, cli, words, said):
    result = cli("alerts", "silence", *words)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_held_messages_are_released_or_settled(ledger, cli, hold):
    hold("uncertain")
    hold("failed")
    held = cli.json("alerts", "held", code=1)
    assert [(message["seq"], message["status"]) for message in held] == [(1, "uncertain"), (2, "failed")]
    result = cli("alerts", "release", "1")
    assert "Released" in result.output
    assert "wait for channel `slack`, which is not configured" in result.stderr.replace("\n", " ")
    assert cli("alerts", "settle", "2").exit_code == 0
    assert cli.json("alerts", "held") == []
    for command in ("release", "settle"):
        result = cli("alerts", command, "9")
        assert (result.exit_code, "Message 9 is not held" in result.stderr) == (2, True)


def test_messages_become_files_where_there_is_no_channel(ledger, tmp_path):
    ledger.write_text(ledger.read_text() + "alerts: {look_back: 31}\n")
    channels = folder_channel(tmp_path / "messages")
    done = jobs.alert(config.load(ledger), channels=channels)
    assert done.evaluation.messages == done.delivery.sent > 0
    assert done.delivery.problems == []
    texts = [path.read_text() for path in (tmp_path / "messages").glob("*.txt")]
    assert any("mystery-9" in each for each in texts)
    blocks = next((tmp_path / "messages").glob("*.slack.json"))
    assert json.loads(blocks.read_text())["blocks"]
    again = jobs.alert(config.load(ledger), channels=channels)
    assert (again.evaluation.messages, again.delivery.sent) == (0, 0)


def test_a_report_is_made_by_hand_once_and_shown_any_time(ledger, cli):
    facts = cli.json("report", "run")
    (page,) = facts["pages"]
    assert (page["day"], page["outcome"]) == ("2026-10-02", "told")
    assert Path(page["path"]).read_text().startswith("<!")
    assert cli.json("report", "run")["pages"][0]["outcome"] == "known"
    (listed,) = cli.json("report", "list")
    assert (listed["name"], listed["last_told_day"]) == ("daily-cost", "2026-10-02")
    assert "search" in cli("report", "show", "--day", "2026-10-01").output
    assert "<html" in cli("report", "show", "--html").output
    assert cli.json("report", "show")


def test_a_publication_is_recorded_once(ledger, cli):
    for _ in range(2):
        cli("publish")
    with operations.opened(config.load(ledger)) as engine, engine.connect() as connection:
        rows = connection.execute(text("SELECT manifest, zone, currency FROM publication")).all()
    assert [(row.zone, row.currency) for row in rows] == [("UTC", "USD")]
    assert rows[0].manifest == cli.json("summary")["manifest"]
