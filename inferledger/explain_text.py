"""An explanation for people: 100 columns, from the same dictionary as the JSON."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inferledger import explain_fleet_text
from inferledger.figures import count, money

Facts = dict[str, Any]
WIDTH = 100


def show(console: Console, facts: Facts) -> None:
    """Print the walk from the figure to lines and records."""
    parts: list[RenderableType] = [_question(facts), _postings(facts)]
    parts += [_bucket(facts, bucket) for bucket in facts["buckets"]]
    more = facts["buckets_more"]
    if more["count"]:
        parts.append(
            Padding(
                f"[dim]… and {count(more['count'])} more buckets with {_usd(facts, more['selected'])} of this "
                "selection (--limit 0 shows all)[/]",
                (1, 0, 0, 2),
            )
        )
    parts += explain_fleet_text.sections(facts)
    parts += [_other_lines(facts)] if facts["other_lines"] else []
    parts += [_records(facts)] if facts["records"]["requests"] else []
    console.print(Group(*parts), width=min(console.width, WIDTH))


def _usd(facts: Facts, amount: str | None) -> str:
    """Amounts here keep their nano-dollars where they are small, so that a person can add them up."""
    if amount is None:
        return "unknown"
    value = Decimal(amount)
    return money(
        amount,
        facts["currency"],
        2 if abs(value) >= 100 else 4 if abs(value) >= 1 or not value else 6 if abs(value) >= Decimal("0.0001") else 9,
    )


def _question(facts: Facts) -> Padding:
    chosen = {name: values for name, values in facts["question"].items() if name not in ("first_day", "last_day")}
    words = [
        f"{name} {', '.join('(none)' if value is None else str(value) for value in values)}"
        for name, values in chosen.items()
    ]
    days = [
        f"{word} {facts['question'][key]}"
        for word, key in (("from", "first_day"), ("to", "last_day"))
        if facts["question"][key]
    ]
    total = facts["total"]
    line = Text.from_markup(
        f"[bold]{escape(' · '.join([*words, ' '.join(days)]).strip(' ·') or 'the whole ledger')}[/]\n"
        f"[bold]{_usd(facts, total['effective'])}[/] effective on the bill, {_usd(facts, total['billed'])} billed"
        + (
            f", and {_usd(facts, total['estimated'])} estimated"
            if total["estimated"] is None or Decimal(total["estimated"])
            else ""
        )
        + (
            f"; the cost of {count(total['unknown_cost_tokens'])} tokens is unknown"
            if total["unknown_cost_tokens"]
            else ""
        )
        + f"\n[dim]as of {facts['as_of'][:16].replace('T', ' ')} UTC · days in {facts['zone']} · "
        f"snapshot {facts['manifest'][:8]}[/]"
    )
    return Padding(line, (1, 0, 0, 0))


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, justify in columns:
        table.add_column(
            name,
            justify="right" if justify == "r" else "left",
            no_wrap=justify != "w",
            overflow="fold" if justify == "w" else "ellipsis",
        )
    return table


def _section(title: str, *parts: RenderableType, indent: int = 0) -> Padding:
    return Padding(Group(Text.from_markup(title), *parts), (1, 0, 0, indent))


def _postings(facts: Facts) -> Padding:
    table = _table(
        ("kind", "l"),
        ("basis", "l"),
        ("status", "l"),
        ("model, class or service", "w"),
        ("how", "w"),
        ("tokens", "r"),
        ("effective", "r"),
    )
    for row in facts["postings"]:
        what = " ".join(part for part in (row["model"], row["token_class"]) if part) or row["service_name"] or ""
        what += f" ({row['pool'] or row['cluster']})" if row.get("cluster") else ""
        how = row["method"] + (f": {row['reason']}" if row["reason"] else "")
        table.add_row(
            row["kind"],
            row["basis"],
            row["status"] or "",
            escape(what),
            escape(how),
            count(row["tokens"]),
            _usd(facts, row["effective"]),
        )
    return _section("[bold]Postings in the ledger[/]", table)


def _bucket(facts: Facts, bucket: Facts) -> Padding:
    what = f"{bucket['model']} {bucket['token_class']}"
    name = f"{bucket['day']} · {what} · account {bucket['account_id']} · {bucket['region']}"
    sums = Table.grid(padding=(0, 2, 0, 0))
    sums.add_column()
    sums.add_column(justify="right")
    sums.add_column(style="dim")
    sums.add_row("this selection", _usd(facts, bucket["selected"]), f"{count(bucket['selected_tokens'])} tokens")
    for key, words in (
        ("others", "other owners"),
        ("unattributed", "billed, explained by no log"),
        ("other_days", "on other days of its charge period"),
    ):
        if Decimal(bucket[key]):
            sums.add_row(words, _usd(facts, bucket[key]), "")
    rate = f"{money(bucket['rate_per_mtok'], facts['currency'], 4)} per million" if bucket["rate_per_mtok"] else ""
    sums.add_row(
        "[bold]the bill's lines[/]",
        f"[bold]{_usd(facts, bucket['bill'])}[/]",
        f"{count(bucket['bill_tokens'])} tokens billed, {count(bucket['logged_tokens'])} logged · {rate}",
    )
    lines = _table(
        ("hour", "l"), ("line item", "l"), ("usage type", "l"), ("file", "l"), ("tokens", "r"), ("cost", "r")
    )
    for line in bucket["lines"]:
        lines.add_row(
            line["charge_period_start"][11:16],
            _short(line["line_item_id"], 14),
            escape(_short(line["usage_type"], 30)),
            escape(_end(line["file"], 20)),
            count(line["tokens"]),
            _usd(facts, line["effective"]),
        )
    more = bucket["lines_more"]
    if more["count"]:
        lines.add_row(
            "", f"… {count(more['count'])} more", "", "", count(more["tokens"]), _usd(facts, more["effective"])
        )
    return _section(f"[bold]Bucket[/] {escape(name)}", Padding(sums, (0, 0, 0, 2)), Padding(lines, (0, 0, 0, 2)))


def _other_lines(facts: Facts) -> Padding:
    table = _table(
        ("bill of", "l"), ("service", "w"), ("family", "l"), ("category", "l"), ("lines", "r"), ("effective", "r")
    )
    for row in facts["other_lines"]:
        table.add_row(
            row["billing_period"],
            escape(row["service_name"]),
            row["charge_family"],
            row["charge_category"],
            count(row["line_count"]),
            _usd(facts, row["effective"]),
        )
    return _section(
        "[bold]The bill behind the rest[/] [dim]whole services; the postings above are this selection's share[/]",
        table,
    )


def _records(facts: Facts) -> Padding:
    records = facts["records"]
    classes = _table(("token class", "l"), ("logged", "r"), ("billed", "r"), ("estimated", "r"), ("never billed", "r"))
    for row in records["by_token_class"]:
        classes.add_row(
            row["token_class"], *(count(row[key]) for key in ("logged", "billed", "estimated", "never_billed"))
        )
    table = _table(
        ("ended (UTC)", "l"), ("source", "l"), ("record", "l"), ("model", "w"), ("status", "l"), ("tokens", "r")
    )
    for row in records["shown"]:
        table.add_row(
            row["ended_at"][:19].replace("T", " "),
            escape(row["source"]),
            escape(_short(row["record_id"], 24)),
            escape(row["model"] or "-"),
            row["status"],
            count(row["tokens"]),
        )
    if records["more"]["requests"]:
        table.add_row("", "", f"… {count(records['more']['requests'])} more", "", "", count(records["more"]["tokens"]))
    table.add_row(
        "", "", f"[bold]{count(records['requests'])} records[/]", "", "", f"[bold]{count(records['tokens'])}[/]"
    )
    fleet = explain_fleet_text.records(facts)
    shown = [*([classes] if records["by_token_class"] else []), *([fleet] if fleet else []), table]
    return Padding(_section("[bold]Records of the usage log[/]", *_spaced(shown)), (0, 0, 1, 0))


def _spaced(tables: Iterable[Table]) -> list[RenderableType]:
    return [Padding(table, (0, 0, 1, 2)) for table in tables]


def _end(text: str | None, width: int) -> str:
    return "-" if text is None else text if len(text) <= width else f"…{text[1 - width :]}"


def _short(text: str | None, width: int) -> str:
    if text is None:
        return "-"
    return text if len(text) <= width else f"{text[: width - 7]}…{text[-6:]}"
