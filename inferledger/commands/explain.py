"""`inferledger explain`: where a figure comes from."""

from typing import Annotated

import typer

from inferledger import explain as walk
from inferledger import explain_text, jobs
from inferledger.console import out, print_json
from inferledger.exits import UsageError
from inferledger.options import ConfigOption, Format, FormatOption, day, loaded
from warehouse.measures import Filters

NOBODY = "(none)"
Names = list[str] | None


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(explain)


def explain(
    config: ConfigOption = None,
    team: Annotated[
        Names,
        typer.Option("--team", metavar="NAME", help="`(none)` is without one; may be repeated, as the next ones."),
    ] = None,
    app: Annotated[Names, typer.Option("--app", metavar="NAME", help="Only this application.")] = None,
    agent: Annotated[Names, typer.Option("--agent", metavar="NAME", help="Only this agent.")] = None,
    model: Annotated[Names, typer.Option("--model", metavar="NAME", help="Only this model.")] = None,
    kind: Annotated[
        Names, typer.Option("--kind", metavar="KIND", help="Only this kind of cost, e.g. unattributed.")
    ] = None,
    cluster: Annotated[
        Names, typer.Option("--cluster", metavar="NAME", help="Only this cluster of the own fleet.")
    ] = None,
    pool: Annotated[Names, typer.Option("--pool", metavar="NAME", help="Only this pool of the own fleet.")] = None,
    task: Annotated[str | None, typer.Option("--task", metavar="ID", help="One agent task.")] = None,
    on: Annotated[
        str | None, typer.Option("--day", metavar="DAY", help="Only this day, in the configured zone.")
    ] = None,
    first: Annotated[str | None, typer.Option("--from", metavar="DAY", help="First day.")] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day, included.")] = None,
    limit: Annotated[
        int, typer.Option("--limit", min=0, help="Rows shown a level; the rest is summed up. 0: all.")
    ] = 4,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Walk a figure back: ledger postings, the buckets where bill and log met, lines of the bill, records of the log.

    Of the own GPU fleet: pool-hours with what their GPUs did, token classes, and the lines of instances under them.

    Every level adds up to the one above it.
    """
    if on and (first or last):
        raise UsageError("Give either --day, or --from and --to.")
    where = Filters(
        first_day=day(on or first),
        last_day=day(on or last),
        team=_values(team),
        app=_values(app),
        agent=_values(agent),
        model=_values(model),
        kind=_values(kind),
        cluster=_values(cluster),
        pool=_values(pool),
        task_id=(task,) if task else (),
    )
    configuration = loaded(config)
    facts = walk.explain(jobs.snapshot(configuration), where, limit, configuration.attribution.long_context_tokens)
    if not facts["postings"]:
        raise UsageError("The ledger has nothing of that. `inferledger summary --by team,model` shows what there is.")
    if format_ is Format.JSON:
        print_json(facts)
    else:
        explain_text.show(out(), facts)


def _values(names: Names) -> tuple[str | None, ...]:
    return tuple(None if name == NOBODY else name for name in names or ())
