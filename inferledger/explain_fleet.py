"""The evidence behind the own fleet's money: pool-hours, the bill's lines under them, engines against the log.

    posting -> pool-hour (what its GPUs did, what that cost) -> token classes (method, weights, tokens)
            -> lines of the bill of that cluster and hour (instances, billed time, amounts)

A reader of some teams gets what those teams were charged; what a pool or a cluster cost as a whole stays None.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from inferledger.conditions import condition
from inferledger.figures import exact
from inferledger.rows import Facts, head, key, more, rows, shown
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot

FLEET = "cluster IS NOT NULL AND basis = 'billed' AND kind NOT IN ('future', 'out_of_scope')"
KEY = ("hour", "cluster", "model", "pool")
CLASSES = ("uncached_input", "cache_read", "output")
TIMES = ("busy", "no_traffic", "starting", "stopping", "unmeasured", "not_requested")
STATES = (
    "productive",
    "under_used",
    "shared",
    "no_traffic",
    "starting",
    "stopping",
    "not_requested",
    "not_in_cluster",
    "unmeasured",
)


def pools(snapshot: Snapshot, where: Filters) -> list[Facts]:
    """What is selected of every pool (pool None: of nodes, of no pool) by kind, dearest first."""
    chosen = condition(where)
    found = rows(
        snapshot,
        f"""
        SELECT cluster, model, pool, kind, CAST(sum(effective_nano) AS BIGINT) AS effective_nano,
            CAST(sum(billed_nano) AS BIGINT) AS billed_nano, CAST(sum(tokens) AS BIGINT) AS tokens
        FROM cost_hour WHERE {FLEET} AND currency = ? AND {chosen.text} GROUP BY ALL ORDER BY ALL
        """,
        [snapshot.currency, *chosen.bound],
    )
    together: dict[tuple[object, ...], Facts] = {}
    for row in found:
        pool = together.setdefault(
            key(row, ("cluster", "model", "pool")),
            {
                **{name: row[name] for name in ("cluster", "model", "pool")},
                **{"effective_nano": 0, "billed_nano": 0, "tokens": 0, "by_kind": {}},
            },
        )
        for name in ("effective_nano", "billed_nano", "tokens"):
            pool[name] += row[name]
        if row["effective_nano"]:
            pool["by_kind"][row["kind"]] = exact(Decimal(row["effective_nano"]).scaleb(-9))
    ordered = sorted(together.values(), key=lambda pool: -pool["effective_nano"])
    return [shown(pool) for pool in ordered]


def pool_hours(snapshot: Snapshot, where: Filters, limit: int) -> tuple[list[Facts], Facts]:
    """The dearest pool-hours of the selection with all that stands behind them, and what the others add up to."""
    chosen = condition(where)
    cells = rows(
        snapshot,
        f"""
        SELECT day, {", ".join(KEY)}, CAST(sum(effective_nano) AS BIGINT) AS selected_nano,
            list(struct_pack(kind := kind, nano := effective_nano) ORDER BY kind) AS kinds
        FROM (SELECT day, {", ".join(KEY)}, kind, CAST(sum(effective_nano) AS BIGINT) AS effective_nano
              FROM cost_hour WHERE {FLEET} AND currency = ? AND {chosen.text} GROUP BY ALL)
        GROUP BY day, {", ".join(KEY)} ORDER BY selected_nano DESC, {", ".join(KEY)}
        """,
        [snapshot.currency, *chosen.bound],
    )
    first = head(cells, limit)
    if not first:
        return [], more([], "selected_nano")
    hours = sorted({cell["hour"] for cell in first})
    everything = _Behind(snapshot, where, hours)
    return [everything.of(cell, limit) for cell in first], shown(more(cells[len(first) :], "selected_nano"))


class _Behind:
    """What is known of a few hours, read once."""

    def __init__(self, snapshot: Snapshot, where: Filters, hours: Sequence[object]) -> None:
        self.withheld = snapshot.scope.teams is not None
        self.pool_rows = _pool_rows(snapshot, hours)
        self.class_rows = _class_rows(snapshot, hours)
        self.match_rows = _match_rows(snapshot, hours)
        self.line_rows = _line_rows(snapshot, hours)
        self.mine = _mine(snapshot, where, hours)

    def of(self, cell: Facts, limit: int) -> Facts:
        """One pool-hour: its money, its GPU time, its classes, and the lines of its cluster in that hour."""
        cluster = [row for row in self.pool_rows if key(row, KEY[:2]) == key(cell, KEY[:2])]
        own = [row for row in cluster if key(row, KEY) == key(cell, KEY)]
        others = [row for row in cluster if row["pool"] is not None and key(row, KEY) != key(cell, KEY)]
        nodes = [row for row in cluster if row["pool"] is None and key(row, KEY) != key(cell, KEY)]
        lines = [row for row in self.line_rows if key(row, KEY[:2]) == key(cell, KEY[:2])]
        facts: Facts = {
            "day": cell["day"],
            **{name: cell[name] for name in KEY},
            "withheld": self.withheld,
            "selected_nano": cell["selected_nano"],
            "selected_by_kind": {
                part["kind"]: exact(Decimal(part["nano"]).scaleb(-9)) for part in cell["kinds"] if part["nano"]
            },
            "pool_total_nano": None if self.withheld else _money(own),
            "others_nano": None if self.withheld else _money(own) - cell["selected_nano"],
            "other_pools_nano": None if self.withheld else _money(others),
            "nodes_nano": None if self.withheld else _money(nodes),
            "bill_nano": None if self.withheld else sum(line["effective_nano"] for line in lines),
            "by_state": {
                state: exact(Decimal(total).scaleb(-9))
                for state in STATES
                if (total := sum(row[f"{state}_nano"] or 0 for row in own))
            },
            "gpu_hours": {
                state: exact(round(Decimal(total) / 3_600_000, 6))
                for state in TIMES
                if (total := sum(row[f"{state}_gpu_ms"] or 0 for row in own))
            },
            "unknown_series": sum(row["unknown_series"] or 0 for row in own),
            "classes": self._classes(cell),
        }
        touching = sorted(
            lines, key=lambda line: (-(_held(line, cell) or 0), line["line_route"] != "node", -line["effective_nano"])
        )
        first = head(touching, limit)
        facts["lines"] = [_line(line, cell) for line in first]
        facts["lines_more"] = shown(more(touching[len(first) :], "effective_nano"))
        return shown(facts)

    def _classes(self, cell: Facts) -> list[Facts]:
        """Per token class: the method and its weight, the tokens it was divided by, and the selection's part."""
        own = [row for row in self.class_rows if key(row, KEY) == key(cell, KEY)]
        regions = {row["group_region"] for row in own}
        total = sum(row["weight"] or 0 for row in own)
        found = []
        for name in CLASSES:
            of_class = [row for row in own if row["token_class"] == name]
            matched = [
                row
                for row in self.match_rows
                if (row["hour"], row["model"], row["token_class"]) == (cell["hour"], cell["model"], name)
                and row["region"] in regions
            ]
            mine = [row for row in self.mine if (row["hour"], row["model"], row["token_class"])
                    == (cell["hour"], cell["model"], name)]  # fmt: skip
            here = [row for row in mine if key(row, KEY) == key(cell, KEY)]
            tokens = sum(row["tokens"] for row in mine if not regions or None in regions or row["region"] in regions)
            if not (of_class or here):
                continue
            weight = sum(row["weight"] or 0 for row in of_class)
            denominator = sum(row["total_tokens"] for row in matched)
            told = [row["engine_tokens"] for row in matched if row["engine_tokens"] is not None]
            money = sum(row["productive_nano"] + row["under_used_nano"] for row in of_class)
            selected = sum(row["effective_nano"] for row in here)
            found.append(
                shown(
                    {
                        "token_class": name,
                        "method": ", ".join(sorted({str(row["method"]) for row in of_class or here})),
                        "weight": weight if of_class else None,
                        "weight_share": exact(round(Decimal(weight) / total, 9)) if of_class and total else None,
                        "class_cost_nano": money if of_class else None,
                        "engine_tokens": sum(told) if told else None,
                        "logged_tokens": sum(row["event_tokens"] for row in matched) if matched else None,
                        "denominator_tokens": denominator if matched else None,
                        "selected_tokens": tokens,
                        "selected_nano": selected,
                        "token_share": exact(round(Decimal(tokens) / denominator, 9)) if denominator else None,
                    }
                )
            )
        return found


def _match_rows(snapshot: Snapshot, hours: Sequence[object]) -> list[Facts]:
    return rows(snapshot, "SELECT * FROM fleet_match WHERE hour IN (SELECT unnest(?::TIMESTAMP[]))", [hours])


def _pool_rows(snapshot: Snapshot, hours: Sequence[object]) -> list[Facts]:
    sums = ", ".join(
        f"CAST(sum({name}) AS BIGINT) AS {name}"
        for name in (*(f"{state}_nano" for state in STATES), *(f"{state}_gpu_ms" for state in TIMES), "unknown_series")
    )
    # rows without money have no currency: hours that the bill has not reached
    return rows(
        snapshot,
        f"""
        SELECT {", ".join(KEY)}, {sums}, CAST(coalesce(sum(effective_nano), 0) AS BIGINT) AS effective_nano
        FROM pool_hour WHERE hour IN (SELECT unnest(?::TIMESTAMP[])) AND coalesce(currency, ?) = ? GROUP BY ALL
        """,
        [hours, snapshot.currency, snapshot.currency],
    )


def _class_rows(snapshot: Snapshot, hours: Sequence[object]) -> list[Facts]:
    return rows(
        snapshot,
        "SELECT * FROM fleet_class WHERE hour IN (SELECT unnest(?::TIMESTAMP[])) AND currency = ?",
        [hours, snapshot.currency],
    )


def _line_rows(snapshot: Snapshot, hours: Sequence[object]) -> list[Facts]:
    """Lines of whole clusters and of instances, each with who held how much of the instance's GPUs."""
    lines = rows(
        snapshot,
        """
        SELECT hour, cluster, line_route, line_class, resource_id, gpus, usage_type, usage_ms, service_name,
            export_name, file, line_item_id, line_digest, effective_nano, billed_nano
        FROM fleet_line
        WHERE hour IN (SELECT unnest(?::TIMESTAMP[])) AND currency = ? AND cluster IS NOT NULL
        ORDER BY effective_nano DESC, resource_id, line_digest
        """,
        [hours, snapshot.currency],
    )
    held = rows(
        snapshot,
        """
        SELECT hour, resource_id, cluster, model, pool, CAST(sum(busy_gpu_ms + no_traffic_gpu_ms + starting_gpu_ms
            + stopping_gpu_ms + unmeasured_gpu_ms) AS BIGINT) AS gpu_ms
        FROM fleet_pod WHERE hour IN (SELECT unnest(?::TIMESTAMP[])) GROUP BY ALL
        """,
        [hours],
    )
    by_instance: dict[tuple[object, ...], list[Facts]] = {}
    for row in held:
        by_instance.setdefault((row["hour"], row["resource_id"]), []).append(row)
    for line in lines:
        line["held"] = by_instance.get((line["hour"], line["resource_id"]), []) if line["line_route"] == "node" else []
    return lines


def _mine(snapshot: Snapshot, where: Filters, hours: Sequence[object]) -> list[Facts]:
    """What the selection was charged by token class. Tokens stand on the first pool of a route: all pools are read."""
    chosen = condition(replace(where, pool=(), cluster=()))
    return rows(
        snapshot,
        f"""
        SELECT {", ".join(KEY)}, region, token_class, method, CAST(sum(tokens) AS BIGINT) AS tokens,
            CAST(sum(effective_nano) AS BIGINT) AS effective_nano
        FROM cost_hour
        WHERE {FLEET} AND token_class IS NOT NULL AND currency = ? AND hour IN (SELECT unnest(?::TIMESTAMP[]))
          AND {chosen.text}
        GROUP BY ALL
        """,
        [snapshot.currency, hours, *chosen.bound],
    )


def _line(line: Facts, cell: Facts) -> Facts:
    found = {name: value for name, value in line.items() if name != "held"}
    held = _held(line, cell)
    return shown({**found, "held_gpu_hours": None if held is None else exact(round(Decimal(held) / 3_600_000, 6))})


def _held(line: Facts, cell: Facts) -> int | None:
    """GPU milliseconds of an instance that the pool held; None for lines that are not an instance's."""
    if line["line_route"] != "node":
        return None
    return sum((int(row["gpu_ms"]) for row in line["held"] if key(row, KEY) == key(cell, KEY)), 0)


def _money(found: Sequence[Facts]) -> int:
    return sum(row["effective_nano"] for row in found)
