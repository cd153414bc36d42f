"""The evidence behind postings: buckets where bill and log met, lines of the bill, records of the log."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from inferledger.conditions import condition
from inferledger.figures import exact
from inferledger.rows import Facts, head, key, more, rows, shown
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

KEY = ("day", "provider", "account_id", "region", "model", "token_class")
LINE_KEY = ("day", "account_id", "region", "model", "token_class")
BUCKETED = "basis = 'billed' AND method = 'bill_tokens'"
CLASSES = ("uncached_input", "cache_read", "cache_write_5m", "cache_write_1h", "output")
SELF_HOSTED = "self-hosted"


def buckets(snapshot: Snapshot, cells: Sequence[Facts]) -> list[Facts]:
    """Every bucket of a day that the selection is in: what bill and log say of it, and who else is in it."""
    if not cells:
        return []
    days = [min(cell["day"] for cell in cells), max(cell["day"] for cell in cells)]
    columns = ", ".join(KEY)
    everyone = rows(
        snapshot,
        f"""
        SELECT {columns}, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(CASE WHEN kind = 'usage' THEN effective_nano ELSE 0 END) AS BIGINT) AS usage_nano
        FROM cost_day WHERE {BUCKETED} AND currency = ? AND day BETWEEN ? AND ? GROUP BY ALL
        """,
        [snapshot.currency, *days],
    )
    matched = rows(
        snapshot,
        f"""
        SELECT {columns}, CAST(sum(bill_tokens) AS BIGINT) AS bill_tokens,
            CAST(sum(event_tokens) AS BIGINT) AS event_tokens, CAST(sum(missing_tokens) AS BIGINT) AS missing_tokens,
            CAST(sum(variance_tokens) AS BIGINT) AS variance_tokens
        FROM match_day WHERE day BETWEEN ? AND ? GROUP BY ALL
        """,
        days,
    )
    every_by_key = {key(row, KEY): row for row in everyone}
    match_by_key = {key(row, KEY): row for row in matched}
    return [_bucket(cell, every_by_key[key(cell, KEY)], match_by_key.get(key(cell, KEY), {})) for cell in cells]


def _bucket(cell: Facts, every: Facts, match: Facts) -> Facts:
    mine = cell["effective_nano"] - cell["unattributed_nano"]
    return {
        **{column: cell[column] for column in KEY},
        "bill_tokens": match.get("bill_tokens"),
        "logged_tokens": match.get("event_tokens"),
        "not_billed_yet_tokens": match.get("missing_tokens"),
        "never_billed_tokens": match.get("variance_tokens"),
        "selected_tokens": cell["tokens"],
        "selected_nano": cell["effective_nano"],
        "others_nano": every["usage_nano"] - mine,
        "unattributed_nano": every["effective_nano"] - every["usage_nano"] - cell["unattributed_nano"],
        "posted_nano": every["effective_nano"],
    }


def hang_lines(snapshot: Snapshot, found: Sequence[Facts], limit: int) -> None:
    """Put under each bucket the lines of the bill it consists of, dearest first."""
    lines: dict[tuple[object, ...], list[Facts]] = {}
    for line in _lines(snapshot, found) if found else ():
        lines.setdefault(key(line, LINE_KEY), []).append(line)
    for bucket in found:
        own = lines.get(key(bucket, LINE_KEY), [])
        first = head(own, limit)
        bill = sum(line["effective_nano"] for line in own)
        rate = Decimal(bill) / bucket["bill_tokens"] / 1000 if bucket["bill_tokens"] else None
        bucket["bill_nano"] = bill
        # Lines of a long charge period are listed on its first day, and posted over all of its hours.
        bucket["other_days_nano"] = bill - bucket["posted_nano"]
        bucket["rate_per_mtok"] = None if rate is None else exact(round(rate, 9))
        bucket["lines"] = [shown(line) for line in first]
        bucket["lines_more"] = shown(more(own[len(first) :], "effective_nano", "tokens"))


def _lines(snapshot: Snapshot, found: Sequence[Facts]) -> list[Facts]:
    return rows(
        snapshot,
        f"""
        SELECT {", ".join(LINE_KEY)}, charge_period_start, export_name, file, line_item_id, usage_type, service_name,
            tokens, effective_cost, nano(effective_cost) AS effective_nano, nano(billed_cost) AS billed_nano
        FROM bill_bucket
        WHERE currency = ? AND day BETWEEN ? AND ? AND charge_period_start < ?
          AND tokens IS NOT NULL AND token_class IS NOT NULL AND model IN (SELECT unnest(?::VARCHAR[]))
        ORDER BY effective_nano DESC, charge_period_start, line_item_id, line_digest
        """,
        [
            snapshot.currency,
            min(bucket["day"] for bucket in found),
            max(bucket["day"] for bucket in found),
            snapshot.as_of.replace(tzinfo=None),
            sorted({bucket["model"] for bucket in found}),
        ],
    )


def other_lines(snapshot: Snapshot, postings: Sequence[Facts], where: Filters) -> list[Facts]:
    """For postings that come from whole lines or are shared by day: the bill by service and category, as loaded."""
    whole = [row for row in postings if row["method"] in ("bill_line", "by_day_usage") and row["service_name"]]
    if not whole:
        return []
    days = condition(Filters(first_day=where.first_day, last_day=where.last_day))
    return rows(
        snapshot,
        f"""
        SELECT billing_period, service_name, charge_family, charge_category, status,
            CAST(sum(line_count) AS BIGINT) AS line_count, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(billed_nano) AS BIGINT) AS billed_nano
        FROM bill_day
        WHERE currency = ? AND service_name IN (SELECT unnest(?::VARCHAR[]))
          AND billing_period IN (SELECT DISTINCT billing_period FROM cost_day WHERE {days.text})
        GROUP BY ALL ORDER BY ALL
        """,
        [snapshot.currency, sorted({row["service_name"] for row in whole}), *days.bound],
    )


def records(snapshot: Snapshot, where: Filters, postings: Sequence[Facts], limit: int) -> Facts:
    """The logged calls behind the selection, and per token class how their tokens were posted."""
    if where.kind and "usage" not in where.kind:
        return {
            "requests": 0,
            "tokens": 0,
            "by_token_class": [],
            "by_token_class_fleet": [],
            "shown": [],
            "more": {"requests": 0, "tokens": 0},
        }
    # a call is of no cluster or pool: those of a route may be answered by any of its pools
    chosen = condition(replace(where, kind=(), cluster=(), pool=()), "x.")
    only_fleet = " AND x.provider = 'self-hosted'" if where.cluster or where.pool else ""
    source = f"""
        (SELECT e.* EXCLUDE (team, app, agent), o.team, o.app, o.cost_center, o.agent, o.environment
         FROM event AS e LEFT JOIN owner AS o
           ON o.claim_set_id = e.claim_set_id AND o.valid_from <= e.day AND e.day < o.valid_to) AS x
        WHERE {chosen.text}{only_fleet}"""
    sums = ", ".join(f"CAST(coalesce(sum(x.{name}_tokens), 0) AS BIGINT) AS {name}" for name in CLASSES)
    both = rows(
        snapshot,
        f"SELECT x.provider = 'self-hosted' AS is_fleet, count(*) AS requests, {sums} FROM {source} GROUP BY ALL",
        chosen.bound,
    )
    nothing = dict.fromkeys(("requests", *CLASSES), 0)
    fleet = next((row for row in both if row["is_fleet"]), nothing)
    managed = next((row for row in both if not row["is_fleet"]), nothing)
    totals = {name: fleet[name] + managed[name] for name in nothing}
    first = [shown(row) for row in rows(snapshot, _first_records(source, limit), chosen.bound)]
    tokens = sum(totals[name] for name in CLASSES)
    return {
        "requests": totals["requests"],
        "tokens": tokens,
        "by_token_class": _by_class(managed, postings),
        "by_token_class_fleet": _by_class_fleet(fleet, postings),
        "shown": first,
        "more": {"requests": totals["requests"] - len(first), "tokens": tokens - sum(row["tokens"] for row in first)},
    }


def _first_records(source: str, limit: int) -> str:
    every = " + ".join(f"coalesce(x.{name}_tokens, 0)" for name in CLASSES)
    counts = ", ".join(f"x.{name}_tokens AS {name}" for name in CLASSES)
    columns = f"x.source, x.record_id, x.task_id, x.ended_at, x.model, x.status, {counts}, {every} AS tokens"
    return f"SELECT {columns} FROM {source} ORDER BY tokens DESC, x.event_key" + (f" LIMIT {limit}" if limit else "")


def _by_class(totals: Facts, postings: Sequence[Facts]) -> list[Facts]:
    """Per token class: logged = billed + estimated + never billed."""
    posted = {name: {"billed": 0, "estimated": 0} for name in CLASSES}
    for row in postings:
        if row["kind"] == "usage" and row["token_class"] in posted and row["provider"] != SELF_HOSTED:
            posted[row["token_class"]][row["basis"]] += row["tokens"]
    return [
        {
            "token_class": name,
            "logged": totals[name],
            **posted[name],
            "never_billed": totals[name] - sum(posted[name].values()),
        }
        for name in CLASSES
        if totals[name] or any(posted[name].values())
    ]


def _by_class_fleet(totals: Facts, postings: Sequence[Facts]) -> list[Facts]:
    """Per token class of the own fleet: logged = posted + not billed yet + elsewhere.

    Elsewhere: calls count in the hours in which their tokens were processed, which may be of another day, and a log
    that tells no cache reads is split as the engines say. Writing to an engine's cache is computing the token.
    """
    logged = {
        "uncached_input": sum(totals[name] for name in ("uncached_input", "cache_write_5m", "cache_write_1h")),
        "cache_read": totals["cache_read"],
        "output": totals["output"],
    }
    posted = {name: {"billed": 0, "estimated": 0} for name in logged}
    for row in postings:
        # tokens of calls stand on the first row of their class, whatever its kind; those that no call explains do not
        of_calls = row["kind"] in ("usage", "under_used") and row["reason"] in (None, "not_billed_yet", "no_pool")
        if row["provider"] == SELF_HOSTED and of_calls and row["token_class"] in posted:
            posted[row["token_class"]][row["basis"]] += row["tokens"]
    return [
        {
            "token_class": name,
            "logged": logged[name],
            "billed": posted[name]["billed"],
            "not_billed_yet": posted[name]["estimated"],
            "elsewhere": logged[name] - sum(posted[name].values()),
        }
        for name in logged
        if logged[name] or any(posted[name].values())
    ]
