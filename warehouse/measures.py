"""Every unit cost and ratio, defined once: pages, reports, alerts and the command line all ask here.

A component is a sum over one mart. A measure is a component, or one component divided by another; the division is the
last thing that happens. Money is DECIMAL(38,9), counts are whole numbers, ratios are doubles and NULL when their
denominator is 0. An amount is NULL only when nothing of it is known (no price for any of it).
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from typing import Literal

import pyarrow as pa

from warehouse import fleet_measures
from warehouse.marts import OWNED as OWNED_MARTS
from warehouse.measure_types import Component, Measure
from warehouse.snapshot import Snapshot


class UnknownMeasure(Exception):
    """A measure or dimension that does not exist there; the message lists what does."""


USAGE = "kind = 'usage'"
LOADED = "kind NOT IN ('out_of_scope', 'future')"
UNPRICED = "priced_nano IS NULL AND unpriced_tokens > 0"
# A row's tokens of calls: on the own fleet they are carried by the first row of their class, whatever its kind.
OF_CALLS = "kind IN ('usage', 'under_used') AND reason IS NULL AND effective_nano IS NOT NULL"
COMPONENTS: dict[str, Component] = {
    "effective": Component("cost_day", "effective_nano", "basis = 'billed'", money=True),
    "billed": Component("cost_day", "billed_nano", "basis = 'billed'", money=True),
    "estimated": Component("cost_day", "effective_nano", "basis = 'estimated'", money=True),
    "usage_billed": Component("cost_day", "effective_nano", f"{USAGE} AND basis = 'billed'", money=True),
    "usage": Component("cost_day", "effective_nano", USAGE, money=True),
    "inference": Component("cost_day", "effective_nano", "kind IN ('usage', 'unattributed')", money=True),
    "loaded": Component("cost_day", "effective_nano", LOADED, money=True),
    "unattributed": Component("cost_day", "effective_nano", "kind = 'unattributed'", money=True),
    "ownerless": Component(
        "cost_day", "effective_nano", "kind IN ('usage', 'unattributed') AND team IS NULL", money=True
    ),
    "out_of_scope": Component("cost_day", "effective_nano", "kind = 'out_of_scope'", money=True),
    "future": Component("cost_day", "effective_nano", "kind = 'future'", money=True),
    "shared": Component("cost_day", "effective_nano", "kind = 'shared'", money=True),
    "under_used": Component("cost_day", "effective_nano", "kind = 'under_used'", money=True),
    "idle": Component("cost_day", "effective_nano", "kind = 'idle'", money=True),
    "unmeasured": Component("cost_day", "effective_nano", "kind = 'unmeasured'", money=True),
    "self_hosted": Component("cost_day", "effective_nano", "cluster IS NOT NULL", money=True),
    "credit": Component("cost_day", "effective_nano", "kind = 'credit'", money=True),
    # of calls: those of the own fleet are carried by the first row of their class, whatever its kind
    "cost_tokens": Component(
        "cost_day",
        "tokens",
        "kind IN ('usage', 'under_used', 'shared') AND reason IS NULL AND effective_nano IS NOT NULL",
    ),
    "bill_tokens": Component("cost_day", "tokens", "kind IN ('usage', 'unattributed') AND basis = 'billed'"),
    "unattributed_tokens": Component("cost_day", "tokens", "kind = 'unattributed'"),
    "output_cost": Component("cost_day", "effective_nano", f"{USAGE} AND token_class = 'output'", money=True),
    "output_cost_tokens": Component("cost_day", "tokens", f"{OF_CALLS} AND token_class = 'output'"),
    "input_cost": Component("cost_day", "effective_nano", f"{USAGE} AND token_class <> 'output'", money=True),
    "input_cost_tokens": Component("cost_day", "tokens", f"{OF_CALLS} AND token_class <> 'output'"),
    "cache_write_cost": Component(
        "cost_day", "effective_nano", f"{USAGE} AND token_class LIKE 'cache_write%'", money=True
    ),
    "unpriced_cost_tokens": Component("cost_day", "tokens", "basis = 'estimated' AND effective_nano IS NULL"),
    "list": Component("usage_day", "priced_nano", money=True, unknown=UNPRICED),
    "list_base": Component("usage_day", "base_priced_nano", money=True, unknown=UNPRICED),
    "list_uncached": Component("usage_day", "uncached_nano", money=True, unknown=UNPRICED),
    "long_context": Component("usage_day", "priced_nano - base_priced_nano", money=True, unknown=UNPRICED),
    "cache_saving": Component("usage_day", "uncached_nano - base_priced_nano", money=True, unknown=UNPRICED),
    "tokens": Component(
        "usage_day",
        "uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + output_tokens",
    ),
    "priced_tokens": Component(
        "usage_day",
        "uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens + output_tokens "
        "- unpriced_tokens",
    ),
    "input": Component(
        "usage_day", "uncached_input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens"
    ),
    "uncached_input": Component("usage_day", "uncached_input_tokens"),
    "cache_read": Component("usage_day", "cache_read_tokens"),
    "cache_write": Component("usage_day", "cache_write_5m_tokens + cache_write_1h_tokens"),
    "output": Component("usage_day", "output_tokens"),
    "reasoning": Component("usage_day", "reasoning_tokens"),
    # what the own fleet serves has a cost and no price
    "unpriced": Component("usage_day", "unpriced_tokens", "provider IS DISTINCT FROM 'self-hosted'"),
    "requests": Component("usage_day", "requests"),
    "operations": Component("usage_day", "operations"),
    "failed": Component("usage_day", "failed_requests"),
    "timeout": Component("usage_day", "timeout_requests"),
    "cancelled": Component("usage_day", "cancelled_requests"),
    "retried": Component("usage_day", "retried_requests"),
    "unknown_tokens": Component("usage_day", "unknown_token_requests"),
    "duration_us": Component("usage_day", "duration_us"),
    "duration_requests": Component("usage_day", "duration_requests"),
    "ttft_us": Component("usage_day", "ttft_us"),
    "ttft_requests": Component("usage_day", "ttft_requests"),
    "tasks": Component("task_day", "task_id", "task_id IS NOT NULL", distinct=True),
    "task_money": Component(
        "task_day", "effective_nano + coalesce(estimated_nano, 0)", "task_id IS NOT NULL", money=True
    ),
    "users": Component("user_day", "user_id", "user_id IS NOT NULL", distinct=True),
    "user_money": Component("user_day", "effective_nano + coalesce(estimated_nano, 0)", money=True),
    "user_requests": Component("user_day", "requests"),
    "user_tokens": Component("user_day", "tokens"),
    "task_tokens": Component("task_day", "tokens"),
    "variance": Component("match_day", "variance_tokens"),
    "missing": Component("match_day", "missing_tokens"),
    "unexplained": Component("match_day", "unexplained_tokens"),
    "controls_failed": Component("control", "CASE WHEN ok THEN 0 ELSE 1 END"),
    # what has an alert of its own is left out
    "bill_checks_failed": Component(
        "bill_check",
        "CASE WHEN ok THEN 0 ELSE 1 END",
        "name NOT IN ('days long past are as they were', 'tokens in the log = tokens on the bill')",
    ),
    "restated": Component(
        "bill_version", "CAST(abs(effective_change_usd) * 1000000000 AS BIGINT)", "is_restated", money=True
    ),
    "rejected": Component("rejected", "rows"),
    **fleet_measures.COMPONENTS,
}

MEASURES: dict[str, Measure] = {
    "effective_cost_usd": Measure(
        "Effective cost", "usd", "effective", about="on the bill, amortised and net; all kinds"
    ),
    "billed_cost_usd": Measure("Billed cost", "usd", "billed", about="on the bill, as invoiced; all kinds"),
    "estimated_cost_usd": Measure(
        "Estimated", "usd", "estimated", about="price book x tokens the bill has not shown yet"
    ),
    "usage_billed_cost_usd": Measure("Usage, billed", "usd", "usage_billed", about="attributed from the bill"),
    "usage_cost_usd": Measure("Usage cost", "usd", "usage", about="billed and estimated usage of logged calls"),
    "inference_cost_usd": Measure(
        "Inference cost", "usd", "inference", about="usage and unattributed, billed and estimated"
    ),
    "fully_loaded_cost_usd": Measure("Fully loaded", "usd", "loaded", about="all kinds but out of scope and future"),
    "unattributed_cost_usd": Measure("Unattributed", "usd", "unattributed", about="billed tokens that no log explains"),
    "ownerless_cost_usd": Measure("Without a team", "usd", "ownerless", about="usage and unattributed cost of no team"),
    "out_of_scope_cost_usd": Measure("Not inference", "usd", "out_of_scope", about="the rest of the bill"),
    "future_cost_usd": Measure("Hours to come", "usd", "future", about="charged already, for later than as-of"),
    "shared_cost_usd": Measure(
        "Shared",
        "usd",
        "shared",
        about="support and tax by each day's usage; what clusters cost as a whole by GPU time",
    ),
    "under_used_cost_usd": Measure(
        "Under-used", "usd", "under_used", about="GPUs that were busy below what last week showed they can do"
    ),
    "idle_cost_usd": Measure("Idle", "usd", "idle", about="GPUs that were paid for and did nothing"),
    "unmeasured_cost_usd": Measure("Unmeasured", "usd", "unmeasured", about="GPUs that no metric tells of"),
    "self_hosted_cost_usd": Measure("Own fleet", "usd", "self_hosted", about="all kinds of the own clusters"),
    "credit_usd": Measure("Credits", "usd", "credit", about="credits and discounts, negative"),
    "list_cost_usd": Measure("Price book", "usd", "list", about="price book x tokens of priced calls"),
    "list_base_cost_usd": Measure("Price book, no tier", "usd", "list_base", about="had no long-context tier applied"),
    "uncached_cost_usd": Measure(
        "Had nothing been cached", "usd", "list_uncached", about="every input token at the base input price"
    ),
    "long_context_premium_usd": Measure("Long-context premium", "usd", "long_context", about="what the tier added"),
    "cache_saving_usd": Measure("Saved by caching", "usd", "cache_saving", about="base prices, cache writes counted"),
    "cache_write_cost_usd": Measure("Cache writes", "usd", "cache_write_cost", about="usage cost of cache writes"),
    "cost_per_mtok_usd": Measure(
        "Cost per million tokens",
        "usd_per_mtok",
        "usage",
        "cost_tokens",
        1_000_000,
        "usage cost, billed and estimated / tokens of all classes whose cost is known",
    ),
    "cost_per_mtok_input_usd": Measure(
        "per million input", "usd_per_mtok", "input_cost", "input_cost_tokens", 1_000_000, "all input classes"
    ),
    "cost_per_mtok_output_usd": Measure(
        "per million output", "usd_per_mtok", "output_cost", "output_cost_tokens", 1_000_000, "output tokens"
    ),
    "fully_loaded_cost_per_mtok_usd": Measure(
        "Fully loaded per million",
        "usd_per_mtok",
        "loaded",
        "cost_tokens",
        1_000_000,
        "all kinds but out of scope and future / tokens of logged calls",
    ),
    "list_cost_per_mtok_usd": Measure(
        "Price book per million",
        "usd_per_mtok",
        "list",
        "priced_tokens",
        1_000_000,
        "price book / tokens of all classes that it knows",
    ),
    "cost_per_request_usd": Measure("Cost per request", "usd_each", "usage", "requests", about="usage cost / attempts"),
    "cost_per_operation_usd": Measure(
        "Cost per operation", "usd_each", "usage", "operations", about="attempts of one call together"
    ),
    "cost_per_task_usd": Measure(
        "Cost per agent task", "usd_each", "task_money", "tasks", about="task cost / tasks active in the period"
    ),
    "total_tokens": Measure("Tokens", "tokens", "tokens", about="logged, all classes"),
    "input_tokens": Measure("Input tokens", "tokens", "input", about="uncached, cache reads and writes"),
    "uncached_input_tokens": Measure("Uncached input", "tokens", "uncached_input"),
    "cache_read_tokens": Measure("Cache reads", "tokens", "cache_read"),
    "cache_write_tokens": Measure("Cache writes", "tokens", "cache_write"),
    "output_tokens": Measure("Output tokens", "tokens", "output", about="reasoning included"),
    "reasoning_tokens": Measure("Reasoning tokens", "tokens", "reasoning", about="a part of output"),
    "known_cost_tokens": Measure(
        "Tokens of known cost", "tokens", "cost_tokens", about="of logged calls, all classes; what unit costs divide by"
    ),
    "unpriced_tokens": Measure(
        "Unpriced tokens", "tokens", "unpriced", about="logged tokens the price book does not know"
    ),
    "unknown_cost_tokens": Measure(
        "Tokens of unknown cost", "tokens", "unpriced_cost_tokens", about="not billed yet and no price"
    ),
    "bill_tokens": Measure("Tokens on the bill", "tokens", "bill_tokens"),
    "unattributed_tokens": Measure("Unattributed tokens", "tokens", "unattributed_tokens"),
    "missing_tokens": Measure("Not billed yet", "tokens", "missing", about="logged, the bill has not come that far"),
    "variance_tokens": Measure(
        "Logged, never billed", "tokens", "variance", about="the bill settled without them; no cost"
    ),
    "unexplained_tokens": Measure("Billed, not logged", "tokens", "unexplained"),
    "requests": Measure("Requests", "count", "requests", about="attempts"),
    "operations": Measure("Operations", "count", "operations", about="what callers asked for; attempts of one are one"),
    "failed_requests": Measure("Failed", "count", "failed", about="time-outs and cancellations included"),
    "timeout_requests": Measure("Time-outs", "count", "timeout"),
    "cancelled_requests": Measure("Cancelled", "count", "cancelled"),
    "retried_requests": Measure("Retries", "count", "retried", about="attempts after the first"),
    "unknown_token_requests": Measure("Successes without counts", "count", "unknown_tokens"),
    "tasks": Measure("Agent tasks", "count", "tasks", about="active in the period"),
    "users": Measure("Users", "count", "users"),
    "task_cost_usd": Measure("Task cost", "usd", "task_money", about="billed and estimated cost of agent tasks"),
    "task_tokens": Measure("Task tokens", "tokens", "task_tokens"),
    "user_cost_usd": Measure("User cost", "usd", "user_money", about="billed and estimated usage by user"),
    "user_requests": Measure("User requests", "count", "user_requests"),
    "user_tokens": Measure("User tokens", "tokens", "user_tokens"),
    "cache_hit_ratio": Measure(
        "Cache hit ratio", "share", "cache_read", "input", about="cache reads / all input tokens"
    ),
    "error_ratio": Measure("Error ratio", "share", "failed", "requests", about="failed / attempts"),
    "timeout_ratio": Measure("Time-out ratio", "share", "timeout", "requests"),
    "retry_ratio": Measure("Retry ratio", "share", "retried", "requests", about="attempts after the first / attempts"),
    "unattributed_share": Measure(
        "Unattributed share", "share", "unattributed", "inference", about="of inference cost"
    ),
    "ownerless_share": Measure("Share without a team", "share", "ownerless", "inference", about="of inference cost"),
    "estimated_share": Measure("Estimated share", "share", "estimated", "inference", about="of inference cost"),
    "mean_duration_ms": Measure(
        "Mean duration", "milliseconds", "duration_us", "duration_requests", about="successful calls"
    ),
    "mean_ttft_ms": Measure(
        "Mean time to first token", "milliseconds", "ttft_us", "ttft_requests", about="successful streams"
    ),
    "tokens_per_request": Measure("Tokens per request", "tokens_each", "tokens", "requests"),
    "controls_failed": Measure("Controls that do not hold", "count", "controls_failed"),
    "bill_checks_failed": Measure("Checks of the bill that do not hold", "count", "bill_checks_failed"),
    "restated_usd": Measure(
        "Restated", "usd", "restated", about="by the newest delivery of a bill, on days that were over for three days"
    ),
    "rejected_rows": Measure("Rejected rows", "count", "rejected"),
    **fleet_measures.MEASURES,
}

OWNERS = ("team", "app", "cost_center", "agent", "environment")
TIME = ("day", "week", "month")
DIMENSIONS: dict[str, tuple[str, ...]] = {
    "cost_day": (
        *TIME,
        "billing_period",
        "currency",
        "provider",
        "account_id",
        "region",
        "service_name",
        "line_class",
        "cluster",
        "pool",
        "model",
        "token_class",
        "service_tier",
        "kind",
        "basis",
        "status",
        "method",
        "reason",
        *OWNERS,
        "claim_set_id",
    ),
    "usage_day": (*TIME, "provider", "account_id", "region", "model", "service_tier", *OWNERS, "claim_set_id"),
    "latency_day": (*TIME, "provider", "model", "team", "app", "agent", "environment"),
    "task_day": (*TIME, *OWNERS, "task_id"),
    "user_day": (*TIME, *OWNERS, "user_id"),
    "match_day": (
        *TIME,
        "provider",
        "account_id",
        "region",
        "model",
        "token_class",
        "service_tier",
        "scope",
        "context_tier",
    ),
    "pool_hour": (*TIME, "hour", "cluster", "region", "model", "pool", "role", "currency"),
    "ratio_day": (*TIME, "cluster", "model", "pool", "currency", "kind", "method", *OWNERS),
    "control": ("name",),
    "bill_check": ("name", "billing_period"),
    "bill_version": ("name", "billing_period", "service_name", "export_name"),
    "rejected": ("source", "reason"),
}
DIMENSIONS["cost_hour"] = ("hour", *DIMENSIONS["cost_day"])
DERIVED = {"week": "CAST(date_trunc('week', day) AS DATE)", "month": "CAST(date_trunc('month', day) AS DATE)"}


@dataclass(frozen=True)
class Filters:
    """Which rows: days inclusive, and the wanted values per dimension (None in a tuple: nobody's, unknown)."""

    first_day: date | None = None
    last_day: date | None = None
    currency: str | None = None
    billing_period: tuple[str | None, ...] = ()
    provider: tuple[str | None, ...] = ()
    account_id: tuple[str | None, ...] = ()
    region: tuple[str | None, ...] = ()
    model: tuple[str | None, ...] = ()
    cluster: tuple[str | None, ...] = ()
    pool: tuple[str | None, ...] = ()
    role: tuple[str | None, ...] = ()
    method: tuple[str | None, ...] = ()
    token_class: tuple[str | None, ...] = ()
    service_tier: tuple[str | None, ...] = ()
    kind: tuple[str | None, ...] = ()
    basis: tuple[str | None, ...] = ()
    status: tuple[str | None, ...] = ()
    team: tuple[str | None, ...] = ()
    app: tuple[str | None, ...] = ()
    cost_center: tuple[str | None, ...] = ()
    agent: tuple[str | None, ...] = ()
    environment: tuple[str | None, ...] = ()
    task_id: tuple[str | None, ...] = ()
    user_id: tuple[str | None, ...] = ()

    def chosen(self) -> dict[str, tuple[str | None, ...]]:
        """Dimensions that are restricted."""
        names = [field.name for field in fields(self) if field.name not in ("first_day", "last_day", "currency")]
        return {name: getattr(self, name) for name in names if getattr(self, name)}


def table(
    snapshot: Snapshot,
    measures: Sequence[str],
    by: Sequence[str] = (),
    where: Filters | None = None,
    order: str | None = None,
    limit: int | None = None,
) -> pa.Table:
    """One row per combination of `by`, one column per measure, after the columns of `by`.

    `order` names a column, `-` before it for descending; without it rows are ordered by `by`. Money is in the
    snapshot's currency unless `where.currency` names another; currencies are never added up.
    """
    where = where or Filters()
    wanted = [_measure(name) for name in measures]
    components = sorted({part for m in wanted for part in (m.numerator, m.denominator) if part})
    parts, parameters = [], []
    for mart in sorted({_mart(name, by) for name in components}):
        own = [name for name in components if _mart(name, by) == mart]
        text, bound = _part(snapshot, mart, own, components, by, where)
        parts.append(text)
        parameters += bound
    keys = [f'"{name}"' for name in by]
    sums = ", ".join(
        f'CASE WHEN sum("{c}?") > 0 AND sum("{c}") = 0 THEN NULL ELSE coalesce(sum("{c}"), 0) END AS "{c}"'
        for c in components
    )
    columns = keys + [_output(name, measure) for name, measure in zip(measures, wanted, strict=True)]
    grouping = f"GROUP BY {', '.join(keys)}" if keys else ""
    query = (
        f"SELECT {', '.join(columns)} FROM (SELECT {', '.join([*keys, sums])} FROM "
        f"({' UNION ALL '.join(parts)}) {grouping}) ORDER BY {_order(order, by, measures)}"
    )
    if limit is not None:
        query += f" LIMIT {int(limit)}"
    return snapshot.sql(query, parameters)


def percentile(
    snapshot: Snapshot,
    measure: Literal["duration", "ttft"],
    q: float,
    by: Sequence[str] = (),
    where: Filters | None = None,
) -> pa.Table:
    """Upper bound (ms) of the bucket in which the q-quantile of successful calls lies, per combination of `by`."""
    where = where or Filters()
    conditions, parameters = _conditions("latency_day", where)
    _check("latency_day", by)
    keys = [_key(name) for name in by]
    names = [f'"{name}"' for name in by]
    partition = f"PARTITION BY {', '.join(names)} " if names else ""
    query = f"""
        SELECT {", ".join([*names, f"min(le_ms) AS p{round(q * 100)}_ms", "max(total) AS requests"])} FROM (
            SELECT *, sum(requests) OVER ({partition}ORDER BY le_ms) AS upto,
                   sum(requests) OVER ({partition.strip()}) AS total
            FROM (SELECT {", ".join([*keys, "le_ms", "sum(requests) AS requests"])} FROM latency_day
                  WHERE measure = ? AND {conditions} GROUP BY ALL))
        WHERE upto >= total * ?
        {f"GROUP BY {', '.join(names)} ORDER BY {', '.join(names)}" if names else "HAVING count(*) > 0"}"""
    return snapshot.sql(query, [measure, *parameters, q])


def _measure(name: str) -> Measure:
    if name not in MEASURES:
        raise UnknownMeasure(f"There is no measure `{name}`. There are: {', '.join(sorted(MEASURES))}.")
    return MEASURES[name]


def _mart(component: str, by: Sequence[str]) -> str:
    mart = COMPONENTS[component].mart
    return "cost_hour" if mart == "cost_day" and "hour" in by else mart


def _check(mart: str, by: Sequence[str]) -> None:
    missing = [name for name in by if name not in DIMENSIONS[mart]]
    if missing:
        raise UnknownMeasure(
            f"`{mart}` does not know {', '.join(missing)}; it can be split by {', '.join(DIMENSIONS[mart])}."
        )


def _key(name: str) -> str:
    return f'{DERIVED[name]} AS "{name}"' if name in DERIVED else f'"{name}"'


def _conditions(mart: str, where: Filters) -> tuple[str, list[object]]:
    known = DIMENSIONS[mart]
    conditions: list[str] = ["TRUE"]
    parameters: list[object] = []
    for column, operator, day in (("day", ">=", where.first_day), ("day", "<=", where.last_day)):
        if day is not None and "day" in known:
            conditions.append(f"{column} {operator} ?")
            parameters.append(day)
    chosen = where.chosen()
    _check(mart, list(chosen))
    for name, values in chosen.items():
        present: list[object] = [value for value in values if value is not None]
        options = [f'"{name}" IN ({", ".join("?" * len(present))})'] if present else []
        options += [f'"{name}" IS NULL'] if None in values else []
        conditions.append(f"({' OR '.join(options)})")
        parameters += present
    return " AND ".join(conditions), parameters


def _part(
    snapshot: Snapshot, mart: str, own: list[str], components: list[str], by: Sequence[str], where: Filters
) -> tuple[str, list[object]]:
    _check(mart, by)
    conditions, parameters = _conditions(mart, where)
    currency = where.currency or snapshot.currency
    withheld = snapshot.scope.teams is not None and mart not in OWNED_MARTS
    columns = [_key(name) for name in by]
    bound: list[object] = []
    for name in components:
        if name not in own:
            columns += [f'CAST(0 AS DECIMAL(38, 0)) AS "{name}"', f'0 AS "{name}?"']
            continue
        component = COMPONENTS[name]
        condition = known = component.where
        if component.money and ("currency" not in by or where.currency):
            condition += f" AND currency = '{_literal(currency)}'"
            # what has no price has no currency either, and is missing in each
            known += f" AND coalesce(currency, '{_literal(currency)}') = '{_literal(currency)}'"
        # a reader of some teams learns nothing from a mart of the whole organisation, which is not the same as 0
        unknown = "1" if withheld else _unknown(component, known)
        if component.distinct:
            columns += [
                f'CAST(count(DISTINCT {component.column}) FILTER ({condition}) AS DECIMAL(38, 0)) AS "{name}"',
                f'{1 if withheld else 0} AS "{name}?"',
            ]
        else:
            columns += [
                f'CAST(coalesce(sum({component.column}) FILTER ({condition}), 0) AS DECIMAL(38, 0)) AS "{name}"',
                f'{unknown} AS "{name}?"',
            ]
    grouping = " GROUP BY ALL" if by else ""
    return f"SELECT {', '.join(columns)} FROM {mart} WHERE {conditions}{grouping}", bound + parameters


def _unknown(component: Component, known: str) -> str:
    """How many of a component's rows hold back its amount."""
    is_unknown = component.unknown or f"({component.column}) IS NULL"
    rows = f"count(*) FILTER ({known} AND ({is_unknown}))"
    if component.has_gaps:
        return f"CASE WHEN count(*) FILTER ({known} AND NOT ({is_unknown})) > 0 THEN 0 ELSE {rows} END"
    return rows


def _literal(text: str) -> str:
    return text.replace("'", "''")


def _output(name: str, measure: Measure) -> str:
    top = f'"{measure.numerator}"'
    if measure.denominator is None:
        if COMPONENTS[measure.numerator].money:
            return f'CAST({top} * CAST(0.000000001 AS DECIMAL(10, 9)) AS DECIMAL(38, 9)) AS "{name}"'
        return f'CAST({top} AS BIGINT) AS "{name}"'
    scale = measure.factor * (
        1e-9 if COMPONENTS[measure.numerator].money and not COMPONENTS[measure.denominator].money else 1
    )
    if measure.unit == "milliseconds":
        scale = 1e-3
    return f'CAST({top} AS DOUBLE) * {scale!r} / nullif(CAST("{measure.denominator}" AS DOUBLE), 0) AS "{name}"'


def _order(order: str | None, by: Sequence[str], measures: Sequence[str]) -> str:
    keys = [f'"{name}" NULLS LAST' for name in by]
    if order is None:
        return ", ".join(keys) or "1"
    name = order.removeprefix("-")
    if name not in (*by, *measures):
        raise UnknownMeasure(f"Cannot order by `{name}`: it is none of the columns {', '.join([*by, *measures])}.")
    return ", ".join([f'"{name}" {"DESC" if order.startswith("-") else "ASC"} NULLS LAST', *keys])
