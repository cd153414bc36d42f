"""The waterfall: numbered SQL files, one SELECT each, read top to bottom."""

from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent


@cache
def names() -> tuple[str, ...]:
    """File stems in order, e.g. ("01_model_name", "02_usage_event", ...)."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.sql")))


@cache
def text(name: str) -> str:
    """The SELECT of one step, header comment included."""
    return (FOLDER / f"{name}.sql").read_text()


def table(name: str) -> str:
    """The table a step fills: its name without the number."""
    return name.split("_", 1)[1]
