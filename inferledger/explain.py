"""`inferledger explain`: walks a figure back to the bill and to the log.

    figure -> postings of the ledger (kind, basis, status, method) -> buckets, where the bill met the log
           -> lines of the bill (file, line item) and records of the log (source, record id)
    of the own fleet: posting -> pool-hours -> token classes -> lines of instances and clusters (explain_fleet)

Every level adds up to the one above. Where the parts of a level do not, the rest has a row of its own that says why.
"""

from collections.abc import Sequence
from dataclasses import replace

from inferledger import explain_evidence, explain_fleet, explain_task
from inferledger.conditions import Condition, condition
from inferledger.exits import UsageError
from inferledger.figures import exact
from inferledger.rows import Facts, dollars, head, more, rows, shown
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot


def explain(snapshot: Snapshot, where: Filters, limit: int = 4, long_context_tokens: int = 200_000) -> Facts:
    """Walk back what the filters select; `limit` rows are shown a level (0: all), the rest is summed up."""
    if where.task_id:
        where = _one_task(snapshot, where)
        postings = explain_task.postings(snapshot, where, long_context_tokens)
        cells = explain_task.cells(snapshot, where, long_context_tokens)
    else:
        chosen = condition(where)
        postings, cells = _postings(snapshot, chosen), _cells(snapshot, chosen)
    buckets = explain_evidence.buckets(snapshot, cells)
    first = head(buckets, limit)
    explain_evidence.hang_lines(snapshot, first, limit)
    pool_hours, pool_hours_more = ([], None) if where.task_id else explain_fleet.pool_hours(snapshot, where, limit)
    return {
        "question": {
            "first_day": None if where.first_day is None else where.first_day.isoformat(),
            "last_day": None if where.last_day is None else where.last_day.isoformat(),
            **{name: list(values) for name, values in where.chosen().items()},
        },
        "currency": snapshot.currency,
        "as_of": snapshot.as_of.isoformat(),
        "zone": snapshot.zone,
        "manifest": snapshot.manifest_id,
        "total": total(postings),
        "postings": [shown(row) for row in _folded(postings, limit)],
        "buckets": [shown(bucket) for bucket in first],
        "buckets_more": shown(more(buckets[len(first) :], "selected_nano", "selected_tokens")),
        "pools": [] if where.task_id else explain_fleet.pools(snapshot, where),
        "pool_hours": pool_hours,
        "pool_hours_more": pool_hours_more or {"count": 0},
        "other_lines": [shown(row) for row in explain_evidence.other_lines(snapshot, postings, where)],
        "records": explain_evidence.records(snapshot, where, postings, limit),
    }


def total(postings: Sequence[Facts]) -> Facts:
    """What the postings add up to; estimates stand beside the bill's figures, never in them."""
    billed = [row for row in postings if row["basis"] == "billed"]
    estimated = [row for row in postings if row["basis"] == "estimated"]
    known = [row["effective_nano"] for row in estimated if row["effective_nano"] is not None]
    return {
        "effective": exact(dollars(sum(row["effective_nano"] for row in billed))),
        "billed": exact(dollars(sum(row["billed_nano"] for row in billed))),
        "estimated": exact(dollars(sum(known))) if known or not estimated else None,
        "tokens": sum(row["tokens"] for row in postings),
        "unknown_cost_tokens": sum(row["tokens"] for row in estimated if row["effective_nano"] is None),
    }


def _one_task(snapshot: Snapshot, where: Filters) -> Filters:
    """The task of that id, or the only one whose id begins so."""
    if len(where.chosen()) > 1 or where.first_day or where.last_day:
        raise UsageError("A task is explained whole: give --task without any other filter.")
    named = str(where.task_id[0])
    found = [
        str(row["task_id"])
        for row in rows(
            snapshot,
            "SELECT DISTINCT task_id FROM task_cost WHERE starts_with(task_id, ?) ORDER BY task_id LIMIT 6",
            [named],
        )
    ]
    if named in found or len(found) == 1:
        return replace(where, task_id=(named if named in found else found[0],))
    if found:
        raise UsageError(f"Several tasks begin with `{named}`: {', '.join(found)}. Write more of the one you mean.")
    raise UsageError(f"No task `{named}` is known. `inferledger summary` lists the dearest.")


def _postings(snapshot: Snapshot, chosen: Condition) -> list[Facts]:
    return rows(
        snapshot,
        f"""
        SELECT kind, basis, status, method, reason, provider, account_id, region, service_name, line_class,
            cluster, pool, model, token_class, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM cost_day WHERE currency = ? AND {chosen.text}
        GROUP BY ALL
        ORDER BY effective_nano DESC NULLS LAST, kind, basis, model, token_class, service_name, account_id,
            cluster, pool, line_class
        """,
        [snapshot.currency, *chosen.bound],
    )


def _cells(snapshot: Snapshot, chosen: Condition) -> list[Facts]:
    """What is selected in each bucket of a day."""
    columns = ", ".join(explain_evidence.KEY)
    return rows(
        snapshot,
        f"""
        SELECT {columns}, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(CASE WHEN kind = 'unattributed' THEN effective_nano ELSE 0 END) AS BIGINT) AS unattributed_nano
        FROM cost_day WHERE {explain_evidence.BUCKETED} AND currency = ? AND {chosen.text}
        GROUP BY ALL ORDER BY effective_nano DESC, {columns}
        """,
        [snapshot.currency, *chosen.bound],
    )


def _folded(postings: Sequence[Facts], limit: int) -> list[Facts]:
    """The first postings, and one a kind and basis that sums up the rest, so that what is shown adds up."""
    first = head(postings, limit)
    rest: dict[tuple[str, str], list[Facts]] = {}
    for row in postings[len(first) :]:
        rest.setdefault((row["kind"], row["basis"]), []).append(row)
    return [*first, *(_fold(kind, basis, left) for (kind, basis), left in rest.items())]


def _fold(kind: str, basis: str, left: Sequence[Facts]) -> Facts:
    sums = {}
    for column in ("effective_nano", "billed_nano"):
        known = [row[column] for row in left if row[column] is not None]
        sums[column] = sum(known) if known else None
    return {
        **dict.fromkeys(left[0]),
        "kind": kind,
        "basis": basis,
        "method": f"{len(left)} more",
        "tokens": sum(row["tokens"] for row in left),
        **sums,
    }
