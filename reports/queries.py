"""The few questions that the measures do not answer: why a cost moved, what became of a task, the books, restatements.

Amounts come out as whole nanos, so that parts add up; `money` makes decimals of them at the edge.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Any, Literal

from warehouse.snapshot import Snapshot

Split = Literal["team", "app", "model"]
Rows = list[dict[str, Any]]
SPLITS: tuple[Split, ...] = ("team", "app", "model")
TOKENS = (
    "tokens", "base_tokens", "input_tokens", "base_input_tokens", "cache_read_tokens", "base_cache_read_tokens",
    "unknown_tokens",
)  # fmt: skip
INFERENCE = "kind IN ('usage', 'unattributed')"

# From the base day to the day in four steps, each priced with what was known before it, in whole nanos:
#   volume  the base day's cost scaled to the day's tokens
#   mix     then the day's models and its share of output, at the base day's prices of each
#   cache   then the day's split of input into uncached, cache reads and writes, at the base day's price of each class
#   price   then the day's own prices
# The steps telescope, so they add up to the change exactly. A class or model that the base day had none of has no base
# price: it enters at the day's price, as mix. Tokens of unknown cost are in no step; they are counted beside.
EFFECTS = """
WITH class AS (
    SELECT {keys}model, token_class,
        CASE WHEN token_class = 'output' THEN 'output' ELSE 'input' END AS side,
        coalesce(sum(tokens) FILTER (day = $day AND effective_nano IS NOT NULL), 0)::HUGEINT AS tokens,
        coalesce(sum(tokens) FILTER (day = $base AND effective_nano IS NOT NULL), 0)::HUGEINT AS base_tokens,
        coalesce(sum(effective_nano) FILTER (day = $day), 0)::HUGEINT AS nano,
        coalesce(sum(effective_nano) FILTER (day = $base), 0)::HUGEINT AS base_nano,
        coalesce(sum(tokens) FILTER (effective_nano IS NULL), 0)::HUGEINT AS unknown_tokens
    FROM cost_day
    WHERE day IN ($day, $base) AND {inference} AND currency = $currency
    GROUP BY ALL
),
repriced AS (
    SELECT *, CASE WHEN base_tokens > 0 THEN tokens * base_nano // base_tokens ELSE nano END AS at_class_prices
    FROM class
),
side AS (
    SELECT {keys}model, side,
        sum(tokens) AS tokens, sum(base_tokens) AS base_tokens, sum(nano) AS nano, sum(base_nano) AS base_nano,
        sum(at_class_prices) AS at_class_prices,
        CASE WHEN sum(base_tokens) > 0 THEN sum(tokens) * sum(base_nano) // sum(base_tokens)
             ELSE sum(at_class_prices) END AS at_side_prices,
        sum(tokens) FILTER (side = 'input') AS input_tokens,
        sum(base_tokens) FILTER (side = 'input') AS base_input_tokens,
        sum(tokens) FILTER (token_class = 'cache_read') AS cache_read_tokens,
        sum(base_tokens) FILTER (token_class = 'cache_read') AS base_cache_read_tokens,
        sum(unknown_tokens) AS unknown_tokens
    FROM repriced GROUP BY ALL
),
whole AS (
    SELECT {keys}sum(nano) AS nano, sum(base_nano) AS base_nano, sum(tokens) AS tokens, sum(base_tokens) AS base_tokens,
        CASE WHEN sum(base_tokens) > 0 THEN sum(base_nano) * sum(tokens) // sum(base_tokens)
             ELSE sum(at_side_prices) END AS at_base_cost,
        sum(at_side_prices) AS at_side_prices, sum(at_class_prices) AS at_class_prices,
        coalesce(sum(input_tokens), 0) AS input_tokens, coalesce(sum(base_input_tokens), 0) AS base_input_tokens,
        coalesce(sum(cache_read_tokens), 0) AS cache_read_tokens,
        coalesce(sum(base_cache_read_tokens), 0) AS base_cache_read_tokens,
        sum(unknown_tokens) AS unknown_tokens
    FROM side GROUP BY {positions}
)
SELECT {keys}nano::BIGINT AS nano, base_nano::BIGINT AS base_nano,
    (at_base_cost - base_nano)::BIGINT AS volume_nano,
    (at_side_prices - at_base_cost)::BIGINT AS mix_nano,
    (at_class_prices - at_side_prices)::BIGINT AS cache_nano,
    (nano - at_class_prices)::BIGINT AS price_nano,
    tokens::BIGINT AS tokens, base_tokens::BIGINT AS base_tokens,
    input_tokens::BIGINT AS input_tokens, base_input_tokens::BIGINT AS base_input_tokens,
    cache_read_tokens::BIGINT AS cache_read_tokens, base_cache_read_tokens::BIGINT AS base_cache_read_tokens,
    unknown_tokens::BIGINT AS unknown_tokens
FROM whole
ORDER BY abs(nano - base_nano) DESC, {keys}nano
"""


@dataclass(frozen=True)
class Effects:
    """One change of cost, taken apart: volume + mix + cache + price = cost - base, to the nano."""

    names: tuple[str | None, ...]
    cost: Decimal
    base: Decimal
    volume: Decimal
    mix: Decimal
    cache: Decimal
    price: Decimal
    tokens: int
    base_tokens: int
    input_tokens: int
    base_input_tokens: int
    cache_read_tokens: int
    base_cache_read_tokens: int
    unknown_tokens: int

    @property
    def change(self) -> Decimal:
        """What the parts add up to."""
        return self.cost - self.base

    @property
    def hit_ratio(self) -> float | None:
        """Cache reads of all input tokens on the day."""
        return self.cache_read_tokens / self.input_tokens if self.input_tokens else None

    @property
    def base_hit_ratio(self) -> float | None:
        """And on the base day."""
        return self.base_cache_read_tokens / self.base_input_tokens if self.base_input_tokens else None


_ZERO: dict[str, Any] = {field.name: Decimal(0) if field.type is Decimal else 0 for field in fields(Effects)}


def money(nano: int) -> Decimal:
    """Whole nanos as an exact decimal."""
    return Decimal(nano).scaleb(-9)


def effects(snapshot: Snapshot, day: date, base: date, by: Sequence[Split]) -> list[Effects]:
    """Why the inference cost of `day` differs from `base`'s, per combination of `by`, the largest change first."""
    if not by or set(by) - set(SPLITS):
        raise ValueError(f"split by one or more of {', '.join(SPLITS)}, not by {', '.join(by) or 'nothing'}")
    keys, positions = "".join(f"{name}, " for name in by), ", ".join(str(n + 1) for n in range(len(by)))
    sql = EFFECTS.format(keys=keys, inference=INFERENCE, positions=positions)
    for number, name in enumerate(("$day", "$base", "$currency"), 1):
        sql = sql.replace(name, f"${number}")
    rows = snapshot.sql(sql, [day, base, snapshot.currency]).to_pylist()
    return [
        Effects(
            names=tuple(row[name] for name in by),
            cost=money(row["nano"]),
            base=money(row["base_nano"]),
            volume=money(row["volume_nano"]),
            mix=money(row["mix_nano"]),
            cache=money(row["cache_nano"]),
            price=money(row["price_nano"]),
            **{name: row[name] for name in TOKENS},
        )
        for row in rows
    ]


def together(parts: Sequence[Effects]) -> Effects:
    """Several changes as one: every column is the sum of theirs, so a table of them adds up both ways."""
    names = [field.name for field in fields(Effects) if field.name != "names"]
    return Effects((), *(sum((getattr(part, name) for part in parts), _ZERO[name]) for name in names))


def task_facts(snapshot: Snapshot, task_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """What is known of some agent tasks for life: requests, agents, models, outcome, cost so far."""
    rows = snapshot.sql(
        """
        SELECT task_id, requests, failed_requests, agents, models, outcome,
            CASE WHEN estimated_nano IS NULL AND unpriced_tokens > 0 AND effective_nano = 0 THEN NULL
                 ELSE effective_nano + coalesce(estimated_nano, 0) END AS nano
        FROM task_cost WHERE task_id IN (SELECT unnest($1::VARCHAR[])) AND coalesce(currency, $2) = $2
        """,
        [list(task_ids), snapshot.currency],
    ).to_pylist()
    return {row["task_id"]: {**row, "cost": None if row["nano"] is None else money(row["nano"])} for row in rows}


def balances(snapshot: Snapshot, periods: int = 2) -> Rows:
    """Bill, ledger and difference of the newest billing periods, exact, newest first."""
    rows: Rows = snapshot.sql(
        """
        SELECT billing_period, currency, cost_basis, bill_usd AS bill, ledger_usd AS ledger, rounding_usd AS rounding,
            difference_usd AS difference, status
        FROM balance
        WHERE billing_period IN (SELECT DISTINCT billing_period FROM balance ORDER BY billing_period DESC LIMIT ?)
        ORDER BY billing_period DESC, currency, cost_basis DESC
        """,
        [periods],
    ).to_pylist()
    return rows


def controls(snapshot: Snapshot) -> int:
    """How many controls the snapshot carries."""
    return int(snapshot.sql("SELECT count(*) AS n FROM control").to_pylist()[0]["n"])


def reach(snapshot: Snapshot) -> dict[str, Any]:
    """The last hours (UTC, naive) of which the ledger has logged calls, and of which it has billed ones."""
    rows: Rows = snapshot.sql(
        f"""
        SELECT max(hour) FILTER (kind = 'usage') AS logged,
            max(hour) FILTER (basis = 'billed' AND {INFERENCE}) AS billed
        FROM cost_hour
        """
    ).to_pylist()
    return rows[0]


def revised_days(snapshot: Snapshot, before: date) -> Rows:
    """Earlier days whose inference cost this very publication changed."""
    rows = snapshot.sql(
        f"""
        SELECT day, sum(coalesce(effective_nano_before, 0))::BIGINT AS before_nano,
            sum(coalesce(effective_nano_after, 0))::BIGINT AS after_nano
        FROM revision WHERE manifest = ? AND day < ? AND currency = ? AND {INFERENCE}
        GROUP BY day HAVING before_nano <> after_nano ORDER BY day DESC
        """,
        [snapshot.manifest_id, before, snapshot.currency],
    ).to_pylist()
    return [{"day": row["day"], "change": money(row["after_nano"] - row["before_nano"])} for row in rows]
