"""The own GPU fleet: what the metrics leave unknown, and GPU instances on the bill that no cluster knows."""

from datetime import date, timedelta
from decimal import Decimal

from inferledger.checks.check import Check, Checks
from inferledger.figures import count, money, mtok
from inferledger.rows import Facts, dollars, rows
from warehouse.snapshot import Snapshot

# What is older than this is history: nobody can mend a scraper that was missing then.
RECENT = timedelta(days=7)
LATE = timedelta(days=3)
NAMED = 5
HELD = "busy_gpu_ms + no_traffic_gpu_ms + starting_gpu_ms + stopping_gpu_ms + unmeasured_gpu_ms"


def fleet(snapshot: Snapshot) -> Checks:
    """Nothing at all where neither metrics nor the bill show a GPU."""
    yield from _strangers(snapshot)
    last = rows(snapshot, "SELECT max(day) AS day FROM pool_hour")[0]["day"]
    if last is None:
        return
    since = last - RECENT + timedelta(days=1)
    found = [
        *_told_twice(snapshot, since),
        *_without_route(snapshot, since),
        *_without_engine(snapshot, since),
        *_unseen_nodes(snapshot, since),
        *_unknown_counters(snapshot, since),
        *_never_billed(snapshot),
    ]
    yield from found
    if not found:
        hours = rows(snapshot, f"SELECT CAST(sum({HELD}) AS BIGINT) AS ms FROM fleet_pod WHERE day >= ?", [since])[0]
        yield Check("fleet", "pods", "ok", f"every pod tells a model and has engine metrics ({_hours(hours['ms'])})")


def _strangers(snapshot: Snapshot) -> Checks:
    """GPU instances that the bill charges and that are no node of a cluster and no member of a pool table."""
    last = rows(snapshot, "SELECT max(day) AS day FROM fleet_line")[0]["day"]
    if last is None:
        return
    found = rows(
        snapshot,
        """
        SELECT resource_id, currency, min(usage_type) AS usage_type, CAST(sum(effective_nano) AS BIGINT) AS nano
        FROM fleet_line WHERE line_route = 'unknown' AND day > ? GROUP BY ALL ORDER BY nano DESC, resource_id
        """,
        [last - RECENT],
    )
    for currency in sorted({row["currency"] for row in found}):
        own = [row for row in found if row["currency"] == currency]
        total = dollars(sum(row["nano"] for row in own))
        yield Check(
            "fleet",
            "instances",
            "warn",
            f"{count(len(own))} GPU instance(s) on the bill are in no cluster, {money(total, currency)} in the last "
            f"{RECENT.days} days: {_named([row['resource_id'] for row in own])}",
            "collect kube-state-metrics of their cluster, or list them in a pool table (sources, kind pool_table); "
            "if they serve no model, all is well",
        )


def _told_twice(snapshot: Snapshot, since: date) -> Checks:
    """Instances that hold GPUs by a pool table and by Kubernetes at once share their money between both."""
    found = rows(
        snapshot,
        """
        SELECT resource_id FROM fleet_pod WHERE day >= ? GROUP BY resource_id, hour
        HAVING count(DISTINCT is_table) = 2
        """,
        [since],
    )
    if found:
        names = sorted({row["resource_id"] for row in found})
        yield Check(
            "fleet",
            "pool table",
            "warn",
            f"{count(len(names))} instance(s) are in a pool table and in a cluster with metrics: {_named(names)}",
            "take them out of the pool table; metrics say more",
        )


def _without_route(snapshot: Snapshot, since: date) -> Checks:
    found = _pods(snapshot, "model IS NULL", since)
    if found:
        yield Check(
            "fleet",
            "routes",
            "warn",
            f"{count(len(found))} pod(s) hold GPUs and tell no model ({_sum(found)}): {_pod_names(found)}",
            "label the pods with what they serve and let kube-state-metrics show it (fleet.labels.route)",
        )


def _without_engine(snapshot: Snapshot, since: date) -> Checks:
    found = _pods(snapshot, "is_table = 0", since, "sum(sampled_minutes) = 0 AND sum(unmeasured_gpu_ms) > 0")
    if found:
        yield Check(
            "fleet",
            "engine metrics",
            "warn",
            f"{count(len(found))} pod(s) have no engine metrics and are unmeasured ({_sum(found)}): "
            f"{_pod_names(found)}",
            "scrape their engine's /metrics, with the labels namespace and pod",
        )


def _unseen_nodes(snapshot: Snapshot, since: date) -> Checks:
    row = rows(
        snapshot,
        """
        SELECT CAST(sum(unmeasured_gpu_ms) AS BIGINT) AS ms, CAST(sum(unmeasured_nano) AS BIGINT) AS nano
        FROM pool_hour WHERE pool IS NULL AND day >= ? AND coalesce(currency, ?) = ?
        """,
        [since, snapshot.currency, snapshot.currency],
    )[0]
    if row["ms"]:
        yield Check(
            "fleet",
            "node metrics",
            "warn",
            f"kube-state-metrics has gaps of {_hours(row['ms'])} in the lives of nodes"
            + (f", {money(dollars(row['nano']), snapshot.currency)}" if row["nano"] else ""),
            "see whether kube-state-metrics and its scraper ran all the time",
        )


def _unknown_counters(snapshot: Snapshot, since: date) -> Checks:
    found = _pods(snapshot, "TRUE", since, "sum(unknown_series) > 0")
    if found:
        yield Check(
            "fleet",
            "counters",
            "warn",
            f"{count(sum(row['series'] for row in found))} counter(s) began at an unknown value, in pods "
            f"{_pod_names(found)}: what they had counted by then is not booked",
            "scrape at least every minute, and process_start_time_seconds too; once, after a gap, is no harm",
        )


def _never_billed(snapshot: Snapshot) -> Checks:
    """Calls of the own fleet that no bill has paid for, older than a bill is late."""
    found = rows(
        snapshot,
        """
        SELECT model, CAST(sum(tokens) AS BIGINT) AS tokens FROM cost_day
        WHERE provider = 'self-hosted' AND basis = 'estimated' AND day < ? GROUP BY ALL HAVING sum(tokens) > 0
        ORDER BY ALL
        """,
        [snapshot.as_of.date() - LATE],
    )
    for row in found:
        yield Check(
            "fleet",
            row["model"] or "(unknown model)",
            "warn",
            f"{mtok(row['tokens'])} tokens were answered by the own fleet in hours without a bill for its machines",
            "see whether the bill has the instances' lines with resource ids, and whether the pods were measured then",
        )


def _pods(snapshot: Snapshot, where: str, since: date, having: str = "TRUE") -> list[Facts]:
    return rows(
        snapshot,
        f"""
        SELECT cluster, namespace, pod, CAST(sum({HELD}) AS BIGINT) AS ms, CAST(sum(unknown_series) AS BIGINT) AS series
        FROM fleet_pod WHERE {where} AND day >= ? GROUP BY cluster, namespace, pod
        HAVING {having} ORDER BY ms DESC, cluster, namespace, pod
        """,
        [since],
    )


def _sum(found: list[Facts]) -> str:
    return _hours(sum(row["ms"] for row in found))


def _hours(milliseconds: int | None) -> str:
    return f"{Decimal(milliseconds or 0) / 3_600_000:,.1f} GPU-hours"


def _pod_names(found: list[Facts]) -> str:
    return _named([f"{row['namespace']}/{row['pod']}" if row["namespace"] else row["pod"] for row in found])


def _named(names: list[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
