"""Teams and apps: who used what, and what it cost them."""

import pandas as pd
import streamlit as st

from dashboards import parts, queries, theme, words
from dashboards.charts import parts as part_charts
from dashboards.filters import NOBODY, View
from dashboards.tables import Column, bar, measured, named, share, table
from warehouse.snapshot import Snapshot

COST = (
    "inference_cost_usd",
    "estimated_cost_usd",
    "fully_loaded_cost_usd",
    "unattributed_cost_usd",
    "cost_per_mtok_usd",
    "cost_per_request_usd",
    "total_tokens",
    "requests",
    "cache_hit_ratio",
    "retry_ratio",
    "error_ratio",
    "unknown_cost_tokens",
)
USERS = ("user_cost_usd", "user_requests", "user_tokens")
USER_ROWS = 50
CLAIM_ROWS = 20


def render(snapshot: Snapshot, view: View) -> None:
    """The page."""
    parts.heading(snapshot, view, "Teams and apps")
    frame = _rows(snapshot, view, ("team", "app"))
    if parts.nothing_if(frame.empty, "Nobody used a model in this choice."):
        return
    _treemap(snapshot, view)
    _teams(snapshot, view)
    _days(snapshot, view)
    _apps(snapshot, view, frame)
    _ownerless(snapshot, view)
    _users(snapshot, view)


def _rows(snapshot: Snapshot, view: View, by: tuple[str, ...]) -> pd.DataFrame:
    frame = queries.table(snapshot, COST, by, view.filters)
    some = (
        (frame["inference_cost_usd"].fillna(1) != 0)
        | (frame["requests"].fillna(0) > 0)
        | (frame["fully_loaded_cost_usd"].fillna(0) != 0)
    )
    frame = frame[some].sort_values("inference_cost_usd", ascending=False, na_position="last")
    if view.before is not None and not frame.empty:
        earlier = queries.table(snapshot, ("inference_cost_usd",), by, view.before)
        frame = frame.merge(earlier, how="left", on=list(by), suffixes=("", "_before"))
        before = frame["inference_cost_usd_before"]
        frame["change"] = (frame["inference_cost_usd"] / before - 1).where(before > 0)
    frame["share"] = (frame["inference_cost_usd"] / frame["inference_cost_usd"].sum()).clip(0, 1)
    return frame


def _treemap(snapshot: Snapshot, view: View) -> None:
    parts.section(
        "Inference cost by team, app and model", "usage and unattributed, billed and estimated; areas are cost"
    )
    frame = queries.table(snapshot, ("inference_cost_usd",), ("team", "app", "model"), view.filters)
    frame = frame.rename(columns={"inference_cost_usd": "cost"})
    unknown = frame["cost"].isna().sum()
    frame = frame[frame["cost"].fillna(0) > 0]
    if frame.empty:
        st.caption("No cost above zero.")
        return
    colours = theme.colours(queries.choices(snapshot)["team"])
    figure = part_charts.treemap(frame, ("team", "app", "model"), colours, snapshot.currency)
    parts.chart(figure, "team-tree", "Inference cost by team, app and model")
    if unknown:
        st.caption(f"{unknown} combinations of unknown cost have no area.")


def _teams(snapshot: Snapshot, view: View) -> None:
    parts.section("Teams", parts.against(view))
    _table(snapshot, _rows(snapshot, view, ("team",)), {"team": named("Team", "no team")}, "teams-table")


def _apps(snapshot: Snapshot, view: View, frame: pd.DataFrame) -> None:
    parts.section("Apps", "An app belongs to the team whose credential called.")
    _table(snapshot, frame, {"app": named("App", "no app"), "team": named("Team", "no team")}, "apps-table")


def _table(snapshot: Snapshot, frame: pd.DataFrame, keys: dict[str, Column], key: str) -> None:
    currency = snapshot.currency
    moved = {"change": Column("Change", words.change, "inference cost against the period before", absent="new")}
    by_app = "app" in keys
    table(
        frame,
        {
            **keys,
            "inference_cost_usd": measured("inference_cost_usd", currency),
            "share": share("Share", "of the inference cost shown"),
            **(moved if "change" in frame else {}),
            **({} if by_app else {"estimated_cost_usd": measured("estimated_cost_usd", currency, "of it estimated")}),
            "fully_loaded_cost_usd": measured("fully_loaded_cost_usd", currency),
            "cost_per_mtok_usd": measured("cost_per_mtok_usd", currency, "per Mtok"),
            "cost_per_request_usd": measured("cost_per_request_usd", currency, "per request"),
            "total_tokens": measured("total_tokens", currency),
            "requests": measured("requests", currency),
            "cache_hit_ratio": measured("cache_hit_ratio", currency, "Cache hits"),
            "retry_ratio": measured("retry_ratio", currency, "Retries"),
            **({} if by_app else {"error_ratio": measured("error_ratio", currency, "Errors")}),
        },
        empty="Nobody.",
        key=key,
    )


def _days(snapshot: Snapshot, view: View) -> None:
    by = parts.section_by("Inference cost per day", "Stack by", {"team": "By team", "app": "By app"}, "owner-stack")
    parts.cost_chart(snapshot, view, by, "team-days")


def _ownerless(snapshot: Snapshot, view: View) -> None:
    """What calls of no team say about themselves: what an owner rule could go by."""
    if snapshot.scope.teams is not None or (view.filters.team and None not in view.filters.team):
        return
    parts.section("Calls without a team", "By the claims they carry; no rule under `owners` gives them to a team.")
    where = queries.only(view.filters, team=(None,))
    names = ("usage_cost_usd", "estimated_cost_usd", "requests", "total_tokens", "cost_per_mtok_usd")
    frame = queries.table(snapshot, names, ("claim_set_id",), where, "-usage_cost_usd", CLAIM_ROWS)
    frame = frame[frame["claim_set_id"].notna()].merge(queries.claims(snapshot), how="left", on="claim_set_id")
    currency = snapshot.currency
    table(
        frame,
        {
            "claims": Column("Claims", str, absent="none", width="large"),
            "usage_cost_usd": measured("usage_cost_usd", currency),
            "estimated_cost_usd": measured("estimated_cost_usd", currency, "of it estimated"),
            "requests": measured("requests", currency),
            "total_tokens": measured("total_tokens", currency),
            "cost_per_mtok_usd": measured("cost_per_mtok_usd", currency, "per Mtok", absent="-"),
        },
        empty="None: every call belongs to a team.",
        key="ownerless-claims",
    )


def _users(snapshot: Snapshot, view: View) -> None:
    shown = view.without("model", "provider")
    teams = queries.table(snapshot, ("user_cost_usd",), ("team",), shown.filters).sort_values(
        "user_cost_usd", ascending=False
    )
    options = [NOBODY if words.is_unknown(team) else team for team in teams["team"]]
    if not options:
        st.caption("No usage cost in this choice.")
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom", key="by-users"):
        st.subheader("Users", anchor=False, width="content")
        picked = st.selectbox(
            "Team",
            options,
            key="users-of",
            bind="query-params",
            persist_state="session",
            label_visibility="collapsed",
            width=260,
        )
    team = None if picked == NOBODY else picked
    ignored = "" if shown.filters == view.filters else " Not split by model or provider."
    who = "calls of no team" if team is None else words.name(team)
    st.caption(
        words.plain(
            f"Usage cost, billed and estimated, of {who} by the user named in the call; "
            f"calls without one are unknown.{ignored}"
        )
    )
    where = queries.only(shown.filters, team=(team,))
    count = queries.totals(snapshot, ("users",), where)["users"] or 0
    frame = queries.table(snapshot, USERS, ("user_id",), where, "-user_cost_usd", USER_ROWS)
    # Tokens at no cost have no price: their cost is unknown, not nothing.
    frame["user_cost_usd"] = frame["user_cost_usd"].mask(frame["user_cost_usd"].eq(0) & (frame["user_tokens"] > 0))
    frame["share"] = (
        frame["user_cost_usd"] / queries.table(snapshot, ("user_cost_usd",), (), where)["user_cost_usd"].sum()
    ).clip(0, 1)
    frame["per_mtok"] = (frame["user_cost_usd"] / frame["user_tokens"] * 1e6).where(frame["user_tokens"] > 0)
    frame["per_request"] = (frame["user_cost_usd"] / frame["user_requests"]).where(frame["user_requests"] > 0)
    currency = snapshot.currency
    table(
        frame,
        {
            "user_id": named("User"),
            "user_cost_usd": measured("user_cost_usd", currency, "Usage cost"),
            "share": bar("Share", "of the team's usage cost"),
            "user_requests": measured("user_requests", currency, "Requests"),
            "user_tokens": measured("user_tokens", currency, "Tokens"),
            "per_mtok": Column("per Mtok", lambda value: words.unit_money(value, currency)),
            "per_request": Column("per request", lambda value: words.unit_money(value, currency)),
        },
        empty="No call of this team.",
        key="users-table",
        rows=12,
    )
    if count > USER_ROWS:
        st.caption(f"The {USER_ROWS} dearest of {words.count(count)} users.")
