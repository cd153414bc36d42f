"""The published organisation, and the dashboard's application on it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboards.settings import CONFIG, PUBLISHED
from tests.dashboards import fleet_organisation, organisation
from warehouse.snapshot import Scope, Snapshot

APP = Path(__file__).parents[2] / "dashboards" / "app.py"
Open = Callable[..., AppTest]


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = organisation.build(tmp_path_factory.mktemp("organisation"))
    assert world.publish().held == ()
    return world.layout.published


@pytest.fixture(scope="session")
def fleet_published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = fleet_organisation.build(tmp_path_factory.mktemp("fleet"))
    assert world.publish().held == ()
    return world.layout.published


@pytest.fixture
def fleet_snapshot(fleet_published: Path) -> Snapshot:
    return Snapshot.open(fleet_published, Scope.everything("test"))


@pytest.fixture
def snapshot(published: Path) -> Snapshot:
    return Snapshot.open(published, Scope.everything("test"))


@pytest.fixture
def search_only(published: Path) -> Snapshot:
    return Snapshot.open(published, Scope.of("test", ["search"]))


@pytest.fixture
def app(published: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Open:
    """Run the application on a published folder, with an `access` section and the query of a link."""

    def open_app(folder: Path = published, access: dict[str, object] | None = None, **query: object) -> AppTest:
        monkeypatch.setenv(PUBLISHED, str(folder))
        monkeypatch.delenv(CONFIG, raising=False)
        if access is not None:
            config = tmp_path / "inferledger.yaml"
            config.write_text(json.dumps({"dashboard": {"access": access}}))
            monkeypatch.setenv(CONFIG, str(config))
        test = AppTest.from_file(str(APP), default_timeout=60)
        for name, value in query.items():
            test.query_params[name] = value
        return test.run()

    return open_app
