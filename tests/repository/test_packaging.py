"""A wheel holds all that the program reads at run time, and nothing that is only for development."""

import hashlib
import shutil
import subprocess
import sys
import zipfile

import pytest

from tests import needs
from tests.repository import tracked


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The names in a wheel that was built from the project's files alone."""
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for path in tracked.files():
        if path.parts[0] in tracked.ROOMS or path.name in {"LICENSE", "README.md", "pyproject.toml"}:
            (source / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(needs.ROOT / path, source / path)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*build, "--wheel-dir", target, source], check=True, timeout=240)
    (built,) = target.glob("*.whl")
    return set(zipfile.ZipFile(built).namelist())


@pytest.mark.slow
def test_a_wheel_holds_every_file_of_every_room(wheel):
    # What is read by people only.
    left_out = {path.as_posix() for path in tracked.files() if path.suffix == ".md"}
    expected = {path.as_posix() for path in tracked.files() if path.parts[0] in tracked.ROOMS} - left_out
    assert expected - wheel == set()


@pytest.mark.slow
def test_a_wheel_holds_no_tests_and_no_benches(wheel):
    assert {name.partition("/")[0] for name in wheel if ".dist-info" not in name} == set(tracked.ROOMS)


def test_the_licence_is_apache_2_0_word_for_word():
    digest = hashlib.sha256((needs.ROOT / "LICENSE").read_bytes()).hexdigest()
    assert digest == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
