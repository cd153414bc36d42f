"""`inferledger doctor`: what is wrong, and what to do."""

from collections import Counter
from datetime import UTC, datetime

import typer
from rich.markup import escape
from rich.table import Table

from inferledger.checks.run import run
from inferledger.console import out, print_json, say
from inferledger.exits import ExitCode
from inferledger.options import ConfigOption, Format, FormatOption, loaded

MARKS = {"ok": "[green]✓[/]", "warn": "[yellow]![/]", "fail": "[red]✗[/]"}


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(doctor)


def doctor(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Check configuration, credentials, sources, channels, databases, jobs, freshness, refused rows, controls and gaps.

    Every finding says what to do. Exit code 1 if anything failed; warnings alone give 0. Nothing is changed.
    """
    found = run(loaded(config), datetime.now(UTC))
    counted = Counter(check.result for check in found)
    if format_ is Format.JSON:
        print_json(
            {
                "result": "fail" if counted["fail"] else "warn" if counted["warn"] else "ok",
                "ok": counted["ok"],
                "warn": counted["warn"],
                "fail": counted["fail"],
                "checks": [vars(check) for check in found],
            }
        )
    else:
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True)
        grid.add_column(overflow="fold")
        for check in found:
            remedy = f"\n[bold]→ {escape(check.remedy)}[/]" if check.remedy else ""
            grid.add_row(
                MARKS[check.result], f"[dim]{check.area}[/] {escape(check.subject)}", escape(check.detail) + remedy
            )
        out().print(grid)
        say(f"\n{counted['ok']} ok, {counted['warn']} to look at, {counted['fail']} failed.")
    if counted["fail"]:
        raise typer.Exit(ExitCode.FINDINGS)
