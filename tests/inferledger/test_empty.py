"""From nothing: `init`, then every command on an organisation that has no evidence yet."""

from pathlib import Path

import pytest

from inferledger import config


@pytest.fixture
def fresh(cli):
    """What `init` writes, and nothing else."""
    result = cli("init")
    assert result.exit_code == 0
    assert "Name your bill and your log under `sources`, then run `inferledger doctor`" in result.output
    return Path("inferledger.yaml")


def test_init_overwrites_nothing(fresh, cli):
    before = fresh.read_text()
    result = cli("init")
    assert (result.exit_code, "is there already, and stays as it is" in result.stderr) == (2, True)
    assert fresh.read_text() == before
    assert cli("init", "elsewhere/ledger.yaml").exit_code == 0
    assert config.load(Path("elsewhere/ledger.yaml")).data == Path("elsewhere/data").absolute()


def test_without_a_configuration_every_command_says_how_to_get_one(cli):
    for words in (("summary",), ("collect",), ("doctor",), ("dashboard",), ("run",), ("report", "list")):
        result = cli(*words)
        assert result.exit_code == 2
        assert "`inferledger init` writes one, `inferledger demo` makes an example" in result.stderr


def test_every_command_works_or_says_what_is_missing(fresh, cli):
    for words, code, said in (
        (("summary",), 3, "Nothing has been published"),
        (("doctor",), 1, "no bill is configured"),
        (("db", "current"), 6, "evidence: not set up (`inferledger db upgrade` brings it to"),
        (("db", "upgrade"), 0, "upgraded from nothing"),
        (("db", "upgrade"), 0, "is up to date"),
        (("db", "current"), 0, "up to date"),
        (("collect", "--only", "usage"), 2, "No source is left"),
        (("collect",), 0, "prices.catalogue:"),
        (("collect",), 0, "there is no source yet: name a bill or a usage log"),
        (("attribute",), 0, "0 hours with 0 calls"),
        (("publish",), 0, "Published snapshot"),
        (("publish",), 0, "unchanged"),
        (("summary",), 0, "No bill has been loaded"),
        (("explain",), 2, "The ledger has nothing of that"),
        (("alerts", "list"), 0, "Nothing fires."),
        (("alerts", "evaluate"), 0, "0 firing"),
        (("alerts", "held"), 0, "No message waits."),
        (("report", "list"), 0, "daily-cost (daily_cost): told nothing yet; no whole day yet"),
        (("report", "show"), 2, "The snapshot covers no whole day yet"),
        (("report", "run"), 1, "the snapshot covers no whole day yet; nothing to tell"),
        (("report", "run", "weekly"), 2, "No report is called `weekly`. There are: daily-cost"),
        (("doctor",), 0, "0 failed"),
        (("run", "--once"), 1, "collect: ok"),
    ):
        result = cli(*words)
        assert result.exit_code == code, (words, result.output)
        assert said in result.output.replace("\n", " "), (words, result.output)


def test_the_databases_stand_at_their_heads(fresh, cli):
    cli("db", "upgrade")
    facts = cli.json("db", "current")
    assert {name: row["is_current"] for name, row in facts.items()} == {"evidence": True, "operations": True}
    assert facts["evidence"]["current"] == facts["evidence"]["head"]
