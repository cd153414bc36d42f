"""What needs attention: unowned, unexplained, unpriced, refused, restated, dearer than the price book."""

from dataclasses import dataclass, replace

import pandas as pd
import streamlit as st

from dashboards import bill_queries, fleet_queries, parts, queries, task_queries, words
from dashboards.filters import View
from warehouse.snapshot import Snapshot

# Below these shares a matter is left to the page it belongs to.
DRIFT_SHARE = 0.03
VARIANCE_SHARE = 0.001
LATE_HOURS = 36
FLEET_SHARE = 0.1


@dataclass(frozen=True)
class Matter:
    """One thing to look at, what it is worth, and the page that says more."""

    text: str
    page: str
    amount: float = 0.0


def show(snapshot: Snapshot, view: View) -> None:
    """The list, the dearest matter first."""
    parts.section("What needs attention")
    found = matters(snapshot, view)
    if not found:
        whole = snapshot.scope.teams is None and not view.filters.chosen()
        everything = "Nothing: every billed token is explained, owned and priced, and no row was refused."
        st.caption(everything if whole else "Nothing in what is shown here.")
        return
    titles = {
        "teams": "Teams and apps",
        "models": "Models",
        "tasks": "Agent tasks",
        "fleet": "GPU and pools",
        "reconciliation": "Reconciliation",
    }
    with st.container(border=True, gap=None, key="attention"):
        for matter in found:
            with st.container(horizontal=True, vertical_alignment="center", wrap=False, gap="medium"):
                st.markdown(words.plain(matter.text), width="stretch")
                st.page_link(f"views/{matter.page}.py", label=titles[matter.page], icon=":material/arrow_forward:")


def matters(snapshot: Snapshot, view: View) -> list[Matter]:
    """Everything that needs attention in this view; matters of the whole organisation, for those who see it."""
    found = [*_unpriced(snapshot, view), *_drift(snapshot, view), *_runaways(snapshot, view)]
    if snapshot.scope.teams is None:
        found += [*_unowned(snapshot, view), *_tokens(snapshot, view), *_restated(snapshot), *_sources(snapshot)]
        found += _fleet(snapshot, view)
    return sorted(found, key=lambda matter: -abs(matter.amount))


def _unowned(snapshot: Snapshot, view: View) -> list[Matter]:
    where = replace(view.filters, team=(None,))
    if view.filters.team and None not in view.filters.team:
        return []
    row = queries.totals(
        snapshot, ("usage_cost_usd", "unattributed_cost_usd", "unattributed_tokens", "requests"), where
    )
    found = []
    if row["usage_cost_usd"] or row["requests"]:
        cost = words.money(row["usage_cost_usd"], snapshot.currency)
        found.append(
            Matter(
                f"**{cost}** was used by calls that belong to no team ({words.count(row['requests'])} requests). "
                "An owner rule for their key ends it.",
                "teams",
                float(row["usage_cost_usd"] or 0),
            )
        )
    if row["unattributed_cost_usd"]:
        cost = words.money(row["unattributed_cost_usd"], snapshot.currency)
        found.append(
            Matter(
                f"**{cost}** was billed for {words.tokens(row['unattributed_tokens'])} tokens that no log explains.",
                "reconciliation",
                float(row["unattributed_cost_usd"]),
            )
        )
    return found


def _unpriced(snapshot: Snapshot, view: View) -> list[Matter]:
    where = queries.managed(snapshot, view.filters)
    if where is None:
        return []
    names = ("unpriced_tokens", "unknown_cost_tokens", "usage_cost_usd")
    frame = queries.table(snapshot, names, ("model",), where)
    frame = frame[frame["unpriced_tokens"].fillna(0) > 0].sort_values("unpriced_tokens", ascending=False)
    found = []
    for row in frame.head(3).itertuples():
        unknown = row.unknown_cost_tokens
        text = f"**{words.name(row.model)}** has no price in the price book: {words.tokens(row.unpriced_tokens)} tokens"
        text += (
            f", of which {words.tokens(unknown)} are not billed yet and cost an unknown amount."
            if unknown
            else ", all billed."
        )
        found.append(Matter(text, "models", 0.0 if words.is_unknown(row.usage_cost_usd) else row.usage_cost_usd))
    return found


def _drift(snapshot: Snapshot, view: View) -> list[Matter]:
    frame = against_book(snapshot, view)
    frame = frame[frame["drift"].abs() >= DRIFT_SHARE]
    found = []
    for row in frame.itertuples():
        direction = "above" if row.drift > 0 else "below"
        worth = row.usage_cost_usd - row.usage_cost_usd / (1 + row.drift)
        if abs(worth) < 1:
            continue
        text = f"**{words.name(row.model)}** is billed {words.share(abs(row.drift))} {direction} the price book"
        text += f", {words.money(abs(worth), snapshot.currency)} in this period."
        found.append(Matter(text, "models", worth))
    return found


def against_book(snapshot: Snapshot, view: View) -> pd.DataFrame:
    """Per model the cost per million tokens by bill and by price book, of managed APIs; unknown where a part has no
    price."""
    names = ("usage_cost_usd", "cost_per_mtok_usd", "list_cost_per_mtok_usd", "unpriced_tokens")
    where = queries.managed(snapshot, view.filters)
    frame = queries.table(snapshot, names, ("model",), where or view.filters)
    frame = frame if where else frame.head(0)
    frame = frame[frame["model"].notna()].copy()
    priced = frame["unpriced_tokens"].fillna(0).eq(0) & (frame["list_cost_per_mtok_usd"] > 0)
    frame["list_cost_per_mtok_usd"] = frame["list_cost_per_mtok_usd"].where(priced)
    frame["drift"] = frame["cost_per_mtok_usd"] / frame["list_cost_per_mtok_usd"] - 1
    return frame


def _runaways(snapshot: Snapshot, view: View) -> list[Matter]:
    frame = task_queries.runaways(snapshot, view.filters)
    if frame.empty:
        return []
    cost, tasks = frame["cost"].sum(), len(frame)
    noun = "An agent task looks like a runaway" if tasks == 1 else f"{tasks} agent tasks look like runaways"
    return [
        Matter(
            f"{noun}: **{words.money(cost, snapshot.currency)}**, {task_queries.RUNAWAY_TIMES} times the cost and the "
            "requests of their app's median task, or more.",
            "tasks",
            cost,
        )
    ]


def _fleet(snapshot: Snapshot, view: View) -> list[Matter]:
    """GPUs that were paid for and did nothing, did less than they can, or that nothing tells of."""
    if not queries.knows("pool_hour", view.filters):
        return []
    causes = fleet_queries.IDLE
    names = ("fleet_cost_usd", "fleet_idle_cost_usd", "fleet_under_used_cost_usd", "fleet_unmeasured_cost_usd")
    row = queries.totals(snapshot, (*names, *causes), view.filters)
    total = row["fleet_cost_usd"] or 0
    if total <= 0:
        return []
    largest = max(causes, key=lambda name: row[name] or 0)
    texts = {
        "fleet_idle_cost_usd": "was paid for GPUs that did nothing ({share} of the own fleet's cost), most of it for "
        f"{causes[largest]}.",
        "fleet_under_used_cost_usd": "was paid for GPUs that were busy below what they did the week before ({share} "
        "of the own fleet's cost).",
        "fleet_unmeasured_cost_usd": "was paid for GPUs that no metric tells of ({share} of the own fleet's cost): a "
        "scrape is missing.",
    }
    found = []
    for name, text in texts.items():
        amount = row[name] or 0
        share = float(amount) / float(total)
        if share >= FLEET_SHARE or (name == "fleet_unmeasured_cost_usd" and share >= DRIFT_SHARE):
            said = f"**{words.money(amount, snapshot.currency)}** {text.format(share=words.share(share))}"
            found.append(Matter(said, "fleet", float(amount)))
    return found


def _tokens(snapshot: Snapshot, view: View) -> list[Matter]:
    if any(not queries.splits(name, view.filters) for name in ("variance_tokens",)):
        return []
    row = queries.totals(snapshot, ("variance_tokens",), view.filters)
    logged = queries.totals(snapshot, ("total_tokens",), view.filters)["total_tokens"]
    if not logged or float(row["variance_tokens"] or 0) / float(logged) < VARIANCE_SHARE:
        return []
    share = words.share(float(row["variance_tokens"] or 0) / float(logged))
    return [
        Matter(
            f"{words.tokens(row['variance_tokens'])} tokens ({share} of what was logged) were never billed, and the "
            "bill has settled. They cost nothing; the log may count what the provider does not.",
            "reconciliation",
        )
    ]


def _restated(snapshot: Snapshot) -> list[Matter]:
    found = bill_queries.restatements(snapshot, snapshot.currency)
    if not found:
        return []
    amount = sum(row["effective_change"] for row in found)
    days = len({(row["billing_period"], row["charge_day"]) for row in found})
    noun = "day was" if days == 1 else "days were"
    return [
        Matter(
            f"{days} {noun} restated by a later delivery of the bill, together "
            f"**{words.signed_money(amount, snapshot.currency)}**.",
            "reconciliation",
            float(amount),
        )
    ]


def _sources(snapshot: Snapshot) -> list[Matter]:
    found = []
    refused = bill_queries.rejected(snapshot)
    if not refused.empty:
        reasons = ", ".join(sorted(set(refused["reason"].str.replace("_", " "))))
        names = words.name(", ".join(sorted(set(refused["source"]))))
        found.append(
            Matter(
                f"{words.count(refused['rows'].sum())} rows of {names} were refused ({words.name(reasons)}).",
                "reconciliation",
            )
        )
    for row in bill_queries.sources(snapshot).itertuples():
        if row.kind == "prices" or pd.isna(row.last_at):
            continue
        late = snapshot.as_of.replace(tzinfo=None) - row.last_at.to_pydatetime()
        if late.total_seconds() > LATE_HOURS * 3600:
            found.append(
                Matter(
                    f"**{words.name(row.source)}** ends {words.age(late)} before the snapshot's as-of.",
                    "reconciliation",
                )
            )
    for row in queries.other_currencies(snapshot):
        found.append(
            Matter(
                f"The bill also holds {words.exact(row['bill'])} {row['currency']}; currencies are never added up.",
                "reconciliation",
            )
        )
    return found
