"""The files that belong to the project, as git tells them, and the rooms they are in."""

import subprocess
from pathlib import Path

from tests import needs

ROOMS = (
    "alerts", "collector", "dashboards", "delivery", "demo", "inferledger", "migrations", "reports", "warehouse",
)  # fmt: skip


def files() -> list[Path]:
    """Committed files and those not yet added, relative to the root; what .gitignore names is left out."""
    root = needs.git_checkout()
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True, text=True).stdout
    paths = sorted({Path(name) for name in listed.split("\0") if name})
    return [path for path in paths if (root / path).is_file()]


def shipped_python() -> list[Path]:
    return [path for path in files() if path.parts[0] in ROOMS and path.suffix == ".py"]


def text(path: Path) -> str | None:
    """A file's text, or None where it isn't text."""
    content = (needs.ROOT / path).read_bytes()
    if b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
