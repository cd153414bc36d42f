"""The fleet's lines of the bill: instances, the Savings Plan, and what a cluster costs beside its instances."""

import numpy as np

from demo.clock import HOUR
from demo.fleet import bill_names
from demo.fleet.catalogue import CLUSTERS, Cluster
from demo.fleet.costs import COMMITMENT_NANO, NodeHour
from demo.fleet.nodes import Node
from demo.ledger import ROW, Ledger

VOLUME_GB = {True: 400, False: 40}
"""Root volume of a GPU node (images and weights), of another one."""

HOURS_A_MONTH = 730


def add(rng: np.random.Generator, ledger: Ledger, hours: list[NodeHour], start_us: int, until_us: int) -> None:
    """All lines of the month of the ledger: usage in [start, until), the plan's fee for all the month's hours.

    `start_us`: when the fleet went live.
    """
    month = ledger.period
    from_us = max(start_us, month.start_us)
    if from_us >= month.end_us:
        return
    mine = [hour for hour in hours if from_us <= hour.hour_us < min(until_us, month.end_us)]
    _instances(ledger, mine)
    _volumes(ledger, mine)
    _savings_plan(ledger, mine, from_us, month.end_us, start_us)
    whole = np.arange(from_us, min(until_us, month.end_us), HOUR, dtype=np.int64)
    for cluster in CLUSTERS.values():
        for extra in bill_names.EXTRAS:
            _add_extra(rng, ledger, cluster, extra, whole)


def _line(kind: int, hour_us: int, usage: float, cost: int, public: int) -> np.ndarray:
    row = np.zeros(1, dtype=ROW)
    row["kind"], row["start_us"], row["end_us"] = kind, hour_us, hour_us + HOUR
    row["usage"], row["cost_nano"], row["public_nano"] = usage, cost, public
    return row


def _instances(ledger: Ledger, hours: list[NodeHour]) -> None:
    """Usage of instances: what is paid, and what the Savings Plan covers, on lines of their own."""
    kinds: dict[tuple[Node, int, bool], int] = {}

    def kind(hour: NodeHour, covered: bool) -> int:
        key = hour.node, hour.rate_nano, covered
        if key not in kinds:
            kinds[key] = bill_names.instance(ledger, hour.node, hour.rate_nano, covered)
        return kinds[key]

    for hour in hours:
        listed = hour.node.instance_type.on_demand_nano[hour.node.cluster.region]
        if hour.covered_s:
            cost = hour.covered_at_list_nano
            row = _line(kind(hour, True), hour.hour_us, hour.covered_s / 3600, cost, cost)
            row["plan_nano"] = hour.plan_nano
            ledger.add(row)
        paid_s = hour.seconds - hour.covered_s
        if paid_s:
            public = (paid_s * listed + 1800) // 3600
            ledger.add(_line(kind(hour, False), hour.hour_us, paid_s / 3600, hour.paid_nano, public))


def _volumes(ledger: Ledger, hours: list[NodeHour]) -> None:
    """Each node's root volume, for as long as it runs."""
    kinds: dict[Node, int] = {}
    for hour in hours:
        node = hour.node
        if node not in kinds:
            kinds[node] = bill_names.volume(ledger, node)
        gigabytes = VOLUME_GB[node.instance_type.gpus > 0]
        micro = gigabytes * hour.seconds * 1_000_000 // 3600 // HOURS_A_MONTH
        rate = bill_names.VOLUME_NANO[node.cluster.region]
        cost = (micro * rate + 500_000) // 1_000_000
        ledger.add(_line(kinds[node], hour.hour_us, micro / 1e6, cost, cost))


def _savings_plan(ledger: Ledger, hours: list[NodeHour], from_us: int, end_us: int, start_us: int) -> None:
    """Negations of what is covered, and the hourly fee: AWS shows it for the whole month from its first day."""
    used: dict[int, int] = {}
    covered: dict[tuple[int, str], int] = {}
    for hour in hours:
        if hour.covered_s:
            used[hour.hour_us] = used.get(hour.hour_us, 0) + hour.plan_nano
            key = hour.hour_us, hour.node.zone
            covered[key] = covered.get(key, 0) + hour.covered_at_list_nano
    kinds = {zone: bill_names.negation(ledger, zone, start_us) for zone in sorted({zone for _, zone in covered})}
    for (hour_us, zone), cost in sorted(covered.items()):
        ledger.add(_line(kinds[zone], hour_us, 0.0, -cost, 0))
    fee = bill_names.recurring_fee(ledger, start_us)
    rows = np.zeros((end_us - from_us) // HOUR, dtype=ROW)
    rows["kind"] = fee
    rows["start_us"] = from_us + np.arange(len(rows)) * HOUR
    rows["end_us"] = rows["start_us"] + HOUR
    rows["usage"] = 1.0
    rows["cost_nano"] = rows["commitment_nano"] = COMMITMENT_NANO
    rows["used_nano"] = [used.get(hour_us, 0) for hour_us in rows["start_us"].tolist()]
    ledger.add(rows)


def _add_extra(
    rng: np.random.Generator, ledger: Ledger, cluster: Cluster, extra: bill_names.Extra, hours: np.ndarray
) -> None:
    """One line an hour of something that the cluster has as a whole."""
    amount = np.full(len(hours), extra.per_hour) * (1 + extra.noise * rng.uniform(-1, 1, len(hours)))
    micro = np.rint(amount * 1e6).astype(np.int64)
    rows = np.zeros(len(hours), dtype=ROW)
    rows["kind"] = bill_names.cluster_wide(ledger, cluster, extra)
    rows["start_us"] = hours
    rows["end_us"] = hours + HOUR
    rows["usage"] = micro / 1e6
    rows["cost_nano"] = rows["public_nano"] = (micro * extra.rate_nano + 500_000) // 1_000_000
    ledger.add(rows)
