"""The demonstration company at a small scale, and the whole way gone with it."""

import hashlib
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import pytest

from demo import organisation
from inferledger import config as configurations
from inferledger import jobs
from warehouse.snapshot import Scope, Snapshot


@dataclass(frozen=True)
class Site:
    """One installation: a copy of the company's files and its own data folder."""

    folder: Path
    as_of: datetime

    def copy(self, folder: Path) -> "Site":
        """Another installation with a copy of the company's files."""
        shutil.copytree(self.folder, folder, copy_function=shutil.copy2)
        return Site(folder, self.as_of)

    @property
    def config_path(self) -> Path:
        return self.folder / "inferledger.yaml"

    @property
    def configuration(self):
        return configurations.load(self.config_path)

    def collect(self, *names: str):
        return jobs.collect(self.configuration, set(names) or None, self.as_of)

    def attribute(self):
        return jobs.attribute(self.configuration, self.as_of)

    def publish(self):
        return jobs.publish(self.configuration)

    def whole_way(self) -> None:
        report = self.collect()
        assert report.findings == ()
        assert self.attribute().failed_controls == ()
        self.publish()

    def command(self, *words: str) -> subprocess.Popen[bytes]:
        """`inferledger WORDS` in a process of its own, so that it can be killed."""
        return subprocess.Popen(
            [sys.executable, "-m", "inferledger", *words, "--config", str(self.config_path)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def snapshot(self) -> Snapshot:
        return Snapshot.open(self.folder / "data" / "published", Scope.everything("test"))

    def published_bytes(self) -> dict[str, str]:
        """Every file that the current manifest names, and the manifest, by digest of its bytes."""
        published = self.folder / "data" / "published"
        pointer = json.loads((published / "current.json").read_text())
        manifest = published / "manifests" / f"{pointer['manifest']}.json"
        files = [published / "files" / entry["file"] for entry in json.loads(manifest.read_text())["files"]]
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (*files, manifest)}


def make_company(folder: Path, days: int, scale: float) -> datetime:
    made = organisation.write(folder, days=days, scale=scale)
    (folder / "inferledger.yaml").write_text(organisation.config())
    return made.as_of


@pytest.fixture(scope="session")
def company(tmp_path_factory) -> Site:
    """Two days of a small company; its files are never written to after this, only copied."""
    folder = tmp_path_factory.mktemp("company") / "acme"
    return Site(folder, make_company(folder, days=2, scale=0.05))


@pytest.fixture
def site(company, tmp_path) -> Site:
    """A fresh installation with a copy of the company's files."""
    return company.copy(tmp_path / "acme")
