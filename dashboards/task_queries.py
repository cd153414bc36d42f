"""What the page of agent tasks asks: tasks for life, counted on the day of their last call."""

from collections.abc import Sequence

import pandas as pd

from dashboards.queries import Row, cached, frame, one
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

# Outcomes that somebody accepted. Everything else, unknown included, is work that was paid for and not taken.
ACCEPTED = ("merged", "resolved", "accepted", "completed", "succeeded", "success")
OPEN_HOURS = 24
RUNAWAY_TIMES = 10
RUNAWAY_TASKS = 20
BUCKETS_PER_DECADE = 6

# One row a task: cost is billed and estimated, unknown if nothing of it has a price.
TASKS = f"""
    SELECT *,
        cost_nano / nullif(app_median_nano, 0) AS times_median,
        requests / nullif(app_median_requests, 0) AS times_requests
    FROM (
        SELECT *,
            CASE WHEN count(*) OVER (PARTITION BY team, app) >= {RUNAWAY_TASKS}
                 THEN median(cost_nano) OVER (PARTITION BY team, app) END AS app_median_nano,
            CASE WHEN count(*) OVER (PARTITION BY team, app) >= {RUNAWAY_TASKS}
                 THEN median(requests) OVER (PARTITION BY team, app) END AS app_median_requests
        FROM (
            SELECT task_id, team, app, agent, environment, models, agents, started_at, ended_at, last_day, outcome,
                requests, failed_requests, input_tokens, cache_read_tokens, output_tokens,
                input_tokens + output_tokens AS tokens, estimated_nano, unpriced_tokens,
                CASE WHEN effective_nano IS NULL
                     OR (unpriced_tokens > 0 AND effective_nano = 0 AND estimated_nano IS NULL)
                     THEN NULL ELSE effective_nano + coalesce(estimated_nano, 0) END AS cost_nano,
                outcome IS NULL AND ended_at > CAST(? AS TIMESTAMP) - INTERVAL {OPEN_HOURS} HOUR AS is_open
            FROM task_cost WHERE currency = ? OR currency IS NULL
        )
    )
"""
ACCEPTED_SQL = ", ".join(f"'{name}'" for name in ACCEPTED)


@cached
def summary(snapshot: Snapshot, where: Filters) -> Row:
    """How many tasks, what they cost together, in the middle and at the far end, and per accepted outcome."""
    return one(
        _ask(
            snapshot,
            where,
            f"""
            SELECT count(*) AS tasks, count(*) FILTER (is_open) AS open_tasks,
                count(*) FILTER (outcome IN ({ACCEPTED_SQL})) AS accepted_tasks,
                count(*) FILTER (outcome IS NOT NULL) AS tasks_with_outcome,
                count(*) FILTER (cost_nano IS NULL) AS unknown_tasks,
                sum(cost_nano) / 1e9 AS cost, sum(estimated_nano) / 1e9 AS estimated,
                sum(unpriced_tokens) AS unknown_tokens,
                sum(cost_nano) FILTER (outcome IN ({ACCEPTED_SQL})) / 1e9 AS accepted_cost,
                sum(cost_nano) / 1e9 / nullif(count(*) FILTER (outcome IN ({ACCEPTED_SQL})), 0) AS cost_per_accepted,
                sum(cost_nano) / 1e9 / nullif(count(cost_nano), 0) AS mean_cost,
                quantile_cont(cost_nano, 0.5) / 1e9 AS p50, quantile_cont(cost_nano, 0.9) / 1e9 AS p90,
                quantile_cont(cost_nano, 0.99) / 1e9 AS p99, max(cost_nano) / 1e9 AS dearest,
                string_agg(DISTINCT outcome, ', ' ORDER BY outcome) FILTER (outcome IN ({ACCEPTED_SQL}))
                    AS accepted_names
            FROM task
            """,
        )
    )


@cached
def dearest(snapshot: Snapshot, where: Filters, limit: int = 25) -> pd.DataFrame:
    """The tasks that cost most."""
    return frame(
        _ask(snapshot, where, f"{_COLUMNS} FROM task ORDER BY cost_nano DESC NULLS LAST, task_id LIMIT {int(limit)}")
    )


@cached
def runaways(snapshot: Snapshot, where: Filters, limit: int = 25) -> pd.DataFrame:
    """Tasks with many times the cost and the requests of their app's median task, of all tasks in the snapshot."""
    return frame(
        _ask(
            snapshot,
            where,
            f"{_COLUMNS} FROM task WHERE times_median >= {RUNAWAY_TIMES} AND times_requests >= {RUNAWAY_TIMES} "
            f"ORDER BY cost_nano DESC, task_id LIMIT {int(limit)}",
        )
    )


@cached
def distribution(snapshot: Snapshot, where: Filters) -> pd.DataFrame:
    """Tasks and cost by bucket of cost, a logarithmic scale; `upper` is the bucket's end."""
    return frame(
        _ask(
            snapshot,
            where,
            f"""
            SELECT power(10, bucket / {BUCKETS_PER_DECADE}.0) AS lower,
                power(10, (bucket + 1) / {BUCKETS_PER_DECADE}.0) AS upper,
                count(*) AS tasks, sum(cost_nano) / 1e9 AS cost
            FROM (SELECT *, CAST(floor(log10(cost_nano / 1e9) * {BUCKETS_PER_DECADE}) AS BIGINT) AS bucket
                  FROM task WHERE cost_nano > 0)
            GROUP BY bucket ORDER BY bucket
            """,
        )
    )


@cached
def outcomes(snapshot: Snapshot, where: Filters) -> pd.DataFrame:
    """What each outcome cost. An open task has none yet; a closed one without a word is unknown."""
    return frame(
        _ask(
            snapshot,
            where,
            f"""
            SELECT CASE WHEN is_open THEN 'open' ELSE outcome END AS outcome,
                max(outcome IN ({ACCEPTED_SQL})) AS is_accepted,
                count(*) AS tasks, sum(cost_nano) / 1e9 AS cost,
                sum(cost_nano) / 1e9 / nullif(count(cost_nano), 0) AS mean_cost,
                quantile_cont(cost_nano, 0.5) / 1e9 AS p50, sum(requests) AS requests, sum(tokens) AS tokens
            FROM task GROUP BY ALL ORDER BY cost DESC NULLS LAST
            """,
        )
    )


@cached
def by_agent(snapshot: Snapshot, where: Filters) -> pd.DataFrame:
    """Tasks by the agent that owns them."""
    return frame(
        _ask(
            snapshot,
            where,
            f"""
            SELECT agent, string_agg(DISTINCT team, ', ' ORDER BY team) AS teams, count(*) AS tasks,
                count(*) FILTER (outcome IN ({ACCEPTED_SQL})) AS accepted_tasks,
                sum(cost_nano) / 1e9 AS cost,
                quantile_cont(cost_nano, 0.5) / 1e9 AS p50, quantile_cont(cost_nano, 0.99) / 1e9 AS p99,
                sum(cost_nano) / 1e9 / nullif(count(*) FILTER (outcome IN ({ACCEPTED_SQL})), 0) AS cost_per_accepted,
                sum(cost_nano) / 1e3 / nullif(sum(tokens) FILTER (cost_nano IS NOT NULL), 0) AS cost_per_mtok,
                sum(requests) AS requests, sum(cache_read_tokens) / nullif(sum(input_tokens), 0) AS cache_hit_ratio
            FROM task GROUP BY agent ORDER BY cost DESC NULLS LAST
            """,
        )
    )


_COLUMNS = """
    SELECT task_id, team, app, agent, models, outcome, is_open, cost_nano / 1e9 AS cost,
        estimated_nano / 1e9 AS estimated, times_median, requests, failed_requests, agents, tokens,
        cache_read_tokens / nullif(input_tokens, 0) AS cache_hit_ratio,
        started_at, ended_at, epoch(ended_at - started_at) / 60 AS minutes
"""


def _ask(snapshot: Snapshot, where: Filters, query: str):  # type: ignore[no-untyped-def]  # an Arrow table has no types
    conditions, parameters = ["last_day BETWEEN ? AND ?"], [where.first_day, where.last_day]
    for column in ("team", "app", "agent", "environment"):
        values: Sequence[str | None] = getattr(where, column)
        if values:
            conditions.append(f"({column} IN (SELECT unnest(?::VARCHAR[])) OR ({column} IS NULL AND ?))")
            parameters += [[value for value in values if value is not None], None in values]
    if where.model:
        conditions.append("len(list_intersect(string_split(models, ', '), ?::VARCHAR[])) > 0")
        parameters.append([value for value in where.model if value is not None])
    bound = [snapshot.as_of.replace(tzinfo=None), snapshot.currency, *parameters]
    return snapshot.sql(f"WITH task AS (SELECT * FROM ({TASKS}) WHERE {' AND '.join(conditions)}) {query}", bound)
