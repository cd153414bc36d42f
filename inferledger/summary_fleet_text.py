"""The own GPU fleet's part of the summary, for people."""

from decimal import Decimal
from typing import Any

from rich.console import RenderableType
from rich.padding import Padding

from inferledger.figures import count, each, money, mtok, percent
from inferledger.summary_parts import name, spaced, table

Facts = dict[str, Any]


def sections(facts: Facts) -> list[RenderableType]:
    """Managed and self-hosted side by side, and the pools; nothing where there is no fleet."""
    fleet = facts["fleet"]
    if fleet is None:
        return []
    return [_side_by_side(facts, fleet), *([_pools(facts, fleet["pools"])] if fleet["pools"] else [])]


def _side_by_side(facts: Facts, fleet: Facts) -> Padding:
    currency = facts["currency"]
    made = table(
        "Managed and self-hosted",
        ("", "l"),
        ("loaded", "r"),
        ("usage", "r"),
        ("loaded/Mtok", "r"),
        ("usage/Mtok", "r"),
        ("tokens", "r"),
        ("requests", "r"),
    )
    for words, row in (("model APIs", fleet["managed"]), ("own GPU fleet", fleet["self_hosted"])):
        made.add_row(
            words,
            money(row["fully_loaded_cost"], currency),
            money(row["usage_cost"], currency),
            f"[bold]{each(row['fully_loaded_cost_per_mtok'], currency)}[/]",
            each(row["cost_per_mtok"], currency),
            mtok(row["total_tokens"]),
            count(row["requests"]),
        )
    beside = fleet["beside"]["fully_loaded_cost"]
    if Decimal(beside):
        made.add_row("[dim]support, tax, credits[/]", money(beside, currency))
    return spaced(made)


def _pools(facts: Facts, pools: list[Facts]) -> Padding:
    currency = facts["currency"]
    made = table(
        "The own fleet, by pool",
        ("pool", "w"),
        ("cluster", "w"),
        ("cost", "r"),
        ("GPU-h", "r"),
        ("busy", "r"),
        ("idle", "r"),
        ("under-used", "r"),
        ("unknown", "r"),
        ("/Mtok", "r"),
    )
    for pool in pools:
        made.add_row(
            name(pool["pool"], "(nodes)"),
            name(pool["cluster"], "-"),
            money(pool["cost"], currency),
            "unknown" if pool["gpu_hours"] is None else f"{Decimal(pool['gpu_hours']):,.1f}",
            percent(pool["gpu_busy_share"], 0),
            money(pool["idle_cost"], currency),
            money(pool["under_used_cost"], currency),
            money(pool["unmeasured_cost"], currency),
            each(pool["engine_cost_per_mtok"], currency),
        )
    return spaced(made)
