"""`inferledger explain`: walks a figure back to the bill and to the log.

    figure -> postings of the ledger (kind, basis, status, method) -> buckets, where the bill met the log
           -> lines of the bill (file, line item) and records of the log (source, record id)

Every level adds up to the one above. Where the parts of a level do not, the rest has a row of its own that says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from inferledger.exits import UsageError
from inferledger.figures import exact
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

Facts = dict[str, Any]

CLASSES = ("uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
KEY = ("day", "provider", "account_id", "region", "model", "token_class")
LINE_KEY = ("day", "account_id", "region", "model", "token_class")
OWNERS = ("team", "app", "cost_center", "agent", "environment")
BUCKETED = "basis = 'billed' AND method = 'bill_tokens'"


@dataclass(frozen=True)
class Condition:
    """A WHERE clause and what is bound in it."""

    text: str
    bound: tuple[object, ...]


def explain(snapshot: Snapshot, where: Filters, limit: int = 10) -> Facts:
    """Walk back what the filters select; `limit` rows are shown a level (0: all), the rest is summed up."""
    if where.task_id:
        if where.chosen().keys() - {"task_id"}:
            raise UsageError("A task is explained by itself: give --task without other filters than days.")
        where = replace(where, task_id=(_task(snapshot, str(where.task_id[0])),))
    chosen = _conditions(snapshot, where)
    postings = _task_postings(snapshot, where) if where.task_id else _postings(snapshot, chosen)
    cells = _task_cells(snapshot, where) if where.task_id else _cells(snapshot, chosen)
    buckets = _buckets(snapshot, cells)
    shown = _head(buckets, limit)
    lines = _lines(snapshot, shown)
    for bucket in shown:
        own = [line for line in lines if all(line[key] == bucket[key] for key in LINE_KEY)]
        _close(bucket, own, limit)
    return {
        "question": {
            "first_day": _day(where.first_day),
            "last_day": _day(where.last_day),
            **{name: list(values) for name, values in where.chosen().items()},
        },
        "currency": snapshot.currency,
        "as_of": snapshot.as_of.isoformat(),
        "zone": snapshot.zone,
        "manifest": snapshot.manifest_id,
        "total": _total(postings),
        "postings": [_money(row) for row in _folded(postings, limit)],
        "buckets": [_money(bucket) for bucket in shown],
        "buckets_more": _money(_more(buckets[len(shown) :])),
        "other_lines": [_money(row) for row in _other_lines(snapshot, postings, where)],
        "records": _records(snapshot, where, postings, limit),
    }


def _task(snapshot: Snapshot, named: str) -> str:
    """The task of that id, or the only one whose id begins so."""
    rows = snapshot.sql(
        "SELECT DISTINCT task_id FROM task_cost WHERE starts_with(task_id, ?) ORDER BY task_id LIMIT 6", [named]
    )
    found = [str(task) for task in rows.column("task_id").to_pylist()]
    if named in found or len(found) == 1:
        return named if named in found else found[0]
    if found:
        raise UsageError(
            f"Several tasks begin with `{named}`: {', '.join(found[:5])}{', ...' if len(found) > 5 else ''}. Write more of it."
        )
    raise UsageError(f"No task `{named}` is known. `inferledger summary` lists the dearest.")


def _conditions(snapshot: Snapshot, where: Filters) -> Condition:
    parts, bound = ["currency = ?"], [snapshot.currency]
    extra = _filter(where)
    return Condition(" AND ".join([*parts, extra.text]), (*bound, *extra.bound))


def _filter(where: Filters, prefix: str = "") -> Condition:
    parts: list[str] = ["TRUE"]
    bound: list[object] = []
    for operator, day in ((">=", where.first_day), ("<=", where.last_day)):
        if day is not None:
            parts.append(f"{prefix}day {operator} ?")
            bound.append(day)
    for name, values in where.chosen().items():
        known = [value for value in values if value is not None]
        either = ([f"{prefix}{name} IN ({', '.join('?' * len(known))})"] if known else []) + (
            [f"{prefix}{name} IS NULL"] if None in values else []
        )
        parts.append(f"({' OR '.join(either)})")
        bound += known
    return Condition(" AND ".join(parts), tuple(bound))


def _postings(snapshot: Snapshot, chosen: Condition) -> list[Facts]:
    return snapshot.sql(
        f"""
        SELECT kind, basis, status, method, reason, provider, account_id, region, service_name, line_class, model, token_class,
            CAST(sum(tokens) AS BIGINT) AS tokens, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM cost_day WHERE {chosen.text} GROUP BY ALL 
        ORDER BY effective_nano DESC NULLS LAST, kind, basis, model, token_class, service_name, account_id
        """,
        chosen.bound,
    ).to_pylist()


def _cells(snapshot: Snapshot, chosen: Condition) -> list[Facts]:
    """What is selected in each bucket of a day."""
    return snapshot.sql(
        f"""
        SELECT {", ".join(KEY)}, CAST(sum(tokens) AS BIGINT) AS tokens, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(CASE WHEN kind = 'unattributed' THEN effective_nano ELSE 0 END) AS BIGINT) AS unattributed_nano
        FROM cost_day WHERE {BUCKETED} AND {chosen.text} GROUP BY ALL ORDER BY effective_nano DESC
        """,
        chosen.bound,
    ).to_pylist()


CLASS_ROWS = " UNION ALL ".join(
    f"SELECT day, hour, provider, account_id, region, model, service_tier, claim_set_id, task_id, '{name}' AS token_class, "
    f"{name}_tokens AS tokens FROM event WHERE {name}_tokens > 0 AND hour IN (SELECT hour FROM task_hours)"
    for name in CLASSES
)
TASK = f"""
    WITH task_hours AS (SELECT DISTINCT hour FROM event WHERE task_id = $task),
    class_row AS ({CLASS_ROWS}),
    cell AS (
        SELECT day, hour, provider, account_id, region, model, service_tier, claim_set_id, token_class,
            sum(tokens) AS logged, sum(CASE WHEN task_id = $task THEN tokens ELSE 0 END) AS mine
        FROM class_row GROUP BY ALL HAVING mine > 0),
    posted AS (
        SELECT c.day, c.provider, c.account_id, c.region, c.model, c.token_class, h.kind, h.basis, h.status, h.method, h.reason,
            h.service_name, h.line_class,
            CAST(round(sum(CAST(h.tokens AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS tokens,
            CAST(round(sum(CAST(h.effective_nano AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS effective_nano,
            CAST(round(sum(CAST(h.billed_nano AS DOUBLE) * c.mine / c.logged)) AS BIGINT) AS billed_nano
        FROM cell AS c INNER JOIN cost_hour AS h
          ON h.hour = c.hour AND h.kind = 'usage' AND h.model = c.model AND h.token_class = c.token_class
          AND h.service_tier = c.service_tier AND h.claim_set_id = c.claim_set_id AND h.provider = c.provider
          AND h.account_id IS NOT DISTINCT FROM c.account_id AND h.region IS NOT DISTINCT FROM c.region
        WHERE h.currency = $currency
        GROUP BY ALL)
"""


def _task_bound(snapshot: Snapshot, where: Filters) -> dict[str, object]:
    return {"task": where.task_id[0], "currency": snapshot.currency}


def _task_postings(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """A task's part of the ledger's hours, and one row for what its hours cost it beyond their mean rate."""
    rows = _named(
        snapshot,
        f"""{TASK} SELECT kind, basis, status, method, reason, provider, account_id, region, service_name, line_class, model,
            token_class, CAST(sum(tokens) AS BIGINT) AS tokens, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM posted GROUP BY ALL ORDER BY effective_nano DESC NULLS LAST""",
        _task_bound(snapshot, where),
    )
    exact_total = snapshot.sql(
        "SELECT sum(effective_nano) AS effective, sum(billed_nano) AS billed, sum(estimated_nano) AS estimated FROM task_day "
        "WHERE task_id = ? AND currency = ?",
        [where.task_id[0], snapshot.currency],
    ).to_pylist()[0]
    for basis, column in (("billed", "effective"), ("estimated", "estimated")):
        mine = [row for row in rows if row["basis"] == basis]
        rest = int(exact_total[column] or 0) - sum(row["effective_nano"] or 0 for row in mine)
        rest_billed = (
            int(exact_total["billed"] or 0) - sum(row["billed_nano"] or 0 for row in mine)
            if basis == "billed"
            else rest
        )
        if rest or rest_billed:
            blank: Facts = dict.fromkeys(rows[0]) if rows else {}
            rows.append(
                {
                    **blank,
                    "kind": "usage",
                    "basis": basis,
                    "method": "difference",
                    "reason": "its calls against the mean of their hours",
                    "tokens": 0,
                    "effective_nano": rest,
                    "billed_nano": rest_billed,
                }
            )
    return rows


def _task_cells(snapshot: Snapshot, where: Filters) -> list[Facts]:
    return _named(
        snapshot,
        f"""{TASK} SELECT {", ".join(KEY)}, CAST(sum(tokens) AS BIGINT) AS tokens, CAST(sum(effective_nano) AS BIGINT) AS effective_nano, 0 AS unattributed_nano
        FROM posted WHERE {BUCKETED} GROUP BY ALL ORDER BY effective_nano DESC""",
        _task_bound(snapshot, where),
    )


def _named(snapshot: Snapshot, query: str, bound: dict[str, object]) -> list[Facts]:
    """Run a query with named parameters; the snapshot binds by position."""
    values: list[object] = []
    text = query
    for number, (name, value) in enumerate(bound.items(), start=1):
        text = text.replace(f"${name}", f"${number}")
        values.append(value)
    return snapshot.sql(text, values).to_pylist()


def _buckets(snapshot: Snapshot, cells: Sequence[Facts]) -> list[Facts]:
    """Every bucket of a day that the selection is in: what the bill and the log say of it, and who else is in it."""
    if not cells:
        return []
    days = sorted({cell["day"] for cell in cells})
    everyone = {
        _key(row, KEY): row
        for row in snapshot.sql(
            f"""
        SELECT {", ".join(KEY)}, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(CASE WHEN kind = 'usage' THEN effective_nano ELSE 0 END) AS BIGINT) AS usage_nano
        FROM cost_day WHERE {BUCKETED} AND currency = ? AND day BETWEEN ? AND ? GROUP BY ALL
        """,
            [snapshot.currency, days[0], days[-1]],
        ).to_pylist()
    }
    matched = {
        _key(row, KEY): row
        for row in snapshot.sql(
            f"""
        SELECT {", ".join(KEY)}, CAST(sum(bill_tokens) AS BIGINT) AS bill_tokens, CAST(sum(event_tokens) AS BIGINT) AS event_tokens,
            CAST(sum(missing_tokens) AS BIGINT) AS missing_tokens, CAST(sum(variance_tokens) AS BIGINT) AS variance_tokens
        FROM match_day WHERE day BETWEEN ? AND ? GROUP BY ALL
        """,
            [days[0], days[-1]],
        ).to_pylist()
    }
    found = []
    for cell in cells:
        every, match = everyone[_key(cell, KEY)], matched.get(_key(cell, KEY), {})
        found.append(
            {
                **{key: cell[key] for key in KEY},
                "bill_tokens": match.get("bill_tokens"),
                "logged_tokens": match.get("event_tokens"),
                "not_billed_yet_tokens": match.get("missing_tokens"),
                "never_billed_tokens": match.get("variance_tokens"),
                "selected_tokens": cell["tokens"],
                "selected_nano": cell["effective_nano"],
                "others_nano": every["usage_nano"] - (cell["effective_nano"] - cell["unattributed_nano"]),
                "unattributed_nano": every["effective_nano"] - every["usage_nano"] - cell["unattributed_nano"],
                "posted_nano": every["effective_nano"],
            }
        )
    return found


def _lines(snapshot: Snapshot, buckets: Sequence[Facts]) -> list[Facts]:
    """The lines of the bill that the buckets consist of."""
    if not buckets:
        return []
    days = sorted({bucket["day"] for bucket in buckets})
    wanted = {_key(bucket, LINE_KEY) for bucket in buckets}
    rows = snapshot.sql(
        f"""
        SELECT {", ".join(LINE_KEY)}, charge_period_start, export_name, file, line_item_id, usage_type, service_name, tokens,
            effective_cost, nano(effective_cost) AS effective_nano, nano(billed_cost) AS billed_nano
        FROM bill_bucket
        WHERE currency = ? AND day BETWEEN ? AND ? AND tokens IS NOT NULL AND token_class IS NOT NULL AND charge_period_start < ?
          AND model IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY effective_nano DESC, charge_period_start, line_item_id, line_digest
        """,
        [
            snapshot.currency,
            days[0],
            days[-1],
            snapshot.as_of.replace(tzinfo=None),
            sorted({bucket["model"] for bucket in buckets}),
        ],
    ).to_pylist()
    return [row for row in rows if _key(row, LINE_KEY) in wanted]


def _close(bucket: Facts, lines: Sequence[Facts], limit: int) -> None:
    """Hang a bucket's lines under it; what is left between lines and postings lies on other days of long charge periods."""
    total = sum(line["effective_nano"] for line in lines)
    bucket["bill_nano"] = total
    bucket["other_days_nano"] = total - bucket["posted_nano"]
    bucket["rate_per_mtok"] = (
        None if not bucket["bill_tokens"] else exact(round(Decimal(total) / bucket["bill_tokens"] / 1000, 9))
    )
    shown = _head(lines, limit)
    bucket["lines"] = [
        _money({**line, "charge_period_start": line["charge_period_start"].isoformat()}) for line in shown
    ]
    bucket["lines_more"] = _money(_more(lines[len(shown) :]))


def _other_lines(snapshot: Snapshot, postings: Sequence[Facts], where: Filters) -> list[Facts]:
    """For postings that come from whole lines or are shared by day: the bill by service and category, as loaded."""
    services = sorted(
        {
            row["service_name"]
            for row in postings
            if row["method"] in ("bill_line", "by_day_usage") and row["service_name"]
        }
    )
    if not services:
        return []
    days = _filter(Filters(first_day=where.first_day, last_day=where.last_day))
    periods = f"billing_period IN (SELECT DISTINCT billing_period FROM cost_day WHERE {days.text})"
    return snapshot.sql(
        f"""
        SELECT billing_period, service_name, charge_family, charge_category, status, CAST(sum(line_count) AS BIGINT) AS line_count,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano, CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM bill_day WHERE currency = ? AND service_name IN (SELECT unnest(?::VARCHAR[])) AND {periods}
        GROUP BY ALL ORDER BY ALL
        """,
        [snapshot.currency, services, *days.bound],
    ).to_pylist()


def _records(snapshot: Snapshot, where: Filters, postings: Sequence[Facts], limit: int) -> Facts:
    """The logged calls behind the selection, and per token class how their tokens were posted."""
    own = replace(where, kind=(), basis=(), status=(), token_class=(), billing_period=())
    chosen = _filter(own, "x.")
    logged = where.kind in ((), ("usage",)) and where.basis == ()
    source = f"""
        (SELECT e.* EXCLUDE (team, app, agent), o.team, o.app, o.cost_center, o.agent, o.environment
         FROM event AS e LEFT JOIN owner AS o
           ON o.claim_set_id = e.claim_set_id AND o.valid_from <= e.day AND e.day < o.valid_to) AS x
        WHERE {chosen.text} AND {"TRUE" if logged else "FALSE"}"""
    sums = ", ".join(f"CAST(coalesce(sum(x.{name}_tokens), 0) AS BIGINT) AS {name}" for name in CLASSES)
    totals = snapshot.sql(f"SELECT count(*) AS requests, {sums} FROM {source}", chosen.bound).to_pylist()[0]
    every = " + ".join(f"coalesce(x.{name}_tokens, 0)" for name in CLASSES)
    query = f"""
        SELECT x.source, x.record_id, x.task_id, x.ended_at, x.model, x.status,
            {", ".join(f"x.{name}_tokens AS {name}" for name in CLASSES)}, {every} AS tokens
        FROM {source} ORDER BY tokens DESC, x.event_key""" + (f" LIMIT {int(limit)}" if limit else "")
    shown = snapshot.sql(query, chosen.bound).to_pylist()
    for row in shown:
        row["ended_at"] = row["ended_at"].isoformat()
    posted: dict[str, dict[str, int]] = {}
    for row in postings:
        if row["kind"] == "usage" and row["token_class"]:
            cell = posted.setdefault(row["token_class"], {"billed": 0, "estimated": 0})
            cell[row["basis"]] += row["tokens"]
    classes = (
        [
            {
                "token_class": name,
                "logged": totals[name],
                **posted.get(name, {"billed": 0, "estimated": 0}),
                "never_billed": totals[name] - sum(posted.get(name, {}).values()),
            }
            for name in CLASSES
            if totals[name] or name in posted
        ]
        if logged
        else []
    )
    total_tokens = sum(totals[name] for name in CLASSES)
    return {
        "requests": totals["requests"],
        "tokens": total_tokens,
        "by_token_class": classes,
        "shown": shown,
        "more": {
            "requests": totals["requests"] - len(shown),
            "tokens": total_tokens - sum(row["tokens"] for row in shown),
        },
    }


def _total(postings: Sequence[Facts]) -> Facts:
    billed = [row for row in postings if row["basis"] == "billed"]
    estimated = [row for row in postings if row["basis"] == "estimated"]
    known = [row["effective_nano"] for row in estimated if row["effective_nano"] is not None]
    return {
        "effective": _usd(sum(row["effective_nano"] for row in billed)),
        "billed": _usd(sum(row["billed_nano"] for row in billed)),
        "estimated": _usd(sum(known)) if known or not estimated else None,
        "tokens": sum(row["tokens"] for row in postings),
        "unknown_cost_tokens": sum(row["tokens"] for row in estimated if row["effective_nano"] is None),
    }


def _folded(rows: Sequence[Facts], limit: int) -> list[Facts]:
    """The first rows, and one that sums up the rest per kind and basis, so that what is shown adds up."""
    shown = _head(rows, limit)
    rest: dict[tuple[str, str], Facts] = {}
    for row in rows[len(shown) :]:
        cell = rest.setdefault(
            (row["kind"], row["basis"]),
            {
                **dict.fromkeys(row),
                "kind": row["kind"],
                "basis": row["basis"],
                "method": "more",
                "reason": 0,
                "tokens": 0,
                "effective_nano": None,
                "billed_nano": None,
            },
        )
        cell["reason"] += 1
        cell["tokens"] += row["tokens"]
        for column in ("effective_nano", "billed_nano"):
            if row[column] is not None:
                cell[column] = (cell[column] or 0) + row[column]
    for cell in rest.values():
        cell["reason"] = f"{cell['reason']} more"
    return [*shown, *rest.values()]


def _head(rows: Sequence[Facts], limit: int) -> list[Facts]:
    # One row more is no longer than a row that says there is one more.
    return list(rows if not limit or len(rows) <= limit + 1 else rows[:limit])


def _more(rows: Sequence[Facts]) -> Facts:
    columns = [column for column in ("selected_nano", "effective_nano") if rows and column in rows[0]]
    tokens = [column for column in ("selected_tokens", "tokens") if rows and column in rows[0]]
    return {"count": len(rows), **{column: sum(row[column] for row in rows) for column in [*columns, *tokens[:1]]}}


def _key(row: Facts, columns: Sequence[str]) -> tuple[object, ...]:
    return tuple(row[column] for column in columns)


def _money(row: Facts) -> Facts:
    """Nano-dollars as decimal text under their name without `_nano`; days and decimals as text."""
    found: Facts = {}
    for name, value in row.items():
        if name.endswith("_nano"):
            found[name.removesuffix("_nano")] = _usd(value)
        else:
            found[name] = (
                exact(value)
                if isinstance(value, Decimal)
                else value.isoformat()
                if hasattr(value, "isoformat")
                else value
            )
    return found


def _usd(nano: int | None) -> str | None:
    return None if nano is None else exact(Decimal(nano).scaleb(-9))


def _day(day: Any) -> str | None:
    return None if day is None else str(day.isoformat())
