"""`inferledger alerts`: what fires, what is silenced, and messages that wait for a person."""

import getpass
import json
import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from alerts import silence as silences
from alerts import state as states
from alerts import words
from delivery import outbox
from inferledger import jobs, operations
from inferledger.console import complain, out, print_json, say
from inferledger.exits import ExitCode, UsageError
from inferledger.figures import count, exact
from inferledger.options import ConfigOption, Format, FormatOption, instant, loaded

SPAN = re.compile(r"(\d+)\s*(m|h|d|w)")
SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 604800}
Reason = Annotated[str, typer.Option("--reason", "-r", metavar="TEXT", help="Why; kept in the audit trail.")]
Who = Annotated[
    str | None, typer.Option("--who", metavar="NAME", help="In whose name. Default: the account that runs this.")
]


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    group = typer.Typer(help="What fires, what is silenced, and messages that wait for a person.", no_args_is_help=True)
    group.command("list")(list_)
    group.command()(evaluate)
    group.command()(silence)
    group.command()(unsilence)
    group.command()(held)
    group.command()(release)
    group.command()(settle)
    app.add_typer(group, name="alerts")


def list_(
    config: ConfigOption = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also what is fine.")] = False,
    format_: FormatOption = Format.TABLE,
) -> None:
    """List alert states: what fires or cannot be judged, and the silences in force."""
    configuration = loaded(config)
    now = datetime.now(UTC)
    with operations.opened(configuration) as engine, engine.connect() as connection:
        found = [each for each in states.load(connection).values() if everything or each.state != "ok" or each.firing]
        active = silences.active(connection, now)
    rules = {rule.name: rule for rule in configuration.alerts.all_rules()}
    rows = [
        _row(each, rules)
        for each in sorted(found, key=lambda s: (not s.firing, s.state != "pending", s.rule, s.series))
    ]
    if format_ is Format.JSON:
        print_json({"states": rows, "silences": [_silence(each) for each in active]})
        return
    if rows:
        out().print(_table(rows))
    else:
        out().print(
            "No rule has been evaluated yet; run `inferledger alerts evaluate`." if everything else "Nothing fires."
        )
    for each in active:
        what = ", ".join(f"{name}={glob}" for name, glob in each.matchers.items())
        until = f"{each.until:%Y-%m-%d %H:%M} UTC"
        say(f"silenced until {until}: {what} ({each.reason}, {each.who}); id {each.id}")


def _silence(each: silences.Silence) -> dict[str, Any]:
    return {
        "id": each.id,
        "matchers": dict(each.matchers),
        "reason": each.reason,
        "who": each.who,
        "until": each.until.isoformat(),
    }


def _table(rows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("state", "rule", "what", "since"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", overflow="fold")
    for row in rows:
        colour = {"firing": "red", "pending": "yellow", "ok": "green"}.get(row["state"], "dim")
        table.add_row(
            f"[{colour}]{row['state']}[/]",
            escape(row["rule"]),
            escape(words.series_name(json.dumps(row["series"]))),
            row["since"][:16].replace("T", " "),
            escape(row["reason"]),
        )
    return table


def _row(state: states.State, rules: dict[str, Any]) -> dict[str, Any]:
    rule = rules.get(state.rule)
    return {
        "rule": state.rule,
        "series": json.loads(state.series),
        "state": "firing" if state.firing else state.state,
        "severity": rule.severity if rule else None,
        "measure": rule.measure if rule else None,
        "value": exact(state.value),
        "expected": exact(state.expected),
        "since": (state.episode_since or state.since).isoformat(),
        "reason": state.reason,
        "manifest": state.manifest,
    }


def evaluate(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """Evaluate every rule on the published snapshot and send what has to be told.

    The same snapshot again tells nothing twice.
    """
    done = jobs.alert(loaded(config))
    evaluation, delivery = done.evaluation, done.delivery
    problems = [*evaluation.problems, *delivery.problems]
    if format_ is Format.JSON:
        print_json(
            {
                "manifest": evaluation.manifest,
                "rules": evaluation.rules,
                "series": evaluation.series,
                "firing": [{"rule": rule, "series": json.loads(series)} for rule, series in evaluation.firing],
                "messages": evaluation.messages,
                "silenced": evaluation.silenced,
                "unjudged": list(evaluation.unjudged),
                "sent": delivery.sent,
                "retried": delivery.retried,
                "failed": delivery.failed,
                "uncertain": delivery.uncertain,
                "problems": problems,
            }
        )
    else:
        say(
            f"{count(evaluation.rules)} rules, {count(evaluation.series)} series: "
            f"{count(len(evaluation.firing))} firing, {count(evaluation.messages)} new message(s), "
            f"{count(delivery.sent)} sent."
        )
        complain([f"fires: {rule}, {words.series_name(series)}" for rule, series in evaluation.firing], "▲")
        complain(problems)
    if problems:
        raise typer.Exit(ExitCode.FINDINGS)


def silence(
    matchers: Annotated[
        list[str], typer.Argument(metavar="NAME=GLOB...", help="rule, severity or a dimension, e.g. team=search.")
    ],
    reason: Reason,
    for_: Annotated[str | None, typer.Option("--for", metavar="SPAN", help="How long, e.g. 90m, 8h, 3d, 2w.")] = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="INSTANT", help="Or until when, e.g. 2026-12-01T09:00Z.")
    ] = None,
    who: Who = None,
    config: ConfigOption = None,
) -> None:
    """Keep alerts quiet for a time: they are recorded, but nobody is told."""
    pairs = dict(part.partition("=")[::2] for part in matchers)
    if wrong := [name for name, glob in pairs.items() if not glob]:
        raise UsageError(f"`{wrong[0]}` says not what to match. Write NAME=GLOB, e.g. team=search.")
    if (for_ is None) == (until is None):
        raise UsageError("Say how long: either --for 8h or --until 2026-12-01T09:00Z.")
    configuration = loaded(config)
    now = datetime.now(UTC)
    end = now + _span(for_) if for_ else instant(until, configuration.zone)
    assert end is not None
    try:
        with operations.opened(configuration) as engine, engine.begin() as connection:
            identity = silences.add(connection, pairs, until=end, reason=reason, who=who or getpass.getuser(), now=now)
    except ValueError as error:
        raise UsageError(f"{error}.") from error
    say(f"Silenced until {end:%Y-%m-%d %H:%M} UTC. `inferledger alerts unsilence {identity}` ends it earlier.")


def _span(text: str) -> timedelta:
    found = SPAN.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"`{text}` is no span of time. Write one such as 90m, 8h, 3d or 2w.")
    return timedelta(seconds=int(found[1]) * SECONDS[found[2]])


def unsilence(
    identity: Annotated[str, typer.Argument(metavar="ID", help="As `alerts list` shows it.")],
    reason: Reason = "ended by hand",
    who: Who = None,
    config: ConfigOption = None,
) -> None:
    """End a silence before its time."""
    with operations.opened(loaded(config)) as engine, engine.begin() as connection:
        ended = silences.end(connection, identity, who=who or getpass.getuser(), reason=reason, now=datetime.now(UTC))
    if not ended:
        raise UsageError(f"No silence `{identity}` is in force. `inferledger alerts list` shows those that are.")
    out().print("Ended.")


def held(config: ConfigOption = None, format_: FormatOption = Format.TABLE) -> None:
    """List messages that wait for a person: refused, or of unknown outcome (exit code 1 if there are any)."""
    with operations.opened(loaded(config)) as engine, engine.connect() as connection:
        found = outbox.held(connection)
        lines = outbox.problems(connection, now=datetime.now(UTC))
    if format_ is Format.JSON:
        print_json(
            [
                {
                    "seq": m.seq,
                    "key": m.key,
                    "channel": m.channel,
                    "status": m.status,
                    "subject": m.subject,
                    "created_at": m.created_at.isoformat(),
                    "attempts": m.attempts,
                    "detail": m.detail,
                }
                for m in found
            ]
        )
    else:
        for line in lines:
            say(line)
        if not lines:
            out().print("No message waits.")
    if found:
        raise typer.Exit(ExitCode.FINDINGS)


Number = Annotated[int, typer.Argument(metavar="SEQ", help="The message's number, as `alerts held` shows it.")]


def release(seq: Number, who: Who = None, config: ConfigOption = None) -> None:
    """Send a held message again; one of unknown outcome is marked "(may repeat)"."""
    configuration = loaded(config)
    with operations.opened(configuration) as engine, engine.begin() as connection:
        _must(outbox.release(connection, seq, who=who or getpass.getuser(), now=datetime.now(UTC)), seq)
    done = jobs.deliver(configuration)
    say(f"Released; {count(done.sent)} message(s) sent.")
    complain(done.problems)
    if done.problems:
        raise typer.Exit(ExitCode.FINDINGS)


def settle(seq: Number, who: Who = None, config: ConfigOption = None) -> None:
    """Close a held message without sending it: it arrived, or no longer matters."""
    with operations.opened(loaded(config)) as engine, engine.begin() as connection:
        _must(outbox.settle(connection, seq, who=who or getpass.getuser(), now=datetime.now(UTC)), seq)
    out().print("Settled.")


def _must(changed: bool, seq: int) -> None:
    if not changed:
        raise UsageError(f"Message {seq} is not held. `inferledger alerts held` shows those that are.")
