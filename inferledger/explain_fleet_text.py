"""The own fleet's part of `explain`, for people."""

from decimal import Decimal
from typing import Any

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from inferledger.figures import count, money, percent

Facts = dict[str, Any]
METHODS = {
    "pool_role": "the pool's role: prefill pays for input, decode for output",
    "engine_seconds": "the engine's own GPU-seconds of prefill and decode",
    "configured_ratio": "the configured weights of a token (fleet.weights)",
    "gpu_time": "GPU time",
}
TIMES = {
    "busy": "busy",
    "no_traffic": "no traffic",
    "starting": "starting",
    "stopping": "stopping",
    "unmeasured": "unmeasured",
    "not_requested": "requested by no pod",
    "not_in_cluster": "not in the cluster",
    "productive": "productive",
    "under_used": "under-used",
    "shared": "shared cost of the cluster",
}


def sections(facts: Facts) -> list[RenderableType]:
    """Pools of the selection, and each of its dearest pool-hours; nothing where the own fleet has no part."""
    if not facts["pools"]:
        return []
    found: list[RenderableType] = [_pools(facts), *(_pool_hour(facts, hour) for hour in facts["pool_hours"])]
    left = facts["pool_hours_more"]
    if left["count"]:
        found.append(
            Padding(
                f"[dim]… and {count(left['count'])} more pool-hours with {_usd(facts, left['selected'])} of this "
                "selection (--limit 0 shows all)[/]",
                (1, 0, 0, 2),
            )
        )
    return found


def _usd(facts: Facts, amount: str | None) -> str:
    if amount is None:
        return "withheld"
    value = abs(Decimal(amount))
    return money(amount, facts["currency"], 2 if value >= 100 else 4 if value >= 1 or not value else 6)


def _table(*columns: tuple[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name, justify in columns:
        table.add_column(name, justify="right" if justify == "r" else "left", overflow="fold")
    return table


def _name(row: Facts) -> str:
    if row["pool"] is None:
        return f"{row['cluster']} · nodes, of no pool"
    return f"{row['cluster']} · {row['model'] or 'no route'} · pool {row['pool']}"


def _pools(facts: Facts) -> Padding:
    table = _table(("cluster · model · pool", "l"), ("kinds", "l"), ("tokens", "r"), ("effective", "r"))
    for pool in facts["pools"]:
        kinds = ", ".join(f"{kind.replace('_', '-')} {_usd(facts, amount)}" for kind, amount in pool["by_kind"].items())
        table.add_row(escape(_name(pool)), kinds, count(pool["tokens"]), _usd(facts, pool["effective"]))
    return Padding(Group(Text("The own fleet, by pool", style="bold"), table), (1, 0, 0, 0))


def _pool_hour(facts: Facts, hour: Facts) -> Padding:
    sums = Table.grid(padding=(0, 2, 0, 0))
    sums.add_column()
    sums.add_column(justify="right")
    sums.add_column(style="dim", overflow="fold")
    kinds = ", ".join(
        f"{kind.replace('_', '-')} {_usd(facts, amount)}" for kind, amount in hour["selected_by_kind"].items()
    )
    sums.add_row("this selection", _usd(facts, hour["selected"]), kinds)
    if hour["withheld"]:
        sums.add_row("the pool and its lines", "withheld", "shown to readers of the whole organisation")
    else:
        states = ", ".join(f"{TIMES[state]} {_usd(facts, amount)}" for state, amount in hour["by_state"].items())
        for name, words, about in (
            ("others", "other owners, or nobody's", f"the pool: {_usd(facts, hour['pool_total'])} ({states})"),
            ("other_pools", "other pools of the cluster", ""),
            ("nodes", "nodes, of no pool", ""),
        ):
            if Decimal(hour[name]):
                sums.add_row(words, _usd(facts, hour[name]), about)
        sums.add_row("[bold]the bill's lines[/]", f"[bold]{_usd(facts, hour['bill'])}[/]", "of this cluster and hour")
    parts: list[RenderableType] = [sums]
    if hour["gpu_hours"]:
        spent = ", ".join(f"{TIMES[state]} {Decimal(hours):,.2f}" for state, hours in hour["gpu_hours"].items())
        unknown = (
            f"; {count(hour['unknown_series'])} counter(s) of unknown start, not booked"
            if hour["unknown_series"]
            else ""
        )
        parts.append(Text(f"GPU-hours: {spent}{unknown}"))
    if hour["classes"]:
        parts += _classes(facts, hour)
    if hour["lines"]:
        parts.append(_lines(facts, hour))
    title = Text(f"Pool-hour {hour['hour'][:16].replace('T', ' ')} UTC · {_name(hour)}", style="bold")
    return Padding(Group(title, *(Padding(part, (0, 0, 0, 2)) for part in parts)), (1, 0, 0, 0))


def _classes(facts: Facts, hour: Facts) -> list[RenderableType]:
    table = _table(
        ("token class", "l"),
        ("weight", "r"),
        ("cost", "r"),
        ("engines", "r"),
        ("logged", "r"),
        ("selected", "r"),
        ("of the larger", "r"),
        ("charged", "r"),
    )
    for row in hour["classes"]:
        table.add_row(
            row["token_class"],
            percent(row["weight_share"]),
            _usd(facts, row["class_cost"]),
            count(row["engine_tokens"]) if row["logged_tokens"] is not None else "withheld",
            count(row["logged_tokens"]) if row["logged_tokens"] is not None else "withheld",
            count(row["selected_tokens"]),
            percent(row["token_share"]),
            _usd(facts, row["selected"]),
        )
    methods = sorted({method for row in hour["classes"] for method in row["method"].split(", ")})
    said = "; ".join(METHODS.get(method, method) for method in methods)
    return [Text(f"Split between token classes by {said}", style="dim"), table]


def _lines(facts: Facts, hour: Facts) -> Table:
    table = _table(
        ("instance or resource", "l"),
        ("line item", "l"),
        ("usage type", "l"),
        ("GPUs", "r"),
        ("billed h", "r"),
        ("held GPU-h", "r"),
        ("cost", "r"),
    )
    for line in hour["lines"]:
        table.add_row(
            escape(_end(line["resource_id"] or line["service_name"], 20)),
            escape(_end(line["line_item_id"], 14)),
            escape(_end(line["usage_type"] or line["line_class"], 22)),
            "" if line["gpus"] is None else count(line["gpus"]),
            "" if line["usage_ms"] is None else f"{Decimal(line['usage_ms']) / 3_600_000:.2f}",
            "" if line["held_gpu_hours"] is None else f"{Decimal(line['held_gpu_hours']):.2f}",
            _usd(facts, line["effective"]),
        )
    left = hour["lines_more"]
    if left["count"]:
        table.add_row("", f"… {count(left['count'])} more", "", "", "", "", _usd(facts, left["effective"]))
    return table


def _end(text: str | None, width: int) -> str:
    return "-" if text is None else text if len(text) <= width else f"…{text[1 - width :]}"


def records(facts: Facts) -> Table | None:
    """Tokens of calls that the own fleet answered, per class; None where there are none."""
    if not facts["records"]["by_token_class_fleet"]:
        return None
    table = _table(
        ("token class (own fleet)", "l"), ("logged", "r"), ("billed", "r"), ("not billed yet", "r"), ("elsewhere", "r")
    )
    for row in facts["records"]["by_token_class_fleet"]:
        table.add_row(
            row["token_class"], *(count(row[name]) for name in ("logged", "billed", "not_billed_yet", "elsewhere"))
        )
    return table
