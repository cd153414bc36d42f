"""The tables of the truth: exact cost by hour, by call and by task. All money is whole nano-dollars (int64)."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from demo.calls import OUTCOMES, CallKind, Planted, Status, is_billed, is_logged, is_long_context
from demo.clock import HOUR
from demo.editions import Edition, in_bill
from demo.metering import call_costs, call_rates, metered_hour_us
from demo.models import ACCOUNTS, DEPLOYMENTS, TOKEN_CLASSES, bill_name
from demo.names import Names, user_name
from demo.people import AGENTS, APPS, CREDENTIALS, Users
from demo.simulation import Simulation

CAUSES = (None, "untagged", "timed_out", "cut_off")
"""Why a cost has no team: null where it has one."""


def _names(values: Sequence[str | None]) -> np.ndarray:
    return np.array(values, dtype=object)


_TEAM = _names([app.team for app in APPS])
_APP = _names([app.name for app in APPS])
_MAIN_AGENT = _names([app.agent for app in APPS])
_AGENT = _names([*AGENTS, None])  # index -1 is None
_ENVIRONMENT = _names([*(credential.environment for credential in CREDENTIALS), None])
_CAUSE = _names(list(CAUSES))
_OUTCOME = _names([*OUTCOMES, None])
_STATUS = _names([status.name.lower() for status in Status])
_DEPLOYMENT = _names([deployment.name for deployment in DEPLOYMENTS])


def _text(values: np.ndarray) -> pa.Array:
    return pa.array(values, type=pa.string())


def _where(known: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The values where they are known, None elsewhere."""
    found = values.copy()
    found[~known] = None
    return found


def _instants(at_us: np.ndarray, unit: str = "ms") -> pa.Array:
    ticks = at_us if unit == "us" else at_us // 1000
    return pa.array(ticks.astype(np.int64)).cast(pa.timestamp(unit, tz="UTC"))


def cause_of(calls: np.ndarray) -> np.ndarray:
    """Index of CAUSES per call."""
    cause = np.where(calls["credential"] < 0, 1, 0)
    cause = np.where(calls["status"] == Status.TIMED_OUT, 2, cause)
    return np.where(calls["status"] == Status.CUT_OFF, 3, cause)


def cost_by_hour(simulation: Simulation, edition: Edition) -> pa.Table:
    """One row per hour, bill line, team, application, environment, agent and cause."""
    calls = simulation.calls[is_billed(simulation.calls)]
    # calls with equal values in all of these are counted together
    parts = {
        "hour": metered_hour_us(calls) // HOUR,
        "deployment": calls["deployment"],
        "batch": calls["kind"] == CallKind.BATCH_JOB,
        "long_context": is_long_context(calls),
        "app": calls["app"],
        "credential": calls["credential"],
        "agent": calls["agent"],
        "cause": cause_of(calls),
    }
    groups, group = np.unique(np.stack(list(parts.values()), axis=1), axis=0, return_inverse=True)
    classes = len(TOKEN_CLASSES)
    cell = group.reshape(-1)[:, None] * classes + np.arange(classes)
    used = calls["tokens"] > 0
    cells, position = np.unique(cell[used], return_inverse=True)

    def total(values: np.ndarray) -> np.ndarray:
        summed = np.zeros(len(cells), dtype=np.int64)
        np.add.at(summed, position, values[used])
        return summed

    def same(values: np.ndarray) -> np.ndarray:
        """A value that all tokens of a cell have in common."""
        found = np.zeros(len(cells), dtype=values.dtype)
        found[position] = values[used]
        return found

    token_class = cells % classes
    of = {name: groups[cells // classes, number] for number, name in enumerate(parts)}
    owned = of["cause"] == 0
    described = np.stack([of["deployment"], token_class, of["batch"], of["long_context"]], axis=1)
    lines, line = np.unique(described, axis=0, return_inverse=True)
    usage_types = [
        bill_name(DEPLOYMENTS[number], kind, bool(batch), bool(long)).usage_type
        for number, kind, batch, long in lines.tolist()
    ]
    place = {
        "account_id": [ACCOUNTS[deployment.account].id for deployment in DEPLOYMENTS],
        "region": [deployment.region for deployment in DEPLOYMENTS],
        "deployment": [deployment.name for deployment in DEPLOYMENTS],
        "model": [deployment.model.model_id for deployment in DEPLOYMENTS],
        "scope": [deployment.scope for deployment in DEPLOYMENTS],
        "product_code": [deployment.model.product_code for deployment in DEPLOYMENTS],
    }
    return pa.table(
        {
            "hour": _instants(of["hour"] * HOUR),
            **{name: _text(_names(values)[of["deployment"]]) for name, values in place.items()},
            "usage_type": _text(_names(usage_types)[line.reshape(-1)]),
            "tier": _text(_names(["on_demand", "batch"])[of["batch"]]),
            "context": _text(_names(["standard", "long_context"])[of["long_context"]]),
            "token_class": _text(_names(list(TOKEN_CLASSES))[token_class]),
            "team": _text(_where(owned, _TEAM[of["app"]])),
            "app": _text(_where(owned, _APP[of["app"]])),
            "environment": _text(_where(owned, _ENVIRONMENT[of["credential"]])),
            "agent": _text(_where(owned, _AGENT[of["agent"]])),
            "cause": _text(_CAUSE[of["cause"]]),
            "actual_team": _text(_TEAM[of["app"]]),
            "actual_app": _text(_APP[of["app"]]),
            "tokens": pa.array(total(calls["tokens"])),
            "rate_nano_usd": pa.array(same(call_rates(calls, edition.tariff))),
            "cost_nano_usd": pa.array(total(call_costs(calls, edition.tariff))),
            "in_bill": pa.array(same(in_bill(simulation, calls, edition))),
        }
    )


def cost_by_call(simulation: Simulation, names: Names, first: Edition, restated: Edition) -> pa.Table:
    """Every attempt: ids as in the gateway's log (`id` null where it logged nothing), metered tokens, exact cost."""
    calls = simulation.calls
    billed = is_billed(calls)
    return pa.table(
        {
            "id": pa.array(names.record, type=pa.string()),
            "litellm_call_id": pa.array(names.operation, type=pa.string()),
            "trace_id": pa.array(names.trace, type=pa.string()),
            "status": _text(_STATUS[calls["status"]]),
            "deployment": _text(_DEPLOYMENT[calls["deployment"]]),
            "actual_team": _text(_TEAM[calls["app"]]),
            "actual_app": _text(_APP[calls["app"]]),
            "cause": _text(_CAUSE[cause_of(calls)]),
            "started_at": _instants(calls["start_us"], "us"),
            "ended_at": _instants(calls["end_us"], "us"),
            "hour": _instants(metered_hour_us(calls)),
            **{
                f"{name}_tokens": pa.array(np.where(billed, calls["tokens"][:, number], 0))
                for number, name in enumerate(TOKEN_CLASSES)
            },
            "cost_nano_usd": pa.array(call_costs(calls, first.tariff).sum(axis=1)),
            "cost_nano_usd_restated": pa.array(call_costs(calls, restated.tariff).sum(axis=1)),
            "in_bill": pa.array(fully_in_bill(simulation, calls, first)),
            **{f"is_{flag.name.lower()}": pa.array((calls["incident"] & flag) > 0) for flag in Planted if flag.name},
        }
    )


def fully_in_bill(simulation: Simulation, calls: np.ndarray, edition: Edition) -> np.ndarray:
    """bool [call]: billed, and all its tokens are on lines that this edition of the bill holds."""
    return is_billed(calls) & (in_bill(simulation, calls, edition) | (calls["tokens"] == 0)).all(axis=1)


def cost_by_task(simulation: Simulation, names: Names, first: Edition, restated: Edition) -> pa.Table:
    """One row per agent task. Calls, tokens and cost: what the gateway saw; `unseen_*`: billed but not seen."""
    rows = np.flatnonzero(simulation.calls["task"])
    calls = simulation.calls[rows]
    _, first_row, task = np.unique(calls["trace"], return_index=True, return_inverse=True)
    n = len(first_row)
    seen = calls["status"] == Status.SUCCESS
    unseen = is_billed(calls) & ~seen

    def total(values: np.ndarray) -> np.ndarray:
        summed = np.zeros(n, dtype=np.int64)
        np.add.at(summed, task, values)
        return summed

    started, ended, outcome = calls["start_us"][first_row], calls["end_us"][first_row], np.full(n, -1)
    np.minimum.at(started, task, calls["start_us"])
    np.maximum.at(ended, task, calls["end_us"])
    np.maximum.at(outcome, task, calls["outcome"])
    complete = np.ones(n, dtype=bool)
    np.logical_and.at(complete, task, fully_in_bill(simulation, calls, first) | ~is_billed(calls))
    cost, cost_restated = (call_costs(calls, edition.tariff).sum(axis=1) for edition in (first, restated))
    app = calls["app"][first_row]
    users = [
        user_name(APPS[number].users is Users.STAFF, user)
        for number, user in zip(app.tolist(), calls["user"][first_row].tolist(), strict=True)
    ]
    return pa.table(
        {
            "task": pa.array([names.trace[row] for row in rows[first_row].tolist()], type=pa.string()),
            "team": _text(_TEAM[app]),
            "app": _text(_APP[app]),
            "agent": _text(_MAIN_AGENT[app]),
            "user": pa.array(users, type=pa.string()),
            "outcome": _text(_OUTCOME[outcome]),
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
            "cost_nano_usd": pa.array(total(np.where(seen, cost, 0))),
            "cost_nano_usd_restated": pa.array(total(np.where(seen, cost_restated, 0))),
            "unseen_cost_nano_usd": pa.array(total(np.where(unseen, cost, 0))),
            "all_in_bill": pa.array(complete),
        }
    )
