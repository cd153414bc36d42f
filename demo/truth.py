"""Write the truth: what each hour, team, application, agent, model and token class cost, exactly, and the planted incidents.

Only tests and benches may read it. All money is whole nano-dollars (int64), in two versions: `first` (as rated in the first
delivery of the bill) and `restated` (as rated after the restatement).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from demo.calls import OUTCOMES, CallKind, Planted, Status, is_billed, is_logged, is_long_context
from demo.clock import HOUR, iso
from demo.incidents import NEW_MODEL, PRICE_CUT_MODEL, PRICE_CUT_PERCENT, Incident, Span, model_of
from demo.metering import Tariff, call_costs, call_rates, metered_hour_us
from demo.models import ACCOUNTS, DEPLOYMENTS, READ, TOKEN_CLASSES, WRITE_5M, bill_name
from demo.names import Names, user_name
from demo.people import AGENTS, APPS, CREDENTIALS, Users
from demo.restatement import Restatement
from demo.simulation import Simulation

CAUSES = (None, "untagged", "timed_out", "cut_off")
"""Why a cost has no team: null where it has one."""


@dataclass(frozen=True)
class Edition:
    """One version of the bill: its tariff, and the metered line it does not hold yet (None when it is complete)."""

    name: str
    tariff: Tariff
    missing: np.void | None


def cause_of(calls: np.ndarray) -> np.ndarray:
    """Index of CAUSES per call."""
    cause = np.where(calls["credential"] < 0, 1, 0)
    cause = np.where(calls["status"] == Status.TIMED_OUT, 2, cause)
    return np.where(calls["status"] == Status.CUT_OFF, 3, cause)


def in_bill(simulation: Simulation, calls: np.ndarray, edition: Edition) -> np.ndarray:
    """bool [call, token class]: the metered line of these tokens is in this edition of the bill."""
    due = (metered_hour_us(calls) < simulation.window.billed_until_us) & is_billed(calls)
    found = np.repeat(due[:, None], len(TOKEN_CLASSES), axis=1)
    if edition.missing is not None:
        line = edition.missing
        same = (calls["deployment"] == line["deployment"]) & (metered_hour_us(calls) == line["hour_us"])
        same &= is_long_context(calls) == line["long_context"]
        same &= (calls["kind"] == CallKind.BATCH_JOB) == line["batch"]
        found[same, line["token_class"]] = False
    return found


def cost_by_hour(simulation: Simulation, edition: Edition) -> pa.Table:
    """Exact cost by hour x account x region x usage type x team x application x environment x agent x cause."""
    calls = simulation.calls[is_billed(simulation.calls)]
    classes = len(TOKEN_CLASSES)
    parts = [
        (metered_hour_us(calls) // HOUR, 1 << 21),
        (calls["deployment"], 64),
        ((calls["kind"] == CallKind.BATCH_JOB), 2),
        (is_long_context(calls), 2),
        (calls["app"], 32),
        (calls["credential"] + 1, 64),
        (calls["agent"] + 1, 16),
        (cause_of(calls), 4),
    ]
    key = np.zeros(len(calls), dtype=np.int64)
    for values, size in parts:
        key = key * size + values
    every = key[:, None] * classes + np.arange(classes)
    used = calls["tokens"] > 0
    keys, position = np.unique(every[used], return_inverse=True)
    sums = {}
    for name, values in (("tokens", calls["tokens"]), ("cost_nano_usd", call_costs(calls, edition.tariff))):
        sums[name] = np.zeros(len(keys), dtype=np.int64)
        np.add.at(sums[name], position, values[used])
    billed = np.zeros(len(keys), dtype=bool)
    billed[position] = in_bill(simulation, calls, edition)[used]
    rate = np.zeros(len(keys), dtype=np.int64)
    rate[position] = call_rates(calls, edition.tariff)[used]

    token_class, keys = keys % classes, keys // classes
    unpacked = []
    for _, size in reversed(parts):
        unpacked.append(keys % size)
        keys = keys // size
    hour, place, batch, long_context, app, credential, agent, cause = reversed(unpacked)
    known = cause == 0
    line_kind = ((place * 2 + batch) * 2 + long_context) * classes + token_class
    line_kinds, kind_of = np.unique(line_kind, return_inverse=True)
    usage_types = np.array(
        [
            bill_name(DEPLOYMENTS[one // classes // 4], one % classes, one // classes // 2 % 2 == 1, one // classes % 2 == 1).usage_type
            for one in line_kinds.tolist()
        ]
    )
    of_place = {
        "account_id": [ACCOUNTS[deployment.account].id for deployment in DEPLOYMENTS],
        "region": [deployment.region for deployment in DEPLOYMENTS],
        "deployment": [deployment.name for deployment in DEPLOYMENTS],
        "model": [deployment.model.model_id for deployment in DEPLOYMENTS],
        "scope": [deployment.scope for deployment in DEPLOYMENTS],
        "product_code": [deployment.model.product_code for deployment in DEPLOYMENTS],
    }
    environments = np.array([None, *(credential.environment for credential in CREDENTIALS)], dtype=object)
    agents = np.array([None, *AGENTS], dtype=object)
    return pa.table(
        {
            "hour": _instants(hour * HOUR),
            **{name: pa.array(np.array(values, dtype=object)[place]) for name, values in of_place.items()},
            "usage_type": pa.array(usage_types[kind_of]),
            "tier": pa.array(np.where(batch == 1, "batch", "on_demand")),
            "context": pa.array(np.where(long_context == 1, "long_context", "standard")),
            "token_class": pa.array(np.array(TOKEN_CLASSES)[token_class]),
            "team": _text(np.where(known, _app_field("team")[app], None)),
            "app": _text(np.where(known, _app_field("name")[app], None)),
            "environment": _text(np.where(known, environments[credential], None)),
            "agent": _text(np.where(known, agents[agent], None)),
            "cause": _text(np.array(CAUSES, dtype=object)[cause]),
            "actual_team": _text(_app_field("team")[app]),
            "actual_app": _text(_app_field("name")[app]),
            "tokens": pa.array(sums["tokens"]),
            "rate_nano_usd": pa.array(rate),
            "cost_nano_usd": pa.array(sums["cost_nano_usd"]),
            "in_bill": pa.array(billed),
        }
    )


def cost_by_call(simulation: Simulation, names: Names, first: Edition, restated: Edition) -> pa.Table:
    """Every attempt: ids as in the gateway's log (`id` null where it logged nothing), metered tokens, exact cost."""
    calls = simulation.calls
    billed = is_billed(calls)
    planted = {
        f"is_{flag.name.lower()}": pa.array((calls["incident"] & flag) > 0) for flag in Planted if flag and flag.name
    }
    return pa.table(
        {
            "id": pa.array(names.record, type=pa.string()),
            "litellm_call_id": pa.array(names.operation),
            "trace_id": pa.array(names.trace),
            "status": pa.array(np.array([status.name.lower() for status in Status])[calls["status"]]),
            "deployment": pa.array(np.array([deployment.name for deployment in DEPLOYMENTS])[calls["deployment"]]),
            "actual_team": _text(_app_field("team")[calls["app"]]),
            "actual_app": _text(_app_field("name")[calls["app"]]),
            "cause": _text(np.array(CAUSES, dtype=object)[cause_of(calls)]),
            "started_at": _instants(calls["start_us"], "us"),
            "ended_at": _instants(calls["end_us"], "us"),
            "hour": _instants(metered_hour_us(calls)),
            **{
                f"{name}_tokens": pa.array(np.where(billed, calls["tokens"][:, number], 0))
                for number, name in enumerate(TOKEN_CLASSES)
            },
            "cost_nano_usd": pa.array(call_costs(calls, first.tariff).sum(axis=1)),
            "cost_nano_usd_restated": pa.array(call_costs(calls, restated.tariff).sum(axis=1)),
            "in_bill": pa.array(billed & in_bill(simulation, calls, first).all(axis=1)),
            **planted,
        }
    )


def cost_by_task(simulation: Simulation, names: Names, first: Edition, restated: Edition) -> pa.Table:
    """One row per agent task. `seen`: logged with tokens; `unseen`: billed but cut off or timed out."""
    rows = np.flatnonzero(simulation.calls["task"])
    calls = simulation.calls[rows]
    numbers, first_row, task = np.unique(calls["trace"], return_index=True, return_inverse=True)
    n = len(numbers)
    seen = calls["status"] == Status.SUCCESS
    unseen = is_billed(calls) & ~seen

    def total(values: np.ndarray) -> np.ndarray:
        summed = np.zeros(n, dtype=np.int64)
        np.add.at(summed, task, values)
        return summed

    started, ended = np.full(n, np.iinfo(np.int64).max), np.zeros(n, dtype=np.int64)
    np.minimum.at(started, task, calls["start_us"])
    np.maximum.at(ended, task, calls["end_us"])
    outcome = np.full(n, -1)
    np.maximum.at(outcome, task, calls["outcome"])
    main_agent = np.array([None if app.agent is None else app.agent for app in APPS], dtype=object)
    cost = {edition.name: call_costs(calls, edition.tariff).sum(axis=1) for edition in (first, restated)}
    every_call_billed = np.ones(n, dtype=bool)
    np.logical_and.at(every_call_billed, task, in_bill(simulation, calls, first).all(axis=1) | ~is_billed(calls))
    app = calls["app"][first_row]
    staff = np.array([one.users is Users.STAFF for one in APPS])
    users = [user_name(bool(is_staff), int(user)) for is_staff, user in zip(staff[app], calls["user"][first_row], strict=True)]
    return pa.table(
        {
            "task": pa.array([names.trace[rows[row]] for row in first_row], type=pa.string()),
            "team": _text(_app_field("team")[app]),
            "app": _text(_app_field("name")[app]),
            "agent": _text(main_agent[app]),
            "user": pa.array(users, type=pa.string()),
            "outcome": _text(np.array([*OUTCOMES, None], dtype=object)[outcome]),
            "started_at": _instants(started, "us"),
            "ended_at": _instants(ended, "us"),
            "calls": pa.array(total(seen)),
            "failed_attempts": pa.array(total(is_logged(calls) & ~seen)),
            "unseen_calls": pa.array(total(unseen)),
            "sub_agent_calls": pa.array(total(seen & (calls["parent_agent"] >= 0))),
            **{
                f"{name}_tokens": pa.array(total(np.where(seen, calls["tokens"][:, number], 0)))
                for number, name in enumerate(TOKEN_CLASSES)
            },
            "cost_nano_usd": pa.array(total(np.where(seen, cost[first.name], 0))),
            "cost_nano_usd_restated": pa.array(total(np.where(seen, cost[restated.name], 0))),
            "unseen_cost_nano_usd": pa.array(total(np.where(unseen, cost[first.name], 0))),
            "all_in_bill": pa.array(every_call_billed),
        }
    )


def _app_field(name: str) -> np.ndarray:
    return np.array([getattr(app, name) for app in APPS], dtype=object)


def _instants(at_us: np.ndarray, unit: str = "ms") -> pa.Array:
    ticks = at_us if unit == "us" else at_us // 1000
    return pa.array(np.asarray(ticks, dtype=np.int64)).cast(pa.timestamp(unit, tz="UTC"))


def _text(values: np.ndarray) -> pa.Array:
    return pa.array(values, type=pa.string())


def planted_incidents(
    simulation: Simulation, first: Edition, restated: Edition, metered: np.ndarray, correction: Restatement, names: Names
) -> list[Incident]:
    """Every incident with its exact size."""
    plan, calls, as_of_us = simulation.plan, simulation.calls, simulation.window.as_of_us
    rate, cost = call_rates(calls, first.tariff), call_costs(calls, first.tariff).sum(axis=1)
    tokens = np.where(is_billed(calls), calls["tokens"].sum(axis=1), 0)
    found: list[Incident] = []

    def sized(flag: Planted, name: str, cause: str, span: Span, team: str | None, app: str | None) -> Incident | None:
        hit = (calls["incident"] & flag) > 0
        if not hit.any():
            return None
        incident = Incident(name, cause, span.start_us, span.end_us, team, app, None)
        incident.calls, incident.tokens = int(hit.sum()), int(tokens[hit].sum())
        incident.cost_nano_usd = int(cost[hit].sum())
        found.append(incident)
        return incident

    if plan.cache_collapse:
        cause = "a new prompt starts with the current time, so nothing of it is ever in the cache"
        incident = sized(
            Planted.CACHE_COLLAPSE, "cache_collapse", cause, plan.cache_collapse, "developer-experience", "code-review"
        )
        if incident:
            extra = calls["lost_read"] * (rate[:, WRITE_5M] - rate[:, READ])
            incident.details = {
                "lost_cache_read_tokens": int(calls["lost_read"].sum()),
                "extra_cost_nano_usd": int(extra.sum()),
            }
    if plan.runaway:
        cause = "one task repeats a failing build all night"
        incident = sized(Planted.RUNAWAY, "runaway_agent", cause, plan.runaway, "platform", "migration-agent")
        if incident:
            rows = np.flatnonzero((calls["incident"] & Planted.RUNAWAY) > 0)
            incident.start_us = int(calls["start_us"][rows].min())
            incident.end_us = int(calls["end_us"][rows].max())
            incident.details = {"task": names.trace[rows[0]], "agent": "migrator"}
    if plan.retry_storm:
        cause = "the client gives up after 2 s and asks again; both answers complete and are billed"
        incident = sized(Planted.RETRY_STORM, "retry_storm", cause, plan.retry_storm, "search", "product-search")
        if incident:
            incident.details = {"counts": "only the second, superfluous answer of each pair"}
    if plan.untagged:
        cause = "a back-fill script uses the gateway's master key"
        incident = sized(Planted.UNTAGGED, "untagged", cause, plan.untagged, None, None)
        if incident:
            incident.details = {"actual_team": "data-platform", "actual_app": "backfill-script"}
    if plan.new_model_from_us is not None:
        cause = "copy-studio uses a model that no price list knows"
        span = Span(plan.new_model_from_us, as_of_us)
        incident = sized(Planted.UNPRICED, "unpriced_model", cause, span, "marketing", "copy-studio")
        if incident:
            incident.model, incident.end_us = next(d.model.model_id for d in DEPLOYMENTS if d.model.slug == NEW_MODEL), None
    if plan.price_cut_from_us is not None:
        found.append(price_cut(simulation, first))
    found.append(restatement_incident(first, restated, metered, correction, simulation))
    found.append(unseen(simulation, cost, tokens))
    return found


def price_cut(simulation: Simulation, first: Edition) -> Incident:
    """The fall of a price: size = what is saved, so negative."""
    calls, from_us = simulation.calls, simulation.plan.price_cut_from_us or 0
    hit = model_of(calls, PRICE_CUT_MODEL) & is_billed(calls) & (metered_hour_us(calls) >= from_us)
    before = call_costs(calls[hit], Tariff()).sum()
    after = call_costs(calls[hit], first.tariff).sum()
    incident = Incident(
        "price_change", f"AWS lowers the on-demand and batch prices by {PRICE_CUT_PERCENT} %", from_us, None, None, None
    )
    incident.model = next(d.model.model_id for d in DEPLOYMENTS if d.model.slug == PRICE_CUT_MODEL)
    incident.calls, incident.tokens = int(hit.sum()), int(calls["tokens"][hit].sum())
    incident.cost_nano_usd = int(after - before)
    incident.details = {"percent": -PRICE_CUT_PERCENT, "cost_after_nano_usd": int(after)}
    return incident


def restatement_incident(
    first: Edition, restated: Edition, metered: np.ndarray, correction: Restatement, simulation: Simulation
) -> Incident:
    """The difference that the second delivery makes to the usage lines of Bedrock."""
    calls = simulation.calls[metered_hour_us(simulation.calls) < simulation.window.billed_until_us]
    rerated = int(call_costs(calls, restated.tariff).sum() - call_costs(calls, first.tariff).sum())
    details: dict[str, object] = {"rerated_nano_usd": rerated, "late_line": None}
    late_nano = 0
    if correction.late >= 0:
        line = metered[correction.late]
        deployment = DEPLOYMENTS[line["deployment"]]
        rate = restated.tariff.nano_per_token(*(np.array([line[name]]) for name in ("deployment", "batch", "long_context", "hour_us")))
        late_nano = int(line["tokens"] * rate[0, line["token_class"]])
        details["late_line"] = {
            "hour": iso(line["hour_us"]),
            "account_id": ACCOUNTS[deployment.account].id,
            "resource_id": deployment.resource_id,
            "usage_type": bill_name(
                deployment, int(line["token_class"]), bool(line["batch"]), bool(line["long_context"])
            ).usage_type,
            "tokens": int(line["tokens"]),
            "cost_nano_usd": late_nano,
        }
    rerating = correction.rerating
    start_us = rerating.start_us if rerating else simulation.window.billed_until_us
    incident = Incident(
        "bill_restatement",
        "a second delivery of the open month re-rates one day of one model and adds a late line",
        start_us,
        rerating.end_us if rerating else None,
        None,
        None,
    )
    if rerating:
        incident.model = next(d.model.model_id for d in DEPLOYMENTS if d.model.slug == rerating.model)
        details["percent_of_old_rate"] = rerating.percent
    incident.cost_nano_usd = rerated + late_nano
    incident.details = details
    return incident


def unseen(simulation: Simulation, cost: np.ndarray, tokens: np.ndarray) -> Incident:
    """Ordinary loss of sight: what AWS bills of calls of which the gateway knows no tokens."""
    status = simulation.calls["status"]
    hit = np.isin(status, (Status.TIMED_OUT, Status.CUT_OFF))
    incident = Incident(
        "unseen_usage",
        "streams cut off by the caller (no record) and time-outs (a failure without tokens) are billed all the same",
        simulation.window.start_us,
        simulation.window.as_of_us,
        None,
        None,
    )
    incident.calls, incident.tokens = int(hit.sum()), int(tokens[hit].sum())
    incident.cost_nano_usd = int(cost[hit].sum())
    incident.details = {
        name: {"calls": int((status == one).sum()), "cost_nano_usd": int(cost[status == one].sum())}
        for name, one in (("timed_out", Status.TIMED_OUT), ("cut_off", Status.CUT_OFF))
    }
    return incident


def write(out: Path, tables: dict[str, pa.Table], summary: dict[str, object]) -> list[Path]:
    """Write `out/truth`; returns the files."""
    folder = out / "truth"
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    for name, table in tables.items():
        file = folder / f"{name}.parquet"
        pq.write_table(table, file, compression="zstd")
        files.append(file)
    file = folder / "truth.json"
    file.write_bytes(orjson.dumps(summary, option=orjson.OPT_INDENT_2))
    return [*files, file]
