"""What CI runs is what `make` runs, with no skip allowed."""

import os
import subprocess

from tests import needs

SCRIPT = needs.ROOT / ".ci" / "run"


def test_the_script_runs_as_it_is():
    assert os.access(SCRIPT, os.X_OK)
    subprocess.run(["bash", "-n", SCRIPT], check=True)


def test_it_lints_then_tests_and_ends_with_pytests_line():
    lines = SCRIPT.read_text().splitlines()
    assert "set -euo pipefail" in lines
    assert lines[-3:] == ["export INFERLEDGER_NO_SKIPS=1", "make lint", "make test"]


def test_it_installs_every_package_that_a_skip_would_name():
    text = SCRIPT.read_text()
    for package in ("chromium", "openjdk-17-jre-headless", "postgresql", "prometheus"):
        assert package in text
