"""How large each planted incident turned out, exactly."""

from dataclasses import asdict, dataclass, field, replace

import numpy as np

from demo.calls import Planted, Status, is_billed
from demo.clock import iso
from demo.editions import Edition
from demo.incidents import NEW_MODEL, PRICE_CUT_MODEL, PRICE_CUT_PERCENT, model_of
from demo.metering import Tariff, call_costs, call_rates, line_rates, metered_hour_us
from demo.models import ACCOUNTS, DEPLOYMENTS, MODELS, READ, WRITE_5M, bill_name
from demo.names import Names
from demo.restatement import Restatement
from demo.simulation import Simulation


@dataclass(frozen=True)
class Size:
    """Exact; None where a measure does not apply."""

    calls: int | None
    tokens: int | None
    cost_nano_usd: int


@dataclass(frozen=True)
class Incident:
    """One entry of the truth. `end_us` is None while the incident is still going on."""

    name: str
    cause: str
    start_us: int
    end_us: int | None
    team: str | None = None
    app: str | None = None
    model: str | None = None
    size: Size = field(kw_only=True)
    details: dict[str, object] = field(default_factory=dict)

    def record(self) -> dict[str, object]:
        """As written to truth.json."""
        return {
            "name": self.name,
            "cause": self.cause,
            "start": iso(self.start_us),
            "end": None if self.end_us is None else iso(self.end_us),
            "team": self.team,
            "app": self.app,
            "model": self.model,
            **asdict(self.size),
            "details": self.details,
        }


@dataclass(frozen=True)
class Measured:
    """The calls of one incident, with their cost in the first edition."""

    calls: np.ndarray
    cost: np.ndarray

    @property
    def size(self) -> Size:
        tokens = self.calls["tokens"][is_billed(self.calls)]
        return Size(len(self.calls), int(tokens.sum()), int(self.cost.sum()))


def measure(simulation: Simulation, tariff: Tariff, hit: np.ndarray) -> Measured:
    calls = simulation.calls[hit]
    return Measured(calls, call_costs(calls, tariff).sum(axis=1))


def planted(
    simulation: Simulation, names: Names, first: Edition, restated: Edition, metered: np.ndarray, fix: Restatement
) -> list[Incident]:
    """Every incident that fits into the window and hit at least one call."""
    found = [
        cache_collapse(simulation, first.tariff),
        runaway(simulation, first.tariff, names),
        retry_storm(simulation, first.tariff),
        unpriced(simulation, first.tariff),
        untagged(simulation, first.tariff),
        price_change(simulation, first.tariff),
        restatement(simulation, first.tariff, restated.tariff, metered, fix),
        unseen(simulation, first.tariff),
    ]
    return [incident for incident in found if incident is not None]


def _flagged(simulation: Simulation, flag: Planted) -> np.ndarray:
    return (simulation.calls["incident"] & flag) > 0


def cache_collapse(simulation: Simulation, tariff: Tariff) -> Incident | None:
    span, hit = simulation.plan.cache_collapse, _flagged(simulation, Planted.CACHE_COLLAPSE)
    if span is None or not hit.any():
        return None
    measured = measure(simulation, tariff, hit)
    rate = call_rates(measured.calls, tariff)
    extra = measured.calls["lost_read"] * (rate[:, WRITE_5M] - rate[:, READ])
    return Incident(
        "cache_collapse",
        "a new prompt starts with the current time, so nothing of it is ever in the cache",
        span.start_us,
        span.end_us,
        "developer-experience",
        "code-review",
        size=measured.size,
        details={
            "lost_cache_read_tokens": int(measured.calls["lost_read"].sum()),
            "extra_cost_nano_usd": int(extra.sum()),
        },
    )


def runaway(simulation: Simulation, tariff: Tariff, names: Names) -> Incident | None:
    rows = np.flatnonzero(_flagged(simulation, Planted.RUNAWAY))
    if not len(rows):
        return None
    measured = measure(simulation, tariff, rows)
    return Incident(
        "runaway_agent",
        "one task repeats a failing build all night",
        int(measured.calls["start_us"].min()),
        int(measured.calls["end_us"].max()),
        "platform",
        "migration-agent",
        size=measured.size,
        details={"task": names.trace[rows[0]], "agent": "migrator"},
    )


def retry_storm(simulation: Simulation, tariff: Tariff) -> Incident | None:
    span, hit = simulation.plan.retry_storm, _flagged(simulation, Planted.RETRY_STORM)
    if span is None or not hit.any():
        return None
    return Incident(
        "retry_storm",
        "the client gives up after 2 s and asks again; both answers complete and are billed",
        span.start_us,
        span.end_us,
        "search",
        "product-search",
        size=measure(simulation, tariff, hit).size,
        details={"counts": "only the second, superfluous answer of each pair"},
    )


def unpriced(simulation: Simulation, tariff: Tariff) -> Incident | None:
    from_us, hit = simulation.plan.new_model_from_us, _flagged(simulation, Planted.UNPRICED)
    if from_us is None or not hit.any():
        return None
    return Incident(
        "unpriced_model",
        "copy-studio uses a model that no price list knows",
        from_us,
        None,
        "marketing",
        "copy-studio",
        MODELS[NEW_MODEL].model_id,
        size=measure(simulation, tariff, hit).size,
    )


def untagged(simulation: Simulation, tariff: Tariff) -> Incident | None:
    span, hit = simulation.plan.untagged, _flagged(simulation, Planted.UNTAGGED)
    if span is None or not hit.any():
        return None
    return Incident(
        "untagged",
        "a back-fill script uses the gateway's master key",
        span.start_us,
        span.end_us,
        size=measure(simulation, tariff, hit).size,
        details={"actual_team": "data-platform", "actual_app": "backfill-script"},
    )


def price_change(simulation: Simulation, tariff: Tariff) -> Incident | None:
    """Size = what is saved, so negative."""
    from_us = simulation.plan.price_cut_from_us
    if from_us is None:
        return None
    calls = simulation.calls
    hit = model_of(calls, PRICE_CUT_MODEL) & is_billed(calls) & (metered_hour_us(calls) >= from_us)
    after = measure(simulation, tariff, hit)
    before = measure(simulation, Tariff(), hit)
    return Incident(
        "price_change",
        f"AWS lowers the on-demand and batch prices by {PRICE_CUT_PERCENT} %",
        from_us,
        None,
        model=MODELS[PRICE_CUT_MODEL].model_id,
        size=replace(after.size, cost_nano_usd=after.size.cost_nano_usd - before.size.cost_nano_usd),
        details={"percent": -PRICE_CUT_PERCENT, "cost_after_nano_usd": after.size.cost_nano_usd},
    )


def restatement(
    simulation: Simulation, first: Tariff, restated: Tariff, metered: np.ndarray, fix: Restatement
) -> Incident | None:
    """The difference that the second delivery makes to the usage lines of models (tax and support follow them)."""
    if fix.rerating is None and fix.late < 0:
        return None
    on_time = metered[np.arange(len(metered)) != fix.late]
    change = line_rates(on_time, restated) - line_rates(on_time, first)
    rerated = int((on_time["tokens"] * change).sum())
    details: dict[str, object] = {"rerated_nano_usd": rerated}
    late = 0
    if fix.late >= 0:
        line = metered[fix.late : fix.late + 1]
        late = int((line["tokens"] * line_rates(line, restated)).sum())
        details["late_line"] = describe_line(line[0]) | {"cost_nano_usd": late}
    if fix.rerating is not None:
        details["percent_of_old_rate"] = fix.rerating.percent
    return Incident(
        "bill_restatement",
        "a second delivery of the open month re-rates one day of one model and adds a late line",
        fix.rerating.start_us if fix.rerating else int(metered["hour_us"][fix.late]),
        fix.rerating.end_us if fix.rerating else None,
        model=MODELS[fix.rerating.model].model_id if fix.rerating else None,
        size=Size(None, None, rerated + late),
        details=details,
    )


def describe_line(line: np.void) -> dict[str, object]:
    """A metered line in the words of the bill."""
    deployment = DEPLOYMENTS[line["deployment"]]
    batch, long_context = bool(line["batch"]), bool(line["long_context"])
    return {
        "hour": iso(int(line["hour_us"])),
        "account_id": ACCOUNTS[deployment.account].id,
        "resource_id": deployment.resource_id,
        "usage_type": bill_name(deployment, int(line["token_class"]), batch, long_context).usage_type,
        "tokens": int(line["tokens"]),
    }


def unseen(simulation: Simulation, tariff: Tariff) -> Incident | None:
    """Ordinary loss of sight: what AWS bills of calls of which the gateway knows no tokens."""
    status = simulation.calls["status"]
    hit = (status == Status.TIMED_OUT) | (status == Status.CUT_OFF)
    if not hit.any():
        return None
    return Incident(
        "unseen_usage",
        "streams cut off by the caller (no record) and time-outs (a failure without tokens) are billed all the same",
        simulation.window.start_us,
        simulation.window.as_of_us,
        size=measure(simulation, tariff, hit).size,
        details={
            "timed_out": asdict(measure(simulation, tariff, status == Status.TIMED_OUT).size),
            "cut_off": asdict(measure(simulation, tariff, status == Status.CUT_OFF).size),
        },
    )
