"""Every target sets itself up, an interrupted set-up recovers, and the README's commands are there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests import needs

TARGETS = {"bench", "clean", "demo", "help", "lint", "lock", "screenshots", "test"}

# Stands in for Python: `-m venv` puts it into the environment, `-m pip` notes what it was asked to install.
STUB = """#!/bin/sh
case "$*" in
  "-c "*) exit "${OLD_PYTHON:-0}" ;;
  "-m venv --clear "*)
    echo "venv" >>calls
    rm -rf "$4" && mkdir -p "$4/bin" && cp python-stub "$4/bin/python"
    for command in inferledger pytest ruff mypy; do
      printf '#!/bin/sh\\necho "%s $*" >>calls\\n' $command >"$4/bin/$command" && chmod +x "$4/bin/$command"
    done ;;
  "-m pip --version") ;;
  "-m pip install "*)
    shift 2 && echo "$*" >>calls
    if [ -e interrupt ]; then rm interrupt && kill -9 $PPID; fi ;;
  *) echo "python $*" >>calls ;;
esac
"""
RUNTIME = ["install --require-hashes -r requirements.lock", "install --no-deps --no-build-isolation -e ."]
DEVELOPMENT = ["install --require-hashes -r requirements-dev.lock", "install --no-deps --no-build-isolation -e ."]


class Machine:
    """A fresh checkout on a machine whose Python is a stub."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("Makefile", "pyproject.toml", "requirements.lock", "requirements-dev.lock"):
            shutil.copy(needs.ROOT / name, folder)
        stub = folder / "python-stub"
        stub.write_text(STUB)
        stub.chmod(0o755)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        path = f"{Path(shutil.which('make') or 'make').parent}:/usr/bin:/bin"
        return subprocess.Popen(
            ["make", "PYTHON=./python-stub", *arguments],
            cwd=self.folder,
            env={"PATH": path, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def make(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(*arguments, **environment)
        output, errors = process.communicate(timeout=60)
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def calls(self) -> list[str]:
        """What was called since the last time."""
        log = self.folder / "calls"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_demo_installs_only_what_it_runs_on(machine):
    assert machine.make("demo", "ARGS=--no-serve --days 2").returncode == 0
    assert machine.calls() == ["venv", *RUNTIME, "inferledger demo --no-serve --days 2"]


@pytest.mark.parametrize(
    ("target", "commands"),
    [
        ("test", ["pytest -n 2 --dist loadfile -x"]),
        ("lint", ["ruff check", "ruff format --check", "mypy "]),
        ("bench", ["python -m bench -x"]),
        ("screenshots", ["python -m demo.screenshots -x"]),
    ],
)
def test_developers_targets_install_the_development_lock(machine, target, commands):
    assert machine.make(target, "ARGS=-x").returncode == 0
    assert machine.calls() == ["venv", *DEVELOPMENT, *commands]


def test_what_is_installed_is_not_installed_again(machine):
    machine.make("test")
    machine.calls()
    machine.make("test")
    machine.make("demo")
    assert machine.calls() == ["pytest -n 2 --dist loadfile", "inferledger demo"]


def test_a_new_lock_is_installed_into_the_same_environment(machine):
    machine.make("test")
    machine.calls()
    lock = machine.folder / "requirements-dev.lock"
    stamp = (machine.folder / ".venv" / ".dev-installed").stat().st_mtime
    os.utime(lock, (stamp + 10, stamp + 10))
    machine.make("test")
    assert machine.calls() == [*DEVELOPMENT, "pytest -n 2 --dist loadfile"]


def test_an_interrupted_installation_is_begun_again_from_nothing(machine):
    (machine.folder / "interrupt").touch()
    assert machine.make("demo").returncode != 0
    assert machine.calls() == ["venv", RUNTIME[0]]
    assert machine.make("demo").returncode == 0
    assert machine.calls() == ["venv", *RUNTIME, "inferledger demo"]


def test_a_second_make_waits_for_the_one_that_installs(machine):
    mark = machine.folder / ".venv" / ".installing"
    mark.parent.mkdir()
    mark.write_text(str(os.getpid()))
    with machine.start("demo") as waiting:
        assert waiting.stdout is not None
        assert f"Process {os.getpid()} is installing" in waiting.stdout.readline()
        assert machine.calls() == []
        mark.unlink()
        waiting.stdout.read()
    assert waiting.returncode == 0
    assert machine.calls() == ["venv", *RUNTIME, "inferledger demo"]


def test_a_half_made_environment_is_made_anew(machine):
    (machine.folder / ".venv" / "bin").mkdir(parents=True)
    assert machine.make("demo").returncode == 0
    assert machine.calls() == ["venv", *RUNTIME, "inferledger demo"]


def test_an_old_python_is_named_with_the_remedy(machine):
    result = machine.make("demo", OLD_PYTHON="1")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer, which ./python-stub is not" in result.stderr
    assert "make demo PYTHON=python3.12" in result.stderr
    assert machine.calls() == []


def test_help_lists_every_target(machine):
    listed = re.findall(r"^  make (\w+) ", machine.make("help").stdout, re.MULTILINE)
    assert set(listed) == TARGETS


def test_clean_keeps_data_and_the_environment(machine):
    for name in (".demo", "data", "warehouse/__pycache__", ".venv/lib/__pycache__"):
        (machine.folder / name).mkdir(parents=True)
    assert machine.make("clean").returncode == 0
    kept = {path.relative_to(machine.folder).as_posix() for path in machine.folder.rglob("*") if path.is_dir()}
    assert kept == {"data", "warehouse", ".venv", ".venv/lib", ".venv/lib/__pycache__"}


@pytest.mark.parametrize("document", ["README.md", "docs/development.md"])
def test_the_make_commands_in_the_documents_exist(document):
    text = (needs.ROOT / document).read_text()
    named = set(re.findall(r"(?:^|`)\$? ?make ([a-z]+)", text, re.MULTILINE))
    assert named <= TARGETS


def test_the_readme_gives_the_two_commands():
    blocks = re.findall(r"```[a-z]*\n(.*?)```", (needs.ROOT / "README.md").read_text(), re.DOTALL)
    commands = {line.split()[1] for block in blocks for line in block.splitlines() if line.startswith("make ")}
    assert "demo" in commands
    assert commands <= TARGETS
