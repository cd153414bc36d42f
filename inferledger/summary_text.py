"""The summary for people: 100 columns, from the same dictionary as the JSON."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from inferledger import summary_fleet_text
from inferledger.figures import count, each, money, mtok, percent
from inferledger.summary_parts import name as _name
from inferledger.summary_parts import spaced as _spaced
from inferledger.summary_parts import table as _table

Facts = dict[str, Any]

KINDS = {
    "usage": "calls that were logged",
    "unattributed": "billed, explained by no log",
    "shared": "support, tax, clusters as a whole",
    "credit": "credits and discounts",
    "out_of_scope": "the rest of the bill, not inference",
    "future": "charged for hours to come",
    "rounding": "below a nano-dollar",
    "idle": "GPUs that were paid for and did nothing",
    "under_used": "GPUs busy below what they can do",
    "unmeasured": "GPUs that no metric tells of",
}
TITLES = {
    "effective_cost": "effective",
    "billed_cost": "billed",
    "usage_cost": "usage",
    "estimated_cost": "estimated",
    "cost_per_mtok": "per Mtok",
    "total_tokens": "tokens",
}
WIDTH = 100


def show(console: Console, facts: Facts) -> None:
    """Print the summary."""
    has_bill = bool(facts["balances"])
    parts: list[RenderableType] = [_headline(facts, has_bill)]
    if "breakdown" in facts:
        parts += [_breakdown(facts)]
    else:
        parts += [_kinds(facts)] if has_bill else [_price_book(facts)]
        parts += [_teams(facts)] if any(row["team"] for row in facts["teams"]) else []
        parts += [_models(facts)] if facts["models"] else []
        parts += summary_fleet_text.sections(facts)
        parts += [_tasks(facts)] if facts["tasks"] else []
    parts += [_notes(facts)] if facts["notes"] else []
    console.print(Group(*parts), width=min(console.width, WIDTH))


def _headline(facts: Facts, has_bill: bool) -> Panel:
    totals, currency = facts["totals"], facts["currency"]
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    if has_bill:
        grid.add_row(
            "Bill",
            f"[bold]{money(facts['effective'], currency)}[/] effective, {money(facts['billed'], currency)} billed "
            f"[dim]({facts['status']})[/]",
        )
        grid.add_row("Books", _balanced(facts))
    per_mtok = totals["cost_per_mtok"]
    cost = f"[bold]{money(totals['usage_cost'], currency)}[/] usage cost" + (
        f", {money(totals['fully_loaded_cost'], currency)} fully loaded"
        if has_bill
        else ", estimated from the price book"
    )
    grid.add_row("Inference", cost)
    if per_mtok is not None:
        grid.add_row(
            "Unit cost",
            f"[bold]{each(per_mtok, currency)}[/] per million tokens"
            + (f", {each(totals['fully_loaded_cost_per_mtok'], currency)} fully loaded" if has_bill else "")
            + (f", {money(totals['cost_per_task'], currency)} per agent task" if totals["cost_per_task"] else ""),
        )
    grid.add_row(
        "Used",
        f"{mtok(totals['total_tokens'])} tokens ({mtok(totals['input_tokens'])} in, "
        f"{mtok(totals['output_tokens'])} out), {count(totals['requests'])} requests"
        + (f", {count(totals['tasks'])} agent tasks" if totals["tasks"] else "")
        + (f", {percent(totals['cache_hit_ratio'])} cache hits" if totals["cache_hit_ratio"] else ""),
    )
    return Panel(
        grid,
        title=f"[bold]InferLedger[/]  {_days(facts)}",
        title_align="left",
        padding=(0, 1),
        subtitle=f"[dim]as of {_instant(facts['as_of'])} · days in {facts['zone']} · snapshot {facts['manifest'][:8]}",
        subtitle_align="right",
    )


def _balanced(facts: Facts) -> str:
    wrong = [row for row in facts["balances"] if Decimal(row["difference"])]
    if wrong or Decimal(facts["difference"]) or Decimal(facts["difference_billed"]):
        return f"[bold red]do not balance[/]: {facts['difference']} is missing"
    periods = len({row["billing_period"] for row in facts["balances"]})
    what = "billing period" if periods == 1 else "billing periods"
    return f"[green]balanced[/]: kinds = teams = the bill, difference 0 in {periods} {what}, billed and effective"


def _kinds(facts: Facts) -> Padding:
    table = _table(
        "By kind of cost", ("kind", "l"), ("effective", "r"), ("billed", "r"), ("share", "r"), ("what it is", "l")
    )
    total = Decimal(facts["effective"])
    for kind, amount in facts["by_kind"].items():
        places = 2 if kind == "rounding" else None
        table.add_row(
            kind,
            money(amount, facts["currency"], places),
            money(facts["by_kind_billed"].get(kind), facts["currency"], places),
            percent(Decimal(amount) / total) if total else "-",
            f"[dim]{KINDS.get(kind, '')}",
        )
    table.add_section()
    table.add_row(
        "[bold]the bill",
        f"[bold]{money(facts['effective'], facts['currency'])}",
        money(facts["billed"], facts["currency"]),
    )
    return _spaced(table)


def _price_book(facts: Facts) -> Padding:
    book, currency = facts["price_book"], facts["currency"]
    table = _table("At the price book", ("", "l"), ("cost", "r"), ("", "l"))
    table.add_row("Price book", f"[bold]{money(book['list_cost'], currency)}", "[dim]every tier applied")
    table.add_row(
        "without the long-context tier",
        money(book["list_base_cost"], currency),
        f"[dim]the tier adds {money(book['long_context_premium'], currency)}",
    )
    table.add_row(
        "had nothing been cached",
        money(book["uncached_cost"], currency),
        f"[dim]caching saves {money(book['cache_saving'], currency)} at base prices",
    )
    return _spaced(table)


def _teams(facts: Facts) -> Padding:
    currency = facts["currency"]
    table = _table(
        "By team",
        ("team", "l"),
        ("fully loaded", "r"),
        ("usage", "r"),
        ("per Mtok", "r"),
        ("tokens", "r"),
        ("requests", "r"),
        ("cached", "r"),
        ("failed", "r"),
    )
    for row in facts["teams"]:
        table.add_row(
            _name(row["team"], "(no team)"),
            money(row["fully_loaded_cost"], currency),
            money(row["usage_cost"], currency),
            each(row["cost_per_mtok"] or None, currency),
            mtok(row["total_tokens"]),
            count(row["requests"]),
            percent(row["cache_hit_ratio"]),
            percent(row["error_ratio"]),
        )
    return _spaced(table)


def _models(facts: Facts) -> Padding:
    currency = facts["currency"]
    table = _table(
        "By model",
        ("model", "l"),
        ("usage cost", "r"),
        ("per Mtok", "r"),
        ("in", "r"),
        ("out", "r"),
        ("tokens", "r"),
        ("requests", "r"),
        ("cached", "r"),
    )
    for row in facts["models"]:
        price = [each(row[key], currency) for key in ("cost_per_mtok", "cost_per_mtok_input", "cost_per_mtok_output")]
        table.add_row(
            _name(row["model"], "(unknown model)"),
            money(row["usage_cost"], currency),
            f"[bold]{price[0]}[/]",
            *price[1:],
            mtok(row["total_tokens"]),
            count(row["requests"]),
            percent(row["cache_hit_ratio"]),
        )
    return _spaced(table)


def _tasks(facts: Facts) -> Padding:
    table = _table(
        "Dearest agent tasks",
        ("task", "l"),
        ("cost", "r"),
        ("requests", "r"),
        ("tokens", "r"),
        ("agents", "r"),
        ("outcome", "l"),
        ("team", "l"),
        ("began", "l"),
    )
    for row in facts["tasks"]:
        table.add_row(
            _short(row["task_id"]),
            money(row["task_cost"], facts["currency"]),
            count(row.get("requests")),
            mtok(row["task_tokens"]),
            count(row.get("agents") or 0),
            escape(row.get("outcome") or "-"),
            _name(_clipped(row.get("team"), 14), "-"),
            row["started_at"][:10] if row.get("started_at") else "-",
        )
    return _spaced(table)


def _breakdown(facts: Facts) -> Padding:
    by, rows = facts["breakdown"]["by"], facts["breakdown"]["rows"]
    keys = [key for key in (rows[0] if rows else {}) if key not in by]
    if all(row.get("billed_cost") == row.get("effective_cost") for row in rows):
        keys = [key for key in keys if key != "billed_cost"]
    table = _table(
        f"By {', '.join(by)}",
        *((name, "l") for name in by),
        *((TITLES.get(key, key.replace("_", " ")), "r") for key in keys),
    )
    for row in rows:
        table.add_row(
            *(_name(row[name], "-") for name in by), *(_cell(key, row[key], facts["currency"]) for key in keys)
        )
    return _spaced(table)


def _cell(key: str, value: Any, currency: str) -> str:
    if key.endswith("_tokens"):
        return mtok(value)
    if isinstance(value, int):
        return count(value)
    if key.startswith("cost_per"):
        return each(value, currency)
    return money(value, currency)


def _notes(facts: Facts) -> Padding:
    lines: Sequence[str] = facts["notes"]
    grid = Table.grid(padding=(0, 1))
    grid.add_column()
    grid.add_column(overflow="fold")
    for line in lines:
        grid.add_row("[yellow]•[/]", escape(line))
    return Padding(Group(Text("What to know", style="bold"), grid), (1, 1, 1, 2))


def _clipped(text: str | None, width: int) -> str | None:
    return text if text is None or len(text) <= width else f"{text[: width - 1]}…"


def _short(task: str) -> str:
    """Enough of a task's id for `explain --task`, which takes the beginning of one."""
    return escape(task if len(task) <= 18 else f"{task[:17]}…")


def _days(facts: Facts) -> str:
    first, last = (date.fromisoformat(facts["period"][key]) for key in ("first_day", "last_day"))
    if first == last:
        return f"{first.day} {first:%B %Y}"
    start = (
        f"{first.day} {first:%B %Y}"
        if first.year != last.year
        else f"{first.day} {first:%B}"
        if first.month != last.month
        else f"{first.day}"
    )
    return f"{start} to {last.day} {last:%B %Y}"


def _instant(text: str) -> str:
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
