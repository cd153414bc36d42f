"""The fleet as a part of the company: what it adds to the bill, the log, the metrics and the truth."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from demo.clock import Window, iso
from demo.fleet import bill, costs, gateway, metrics, operate, truth, usage
from demo.fleet.catalogue import CLUSTERS, POOLS, ROUTES
from demo.fleet.costs import NodeHour
from demo.fleet.gateway import FleetNames
from demo.fleet.nodes import Replica
from demo.fleet.operate import Fleet
from demo.ledger import Ledger
from demo.simulation import generator


@dataclass(frozen=True)
class FleetOfCompany:
    """The fleet, simulated, named and priced. `window`: of the whole company."""

    seed: int
    window: Window
    fleet: Fleet
    names: FleetNames
    hours: list[NodeHour]
    minutes: list[tuple[Replica, np.ndarray]]

    def add_to_bill(self, ledger: Ledger) -> None:
        """The fleet's lines of one month."""
        rng = generator(self.seed, f"fleet cloud {ledger.period.label}")
        bill.add(rng, ledger, self.hours, self.fleet.window.start_us, self.window.billed_until_us)

    def write(self, out: Path) -> tuple[list[Path], int, int]:
        """Write the gateway's records and the metrics; returns files, records and samples."""
        logs, records = gateway.write(out, self.fleet, self.names)
        samples_files, samples = metrics.write(out, self.fleet, self.minutes)
        return [*logs, *samples_files], records, samples

    def truth_tables(self) -> dict[str, pa.Table]:
        """fleet_request, fleet_replica_minute, fleet_node_hour."""
        priced = truth.prices(self.hours)
        return {
            "fleet_request": truth.requests(self.fleet, self.names),
            "fleet_replica_minute": truth.replica_minutes(self.minutes, priced),
            "fleet_node_hour": truth.node_hours(self.hours, self.minutes, self.window.billed_until_us),
        }

    def summary(self, records: int, samples: int) -> dict[str, object]:
        """The fleet's part of truth.json. Money in nano-dollars, times in microseconds."""
        lives = [(replica, life) for replica in self.fleet.replicas for life in replica.lives]
        legs = [leg for attempt in self.fleet.attempts for leg in attempt.legs]
        outcomes = [attempt.outcome.name.lower() for attempt in self.fleet.attempts]
        return {
            "start": iso(self.fleet.window.start_us),
            "clusters": {name: cluster.region for name, cluster in CLUSTERS.items()},
            "routes": {name: list(models) for name, models in ROUTES.items()},
            "pools": {key: {"route": pool.route, "role": pool.role} for key, pool in POOLS.items()},
            "requests": len(self.fleet.requests),
            "attempts_by_outcome": {name: outcomes.count(name) for name in sorted(set(outcomes))},
            "gateway_records": records,
            "samples": samples,
            "gpu_us": {
                name: sum(leg.gpu_us[number] for leg in legs)
                for number, name in enumerate(("prefill", "cached", "decode"))
            },
            "gpu_us_stepping": sum(life.stepping_ns * replica.spec.gpus // 1000 for replica, life in lives),
            "request_cost_nano": sum(leg.cost_nano for leg in legs),
            "node_cost_nano": sum(hour.effective_nano for hour in self.hours),
            "savings_plan_commitment_nano_an_hour": costs.COMMITMENT_NANO,
            "planted": [event.record() for event in self.fleet.plan.events],
        }


def simulate(seed: int, window: Window, scale: float) -> FleetOfCompany:
    """Everything about the fleet, but nothing written yet."""
    fleet = operate.simulate(seed, window, scale)
    usage.measure(fleet.attempts)
    hours = costs.node_hours(fleet.nodes, fleet.window.as_of_us)
    truth.price_legs(fleet, truth.prices(hours))
    minutes = [(replica, usage.minutes(replica, fleet.window.as_of_us)) for replica in fleet.replicas]
    return FleetOfCompany(seed, window, fleet, gateway.name(seed, fleet), hours, minutes)
