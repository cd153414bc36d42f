"""`inferledger collect`: load what is new from the sources."""

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum
from typing import Annotated

import typer

from inferledger import jobs
from inferledger.console import batches, complain, print_json, say
from inferledger.exits import ExitCode
from inferledger.figures import count
from inferledger.options import AsOfOption, ConfigOption, Format, FormatOption, instant, loaded


class Family(StrEnum):
    """What kind of evidence a source gives."""

    BILLING = "billing"
    USAGE = "usage"
    METRICS = "metrics"
    PRICES = "prices"


def add_to(app: typer.Typer) -> None:
    """Register the command."""
    app.command()(collect)


def collect(
    config: ConfigOption = None,
    only: Annotated[Family | None, typer.Option("--only", help="Only sources of this family.")] = None,
    source: Annotated[
        list[str] | None, typer.Option("--source", "-s", metavar="NAME", help="Only this source; may be repeated.")
    ] = None,
    as_of: AsOfOption = None,
    format_: FormatOption = Format.TABLE,
) -> None:
    """Load what is new: bills, usage logs, metrics, prices.

    The same file again changes nothing. A source that fails is named with what to do (exit code 4), the others go on,
    and what was loaded before stays.
    """
    configuration = loaded(config)
    chosen = jobs.chosen_sources(configuration, only.value if only else None, source or [])
    with batches() as moved:
        done = jobs.collect(configuration, chosen, instant(as_of, configuration.zone), moved)
    by_source: dict[str, dict[str, int]] = {}
    for each in done.loaded:
        row = by_source.setdefault(
            each.source, dict.fromkeys(("batches", "rows_read", "rows_loaded", "rows_rejected", "rows_filtered"), 0)
        )
        row["batches"] += 1
        for figure in ("rows_read", "rows_loaded", "rows_rejected", "rows_filtered"):
            row[figure] += int(getattr(each.result, figure))
    if format_ is Format.JSON:
        findings = [{"source": f.source, "what": f.what, "where": f.where, "remedy": f.remedy} for f in done.findings]
        deliveries = [
            {
                "source": each.source,
                "detail": each.detail,
                "rows": each.result.rows_read,
                "sums": dict(each.result.sums),
            }
            for each in done.loaded
        ]
        print_json({"sources": by_source, "loads": deliveries, "findings": findings, "notes": list(done.notes)})
    else:
        for name, row in by_source.items():
            say(
                f"{name}: {count(row['rows_loaded'])} rows loaded in {count(row['batches'])} batch(es)"
                + (f", {count(row['rows_rejected'])} rejected" if row["rows_rejected"] else "")
                + (f", {count(row['rows_filtered'])} left out" if row["rows_filtered"] else "")
            )
        for each in done.loaded:
            if amounts := _amounts(each.result.sums):
                say(f"  {each.detail}: {count(each.result.rows_read)} rows; {amounts}")
        if not by_source:
            say("Nothing new." if configuration.sources or done.findings else NO_SOURCES)
        complain([*done.notes], "note")
        complain([str(finding) for finding in done.findings])
    if done.findings:
        raise typer.Exit(ExitCode.UNREACHABLE)


COSTS = {"billed_cost": "billed", "effective_cost": "effective", "list_cost": "list", "contracted_cost": "contracted"}


def _amounts(sums: Mapping[str, str]) -> str:
    """The totals of a delivery of a bill, exact, currency by currency; nothing for other evidence."""
    currencies = dict.fromkeys(key.split(" ", 1)[1] for key in sums if key.split(" ", 1)[0] in COSTS and " " in key)
    return "; ".join(
        f"{currency} "
        + ", ".join(f"{word} {_plain(sums[f'{name} {currency}'])}" for name, word in COSTS.items()
                    if f"{name} {currency}" in sums)
        for currency in currencies
    )  # fmt: skip


def _plain(amount: str) -> str:
    return f"{Decimal(amount).normalize():,f}"


NO_SOURCES = "Nothing new, and there is no source yet: name a bill or a usage log under `sources` in the configuration."
