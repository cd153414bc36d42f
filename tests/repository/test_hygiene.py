"""What no file of the project may hold: a registry's address, a path of one machine, a secret."""

import re
from pathlib import Path

import pytest

from tests import needs
from tests.repository import tracked

# Put together here, so that this file doesn't hold what it looks for.
REGISTRIES = [
    ".".join(parts)
    for parts in [
        ("pypi", "org"), ("pypi", "python", "org"), ("files", "pythonhosted", "org"), ("registry", "npmjs", "org"),
        ("deb", "debian", "org"), ("proxy", "golang", "org"), ("static", "crates", "io"), ("repo1", "maven", "org"),
        ("repo", "maven", "apache", "org"), ("docker", "io"), ("quay", "io"), ("ghcr", "io"),
    ]
]  # fmt: skip
REGISTRY = re.compile("|".join(rf"\b{re.escape(name)}\b" for name in REGISTRIES) + r"|(index-url|find-links)[ =]+\S*/")

MACHINE_PATH = re.compile(r"(?<![\w.])/(root|home/\w+|Users/\w+|work/(main|shared)|opt/(wheels|pypi))\b")

SECRETS = {
    "AWS access key": re.compile(r"\b(AKIA|ASIA)(?![A-Z0-9]*EXAMPLE)[A-Z0-9]{16}\b"),
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE " + "KEY-----"),
    "Slack token": re.compile(r"\bxox[abeprs]-[0-9]{6,}[\w-]+"),
    "Slack webhook": re.compile(r"hooks\.slack\.com/(services|workflows)/T[A-Z0-9]{8,}/[A-Z0-9]{8,}/\w{20,}"),
    "GitHub token": re.compile(r"\b(gh[oprsu]_\w{36}|github_pat_\w{40,})"),
    "model provider key": re.compile(r"\bsk-(ant-|proj-)?[A-Za-z0-9_-]{32,}"),
    "password in a URL": re.compile(r"\b[a-z][a-z+]*://[^\s:/@\"'{}$<>]+:(?!secret@|password@)[^\s/@\"'{}$<>]{6,}@"),
}


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    found = {path: tracked.text(path) for path in tracked.files()}
    return {path: text for path, text in found.items() if text is not None}


def places(texts: dict[Path, str], forbidden: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts.items()
        for match in forbidden.finditer(text)
    ]


def test_no_file_holds_a_registry_address(texts):
    assert places(texts, REGISTRY) == []


def test_no_file_holds_a_machine_path(texts):
    assert places(texts, MACHINE_PATH) == []
    # Whatever this machine calls the checkout: a generated file may have taken it in.
    here = re.compile(re.escape(str(needs.ROOT)) + r"\b")
    assert places(texts, here) == []


@pytest.mark.parametrize("kind", SECRETS)
def test_no_file_holds_a_secret(kind, texts):
    assert places(texts, SECRETS[kind]) == []


@pytest.mark.parametrize("address", [*(f"https://{name}/simple" for name in REGISTRIES), "--find-links " + "/wheels"])
def test_a_registry_address_is_seen(address):
    assert REGISTRY.search(address)


@pytest.mark.parametrize("path", ["/" + "root/.cache", "/" + "home/ada/ledger", "see /" + "work/main."])
def test_a_machine_path_is_seen(path):
    assert MACHINE_PATH.search(path)


def test_what_is_no_machine_path_is_left_alone():
    assert not MACHINE_PATH.search("docs/root causes, /rootless, ../shared/samples, x/home/page")


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        ("AWS access key", "AKIA" + "Q3EGIDSLPRT7YWZA"),
        ("private key", "-----BEGIN RSA PRIVATE " + "KEY-----"),
        ("Slack token", "xox" + "b-123456789012-abcdef"),
        ("Slack webhook", "hooks.slack.com/services/" + "T01234567/B01234567/abcdefghijklmnopqrstuvwx"),
        ("GitHub token", "ghp_" + "a" * 36),
        ("model provider key", "sk-" + "ant-" + "a1" * 20),
        ("password in a URL", "postgresql+psycopg://ledger:" + "hunter22" + "@db/ledger"),
    ],
)
def test_a_secret_is_seen(kind, secret):
    assert SECRETS[kind].search(secret)


def test_what_is_no_secret_is_left_alone():
    for text in (
        "AKIA" + "IOSFODNN7EXAMPLE",
        "postgresql://ledger:${POSTGRES_PASSWORD}@db",
        "https://hooks.slack.com/services/T0/B0/x",
    ):
        assert not [kind for kind, pattern in SECRETS.items() if pattern.search(text)]
