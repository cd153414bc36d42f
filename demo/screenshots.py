"""Pictures of every page for the documentation: `python -m demo.screenshots [published folder]`."""

import argparse
import io
import shutil
import socket
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

from dashboards import launch
from dashboards.settings import DashboardSettings
from warehouse.publish import read_pointer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# File name: address. The tasks of thirty days, as the demo's runaway is among them.
PAGES = {
    "overview": "",
    "models": "models",
    "teams": "teams",
    "tasks": "tasks?period=Last+30+days",
    "fleet": "fleet",
    "reconciliation": "reconciliation",
}
WIDTH, HEIGHT = 1440, 900
STEP = 8
TIMEOUT_MS = 120_000
SETTLED = """() => {
    const app = document.querySelector('[data-testid="stApp"]');
    const busy = '[data-testid="stSkeleton"], [data-testid="stStatusWidget"], [data-stale="true"]';
    return app && app.getAttribute('data-test-script-state') === 'notRunning' && !document.querySelector(busy);
}"""
LENGTH = """() => document.querySelector('[data-testid="stMainBlockContainer"]').scrollHeight"""


class Unable(Exception):
    """No picture can be taken; the message says what is missing."""


def main(arguments: list[str] | None = None) -> int:
    """Take the pictures; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m demo.screenshots", description=__doc__)
    parser.add_argument("published", nargs="?", type=Path, default=Path(".demo/data/published"))
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder of the pictures")
    parser.add_argument("--title", default="InferLedger", help="title of the dashboard")
    options = parser.parse_args(arguments)
    try:
        for path in take(options.published, options.out, options.title):
            print(f"{path}  {path.stat().st_size / 1000:.0f} kB")
    except Unable as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def take(published: Path, out: Path, title: str = "InferLedger") -> Iterator[Path]:
    """One picture of each page, over its whole length; the paths, one by one."""
    pointer = read_pointer(published)
    if pointer is None or not pointer.get("manifest"):
        raise Unable(f"Nothing is published under {published}. `make demo ARGS=--no-serve` makes it, or name a folder.")
    out.mkdir(parents=True, exist_ok=True)
    port = free_port()
    with (
        launch.start(published, DashboardSettings(title=title), port) as server,
        browser() as chromium,
    ):
        address = f"http://127.0.0.1:{port}"
        launch.wait_until_ready(server, address)
        for name, path in PAGES.items():
            page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
            page.goto(f"{address}/{path}")
            picture = whole(page)
            page.close()
            file = out / f"{name}.png"
            compress(picture, file)
            yield file


@contextmanager
def browser() -> "Iterator[Browser]":
    """Chromium of the system, as playwright drives it."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise Unable(
            "playwright is not installed; `make screenshots` installs it with the development tools."
        ) from error
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise Unable("There is no Chromium on the path; Debian's package is chromium.")
    with sync_playwright() as playwright:
        # Without a sandbox of its own, which root may not have; nothing but our own pages is opened.
        flags = [
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--force-color-profile=srgb",
        ]
        chromium = playwright.chromium.launch(executable_path=program, args=flags)
        try:
            yield chromium
        finally:
            chromium.close()


def settle(page: "Page") -> int:
    """Wait until the page has run, drawn and stopped growing; its length."""
    page.wait_for_selector("h1", timeout=TIMEOUT_MS)
    page.evaluate("() => document.fonts.ready.then(() => true)")
    lengths: list[int] = []
    while len(lengths) < 4 or len(set(lengths[-4:])) > 1:
        page.wait_for_function(SETTLED, timeout=TIMEOUT_MS)
        page.wait_for_timeout(400)
        lengths.append(page.evaluate(LENGTH))
    return lengths[-1]


def whole(page: "Page") -> bytes:
    """The page over its whole length. Charts and tables are drawn when they come into view, so the view grows first."""
    for _ in range(3):
        length = settle(page)
        if (page.viewport_size or {}).get("height") == max(length, HEIGHT):
            break
        page.set_viewport_size({"width": WIDTH, "height": max(length, HEIGHT)})
    return page.screenshot()


def compress(picture: bytes, file: Path) -> None:
    """Write a PNG in true colours, in steps down from white: it stays white, and soft edges of letters take less."""
    steps = [max(255 - round((255 - value) / STEP) * STEP, 0) for value in range(256)]
    with Image.open(io.BytesIO(picture)) as image:
        image.convert("RGB").point(steps * 3).save(file, optimize=True)


def free_port() -> int:
    """A port nobody listens on."""
    with closing(socket.socket()) as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
