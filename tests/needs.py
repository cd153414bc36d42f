"""What a test needs and a machine may not have. Each function gives the thing, or skips and says what to install.

    chromium = needs.chromium()      # in a test, a fixture or at the top of a module

The markers `spark`, `browser`, `postgres`, `prometheus` and `samples` ask for theirs before the test starts
(tests/conftest.py). With INFERLEDGER_NO_SKIPS=1 a skip is a failure, but for the absence of the samples
(docs/development.md).
"""

import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parent.parent

# A skip whose reason begins so is allowed even where skips are failures: the samples may not be copied in here.
SAMPLES_ABSENT = "SAMPLES ABSENT"

spark = pytest.mark.spark


def chromium() -> Path:
    return _program("chromium", "chromium-browser", "google-chrome", install="Debian's package chromium")


def prometheus() -> Path:
    return _program("prometheus", install="Debian's package prometheus")


def promtool() -> Path:
    return _program("promtool", install="Debian's package prometheus")


def java() -> Path:
    """Java 17 or newer, found as Spark finds it: JAVA_HOME first, then the path."""
    home = os.environ.get("JAVA_HOME")
    program = Path(home, "bin", "java") if home else _which("java")
    version = _java_version(program) if program and program.exists() else None
    if version is None or program is None or version < 17:
        found = "no Java" if version is None else f"Java {version}"
        where = f" in JAVA_HOME={home}" if home else ""
        _skip(f"Java 17 or newer (found {found}{where})", "Debian's package openjdk-17-jre-headless")
    return program


def postgres() -> Path:
    """The folder of PostgreSQL's server programs (initdb, postgres), which Debian keeps off the path."""
    folders = [p.parent for p in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if folders:
        return max(folders, key=lambda folder: float(folder.parent.name))
    initdb = _which("initdb")
    if initdb is None:
        _skip("a PostgreSQL server (initdb)", "Debian's package postgresql")
    return initdb.resolve().parent


def samples(*parts: str) -> Path:
    """A file or folder of the samples, `../shared/samples` beside the repository or INFERLEDGER_SAMPLES."""
    folder = Path(os.environ.get("INFERLEDGER_SAMPLES") or ROOT.parent / "shared" / "samples")
    if not folder.is_dir():
        pytest.skip(f"{SAMPLES_ABSENT}: no folder {folder}; set INFERLEDGER_SAMPLES to it", allow_module_level=True)
    wanted = folder.joinpath(*parts)
    if not wanted.exists():
        # The folder is there, so this is a wrong name in a test: an error, not a skip.
        raise FileNotFoundError(wanted)
    return wanted


def git_checkout() -> Path:
    """The repository's root, where git can tell which files belong to the project."""
    if _which("git") is None or not (ROOT / ".git").exists():
        _skip("a git checkout", "git, and clone the repository")
    return ROOT


def _program(*names: str, install: str) -> Path:
    found = next(filter(None, map(_which, names)), None)
    if found is None:
        _skip(f"{names[0]} on the path", install)
    return found


def _which(name: str) -> Path | None:
    found = shutil.which(name)
    return Path(found) if found else None


@functools.cache
def _java_version(program: Path) -> int | None:
    answer = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def _skip(what: str, install: str) -> NoReturn:
    pytest.skip(f"NEEDS {what}: install {install}", allow_module_level=True)
