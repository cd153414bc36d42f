"""The tables of a summary: models, teams, dearest tasks, unattributed cost, and any split a person asks for."""

from collections.abc import Sequence
from decimal import Decimal

from inferledger.figures import exact, ratio
from inferledger.rows import Facts, rows
from warehouse import measures
from warehouse.measures import MEASURES, Filters
from warehouse.snapshot import Snapshot

DEAREST = 10
BY_MODEL = (
    "usage_cost_usd",
    "estimated_cost_usd",
    "unattributed_cost_usd",
    "cost_per_mtok_usd",
    "cost_per_mtok_input_usd",
    "cost_per_mtok_output_usd",
    "list_cost_usd",
    "uncached_cost_usd",
    "total_tokens",
    "input_tokens",
    "output_tokens",
    "requests",
    "cache_hit_ratio",
    "error_ratio",
    "unpriced_tokens",
    "unknown_cost_tokens",
)
BY_TEAM = (
    "effective_cost_usd",
    "billed_cost_usd",
    "usage_cost_usd",
    "fully_loaded_cost_usd",
    "estimated_cost_usd",
    "cost_per_mtok_usd",
    "fully_loaded_cost_per_mtok_usd",
    "cost_per_request_usd",
    "total_tokens",
    "requests",
    "cache_hit_ratio",
    "error_ratio",
    "unknown_cost_tokens",
)
BREAKDOWN = (
    "effective_cost_usd",
    "billed_cost_usd",
    "usage_cost_usd",
    "estimated_cost_usd",
    "cost_per_mtok_usd",
    "total_tokens",
    "requests",
)
OF_TASKS = ("task_cost_usd", "task_tokens")
OF_USERS = ("user_cost_usd", "user_tokens", "user_requests")


def figures_row(row: Facts) -> Facts:
    """One row of measures with stable keys: `_usd` gone, money and ratios as decimal text."""
    found: Facts = {}
    for name, value in row.items():
        key = name.removesuffix("_usd") if name in MEASURES else name
        if isinstance(value, Decimal):
            found[key] = exact(value)
        elif isinstance(value, float):
            found[key] = ratio(value)
        else:
            found[key] = value.isoformat() if hasattr(value, "isoformat") else value
    return found


def models(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """Models that were used or billed, dearest first."""
    found = measures.table(snapshot, BY_MODEL, ("model",), where, order="-usage_cost_usd").to_pylist()
    return [
        figures_row(row)
        for row in found
        if row["total_tokens"]
        or row["requests"]
        or row["usage_cost_usd"]
        or (row["model"] and row["unattributed_cost_usd"])
    ]


def teams(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """Teams, dearest first; None is cost without a team."""
    found = measures.table(snapshot, BY_TEAM, ("team",), where, order="-fully_loaded_cost_usd").to_pylist()
    return [figures_row(row) for row in found]


def tasks(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """The dearest agent tasks of the period; what they are called and did is for life."""
    found = measures.table(
        snapshot, ["task_cost_usd", "task_tokens"], ("task_id",), where, "-task_cost_usd", DEAREST + 1
    ).to_pylist()
    dearest = [row for row in found if row["task_id"] is not None and row["task_cost_usd"] is not None][:DEAREST]
    about = rows(
        snapshot,
        """
        SELECT task_id, team, app, started_at, ended_at, requests, failed_requests, agents, models, outcome,
            input_tokens, cache_read_tokens, output_tokens, coalesce(estimated_nano, 0) <> 0 AS has_estimate
        FROM task_cost WHERE list_contains(?, task_id) AND coalesce(currency, ?) = ?
        """,
        [[row["task_id"] for row in dearest], snapshot.currency, snapshot.currency],
    )
    by_task = {row["task_id"]: row for row in about}
    return [figures_row({**row, **by_task.get(row["task_id"], {})}) for row in dearest]


def unattributed(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """Unattributed cost by reason."""
    found = measures.table(
        snapshot, ["unattributed_cost_usd", "unattributed_tokens"], ("reason",), where, "-unattributed_cost_usd"
    )
    return [figures_row(row) for row in found.to_pylist() if row["unattributed_cost_usd"] or row["unattributed_tokens"]]


def breakdown(snapshot: Snapshot, where: Filters, by: Sequence[str]) -> list[Facts]:
    """Cost and use by any dimension; measures that the dimensions do not fit are left out."""
    wanted = OF_TASKS if "task_id" in by else OF_USERS if "user_id" in by else BREAKDOWN
    fitting = [name for name in wanted if _fits(name, by)]
    if not fitting:
        measures.table(snapshot, wanted[:1], by, where)  # says what is possible
    return [figures_row(row) for row in measures.table(snapshot, fitting, by, where, f"-{fitting[0]}").to_pylist()]


def _fits(name: str, by: Sequence[str]) -> bool:
    measure = MEASURES[name]
    marts = [measures.COMPONENTS[part].mart for part in (measure.numerator, measure.denominator) if part]
    marts = ["cost_hour" if mart == "cost_day" and "hour" in by else mart for mart in marts]
    return all(set(by) <= set(measures.DIMENSIONS[mart]) for mart in marts)
