"""`inferledger db`: the revisions of both databases."""

import typer
from sqlalchemy.exc import OperationalError

from inferledger import evidence
from inferledger.config import Configuration
from inferledger.console import print_json, say
from inferledger.exits import ExitCode, OperationsUnreachable
from inferledger.options import ConfigOption, Format, FormatOption, loaded
from migrations import run as migrations
from warehouse import operations
from warehouse.engine import locked


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    db = typer.Typer(
        help="Bring both databases to this version's tables, or say where they stand.", no_args_is_help=True
    )
    db.command()(upgrade)
    db.command()(current)
    app.add_typer(db, name="db")


def upgrade(config: ConfigOption = None) -> None:
    """Bring the warehouse and the operations database to this version's tables.

    A revision that fails leaves its database as it was. At that revision already, nothing changes.
    """
    configuration = loaded(config)
    before = _standing(configuration)
    with locked(configuration.layout, "db upgrade", configuration.engine):
        migrations.upgrade("evidence", evidence.url(configuration.layout))
    _operations(configuration, "upgrade")
    for name, row in _standing(configuration).items():
        was = before[name]["current"]
        how = "is up to date" if was == row["current"] else f"upgraded from {was or 'nothing'}"
        say(f"{name}: {row['current']}, {how}")


def current(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Say at which revision both databases stand (exit code 6 if one is behind)."""
    standing = _standing(loaded(config))
    if format_ is Format.JSON:
        print_json(standing)
    else:
        for name, row in standing.items():
            state = "up to date" if row["is_current"] else f"`inferledger db upgrade` brings it to {row['head']}"
            say(f"{name}: {row['current'] or 'not set up'} ({state})")
    if not all(row["is_current"] for row in standing.values()):
        raise typer.Exit(ExitCode.NOT_UPGRADED)


def _standing(configuration: Configuration) -> dict[str, dict[str, str | bool | None]]:
    layout = configuration.layout
    stands: dict[str, tuple[str, ...]] = {"evidence": (), "operations": ()}
    if configuration.operations.url or layout.operations.exists():
        stands["operations"] = _operations(configuration, "current")
    if layout.warehouse.exists():
        with locked(layout, "db current", configuration.engine):
            stands["evidence"] = migrations.current("evidence", evidence.url(layout))
    heads = {"evidence": migrations.heads("evidence"), "operations": migrations.heads("operations")}
    return {
        name: {"current": found[0] if found else None, "head": heads[name][0], "is_current": found == heads[name]}
        for name, found in stands.items()
    }


def _operations(configuration: Configuration, what: str) -> tuple[str, ...]:
    url = configuration.operations_url
    try:
        if what == "upgrade":
            migrations.upgrade("operations", url)
        return migrations.current("operations", url)
    except OperationalError as error:
        engine = operations.connect(url)
        raise OperationsUnreachable(engine.url.render_as_string(hide_password=True), error) from error
