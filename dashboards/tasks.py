"""Agent tasks: what a piece of work costs, what came of it, and which one got out of hand."""

import pandas as pd
import streamlit as st

from dashboards import parts, task_queries, theme, words
from dashboards.charts import parts as part_charts
from dashboards.charts import spread as spread_charts
from dashboards.filters import View
from dashboards.queries import Row
from dashboards.tables import Column, named, table
from dashboards.task_queries import ACCEPTED, OPEN_HOURS, RUNAWAY_TASKS, RUNAWAY_TIMES
from warehouse.snapshot import Snapshot


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    parts.heading(snapshot, view, "Agent tasks")
    facts = task_queries.summary(snapshot, view.filters)
    st.caption(
        "A task is counted whole, from its first call to its last, in the period in which its last call lies. "
        "Cost is usage, billed and estimated."
        + (" Shown are tasks that used the chosen model, with all their cost." if view.filters.model else "")
        + (" Tasks are not split by provider." if view.filters.provider else "")
    )
    if parts.nothing_if(
        not facts["tasks"],
        "No agent task ended in this choice. Calls belong to a task when their log names one (a trace or task id).",
    ):
        return
    before = task_queries.summary(snapshot, view.before) if view.before else None
    _headline(snapshot, facts, before)
    st.caption(words.plain(parts.against(view)))
    _runaways(snapshot, view)
    left, right = st.columns([6, 5], gap="medium")
    with left:
        _distribution(snapshot, view, facts)
    with right:
        _outcomes(snapshot, view)
    _dearest(snapshot, view)
    _agents(snapshot, view)


def _headline(snapshot: Snapshot, facts: Row, before: Row | None) -> None:
    currency = snapshot.currency
    tasks = facts["tasks"]
    accepted = facts["accepted_tasks"]
    shown = [
        ("tasks", "Agent tasks", words.count(tasks), f"{words.count(facts['open_tasks'])} still open", "neither"),
        (
            "cost",
            "Task cost",
            words.money(facts["cost"], currency),
            _reach(facts, currency),
            "worse",
        ),
        ("mean_cost", "Per task", words.unit_money(facts["mean_cost"], currency), "mean", "worse"),
        (
            "p50",
            "Median task",
            words.unit_money(facts["p50"], currency),
            f"P90 {words.unit_money(facts['p90'], currency)}",
            "worse",
        ),
        (
            "p99",
            "P99 task",
            words.unit_money(facts["p99"], currency),
            f"dearest {words.unit_money(facts['dearest'], currency)}",
            "worse",
        ),
        (
            "cost_per_accepted",
            "Per accepted",
            words.unit_money(facts["cost_per_accepted"], currency) if accepted else "n/a",
            f"all task cost / {words.count(accepted)} {facts['accepted_names']}"
            if accepted
            else "no accepted outcome is logged",
            "worse",
        ),
    ]
    with st.container(key="figures"):
        for name, title, value, note, more_is in shown:
            with st.container(border=True, key=f"figure-task-{name}"):
                earlier = before[name] if before else None
                delta = words.change(facts[name] / earlier - 1) if earlier and facts[name] is not None else None
                st.metric(
                    title,
                    words.plain(value),
                    delta=delta,
                    delta_color="inverse" if more_is == "worse" else "off",
                    help=_help(name),
                )
                st.caption(words.plain(note))


def _reach(facts: Row, currency: str) -> str:
    """How much of the task cost is estimated, and how much is not known at all."""
    return parts.joined(
        [
            f"estimated: {words.money(facts['estimated'], currency)}" if facts["estimated"] else "",
            f"{words.tokens(facts['unknown_tokens'])} tokens of unknown cost" if facts["unknown_tokens"] else "",
            "" if facts["estimated"] or facts["unknown_tokens"] else "all of it billed",
        ]
    )


def _help(name: str) -> str | None:
    return {
        "tasks": f"Open: without an outcome and with a call in the {OPEN_HOURS} hours before the snapshot's as-of.",
        "cost_per_accepted": "The cost of all tasks, also of those that came to nothing, / tasks with an "
        f"accepted outcome ({', '.join(ACCEPTED)}).",
    }.get(name)


def _runaways(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Runaway suspects",
        f"At least {RUNAWAY_TIMES} times the cost and {RUNAWAY_TIMES} times the requests of the median task of the "
        f"same app (apps with {RUNAWAY_TASKS} tasks or more).",
    )
    frame = task_queries.runaways(snapshot, view.filters)
    if frame.empty:
        st.caption("None.")
        return
    _tasks(snapshot, frame, "runaways")


def _dearest(snapshot: Snapshot, view: View) -> None:
    frame = task_queries.dearest(snapshot, view.filters)
    parts.section("Dearest tasks", f"The {len(frame)} that cost most." if len(frame) > 1 else "")
    _tasks(snapshot, frame, "dearest")


def _tasks(snapshot: Snapshot, frame: pd.DataFrame, key: str) -> None:
    currency, zone = snapshot.currency, snapshot.zone
    started = pd.to_datetime(frame["started_at"]).dt.tz_localize("UTC").dt.tz_convert(zone).dt.tz_localize(None)
    shown = frame.assign(outcome=frame["outcome"].mask(frame["is_open"].astype(bool), "open"), started_at=started)
    table(
        shown,
        {
            "task_id": named("Task", pinned=True),
            "team": named("Team", "no team"),
            "app": named("App", "no app"),
            "outcome": Column("Outcome", str, f"open: no outcome yet and a call in the last {OPEN_HOURS} hours"),
            "cost": Column("Cost", lambda value: words.money(value, currency), "usage, billed and estimated"),
            "times_median": Column("x median", "{:,.0f}x".format, "cost / cost of the app's median task", absent="-"),
            "requests": Column("Requests", words.count),
            "failed_requests": Column("Failed", words.count),
            "agents": Column("Agents", words.count, "distinct agents, sub-agents included"),
            "tokens": Column("Tokens", words.tokens),
            "cache_hit_ratio": Column("Cache", words.share, "cache reads / input tokens", absent="-"),
            "minutes": Column(
                "Duration", lambda value: words.duration(pd.Timedelta(minutes=value)), "first call to last"
            ),
            "started_at": Column("Started", words.brief_instant, f"in {zone}"),
            "models": Column("Models"),
        },
        empty="None.",
        key=f"tasks-{key}",
        rows=25,
    )


def _distribution(snapshot: Snapshot, view: View, facts: Row) -> None:
    parts.section("Tasks by cost", "number of tasks per bucket of cost, logarithmic")
    frame = task_queries.distribution(snapshot, view.filters)
    if frame.empty:
        st.caption("No task of known cost above zero.")
        return
    marks = {"P50": facts["p50"], "P90": facts["p90"], "P99": facts["p99"]}
    parts.chart(spread_charts.histogram(frame, marks, snapshot.currency), "task-costs", "Agent tasks by cost")


def _outcomes(snapshot: Snapshot, view: View) -> None:
    parts.section("Cost by outcome", "green: accepted")
    frame = task_queries.outcomes(snapshot, view.filters)
    currency = snapshot.currency
    known = frame[frame["cost"].notna()]
    if known.empty:
        st.caption("No task of known cost.")
        return
    names = [words.UNKNOWN if words.is_unknown(name) else str(name) for name in known["outcome"]]
    fills = [_fill(name, accepted) for name, accepted in zip(names, known["is_accepted"], strict=True)]
    labels = [
        f"{words.money(row.cost, currency)}  {words.unit_money(row.mean_cost, currency)} each"
        for row in known.itertuples()
    ]
    parts.chart(
        part_charts.bars(names, known["cost"].tolist(), fills, labels),
        "task-outcomes",
        "Cost of agent tasks by outcome",
    )
    wasted = known.loc[[name not in (*ACCEPTED, "open") for name in names], "cost"].sum()
    total = known["cost"].sum()
    if total:
        st.caption(
            words.plain(
                f"{words.money(wasted, currency)}, {words.share(wasted / total)} of the task cost, came to no accepted "
                "outcome."
            )
        )


def _fill(name: str, accepted: object) -> str:
    if accepted is True:
        return theme.GOOD
    return {"failed": theme.BAD, words.UNKNOWN: theme.UNKNOWN, "open": theme.lighter(theme.PRIMARY, 0.5)}.get(
        name, theme.NEITHER
    )


def _agents(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Agents", "tasks by the agent that owns them; per accepted outcome: all its task cost / its accepted tasks"
    )
    currency = snapshot.currency
    unit = lambda value: words.unit_money(value, currency)  # noqa: E731
    frame = task_queries.by_agent(snapshot, view.filters)
    frame["accepted_share"] = frame["accepted_tasks"] / frame["tasks"]
    frame["cost_per_accepted"] = frame["cost_per_accepted"].astype(float)
    table(
        frame,
        {
            "agent": named("Agent"),
            "teams": Column("Team"),
            "tasks": Column("Tasks", words.count),
            "cost": Column("Cost", lambda value: words.money(value, currency)),
            "p50": Column("Median task", unit),
            "p99": Column("P99 task", unit),
            "accepted_share": Column("Accepted", words.share, "tasks with an accepted outcome / tasks"),
            "cost_per_accepted": Column("per accepted", unit),
            "cost_per_mtok": Column("per Mtok", unit),
            "requests": Column("Requests", words.count),
            "cache_hit_ratio": Column("Cache hits", words.share),
        },
        empty="No agent.",
        key="agents-table",
    )
