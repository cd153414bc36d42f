"""`inferledger owners`: what owner rules caught, and what nobody owns."""

from typing import Annotated

import typer
from rich.markup import escape
from rich.table import Table

from inferledger import jobs
from inferledger.console import out, print_json, say
from inferledger.figures import count, money
from inferledger.options import ConfigOption, Format, FormatOption, day, loaded
from inferledger.ownership import ownership, why
from inferledger.rows import Facts


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(owners)


def owners(
    config: ConfigOption = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day, in the configured zone.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, included.")] = None,
    name: Annotated[
        str | None,
        typer.Option("--why", metavar="ID", help="Why a claim set, or the call of a record, is whose it is."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="Groups without a team that are shown. 0: all.")] = 10,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Show what each owner rule caught, which caught nothing, and the largest groups of calls without a team.

    Rules are those of the configuration, calls and money what is published: change a rule, run this, and see.
    """
    configuration = loaded(config)
    snapshot = jobs.snapshot(configuration)
    if name is not None:
        facts = why(snapshot, configuration.owners, name)
        if format_ is Format.JSON:
            print_json(facts)
        else:
            _show_why(facts)
        return
    facts = ownership(snapshot, configuration.owners, day(first), day(last), limit)
    if format_ is Format.JSON:
        print_json(facts)
    else:
        _show(facts)


def _show(facts: Facts) -> None:
    currency = facts["currency"]
    table = Table(title="Owner rules, in the order they are tried", title_justify="left", box=None)
    for column, right in (("#", True), ("rule", False), ("matched", True), ("decided", True), ("calls", True),
                          ("tokens", True), ("cost", True)):  # fmt: skip
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for rule in facts["rules"]:
        note = "" if rule["decided"] else " [yellow](caught nothing)[/]" if not rule["matched"] else (
            " [yellow](rules before it decide all it matches, or nothing was used)[/]"
        )  # fmt: skip
        told = escape(f"{_pairs(rule['when'])} → {_pairs(rule['set'])}") + note
        figures = (count(rule[name]) for name in ("matched", "decided", "requests", "tokens"))
        table.add_row(str(rule["number"]), told, *figures, money(rule["cost"], currency))
    out().print(table)
    if not facts["without_team"]:
        say("\nEvery call has a team.")
        return
    table = Table(title="\nThe largest groups without a team", title_justify="left", box=None)
    for column, right in (("claim", False), ("calls", True), ("tokens", True), ("cost", True), ("last", False)):
        table.add_column(column, justify="right" if right else "left", overflow="fold")
    for group in facts["without_team"]:
        said = f"{group['claim']}: {group['value']}" if group["claim"] else "(no claim at all)"
        table.add_row(
            escape(said), count(group["requests"]), count(group["tokens"]), money(group["cost"], currency),
            str(group["last_day"]),
        )  # fmt: skip
    out().print(table)
    say("\nRules that would catch them, for `owners` (write the team's name for TEAM):")
    for group in facts["without_team"]:
        if group["rule"]:
            say(f"  {group['rule']}")
    say("\n`inferledger owners --why ID` says why a call is whose.")


def _show_why(facts: Facts) -> None:
    say(f"Claim set {facts['claim_set_id']}: {_pairs(facts['claims']) or 'no claim at all'}")
    say(f"Owner: {_pairs(facts['owners']) or 'nobody'}\n")
    for rule in facts["rules"]:
        told = f"rule {rule['number']} ({_pairs(rule['when'])})"
        if rule["gave"]:
            say(f"✓ {told} gives {_pairs(rule['gave'])}, from {rule['from']} to {rule['to']}")
        elif rule["matched"]:
            say(f"· {told} matches; rules before it, or no claim it needs, leave it nothing to give")
        else:
            say(f"✗ {told}: {_pairs(rule['lacking'])} is not met")


def _pairs(given: Facts) -> str:
    return ", ".join(f"{key}: {value}" for key, value in given.items())
