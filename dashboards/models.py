"""Models: what each costs, per million tokens and against the price book, and how well it serves."""

import pandas as pd
import streamlit as st

from dashboards import comparison, parts, queries, theme, words
from dashboards.attention import against_book
from dashboards.charts import days as day_charts
from dashboards.charts import parts as part_charts
from dashboards.charts import spread as spread_charts
from dashboards.filters import View
from dashboards.tables import Column, measured, named, share, table
from warehouse.snapshot import Snapshot

COST = (
    "inference_cost_usd",
    "usage_cost_usd",
    "estimated_cost_usd",
    "unattributed_cost_usd",
    "total_tokens",
    "cost_per_mtok_usd",
    "cost_per_mtok_input_usd",
    "cost_per_mtok_output_usd",
    "unknown_cost_tokens",
)
USE = (
    "requests",
    "total_tokens",
    "uncached_input_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "output_tokens",
    "reasoning_tokens",
    "cache_hit_ratio",
    "cache_saving_usd",
    "tokens_per_request",
    "unpriced_tokens",
)
SERVICE = ("requests", "error_ratio", "retry_ratio", "timeout_ratio")
MIX = ("uncached_input", "cache_read", "cache_write", "output")
MIX_COLOURS = {**theme.TOKEN_CLASSES, "cache_write": theme.TOKEN_CLASSES["cache_write_5m"]}
PANELS = 8
UNKNOWN_SHARE = 0.01


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    parts.heading(snapshot, view, "Models")
    cost = queries.table(snapshot, COST, ("model",), view.filters)
    cost = cost[cost["model"].notna()]
    known = cost[(cost["total_tokens"].fillna(0) > 0) | (cost["inference_cost_usd"].fillna(1) != 0)]
    if parts.nothing_if(known.empty, "No model was called and none was billed in this choice."):
        return
    known = known.sort_values(["inference_cost_usd", "total_tokens"], ascending=False, na_position="last")
    _cost(snapshot, view, known)
    comparison.show(snapshot, view)
    _unit_costs(snapshot, view, known)
    use = queries.table(snapshot, USE, ("model",), view.filters)
    use = use.set_index("model").reindex(known["model"]).reset_index()
    _unpriced(snapshot, view, use)
    _tokens(snapshot, use)
    _service(snapshot, view, known["model"].tolist())


def _cost(snapshot: Snapshot, view: View, cost: pd.DataFrame) -> None:
    parts.section(
        "Cost per model",
        "Inference cost: usage and unattributed, billed and estimated. Per Mtok: usage cost / million "
        "tokens of logged calls. Drift: bill against price book, where every token has a price; of managed APIs.",
    )
    currency = snapshot.currency
    book = against_book(snapshot, view)[["model", "list_cost_per_mtok_usd", "drift"]]
    frame = cost.merge(book, how="left", on="model")
    frame["share"] = frame["inference_cost_usd"] / frame["inference_cost_usd"].sum()
    # A model that is not billed yet and has no price: its estimate is unknown, not nothing.
    unknown = (frame["unknown_cost_tokens"].fillna(0) > 0) & frame["estimated_cost_usd"].fillna(0).eq(0)
    frame["estimated_cost_usd"] = frame["estimated_cost_usd"].mask(unknown)
    table(
        frame,
        {
            "model": named("Model"),
            "inference_cost_usd": measured("inference_cost_usd", currency),
            "share": share("Share", "of the inference cost shown"),
            "estimated_cost_usd": measured("estimated_cost_usd", currency, "of it estimated"),
            "total_tokens": measured("total_tokens", currency),
            "cost_per_mtok_usd": measured("cost_per_mtok_usd", currency, "per Mtok"),
            "cost_per_mtok_input_usd": measured("cost_per_mtok_input_usd", currency, "input"),
            "cost_per_mtok_output_usd": measured("cost_per_mtok_output_usd", currency, "output", absent="-"),
            "list_cost_per_mtok_usd": measured(
                "list_cost_per_mtok_usd", currency, "book per Mtok", "price book x logged tokens / the same tokens"
            ),
            "drift": Column("Drift", _drift, "cost per Mtok / price book per Mtok - 1; unknown without a price"),
        },
        empty="No model.",
        key="models-cost",
    )


def _drift(value: float) -> str:
    return "none" if abs(value) < 0.0005 else words.change(value)


def _unit_costs(snapshot: Snapshot, view: View, cost: pd.DataFrame) -> None:
    parts.section(
        "Cost per million tokens over time",
        "Usage cost / tokens per day; each model on a scale of its own, from zero; beside the name the mean of the "
        f"period. Hollow: partly estimated. The {min(PANELS, len(cost))} dearest models.",
    )
    daily = _daily(snapshot, view)
    calendar = [day.date() for day in pd.date_range(view.first_day, view.last_day)]
    colours = theme.colours(queries.choices(snapshot)["model"])
    panels = []
    for model in cost["model"].head(PANELS):
        values = daily[daily["model"] == model].set_index("day")["cost_per_mtok_usd"].reindex(calendar)
        if values.notna().any():
            mean = words.unit_money(cost.set_index("model")["cost_per_mtok_usd"].get(model), snapshot.currency)
            panels.append((f"{model}  <b>{mean}</b>", colours[model], values))
    if not panels:
        st.caption("No tokens of known cost.")
        return
    figure = day_charts.small_multiples(
        panels, snapshot.currency, (view.first_day, view.last_day), parts.estimated_days(snapshot, view)
    )
    parts.chart(figure, "model-unit-costs", "Cost per million tokens per day, one small chart per model")


def _daily(snapshot: Snapshot, view: View) -> pd.DataFrame:
    """Unit cost per day and model; a day on which more than a little is of unknown cost has none."""
    names = ("cost_per_mtok_usd", "unknown_cost_tokens", "total_tokens")
    daily = parts.days_of(queries.table(snapshot, names, ("day", "model"), view.filters))
    hidden = daily["unknown_cost_tokens"].fillna(0) > UNKNOWN_SHARE * daily["total_tokens"].fillna(0)
    return daily.assign(cost_per_mtok_usd=daily["cost_per_mtok_usd"].mask(hidden))


def _unpriced(snapshot: Snapshot, view: View, use: pd.DataFrame) -> None:
    parts.section(
        "Models without a price",
        "Logged tokens that the price book does not know. What is not billed yet stays unknown. What the own fleet "
        "serves has a cost and needs no price.",
    )
    missing = use[use["unpriced_tokens"].fillna(0) > 0]
    if missing.empty:
        st.caption("None: every logged token has a price.")
        return
    where = queries.managed(snapshot, view.filters)
    cost = queries.table(snapshot, ("usage_cost_usd", "unknown_cost_tokens"), ("model",), where or view.filters)
    frame = missing.merge(cost, on="model")
    owners = queries.table(snapshot, ("unpriced_tokens",), ("model", "team", "app"), view.filters)
    owners = owners[owners["unpriced_tokens"].fillna(0) > 0]
    callers = (
        owners.assign(
            caller=[
                f"{'no team' if words.is_unknown(team) else team} / {'no app' if words.is_unknown(app) else app}"
                for team, app in zip(owners["team"], owners["app"], strict=True)
            ]
        )
        .groupby("model")["caller"]
        .agg(", ".join)
    )
    frame["callers"] = frame["model"].map(callers)
    currency = snapshot.currency
    table(
        frame,
        {
            "model": named("Model"),
            "unpriced_tokens": measured("unpriced_tokens", currency),
            "requests": measured("requests", currency),
            "usage_cost_usd": measured("usage_cost_usd", currency, "Billed so far"),
            "unknown_cost_tokens": measured("unknown_cost_tokens", currency),
            "callers": Column("Used by", width="large"),
        },
        empty="None.",
        key="models-unpriced",
    )
    st.caption("A row under `prices: contract:` in the configuration gives a model its price.")


def _tokens(snapshot: Snapshot, use: pd.DataFrame) -> None:
    parts.section(
        "Tokens and cache",
        "Logged tokens by class; hit ratio: cache reads / all input tokens; saved: at price-book prices.",
    )
    currency = snapshot.currency
    frame = use[use["total_tokens"].fillna(0) > 0]
    if frame.empty:
        st.caption("No tokens were logged.")
        return
    frame = frame.rename(columns={f"{name}_tokens": name for name in MIX})
    figure = part_charts.shares(frame, "model", MIX, MIX_COLOURS, theme.CLASS_TITLES)
    parts.chart(figure, "token-mix", "Share of token classes per model")
    table(
        frame.assign(
            cache_saving_usd=frame["cache_saving_usd"].mask(frame["unpriced_tokens"] >= frame["total_tokens"])
        ),
        {
            "model": named("Model"),
            "requests": measured("requests", currency),
            "total_tokens": measured("total_tokens", currency),
            "uncached_input": measured("uncached_input_tokens", currency),
            "cache_read": measured("cache_read_tokens", currency),
            "cache_write": measured("cache_write_tokens", currency),
            "output": measured("output_tokens", currency),
            "reasoning_tokens": measured("reasoning_tokens", currency, "of it reasoning"),
            "cache_hit_ratio": measured("cache_hit_ratio", currency, "Hit ratio"),
            "cache_saving_usd": measured("cache_saving_usd", currency, "Saved"),
            "tokens_per_request": measured("tokens_per_request", currency, "per request"),
        },
        empty="No tokens were logged.",
        key="models-tokens",
    )


def _service(snapshot: Snapshot, view: View, order: list[str]) -> None:
    parts.section(
        "Service",
        "Errors, retries and time-outs / attempts. Percentiles: upper bound of the bucket of successful calls; "
        "first token: successful streams.",
    )
    ratios = queries.table(snapshot, SERVICE, ("model",), view.filters)
    ratios = ratios[ratios["model"].notna() & (ratios["requests"].fillna(0) > 0)]
    by_latency = view.without("provider") if not queries.knows("latency_day", view.filters) else view
    latency = queries.latencies(snapshot, ("model",), by_latency.filters)
    frame = ratios.merge(latency, how="left", on="model").set_index("model")
    frame = frame.reindex([model for model in order if model in frame.index]).reset_index()
    if frame.empty:
        st.caption("No call was logged.")
        return
    colours = theme.colours(queries.choices(snapshot)["model"])
    left, right = st.columns(2, gap="medium")
    for place, measure, title in ((left, "duration", "Duration"), (right, "ttft", "Time to first token")):
        with place:
            if frame[f"{measure}_p50_ms"].isna().all():
                st.caption(f"{title}: no successful call with one.")
                continue
            st.caption(f"**{title}**, P50 (full), P95, P99 (hollow), logarithmic")
            parts.chart(
                spread_charts.percentiles(frame, "model", measure, colours), f"latency-{measure}", f"{title} per model"
            )
    latency_columns = {
        f"{measure}_{quantile}_ms": Column(f"{title} {quantile.upper()}", words.milliseconds, absent="-")
        for measure, title in (("duration", "Duration"), ("ttft", "First token"))
        for quantile in ("p50", "p95", "p99")
    }
    table(
        frame,
        {
            "model": named("Model"),
            **{name: measured(name, snapshot.currency) for name in SERVICE},
            **latency_columns,
        },
        empty="No call was logged.",
        key="models-service",
    )
