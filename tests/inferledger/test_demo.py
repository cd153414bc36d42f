"""`demo`: the whole way on a small company, again without work, and never over anybody's files."""

import json
from decimal import Decimal
from pathlib import Path

import pytest

SMALL = ("demo", "--days", "3", "--scale", "0.02", "--no-serve")


@pytest.fixture
def no_channels(monkeypatch):
    monkeypatch.delenv("SLACK_WEBHOOK_URL", raising=False)


@pytest.mark.slow
def test_the_whole_way(cli, no_channels):
    result = cli(*SMALL)
    assert result.exit_code == 0, result.output
    for said in (
        "a company's bill (CUR 2.0)",
        "the bill restated",
        "attributed",
        "published",
        "daily report made",
        "balanced",
    ):
        assert said in result.output
    facts = cli.json("summary")
    for names in ("by_kind", "by_team"):
        assert sum(map(Decimal, facts[names].values())) == Decimal(facts["effective"]) > 0
    assert Decimal(facts["difference"]) == 0
    assert {"search", "support"} <= set(facts["by_team"])
    assert list(Path(".demo/data/reports/daily-cost").glob("*.html"))
    assert cli.json("doctor")["fail"] == 0
    manifest = facts["manifest"]
    again = cli(*SMALL)
    assert "is in .demo already" in again.output
    assert "0 rows in 0 batches" in again.output
    assert cli.json("summary")["manifest"] == manifest
    # Another company takes the place of this one; whatever else lies in a folder is left alone.
    other = cli("demo", "--days", "2", "--scale", "0.01", "--seed", "3", "--no-serve")
    assert other.exit_code == 0
    assert json.loads(Path(".demo/organisation.json").read_text())["days"] == 2
    assert cli.json("summary")["manifest"] != manifest


def test_a_folder_with_files_of_something_else_is_left_alone(cli, no_channels):
    Path("mine").mkdir()
    Path("mine/thesis.txt").write_text("done")
    result = cli(*SMALL, "--data", "mine")
    assert (result.exit_code, "holds files of something else" in result.stderr) == (2, True)
    assert Path("mine/thesis.txt").read_text() == "done"


def test_absurd_sizes_are_refused(cli):
    for words in (("--days", "0"), ("--scale", "0"), ("--port", "99999")):
        assert cli("demo", *words).exit_code == 2
