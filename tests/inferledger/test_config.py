"""One file, validated whole: every mistake named with its line, its key and what to do."""

from decimal import Decimal
from pathlib import Path

import pytest

from inferledger import config
from inferledger.config import ConfigError


def problems(tmp_path: Path, text: str) -> list[str]:
    """What is said about a file, without its folder."""
    path = tmp_path / "inferledger.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        config.load(path)
    return [line.removeprefix(f"{tmp_path}/") for line in str(caught.value).splitlines()]


def load(tmp_path: Path, text: str) -> config.Configuration:
    path = tmp_path / "inferledger.yaml"
    path.write_text(text)
    return config.load(path)


def test_an_empty_file_is_a_working_configuration(tmp_path):
    loaded = load(tmp_path, "")
    assert (loaded.zone, loaded.currency, loaded.sources) == ("UTC", "USD", ())
    assert loaded.data == tmp_path / "data"
    assert loaded.operations_url == f"sqlite:///{tmp_path}/data/operations.db"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            "currncy: USD\n",
            "inferledger.yaml:1: currncy: there is no such key; correct it (did you mean `currency`?)",
            id="a typo in a key",
        ),
        pytest.param(
            "zone: UTC\nsources:\n  - name: a\n    kind: litelm\n    location: x\n",
            "inferledger.yaml:3: sources[0]: `kind: litelm` is not known; write one of bedrock, bill, "
            "claude_code, codex, envoy_ai_gateway, generic, helicone, langfuse, litellm, openmetrics, otlp, "
            "pool_table, prometheus, usage_body (did you mean `litellm`?)",
            id="a typo in a kind",
        ),
        pytest.param(
            "sources:\n  - name: a\n    kind: litellm\n    locaton: x\n    location: y\n",
            "inferledger.yaml:4: sources[0].locaton: there is no such key; correct it (did you mean `location`?)",
            id="a typo inside a source",
        ),
        pytest.param(
            "sources:\n  - name: a\n    kind: litellm\n",
            "inferledger.yaml:2: sources[0]: `location` is missing; add `location: ...` (folder, file, or "
            "s3://bucket/prefix; relative to the config file)",
            id="a key that is missing",
        ),
        pytest.param(
            "sources:\n  - {name: a, location: x}\n",
            "inferledger.yaml:2: sources[0]: `kind` is missing; add `kind: ...`, one of bedrock, bill, "
            "claude_code, codex, envoy_ai_gateway, generic, helicone, langfuse, litellm, openmetrics, otlp, "
            "pool_table, prometheus, usage_body",
            id="a kind that is missing",
        ),
        pytest.param(
            "channels: {a: {kind: slack}}\n",
            "inferledger.yaml:1: channels: there is no such key; move it under `delivery` "
            "(did you mean `delivery.channels`?)",
            id="a key at the wrong level",
        ),
        pytest.param(
            "engine:\n  threads: two\n",
            "inferledger.yaml:2: engine.threads: a whole number belongs here, not `two`; correct the value "
            "(default: the machine's cores)",
            id="text where a number belongs",
        ),
        pytest.param(
            "sources:\n  - {name: a, kind: litellm, location: x, account: 111122223333}\n",
            "inferledger.yaml:2: sources[0].account: 111122223333 is a number, and text belongs here; write it in "
            'quotes: "111122223333"',
            id="an account without quotes",
        ),
        pytest.param(
            "zone: Europe/Pari\n",
            "inferledger.yaml:1: zone: `Europe/Pari` is no IANA zone; write one such as Europe/Paris or UTC",
            id="a zone that is none",
        ),
        pytest.param(
            "prices:\n  contract:\n    - {provider: a, model: b, input: 1, from: 2026-13-01}\n",
            "inferledger.yaml:3: prices.contract[0].from: a day such as 2026-11-30 belongs here, not `2026-13-01`; "
            "correct the value",
            id="a day that is none",
        ),
        pytest.param(
            'schedule:\n  collect: "* * *"\n',
            "inferledger.yaml:2: schedule.collect: `* * *` is no cron expression (wrong number of fields; got 3, "
            "expected 5); write minute, hour, day, month and weekday, such as `*/15 * * * *`, or null for never",
            id="a schedule that is none",
        ),
        pytest.param(
            "currency: USD\nzone: UTC\ncurrency: EUR\n",
            "inferledger.yaml:3: currency: this key stands on line 1 already; keep one of the two",
            id="a doubled key",
        ),
        pytest.param(
            "engine:\n\tthreads: 2\n",
            "inferledger.yaml:2: a tab stands where only spaces may; indent with spaces",
            id="a tab",
        ),
        pytest.param(
            "zone: UTC\n---\nzone: UTC\n",
            "inferledger.yaml:2: a second document begins here; remove the line `---`",
            id="two documents",
        ),
        pytest.param(
            "- a\n- b\n",
            "inferledger.yaml:1: holds no keys at its top; write `key: value` lines, such as `currency: USD`",
            id="a list",
        ),
        pytest.param(
            "alerts: {channels: [slak]}\ndelivery: {channels: {slack: {kind: slack}}}\n",
            "inferledger.yaml:1: alerts.channels[0]: there is no channel `slak`; write one of slack "
            "(did you mean `slack`?), or add it under delivery.channels",
            id="a channel that another room does not have",
        ),
        pytest.param(
            "reports:\n  - {name: daily, channels: [slack]}\n",
            "inferledger.yaml:2: reports[0].channels[0]: there is no channel `slack`; add `slack` under "
            "delivery.channels",
            id="a report's channel",
        ),
        pytest.param(
            "operations: {url: mysql://x/y}\n",
            "inferledger.yaml:1: operations.url: `mysql` is not supported; write sqlite:///PATH or "
            "postgresql://HOST/DATABASE",
            id="another kind of database",
        ),
    ],
)
def test_a_mistake_is_named_with_its_line_and_its_remedy(tmp_path, text, said):
    assert problems(tmp_path, text) == [said]


def test_a_measure_that_nobody_knows_is_named_with_the_nearest(tmp_path):
    text = "alerts:\n  rules:\n    - {name: x, kind: threshold, measure: effective_cost, above: 1}\n"
    (said,) = problems(tmp_path, text)
    assert said.startswith(
        "inferledger.yaml:3: alerts.rules[0].measure: there is no measure `effective_cost`; "
        "correct it (did you mean `effective_cost_usd`?); known are "
    )


def test_a_dimension_that_the_measure_does_not_have_is_named_with_those_it_has(tmp_path):
    text = "alerts:\n  rules:\n    - {name: x, kind: threshold, measure: requests, by: [kind], above: 1}\n"
    (said,) = problems(tmp_path, text)
    assert said.startswith(
        "inferledger.yaml:3: alerts.rules[0].by: `requests` cannot be split by kind; write some of team, app, "
    )


def test_all_mistakes_are_named_at_once_in_the_order_of_their_lines(tmp_path):
    text = (
        "zone: Nowhere\ncurrncy: USD\nengine: {threads: 0}\nzone: UTC\nsources: [{name: a, kind: cur3, location: x}]\n"
    )
    said = problems(tmp_path, text)
    assert [line.split(":")[1] for line in said] == ["1", "2", "3", "4", "5"]


def test_a_password_in_the_file_is_refused_without_repeating_it(tmp_path):
    (said,) = problems(tmp_path, "operations:\n  url: postgresql://ledger:" + "sesame" + "@host/db\n")
    assert "inferledger.yaml:2: operations.url: a password does not belong in this file" in said
    assert "PGPASSWORD" in said
    assert "sesame" not in said


def test_what_is_not_utf8_and_what_is_a_folder_is_said(tmp_path):
    path = tmp_path / "latin.yaml"
    path.write_bytes(b"zone: UTC\ncurrency: \xe9\n")
    with pytest.raises(ConfigError, match=r"latin.yaml:2: is not UTF-8; save it as UTF-8"):
        config.load(path)
    with pytest.raises(ConfigError, match=r"is a folder; name the file in it"):
        config.load(tmp_path)


def test_a_file_that_is_not_there_names_the_ways_to_one(tmp_path):
    with pytest.raises(ConfigError, match="there is no such file; `inferledger init` writes one"):
        config.load(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="`inferledger demo` makes an example, --config or INFERLEDGER_CONFIG names"):
        config.find(None, {}, tmp_path)


def test_an_alias_that_holds_itself_is_refused(tmp_path):
    assert any("an alias that holds itself" in line for line in problems(tmp_path, "alerts: &a\n  rules: *a\n"))


def test_paths_are_relative_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir("/")
    loaded = load(
        tmp_path,
        "data: ./here\noperations: {url: sqlite:///ops.db}\n"
        "sources:\n"
        "  - {name: a, kind: litellm, location: logs}\n"
        "  - {name: b, kind: litellm, location: 's3://bucket/prefix'}\n",
    )
    assert loaded.data == tmp_path / "here"
    assert loaded.operations_url == f"sqlite:///{tmp_path}/ops.db"
    assert [source.location for source in loaded.sources] == [f"{tmp_path}/logs", "s3://bucket/prefix"]


def test_numbers_are_what_is_written_and_old_yaml_surprises_are_off(tmp_path):
    loaded = load(
        tmp_path,
        "prices:\n  contract:\n    - {provider: a, model: 12:30, input: 0.123456789012345678, from: 2026-01-01}\n"
        "alerts: {without: [team-cost]}\n"
        "models: {aliases: {no: yes, 2024: nova}}\n"
        "sources: [{name: a, kind: litellm, location: x, account: 011122223333}]\n",
    )
    (price,) = loaded.prices.contract
    assert price.input == Decimal("0.123456789012345678")
    assert (price.model, price.valid_from.isoformat()) == ("12:30", "2026-01-01")
    assert loaded.models.aliases == {"no": "yes", "2024": "nova"}
    assert loaded.alerts.without == ("team-cost",)
    assert loaded.sources[0].model_dump()["account"] == "011122223333"


def test_the_file_is_looked_for_where_it_was_said_to_be(tmp_path):
    (tmp_path / ".demo").mkdir()
    demo = tmp_path / ".demo" / "inferledger.yaml"
    demo.write_text("")
    assert config.find(None, {}, tmp_path) == demo
    mine = tmp_path / "inferledger.yaml"
    mine.write_text("")
    assert config.find(None, {}, tmp_path) == mine
    assert config.find(None, {"INFERLEDGER_CONFIG": "other.yaml"}, tmp_path) == Path("other.yaml")
    assert config.find(Path("named.yaml"), {"INFERLEDGER_CONFIG": "other.yaml"}, tmp_path) == Path("named.yaml")


def test_secrets_that_the_file_refers_to_are_known_by_their_variables(tmp_path):
    loaded = load(tmp_path, "delivery: {channels: {a: {kind: slack}, b: {kind: webhook, url_env: HOOK}}}\n")
    assert config.environment_variables(loaded) == {
        "SLACK_WEBHOOK_URL": "delivery.channels.a.url_env",
        "HOOK": "delivery.channels.b.url_env",
    }
