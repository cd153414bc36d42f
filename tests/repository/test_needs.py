"""A need that is not met skips, and says what to install; a wrong name in a test is an error."""

from pathlib import Path

import pytest

from tests import needs


def java(folder: Path, version: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("need", "package"),
    [
        (needs.chromium, "chromium"),
        (needs.java, "openjdk-17-jre-headless"),
        (needs.prometheus, "prometheus"),
        (needs.promtool, "prometheus"),
    ],
)
def test_an_absent_program_skips_and_names_the_package(need, package, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(pytest.skip.Exception, match=rf"^NEEDS .*: install Debian's package {package}$"):
        need()


@pytest.mark.parametrize("version", ["17", "17.0.21.1", "21-ea"])
def test_java_17_or_newer_is_taken(version, monkeypatch, tmp_path):
    program = java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert needs.java() == program


@pytest.mark.parametrize(("version", "found"), [("1.8.0_392", "Java 8"), ("11.0.2", "Java 11")])
def test_an_older_java_skips_and_says_which_was_found(version, found, monkeypatch, tmp_path):
    java(tmp_path, version)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=f"found {found} in JAVA_HOME"):
        needs.java()


def test_a_sample_is_found_and_a_wrong_name_is_an_error(monkeypatch, tmp_path):
    (tmp_path / "billing").mkdir()
    monkeypatch.setenv("INFERLEDGER_SAMPLES", str(tmp_path))
    assert needs.samples("billing") == tmp_path / "billing"
    with pytest.raises(FileNotFoundError):
        needs.samples("bilking")
