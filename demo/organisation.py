"""The demonstration company: write all that its systems would hold, and the truth beside it."""

import json
import shutil
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import jinja2
import numpy as np

from demo import bill, cur, gateway_log, incident_sizes, metering, restatement, truth, truth_tables
from demo.calls import Status, is_billed, is_logged
from demo.clock import DAY, HOUR, MINUTE, Period, Window, instant, iso
from demo.editions import Edition
from demo.fleet import company, openmetrics
from demo.fleet.catalogue import CLUSTERS, POOLS, ROUTES
from demo.fleet.catalogue import DEPLOYMENTS as FLEET_DEPLOYMENTS
from demo.fleet.company import FleetOfCompany
from demo.incident_sizes import Incident
from demo.ledger import Ledger
from demo.metering import Tariff
from demo.models import ACCOUNTS, DEPLOYMENTS
from demo.names import Names, name_calls
from demo.people import APPS, TEAMS
from demo.simulation import Simulation, generator, simulate

FACTS = "organisation.json"
NEXT_DELIVERY = ".next-delivery"
"""Where the second delivery of the bill waits until `deliver_restatement`."""


@dataclass(frozen=True)
class Organisation:
    """What was written.

    `as_of`: the instant at which the company 'is'; `gateway_calls`: records of the gateway; `samples`: of metrics.
    """

    out: Path
    as_of: datetime
    gateway_calls: int
    attempts: int
    bill_lines: int
    files: int
    samples: int = 0


def write(
    out: Path, *, seed: int = 7, days: int = 30, scale: float = 1.0, end: date = date(2026, 11, 15)
) -> Organisation:
    """Write the company under `out`: `cur/`, `gateway/`, `metrics/`, `truth/` and `organisation.json`.

    Same arguments, same bytes. `scale` 1 is about 340,000 gateway calls of managed models in 30 days, and 175,000 of
    the company's own GPU fleet in the last ten.
    """
    if days < 1 or scale <= 0:
        raise ValueError(f"days must be at least 1 and scale positive, not {days} and {scale}")
    for name in (cur.PREFIX, gateway_log.FOLDER, openmetrics.FOLDER, truth.FOLDER):
        if (out / name).exists():
            raise FileExistsError(
                f"{out / name} is there already: give an empty folder, or remove the old demonstration"
            )
    out.mkdir(parents=True, exist_ok=True)
    window = Window(days, end)
    simulation = simulate(seed, window, scale)
    names = name_calls(simulation)
    fleet = company.simulate(seed, window, scale)
    facts = {"as_of": iso(window.as_of_us), "seed": seed, "days": days, "scale": scale, "end": end.isoformat()}
    (out / FACTS).write_text(json.dumps(facts, indent=2) + "\n")
    gateway_files = gateway_log.write(out, simulation, names)
    fleet_files, fleet_calls, samples = fleet.write(out)
    facts_of_fleet = fleet.summary(fleet_calls, samples)
    bill_files, bill_lines, truth_files = write_bill_and_truth(
        out, simulation, names, fleet, facts | {"fleet": facts_of_fleet}
    )
    return Organisation(
        out=out,
        as_of=instant(window.as_of_us),
        gateway_calls=int(is_logged(simulation.calls).sum()) + fleet_calls,
        attempts=len(simulation.calls) + len(fleet.fleet.attempts),
        bill_lines=bill_lines,
        files=len(bill_files) + len(truth_files) + len(gateway_files) + len(fleet_files) + 1,
        samples=samples,
    )


def write_bill_and_truth(
    out: Path, simulation: Simulation, names: Names, fleet: FleetOfCompany, facts: dict[str, object]
) -> tuple[list[Path], int, list[Path]]:
    """Both deliveries of the bill and the truth. Returns bill files, lines of the first delivery, truth files."""
    window = simulation.window
    periods = window.periods()
    tariff = Tariff(price_cut_from_us=simulation.plan.price_cut_from_us)
    metered = metering.meter(simulation.calls)
    metered = metered[metered["hour_us"] < window.billed_until_us]
    correction = restatement.plan(metered, tariff, window, simulation.scale, periods[-1])
    missing = metered[correction.late] if correction.late >= 0 else None
    first = Edition("first", tariff, missing)
    restated = Edition("restated", Tariff(tariff.price_cut_from_us, correction.rerating), None)

    files: list[Path] = []
    lines, totals = 0, []
    on_time = np.arange(len(metered)) != correction.late
    for period in periods:
        delivery = cur.Delivery(period, delivered_us(window, period), 1)
        ledger = bill.draw_up(simulation, period, metered[on_time], first.tariff, fleet.add_to_bill)
        files += write_delivery(out, simulation, ledger, delivery)
        lines += len(ledger.all_rows())
        totals.append(summary_of(ledger, delivery, "first"))
    later = cur.Delivery(periods[-1], window.as_of_us + 9 * HOUR + 5 * MINUTE, 2)
    ledger = bill.draw_up(simulation, periods[-1], metered, restated.tariff, fleet.add_to_bill)
    shutil.rmtree(out / NEXT_DELIVERY, ignore_errors=True)
    write_delivery(out / NEXT_DELIVERY, simulation, ledger, later)
    totals.append(summary_of(ledger, later, "restated"))

    incidents = incident_sizes.planted(simulation, names, first, restated, metered, correction)
    tables = {
        "cost_by_hour_first": truth_tables.cost_by_hour(simulation, first),
        "cost_by_hour_restated": truth_tables.cost_by_hour(simulation, restated),
        "cost_by_call": truth_tables.cost_by_call(simulation, names, first, restated),
        "cost_by_task": truth_tables.cost_by_task(simulation, names, first, restated),
        **fleet.truth_tables(),
    }
    return files, lines, truth.write(out, tables, summary(simulation, facts, totals, incidents))


def delivered_us(window: Window, period: Period) -> int:
    """When the delivery that is there at `as_of` was made: after the invoice of a final month, else an hour ago."""
    if period.final:
        return period.end_us + 5 * DAY + 3 * HOUR + 12 * MINUTE
    return window.as_of_us - HOUR - 17 * MINUTE


def write_delivery(out: Path, simulation: Simulation, ledger: Ledger, delivery: cur.Delivery) -> list[Path]:
    rng = generator(simulation.seed, f"line ids {delivery.period.label} {delivery.number}")
    return cur.write_delivery(out, ledger, delivery, rng)


def summary_of(ledger: Ledger, delivery: cur.Delivery, edition: str) -> dict[str, object]:
    """Exact totals of one delivery, in nano-dollars."""
    rows = ledger.all_rows()
    usage = [kind["line_item_line_item_type"] == "Usage" for kind in ledger.kinds]
    model_products = {deployment.model.product_code for deployment in DEPLOYMENTS}
    of_models = [kind["line_item_product_code"] in model_products for kind in ledger.kinds]
    is_model_usage = np.array(usage)[rows["kind"]] & np.array(of_models)[rows["kind"]]
    return {
        "edition": edition,
        "billing_period": delivery.period.label,
        "final": delivery.period.final,
        "execution_id": delivery.execution_id,
        "lines": len(rows),
        "total_nano_usd": int(rows["cost_nano"].sum()),
        "model_usage_nano_usd": int(rows["cost_nano"][is_model_usage].sum()),
        "by_line_type_nano_usd": ledger.cost_by("line_item_line_item_type", rows),
        "by_product_code_nano_usd": ledger.cost_by("line_item_product_code", rows),
    }


def summary(
    simulation: Simulation, facts: dict[str, object], deliveries: list[dict[str, object]], incidents: list[Incident]
) -> dict[str, object]:
    """The content of truth.json."""
    calls = simulation.calls
    return {
        **facts,
        "billed_until": iso(simulation.window.billed_until_us),
        "money": "whole nano-dollars (1e-9 USD)",
        "gateway_records": int(is_logged(calls).sum()),
        "billed_attempts": int(is_billed(calls).sum()),
        "attempts_by_status": {status.name.lower(): int((calls["status"] == status).sum()) for status in Status},
        "deliveries": deliveries,
        "incidents": [incident.record() for incident in incidents],
    }


def deliver_restatement(out: Path) -> None:
    """AWS delivers the open month again, corrected. The first delivery's files stay; the month's manifest moves on."""
    waiting = out / NEXT_DELIVERY
    if not waiting.is_dir():
        raise FileNotFoundError(f"{waiting}: no delivery is waiting; write the organisation first")
    shutil.copytree(waiting, out, dirs_exist_ok=True)


def config() -> str:
    """InferLedger's settings for the company, as YAML."""
    template = Path(__file__).with_name("inferledger.yaml.j2").read_text()
    text: str = jinja2.Template(template, undefined=jinja2.StrictUndefined, keep_trailing_newline=True).render(
        accounts_by_name=ACCOUNTS,
        deployments=DEPLOYMENTS,
        fleet_clusters=CLUSTERS,
        fleet_deployments=FLEET_DEPLOYMENTS,
        fleet_routes=ROUTES,
        mixed={pool.route for pool in POOLS.values() if pool.role not in ("prefill", "decode")},
        teams=[
            {"name": team, "id": number, "apps": [app.name for app in APPS if app.team == team and app.has_credential]}
            for team, number in TEAMS.items()
        ],
    )
    return text
