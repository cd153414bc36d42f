"""`inferledger report`: what reports there are, and making or reading one."""

from datetime import datetime
from typing import Annotated, Any

import typer

from inferledger import jobs, operations
from inferledger.config import Configuration
from inferledger.console import complain, out, print_json, say
from inferledger.exits import ExitCode, UsageError
from inferledger.figures import count, exact
from inferledger.options import ConfigOption, Format, FormatOption, day, loaded
from reports import history
from reports.build import build
from reports.period import Period, due_at, last_covered_day
from reports.settings import ReportSettings
from warehouse.snapshot import Snapshot

Name = Annotated[str | None, typer.Argument(metavar="NAME", help="A configured report. Default: the first.")]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="What reports there are, and making or reading one.", no_args_is_help=True)
    group.command("list")(list_)
    group.command("run")(run)
    group.command("show")(show)
    app.add_typer(group, name="report")


def list_(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """List the configured reports: what they would tell next, when, and what they told last."""
    configuration = loaded(config)
    rows = [_row(configuration, settings) for settings in configuration.reports]
    if format_ is Format.JSON:
        print_json(rows)
        return
    for row in rows:
        last = f"last told {row['last_told_day']}" if row["last_told_day"] else "told nothing yet"
        due = (
            f"next {row['next_day']}, due {row['due_at'][:16].replace('T', ' ')} UTC"
            if row["due_at"]
            else "by hand only"
            if row["schedule"] is None
            else "no whole day yet"
        )
        say(f"{row['name']} ({row['kind']}): {last}; {due}")
    if not rows:
        out().print("No report is configured: add one under `reports`.")


def _row(configuration: Configuration, settings: ReportSettings) -> dict[str, Any]:
    snapshot = Snapshot.open(configuration.layout.published, settings.scope())
    next_day = last_covered_day(snapshot)
    due = due_at(settings, Period.of(next_day, snapshot.zone)) if next_day else None
    with operations.opened(configuration) as engine, engine.connect() as connection:
        told = history.runs(
            connection, settings.name, snapshot.zone, datetime.fromisoformat("1970-01-02T00:00:00+00:00")
        )
    last = max(told, default=None)
    return {
        "name": settings.name,
        "kind": settings.kind,
        "schedule": settings.schedule,
        "channels": list(settings.channels),
        "teams": list(settings.teams),
        "last_told_day": last.isoformat() if last else None,
        "next_day": next_day.isoformat() if next_day else None,
        "due_at": due.isoformat() if due else None,
    }


def run(name: Name = None, config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Make a report now, without waiting for its schedule, and send it. A day that was told is not told twice."""
    configuration = loaded(config)
    settings = _chosen(configuration, name)
    done = jobs.report(configuration, {settings.name}, by_hand=True)
    pages = [
        {
            "report": each.report,
            "day": page.day.isoformat(),
            "outcome": page.outcome,
            "figure": exact(page.figure),
            "path": str(page.path),
            "messages": page.messages,
        }
        for each in done.runs
        for page in each.pages
    ]
    if format_ is Format.JSON:
        print_json({"pages": pages, "sent": done.delivery.sent, "problems": done.problems})
    else:
        for page in pages:
            say(f"{page['report']} of {page['day']} ({page['outcome']}): {page['path']}")
        say(f"{count(done.delivery.sent)} message(s) sent.")
        complain(done.problems)
    if done.problems:
        raise typer.Exit(ExitCode.FINDINGS)


def show(
    name: Name = None,
    of: Annotated[
        str | None, typer.Option("--day", metavar="DAY", help="Which day. Default: the last whole one.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Print the page instead of the text.")] = False,
    config: ConfigOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Print a report without keeping or sending it."""
    configuration = loaded(config)
    settings = _chosen(configuration, name)
    snapshot = Snapshot.open(configuration.layout.published, settings.scope())
    wanted = day(of) or last_covered_day(snapshot)
    if wanted is None:
        raise UsageError("The snapshot covers no whole day yet. Collect a bill or a log first.")
    report = build(snapshot, settings, wanted)
    if format_ is Format.JSON:
        print_json(report.message.data)
    else:
        out().print(report.html if html else report.text, markup=False, soft_wrap=True)


def _chosen(configuration: Configuration, name: str | None) -> ReportSettings:
    known = {settings.name: settings for settings in configuration.reports}
    if not known:
        raise UsageError("No report is configured. Add one under `reports`.")
    if name is None:
        return next(iter(known.values()))
    if name not in known:
        raise UsageError(f"No report is called `{name}`. There are: {', '.join(known)}.")
    return known[name]
