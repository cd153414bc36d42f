"""Every page in a real browser, served as a person would start it."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from dashboards import launch
from dashboards.settings import DashboardSettings
from demo import screenshots
from warehouse.engine import Layout

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def address(published: Path) -> Iterator[str]:
    port = screenshots.free_port()
    with launch.start(published, DashboardSettings(title="Acme"), port) as server:
        launch.wait_until_ready(server, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def fleet_address(fleet_published: Path) -> Iterator[str]:
    port = screenshots.free_port()
    with launch.start(fleet_published, DashboardSettings(title="Acme"), port) as server:
        launch.wait_until_ready(server, f"http://127.0.0.1:{port}")
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def chromium() -> Iterator[object]:
    with screenshots.browser() as browser:
        yield browser


def test_every_page_draws_whole_without_an_error(address, fleet_address, chromium, tmp_path):
    everything = [(address, name, path) for name, path in screenshots.PAGES.items() if name != "fleet"]
    own = [(fleet_address, name, screenshots.PAGES[name]) for name in ("fleet", "models", "reconciliation")]
    for server, name, path in everything + own:
        page = chromium.new_page(viewport={"width": 1440, "height": 900})
        failures: list[str] = []
        page.on("pageerror", lambda error, said=failures: said.append(str(error)))
        page.goto(f"{server}/{path}")
        screenshots.settle(page)
        assert failures == []
        assert page.locator('[data-testid="stException"]').count() == 0
        assert page.locator('[data-testid="stAlertContentError"]').count() == 0
        assert page.locator(".js-plotly-plot, [data-testid=stDataFrame]").count() > 0
        for width in (1440, 1024):
            page.set_viewport_size({"width": width, "height": 900})
            # A figure that does not fit is cut off with dots.
            cut = page.evaluate(
                """() => [...document.querySelectorAll('[data-testid="stMetricValue"] *')]
                    .filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0).map(e => e.textContent)"""
            )
            assert cut == [], width
        page.screenshot(path=tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
        page.close()


def test_a_choice_goes_into_the_link_and_the_link_restores_it(address, chromium):
    page = chromium.new_page(viewport={"width": 1440, "height": 900})
    page.goto(address)
    screenshots.settle(page)
    before = page.locator('[data-testid="stMetricValue"]').first.inner_text()
    page.locator('[data-testid="stSidebar"] input[aria-label*="Team"]').click()
    page.get_by_role("option", name="search").click()
    page.keyboard.press("Escape")
    page.wait_for_url("**team=search**")
    screenshots.settle(page)
    after = page.locator('[data-testid="stMetricValue"]').first.inner_text()
    assert after != before
    assert parse_qs(urlsplit(page.url).query) == {"team": ["search"]}

    page.get_by_role("link", name="Models").first.click()
    page.wait_for_url("**/models**")
    screenshots.settle(page)
    assert parse_qs(urlsplit(page.url).query) == {"team": ["search"]}
    page.close()

    again = chromium.new_page(viewport={"width": 1440, "height": 900})
    again.goto(f"{address}/?team=search")
    screenshots.settle(again)
    assert again.locator('[data-testid="stMetricValue"]').first.inner_text() == after
    again.close()


def test_the_server_listens_on_this_machine_only(address):
    port = int(address.rpartition(":")[2])
    with closing(socket.socket()) as other:
        other.settimeout(2)
        assert other.connect_ex((_own_address(), port)) != 0


def _own_address() -> str:
    """The address of this machine in its network; nothing is sent to find it."""
    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            # Without a network there is none but loopback; an address of it that nobody serves stands in.
            return "127.0.0.2"
        return str(probe.getsockname()[0])


def test_pictures_of_every_page(published, tmp_path):
    command = [sys.executable, "-m", "demo.screenshots", str(published), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    assert {file.name for file in tmp_path.iterdir()} == {f"{name}.png" for name in screenshots.PAGES}
    assert max(file.stat().st_size for file in tmp_path.iterdir()) < 400_000
    assert "overview.png" in done.stdout


def test_pictures_of_nothing_are_refused_with_the_remedy(tmp_path, capsys):
    assert screenshots.main([str(Layout(tmp_path).published)]) == 2
    assert "make demo" in capsys.readouterr().err
