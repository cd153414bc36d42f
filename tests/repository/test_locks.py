"""Every version that is installed is pinned with its hashes, and both locks agree."""

import re
import tomllib

import pytest

from tests import needs

# name[extras]==version, and the indented hashes that follow
PIN = re.compile(
    r"^([\w.-]+)(?:\[[^]]*\])?==([^\s;]+)[^\n]*((?:\n    --hash=sha256:[0-9a-f]{64}[^\n]*)*)", re.MULTILINE
)


def pins(lock: str) -> dict[str, str]:
    return {name: version for name, version, _ in PIN.findall((needs.ROOT / lock).read_text())}


def names(requirements: list[str]) -> set[str]:
    found = {re.split(r"[\[<>=!~; ]", requirement, maxsplit=1)[0] for requirement in requirements}
    return {name.lower().replace("_", "-") for name in found}


@pytest.fixture(scope="module")
def project():
    return tomllib.loads((needs.ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_every_pin_has_hashes(lock):
    found = PIN.findall((needs.ROOT / lock).read_text())
    assert found
    assert [name for name, _, hashes in found if not hashes] == []


def test_every_requirement_is_pinned(project):
    assert names(project["dependencies"]) <= set(pins("requirements.lock"))
    development = project["optional-dependencies"]["dev"]
    assert names(project["dependencies"] + development) <= set(pins("requirements-dev.lock"))


def test_the_development_lock_holds_all_of_the_other_one():
    development = pins("requirements-dev.lock")
    runtime = pins("requirements.lock")
    assert {name: development.get(name) for name in runtime} == runtime
