"""Runs either Alembic environment from code; no alembic.ini is needed (that file is for developers)."""

from pathlib import Path
from typing import Literal

from alembic import command
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

Which = Literal["evidence", "operations"]

HERE = Path(__file__).parent


def upgrade(which: Which, url: str, revision: str = "head") -> None:
    """Bring the database at `url` up to `revision`; at that revision already, it changes nothing.

    `url` is `duckdb:///PATH` for evidence, `sqlite:///PATH` or `postgresql://...` for operations. A revision that
    fails leaves the database as it was before that run. Raises what Alembic and the database raise.
    """
    command.upgrade(_config(which, url), revision)


def downgrade(which: Which, url: str, revision: str) -> None:
    """Take the database at `url` back to `revision` (`base` is empty, `-1` is one step); its rows go with it."""
    command.downgrade(_config(which, url), revision)


def current(which: Which, url: str) -> tuple[str, ...]:
    """The revisions that the database at `url` stands at; empty when it was never migrated."""
    found: list[str] = []
    config = _config(which, url)
    script = ScriptDirectory.from_config(config)

    def note(revisions: str | tuple[str, ...], context: MigrationContext) -> list[object]:
        found.extend((revisions,) if isinstance(revisions, str) else revisions)
        return []

    with EnvironmentContext(config, script, fn=note):
        script.run_env()
    return tuple(sorted(found))


def heads(which: Which) -> tuple[str, ...]:
    """The newest revisions that this version of InferLedger brings; `current(...) == heads(...)` is up to date."""
    return tuple(sorted(ScriptDirectory.from_config(_config(which)).get_heads()))


def _config(which: Which, url: str | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(HERE / which).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    # As an attribute, not as an ini value: a password may hold the characters that ini files interpolate.
    config.attributes["url"] = url
    return config
