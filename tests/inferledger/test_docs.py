"""What is written for people is what the code does: every command, option, exit code and key is documented."""

import re

import pytest
import typer
import yaml

from alerts.settings import SHIPPED_RULES
from inferledger import config, reference
from inferledger.cli import app
from inferledger.commands.init import TEMPLATE
from inferledger.exits import MEANING, ExitCode

REGENERATE = "run `python -m inferledger.reference`"


@pytest.mark.parametrize("name", ["commands.md", "configuration.md"])
def test_the_generated_parts_are_up_to_date(name):
    text = (reference.DOCS / name).read_text()
    assert reference.rewritten(text) == text, REGENERATE


def test_every_command_and_option_is_documented():
    text = (reference.DOCS / "commands.md").read_text()
    for name, command in reference._leaves("inferledger", typer.main.get_command(app)):
        section = re.search(rf"### `{name}`\n(.*?)(?=\n### |\n<!-- end)", text, re.DOTALL)
        assert section, f"{name}: {REGENERATE}"
        assert command.help, f"{name} says nothing of itself"
        for parameter in command.params:
            if parameter.name != "help" and parameter.param_type_name == "option":
                assert all(f"`{word}" in section[1] for word in parameter.opts), (name, parameter.opts)
                assert parameter.help, f"{name} {parameter.opts} has no help"


def test_the_commands_of_the_design_are_there():
    names = {name for name, _ in reference._leaves("inferledger", typer.main.get_command(app))}
    wanted = {"demo", "init", "collect", "attribute", "publish", "run", "summary", "explain", "dashboard", "doctor"}
    groups = {"report list", "report run", "report show", "alerts list", "alerts release", "db upgrade", "db current"}
    assert {f"inferledger {name}" for name in wanted | groups} <= names


def test_every_exit_code_is_documented_and_in_the_help(cli):
    assert set(MEANING) == set(ExitCode)
    said = cli("--help").output
    text = (reference.DOCS / "commands.md").read_text()
    for code, meaning in MEANING.items():
        assert f"{code.value}: {meaning.split('`')[0][:30]}" in said
        assert f"| {code.value} | {meaning}" in text


def test_every_key_is_documented():
    text = (reference.DOCS / "configuration.md").read_text()
    for path, model in reference.models():
        for key in model.model_fields.values():
            assert f"| `{key.alias or ''}" in text or any(f"| `{name}` |" in text for name in model.model_fields), path


def test_what_init_writes_is_valid(tmp_path):
    path = tmp_path / "inferledger.yaml"
    path.write_text(TEMPLATE.read_text())
    loaded = config.load(path)
    assert loaded == config.Configuration.model_validate({}, context={"base": tmp_path})


def test_the_examples_that_init_writes_are_valid_too(tmp_path):
    """Without the `#` before them, that is; a section that is there twice then is the example."""
    text = re.sub(r"^#(?! )|^#(?=  )", "", TEMPLATE.read_text(), flags=re.MULTILINE)
    text = text.replace("sources: []\n", "")
    path = tmp_path / "inferledger.yaml"
    path.write_text(text)
    loaded = config.load(path)
    assert [source.kind for source in loaded.sources] == ["bill", "litellm", "generic", "prometheus", "pool_table"]
    assert set(yaml.safe_load(text)) == set(config.Configuration.model_fields), "a section is left out"


def test_the_smallest_useful_file_of_the_documentation_is_valid(tmp_path):
    text = (reference.DOCS / "configuration.md").read_text()
    path = tmp_path / "inferledger.yaml"
    path.write_text(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])
    assert [source.name for source in config.load(path).sources] == ["bill", "gateway"]


def test_every_rule_that_is_shipped_is_documented():
    text = (reference.DOCS / "configuration.md").read_text()
    assert set(re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE)) >= {rule.name for rule in SHIPPED_RULES}
