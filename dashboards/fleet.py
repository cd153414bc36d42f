"""GPU and pools: what the own fleet cost, what its GPUs did, how many tokens came out of them."""

from datetime import datetime, time, timedelta

import pandas as pd
import streamlit as st

from dashboards import filters, fleet_queries, fleet_tables, parts, queries, theme, words
from dashboards.charts import fleet as fleet_charts
from dashboards.charts import parts as part_charts
from dashboards.filters import OWNERS, View
from dashboards.parts import Figure
from dashboards.queries import Scalar
from warehouse.snapshot import Snapshot

GUIDE = "docs/metrics-sources.md"
STATES = ("busy", "no_traffic", "starting", "stopping", "not_requested", "unmeasured")
RATES = ("input_tokens", "computed_input_tokens", "output_tokens")
RATE_TITLES = {"input_tokens": "Input", "computed_input_tokens": "Computed input", "output_tokens": "Output"}
RATE_COLOURS = {"input_tokens": "#7C8AA0", "computed_input_tokens": "#1F4E79", "output_tokens": "#D98E4A"}
CAUSES = {
    "fleet_no_traffic_cost_usd": "No traffic",
    "fleet_not_requested_cost_usd": "Not requested",
    "fleet_starting_cost_usd": "Starting",
    "fleet_stopping_cost_usd": "Stopping",
    "fleet_not_in_cluster_cost_usd": "Not in cluster",
}
NOTES = (
    "cost_per_gpu_hour_usd",
    "gpu_ms",
    "gpu_busy_ms",
    "gpu_unbilled_ms",
    "gpu_unmeasured_share",
    "input_tokens_per_gpu_second",
    "computed_input_tokens_per_gpu_second",
    "unknown_counter_starts",
    *CAUSES,
)


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    shown = view.without(*OWNERS, "provider")
    parts.heading(snapshot, shown, "GPU and pools")
    if parts.nothing_if(
        not fleet_queries.exists(snapshot),
        "No GPU of an own fleet is known. A source of serving and Kubernetes metrics, or a hand-written pool table, "
        f"adds one: {GUIDE} says how. The bill of its machines is collected already.",
    ):
        return
    if snapshot.scope.teams is not None:
        st.info(
            "The fleet as a whole is shown to those who may see the whole organisation: from its totals other teams' "
            "cost could be worked out. What follows is your own part.",
            icon=":material/info:",
        )
        fleet_tables.interval(snapshot, view)
        return
    if shown.filters != view.filters:
        st.caption(
            "GPU time has no owner: what is chosen of teams, apps, environments and providers does not count here."
        )
    shown = filters.pools(shown, fleet_queries.choices(snapshot))
    facts = queries.totals(snapshot, (*NOTES, "fleet_cost_usd"), shown.filters)
    if parts.nothing_if(
        not facts["gpu_ms"] and not facts["fleet_cost_usd"],
        f"No GPU was held and none was billed between {words.day(view.first_day)} and {words.day(view.last_day)} in "
        "this choice.",
    ):
        return
    parts.figures(snapshot, shown, _headline(snapshot, facts))
    st.caption(words.plain(parts.joined([parts.against(shown), *_gaps(facts)])))
    _pools(snapshot, shown)
    _idle(snapshot, shown)
    _rates(snapshot, shown)
    _states(snapshot, shown)
    fleet_tables.interval(snapshot, view.also(cluster=shown.filters.cluster, pool=shown.filters.pool))


def _headline(snapshot: Snapshot, facts: dict[str, Scalar]) -> list[Figure]:
    largest = max(CAUSES, key=lambda name: facts[name] or 0)
    cause = f"most of it: {CAUSES[largest].lower()}" if facts[largest] else "no idle GPU"
    per_hour = words.unit_money(facts["cost_per_gpu_hour_usd"], snapshot.currency)
    return [
        Figure("fleet_cost_usd", f"{per_hour} per GPU-hour", more_is="neither"),
        Figure("gpu_held_ms", f"of {words.gpu_hours(facts['gpu_ms'])} that were there", more_is="neither"),
        Figure("gpu_busy_share", "busy / time whose state is known", more_is="better"),
        Figure("fleet_idle_cost_usd", cause),
        Figure("fleet_under_used_cost_usd", "busy below last week's reference"),
        Figure("fleet_unmeasured_cost_usd", f"{words.share(facts['gpu_unmeasured_share'])} of GPU time"),
        Figure(
            "output_tokens_per_gpu_second",
            f"output, held; input {words.rate(facts['input_tokens_per_gpu_second'])}, "
            f"of it computed {words.rate(facts['computed_input_tokens_per_gpu_second'])}",
            more_is="better",
            title="Tokens/s per GPU",
        ),
    ]


def _gaps(facts: dict[str, Scalar]) -> list[str]:
    """What is not known, counted."""
    found = []
    if facts["gpu_unbilled_ms"]:
        found.append(f"{words.gpu_hours(facts['gpu_unbilled_ms'])} of GPU time are not billed yet: in no amount.")
    starts = facts["unknown_counter_starts"]
    found.append(
        f"{words.count(starts)} counters began at a value that nothing explains: those tokens are not booked."
        if starts
        else "Every counter's first value is explained."
    )
    return found


def _pools(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Pools",
        "Busy: anything ran or any counter rose in that minute. Of busy time as much is productive as its work reaches "
        "the reference, the rest is under-used. The reference: 95th percentile of five-minute work per GPU-second in "
        "the calendar week before (UTC), per route, role, engine version and GPU type; fewer than twelve such windows "
        "are none, and all busy time is productive. " + reference(snapshot, view),
    )
    frame = fleet_tables.pools(snapshot, view)
    parts_of = {f"fleet_{state}_cost_usd": state for state in fleet_tables.MONEY}
    figure = part_charts.stacked(
        frame.rename(columns=parts_of),
        "name",
        tuple(parts_of.values()),
        theme.STATES,
        theme.STATE_TITLES,
        lambda value: words.money(value, snapshot.currency),
    )
    parts.chart(figure, "pool-cost", "Cost of each pool by what its GPUs did")
    fleet_tables.show_pools(snapshot, frame)
    st.caption(
        "GPU utilisation is not efficiency: a GPU can be active all day at a tenth of its throughput. DCGM's activity "
        "and memory stand beside; the tokens per GPU-second and the cost per million say what came out."
    )


def reference(snapshot: Snapshot, view: View) -> str:
    """Which weeks the references are from, and pools and weeks that show no under-use, so may have had none."""
    found = fleet_queries.references(snapshot, view.first_day, view.last_day)
    for name in ("cluster", "pool"):
        values = view.filters.chosen().get(name)
        found = found[found[name].isin(values)] if values else found
    if found.empty:
        return "No busy time in this period."
    weeks = pd.to_datetime(found["week"])
    many = found["cluster"].nunique() > 1
    known = found["has_under_used"].astype(bool)
    said = []
    if known.any():
        before = sorted({week - timedelta(days=7) for week in weeks[known]})
        noun = "week" if len(before) == 1 else "weeks"
        said.append(f"Here: the {noun} from {', '.join(words.day(week.date()) for week in before)}.")
    missing = found[~known].assign(week=weeks[~known])
    for week, rows in missing.groupby("week"):
        names = sorted({f"{row.cluster} / {row.pool}" if many else row.pool for row in rows.itertuples()})
        pools = "any pool" if len(rows) == (weeks == week).sum() else ", ".join(names)
        said.append(
            f"In the week from {words.day(week.date())} no under-use of {pools} shows: no reference, or all reached it."
        )
    return " ".join(said)


def _idle(snapshot: Snapshot, view: View) -> None:
    options = {"": "All causes", **CAUSES}
    cause = parts.section_by("When GPUs were idle", "Cause", options, "idle")
    st.caption(
        f"Idle cost by day and hour ({snapshot.zone}). No traffic: up, nothing ran. Starting: before the engine first "
        "answered. Not requested: no pod asked for the GPU. Not in cluster: billed before a node joined or after it "
        "left. White: not billed yet, or no metric."
    )
    names = ("fleet_idle_cost_usd", *CAUSES)
    frame = fleet_queries.local_hours(snapshot, queries.table(snapshot, names, ("hour",), view.filters))
    frame["amount"] = frame[cause or "fleet_idle_cost_usd"]
    if not frame["amount"].fillna(0).any():
        st.caption("None.")
        return
    figure = fleet_charts.day_by_hour(
        frame, theme.STATES["idle"], snapshot.currency, CAUSES if not cause else {cause: CAUSES[cause]}
    )
    parts.chart(figure, "idle-hours", "Idle cost by day and hour of the day")
    fleet_tables.causes(snapshot, view, CAUSES)


def _rates(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Tokens per GPU-second",
        "As the engines count, never input and output added. Solid: over GPU time that pods held; dotted: over busy "
        "time. Prompts count where they were computed, answers where they were decoded.",
    )
    names = tuple(f"{name}_per_{busy}gpu_second" for name in RATES for busy in ("", "busy_"))
    frame = fleet_queries.over_time(snapshot, names, view.filters)
    if frame[list(names)].fillna(0).to_numpy().sum() == 0:
        st.caption("No engine counted a token.")
        return
    panels = [
        (
            RATE_TITLES[name],
            RATE_COLOURS[name],
            frame[f"{name}_per_gpu_second"],
            frame[f"{name}_per_busy_gpu_second"],
        )
        for name in RATES
    ]
    parts.chart(fleet_charts.rates(panels, frame["at"], span(view)), "gpu-rates", "Tokens per GPU-second over time")


def _states(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "GPU time by state",
        "GPU-hours that were there, by what is known of them. Under-used is a part of busy, in money.",
    )
    names = tuple(f"gpu_{state}_ms" for state in STATES)
    frame = fleet_queries.over_time(snapshot, names, view.filters)
    if not frame[list(names)].fillna(0).to_numpy().any():
        st.caption("No metric tells of GPU time in this choice.")
        return
    frame = frame.rename(columns=dict(zip(names, STATES, strict=True)))
    figure = fleet_charts.states(frame, STATES, span(view), view.length <= fleet_queries.HOURLY_DAYS)
    parts.chart(figure, "gpu-states", "GPU-hours by state over time")


def span(view: View) -> tuple[datetime, datetime]:
    """The period from its first midnight to its last."""
    return datetime.combine(view.first_day, time()), datetime.combine(view.last_day + timedelta(days=1), time())
