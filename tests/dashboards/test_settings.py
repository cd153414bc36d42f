"""The section `dashboard`, who sees what, and how the server is started."""

import sys
from pathlib import Path

import pytest

from dashboards import launch, settings
from dashboards.settings import CONFIG, PUBLISHED, DashboardSettings, Misconfigured
from warehouse.snapshot import Scope


def test_by_default_everybody_sees_everything_and_only_this_machine_is_served():
    default = DashboardSettings()
    assert default.scope(None) == Scope.everything("anyone")
    assert default.scope("ada@example.com") == Scope.everything("ada@example.com")
    assert default.host == "127.0.0.1"


def test_whoever_is_named_sees_their_teams_and_whoever_is_not_sees_nothing():
    access = DashboardSettings(access={"ada": ("search", "support"), "cfo": "everything"})
    assert access.scope("ada") == Scope.of("ada", ["search", "support"])
    assert access.scope("cfo") == Scope.everything("cfo")
    assert access.scope("eve") is None
    assert access.scope(None) is None


def test_a_star_is_whoever_is_not_named():
    access = DashboardSettings(access={"ada": "everything", "*": ("search",)})
    assert access.scope("eve") == Scope.of("eve", ["search"])


def test_settings_come_from_the_section_dashboard_of_the_file(tmp_path):
    file = tmp_path / "inferledger.yaml"
    file.write_text("zone: UTC\ndashboard:\n  title: Acme\n  access: {ada: [search]}\n")
    folder, read = settings.from_environment({PUBLISHED: "published", CONFIG: str(file)})
    assert folder == Path("published")
    assert read.title == "Acme"
    assert read.access == {"ada": ("search",)}


@pytest.mark.parametrize("content", ["dashboard: {titel: Acme}", "dashboard: [", "dashboard: {port: 0}", "- 1"])
def test_a_section_with_a_mistake_names_the_file(tmp_path, content):
    file = tmp_path / "inferledger.yaml"
    file.write_text(content)
    with pytest.raises(Misconfigured, match=r"inferledger\.yaml"):
        settings.from_environment({PUBLISHED: "published", CONFIG: str(file)})


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(Misconfigured, match="absent"):
        settings.from_environment({PUBLISHED: "published", CONFIG: str(tmp_path / "absent.yaml")})


def test_the_published_folder_must_be_named():
    with pytest.raises(Misconfigured, match=PUBLISHED):
        settings.from_environment({})


def test_the_server_listens_where_it_is_told_and_tells_nobody():
    command = launch.command(DashboardSettings(host="10.0.0.7"), 9000, headless=True)
    assert command[:4] == [sys.executable, "-m", "streamlit", "run"]
    for flag in ("--server.address=10.0.0.7", "--server.port=9000", "--server.headless=true",
                 "--browser.gatherUsageStats=false", "--server.showEmailPrompt=false",
                 "--client.showErrorDetails=none"):  # fmt: skip
        assert flag in command


def test_the_server_is_given_the_folder_the_settings_and_this_project(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "elsewhere")
    monkeypatch.chdir(tmp_path)
    given = launch.environment(Path("published"), Path("dashboard.yaml"))
    assert given[PUBLISHED] == str(tmp_path / "published")
    assert given[CONFIG] == "dashboard.yaml"
    assert given["PYTHONPATH"].split(":") == [str(launch.APP.parent.parent), "elsewhere"]
