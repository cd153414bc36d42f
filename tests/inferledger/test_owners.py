"""`owners`: what each rule caught, what nobody owns and how to catch it, why a call is whose."""

from pathlib import Path

import pytest
import yaml

RULES = [
    {"when": {"tag.team": "*"}, "set": {"team": "{tag.team}"}},
    {"when": {"key_alias": "search-*"}, "set": {"team": "search", "app": "finder"}},
    {"when": {"key_alias": "*"}, "set": {"app": "any"}},
    {"when": {"key_alias": "gone-*"}, "set": {"team": "gone"}},
]


@pytest.fixture
def company(world, published):
    """Search's key claims to be another team's; a stranger has a key, somebody has nothing."""
    world.call("2026-10-01 10:10", {"key_alias": "search-1", "tag.team": "ads"}, output=60, record_id="call-a")
    world.call("2026-10-01 10:20", {"key_alias": "stranger: 1"}, output=30)
    world.call("2026-10-02 10:20", {"tag.team": "ads"}, output=8)
    world.call("2026-10-02 10:30", {}, output=2)
    world.line("2026-10-01 10:00", "9.00", token_class="output", tokens=90)
    world.line("2026-10-02 10:00", "1.00", token_class="output", tokens=10)
    published()
    path = Path("inferledger.yaml")
    path.write_text(path.read_text() + yaml.safe_dump({"owners": RULES}))


def test_every_rule_says_what_it_caught_and_credentials_come_first(company, cli):
    facts = cli.json("owners")
    assert [
        (rule["number"], rule["rests_on"], rule["matched"], rule["decided"], rule["requests"], rule["cost"])
        for rule in facts["rules"]
    ] == [
        (2, "credential", 1, 1, 1, "6.000000000"),
        # the first rule has given search-1 its app; the stranger has only this
        (3, "credential", 2, 1, 1, "3.000000000"),
        (4, "credential", 0, 0, 0, "0.000000000"),
        # what the payload says of search-1 moves nothing
        (1, "payload", 2, 1, 1, "0.800000000"),
    ]


def test_the_largest_groups_without_a_team_come_with_a_rule_that_catches_them(company, cli):
    groups = cli.json("owners")["without_team"]
    assert [(group["claim"], group["value"], group["requests"], group["cost"]) for group in groups] == [
        ("key_alias", "stranger: 1", 1, "3.000000000"),
        (None, None, 1, "0.200000000"),
    ]
    assert yaml.safe_load(groups[0]["rule"]) == [{"when": {"key_alias": "stranger: 1"}, "set": {"team": "TEAM"}}]
    assert groups[1]["rule"] is None


def test_a_rule_that_is_only_written_down_is_judged_before_it_is_used(company, cli):
    path = Path("inferledger.yaml")
    given = yaml.safe_load(path.read_text())
    given["owners"].append({"when": {"key_alias": "stranger*"}, "set": {"team": "new"}, "from": "2026-10-02"})
    path.write_text(yaml.safe_dump(given))
    assert cli.json("owners")["rules"][3]["decided"] == 0, "it holds from the day after the call"
    given["owners"][-1]["from"] = "2026-10-01"
    path.write_text(yaml.safe_dump(given))
    facts = cli.json("owners")
    assert facts["rules"][3]["cost"] == "3.000000000"
    assert [group["claim"] for group in facts["without_team"]] == [None]


def test_only_the_days_that_are_asked_for_count(company, cli):
    facts = cli.json("owners", "--from", "2026-10-02", "--to", "2026-10-02")
    assert [rule["requests"] for rule in facts["rules"]] == [0, 0, 0, 1]


def test_why_a_call_is_whose_it_is_goes_through_every_rule(company, cli):
    facts = cli.json("owners", "--why", "call-a")
    assert facts["owners"] == {"team": "search", "app": "finder"}
    assert [(rule["number"], rule["matched"], rule["gave"], rule["lacking"]) for rule in facts["rules"]] == [
        (2, True, {"team": "search", "app": "finder"}, {}),
        (3, True, {}, {}),
        (4, False, {}, {"key_alias": "gone-*"}),
        (1, True, {}, {}),
    ]
    told = cli("owners", "--why", "call-a").stdout
    assert "Owner: app: finder, team: search" in told
    assert "✗ rule 4 (key_alias: gone-*): key_alias: gone-* is not met" in told


def test_a_name_that_nobody_knows_is_said_with_the_remedy(company, cli):
    result = cli("owners", "--why", "nobody-knows")
    assert result.exit_code == 2
    assert "No published claim set, record or call is named nobody-knows" in result.stderr


def test_the_table_names_rules_that_catch_nothing_and_rules_to_paste(company, cli):
    told = cli("owners").stdout
    assert "(caught nothing)" in told
    assert "- {when: {key_alias: 'stranger: 1'}, set: {team: TEAM}}" in told


def test_with_nothing_published_it_says_what_to_do(cli):
    result = cli("owners")
    assert result.exit_code != 0
    assert "inferledger" in result.stderr
