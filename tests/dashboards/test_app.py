"""The whole application without a browser: every page, what it says, and to whom."""

import json
import shutil
from datetime import date
from decimal import Decimal

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboards import words
from dashboards.settings import PUBLISHED
from tests.dashboards.conftest import APP, Open
from tests.world import World
from warehouse import measures
from warehouse.measures import Filters
from warehouse.snapshot import Scope, Snapshot

PAGES = ("overview", "models", "teams", "tasks", "fleet", "reconciliation")
TITLES = {
    "overview": "Overview",
    "models": "Models",
    "teams": "Teams and apps",
    "tasks": "Agent tasks",
    "fleet": "GPU and pools",
    "reconciliation": "Reconciliation",
}
LAST_14 = Filters(first_day=date(2026, 10, 15), last_day=date(2026, 10, 28))


def turn_to(test: AppTest, page: str) -> AppTest:
    return test.switch_page(f"views/{page}.py").run()


def text(test: AppTest) -> str:
    """Everything a reader can read, but tables and charts."""
    kinds = (test.title, test.subheader, test.markdown, test.caption, test.info, test.error, test.warning, test.success)
    return "\n".join(str(element.value).replace(r"\$", "$") for elements in kinds for element in elements)


def figures(test: AppTest) -> dict[str, str]:
    return {metric.label: metric.value.replace(r"\$", "$") for metric in test.metric}


def money(value: object) -> str:
    assert isinstance(value, Decimal)
    return words.money(value)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_opens_and_says_what_its_figures_rest_on(app: Open, page: str):
    test = turn_to(app(), page)
    assert not test.exception
    assert [title.value for title in test.title] == [TITLES[page]]
    said = text(test)
    for part in ("15–28 Oct 2026", "days in UTC", "effective cost in USD", "bill not final from 15 Oct 2026",
                 "partly estimated from 28 Oct 2026", "data as of 29 Oct 2026 00:00"):  # fmt: skip
        assert part in said


def test_the_headline_shows_the_measures_of_the_period(app: Open, snapshot: Snapshot):
    shown = figures(app())
    names = ["inference_cost_usd", "fully_loaded_cost_usd", "cost_per_mtok_usd", "cost_per_request_usd",
             "cost_per_task_usd", "total_tokens", "requests", "cache_hit_ratio", "cache_saving_usd", "ownerless_share",
             "unattributed_share", "unpriced_tokens"]  # fmt: skip
    row = measures.table(snapshot, names, where=LAST_14).to_pylist()[0]
    assert list(shown.values()) == [words.of_measure(name, row[name]) for name in names]
    assert shown["Inference cost"] == money(row["inference_cost_usd"])


def test_changes_are_against_the_same_number_of_days_before(app: Open, snapshot: Snapshot):
    test = app()
    before = Filters(first_day=date(2026, 10, 1), last_day=date(2026, 10, 14))
    cost = [measures.table(snapshot, ["inference_cost_usd"], where=where).to_pylist()[0]["inference_cost_usd"]
            for where in (LAST_14, before)]  # fmt: skip
    assert test.metric[0].delta == words.change(cost[0] / cost[1] - 1)
    assert "Changes are against 1–14 Oct 2026, the 14 days before." in text(test)


def test_without_earlier_data_there_is_no_change_and_the_page_says_why(app: Open):
    test = app(period="Everything")
    assert [metric.delta for metric in test.metric] == [""] * len(test.metric)
    assert "No comparison: the data do not reach 28 days back from 1 Oct 2026." in text(test)


def test_a_link_carries_the_choice(app: Open, snapshot: Snapshot):
    test = app(period="Last 7 days", team=["search"])
    where = Filters(first_day=date(2026, 10, 22), last_day=date(2026, 10, 28), team=("search",))
    row = measures.table(snapshot, ["inference_cost_usd", "requests"], where=where).to_pylist()[0]
    assert figures(test)["Inference cost"] == money(row["inference_cost_usd"])
    assert "Only Team: search" in text(test)


def test_those_without_a_team_can_be_chosen(app: Open, snapshot: Snapshot):
    test = app(team=["(none)"])
    where = Filters(first_day=date(2026, 10, 15), last_day=date(2026, 10, 28), team=(None,))
    row = measures.table(snapshot, ["inference_cost_usd"], where=where).to_pylist()[0]
    assert figures(test)["Inference cost"] == money(row["inference_cost_usd"])


def test_a_choice_stays_when_the_page_changes(app: Open):
    test = turn_to(app(team=["search"]), "models")
    assert "Only Team: search" in text(test)
    assert test.sidebar.multiselect(key="team").value == ["search"]


def test_a_choice_that_fits_nothing_says_so(app: Open):
    for page in PAGES[:-1]:
        test = turn_to(app(team=["search"], model=["claude"]), page)
        assert not test.exception
        assert len(test.info) == 1


def test_what_is_not_known_by_model_says_so_and_shows_no_figure(app: Open):
    test = app(model=["claude"])
    assert figures(test)["Per agent task"] == "n/a"
    assert "a task has no single model" in text(test)
    assert "support, tax and credits belong to no model" in text(test)


def test_unknown_cost_is_a_word_and_not_zero(app: Open):
    test = app(model=["mystery"])
    shown = figures(test)
    assert shown["Inference cost"] == "unknown"
    assert shown["Unpriced tokens"] == "1.01 M"
    assert "estimated: unknown · 1.01 M tokens of unknown cost" in text(test)
    assert "**mystery** has no price in the price book" in text(test)
    row = turn_to(test, "models").dataframe[0].value.to_dict("records")[0]
    assert row["model"] == "mystery"
    assert row["inference_cost_usd"] != row["inference_cost_usd"]  # NaN, shown as the table's placeholder
    assert test.dataframe[0].proto.placeholder == "unknown"


def test_attention_names_what_is_unowned_unexplained_unpriced_refused_restated_and_runaway(app: Open):
    said = text(app())
    for part in ("was used by calls that belong to no team (14 requests)", "tokens that no log explains",
                 "**mystery** has no price", "2 rows of gateway were refused (malformed json)",
                 "1 day was restated by a later delivery of the bill, together **-$212.40**",
                 "An agent task looks like a runaway: **$246.00**"):  # fmt: skip
        assert part in said


def test_models_show_bill_and_price_book_side_by_side(app: Open, snapshot: Snapshot):
    test = turn_to(app(), "models")
    table = test.dataframe[0].value.set_index("model")
    rows = measures.table(snapshot, ["inference_cost_usd", "cost_per_mtok_usd"], ["model"], LAST_14).to_pylist()
    for row in rows:
        if row["model"] in ("nova-pro", "claude"):
            assert table.loc[row["model"], "inference_cost_usd"] == pytest.approx(float(row["inference_cost_usd"]))
            assert table.loc[row["model"], "cost_per_mtok_usd"] == pytest.approx(row["cost_per_mtok_usd"])
    assert abs(table.loc["claude", "drift"]) < 0.001


def test_teams_show_those_without_a_team_and_what_their_calls_say(app: Open):
    test = turn_to(app(), "teams")
    teams, apps, claims, _users = (frame.value for frame in test.dataframe)
    assert set(teams["team"]) == {"search", "support", "no team"}
    assert set(apps["app"]) == {"answers", "helpdesk", "no app"}
    assert claims["claims"].tolist() == ["key_alias: stray"]


def test_users_of_the_chosen_team(app: Open, snapshot: Snapshot):
    test = turn_to(app(), "teams")
    test.selectbox(key="users-of").set_value("search").run()
    users = test.dataframe[-1].value
    where = Filters(first_day=date(2026, 10, 15), last_day=date(2026, 10, 28), team=("search",))
    rows = measures.table(snapshot, ["user_cost_usd"], ["user_id"], where).to_pylist()
    shown = dict(zip(users["user_id"], users["user_cost_usd"], strict=True))
    # Without a user and without a price: who it was and what it cost is unknown.
    assert pd.isna(shown.pop("unknown"))
    assert shown == pytest.approx({row["user_id"]: float(row["user_cost_usd"]) for row in rows if row["user_id"]})


def test_tasks_show_the_runaway_first_and_what_an_accepted_outcome_costs(app: Open):
    test = turn_to(app(), "tasks")
    runaways, dearest, agents = (frame.value for frame in test.dataframe)
    assert runaways["task_id"].tolist() == ["task-runaway"]
    assert dearest["task_id"].iloc[0] == "task-runaway"
    assert dearest["cost"].iloc[0] == pytest.approx(246)
    assert agents["agent"].tolist() == ["solver"]
    shown = figures(test)
    assert shown["Agent tasks"] == "15"
    # 246 and fourteen tasks of 1.0275 each, over five that were merged.
    assert shown["Per accepted"] == words.unit_money((246 + 14 * 1.0275) / 5)


def test_the_books_balance_to_the_last_decimal(app: Open, snapshot: Snapshot):
    test = turn_to(app(), "reconciliation")
    identities = test.dataframe[0].value
    assert set(identities["difference"]) == {"0"}
    bill = snapshot.sql("SELECT bill_usd FROM balance WHERE cost_basis = 'effective'").to_pylist()[0]["bill_usd"]
    assert identities["bill"].tolist() == [f"{bill:,.18f}"] * 2
    assert bill != round(bill, 9)
    assert "All differences are exactly 0." in text(test)


def test_a_restatement_is_a_sentence(app: Open):
    test = turn_to(app(), "reconciliation")
    assert (
        "Charges of 3 October for Amazon Bedrock fell by **$212.40** in delivery 2 of the bill of October 2026"
        in text(test)
    )


def test_the_checks_of_the_bill_are_there_with_both_sides(app: Open):
    test = turn_to(app(), "reconciliation")
    table = next(frame.value for frame in test.dataframe if "tolerance" in frame.value)
    stored = table[table["name"] == "days long past are as they were"].iloc[0]
    assert (stored["lhs"], stored["rhs"], stored["ok"]) == ("212.4", "0", "does not hold")
    assert "`inferledger doctor` says what to do" in " ".join(each.value for each in test.warning)


def test_bill_against_log_by_class(app: Open):
    test = turn_to(app(match="By model and class"), "reconciliation")
    table = next(frame.value for frame in test.dataframe if "unexplained_tokens" in frame.value)
    output = table[(table["model"] == "nova-pro") & (table["token_class"] == "Output")].iloc[0]
    assert output["unexplained_tokens"] == pytest.approx(0.1 * output["bill_tokens"] / 1.1)


# --- Whose figures ---


@pytest.mark.parametrize("page", PAGES)
def test_a_restricted_reader_sees_only_their_team_and_no_total_of_the_organisation(app: Open, page: str):
    test = turn_to(app(access={"*": ["search"]}), page)
    assert not test.exception
    everything = text(test) + "".join(frame.value.to_string() for frame in test.dataframe)
    for hidden in ("support-", "helpdesk", "claude", "stray", "no team", "Without a team", "Unattributed", "malformed",
                   "Amazon RDS", "$212.40"):  # fmt: skip
        assert hidden not in everything.replace("support, tax", "")
    assert test.sidebar.multiselect(key="team").options == ["search"]


def test_a_restricted_reader_sees_their_own_figures(app: Open, search_only: Snapshot, snapshot: Snapshot):
    shown = figures(app(access={"*": ["search"]}))
    own = measures.table(search_only, ["inference_cost_usd"], where=LAST_14).to_pylist()[0]["inference_cost_usd"]
    where = Filters(first_day=date(2026, 10, 15), last_day=date(2026, 10, 28), team=("search",))
    assert own == measures.table(snapshot, ["inference_cost_usd"], where=where).to_pylist()[0]["inference_cost_usd"]
    assert shown["Inference cost"] == money(own)


def test_a_team_without_agent_tasks_has_none_and_not_an_unknown_cost(app: Open):
    assert figures(app(team=["search"]))["Per agent task"] == "none"


def test_a_cached_answer_never_crosses_scopes(app: Open):
    everything = figures(app())["Inference cost"]
    own = figures(app(access={"*": ["search"]}))["Inference cost"]
    other = figures(app(access={"*": ["support"]}))["Inference cost"]
    assert len({everything, own, other}) == 3
    assert figures(app())["Inference cost"] == everything


def test_who_is_not_named_sees_nothing(app: Open):
    test = app(access={"ada": "everything"})
    assert not test.exception
    assert not test.metric
    assert "no team is shown to you" in test.warning[0].value


# --- States of what is published ---


@pytest.mark.parametrize("page", PAGES)
def test_nothing_published_says_what_to_do(app: Open, tmp_path, page: str):
    test = turn_to(app(tmp_path / "none"), page)
    assert not test.exception
    assert not test.metric
    assert "inferledger collect" in test.info[0].value


@pytest.mark.parametrize("page", PAGES)
def test_an_organisation_without_a_bill_and_without_a_call(app: Open, tmp_path, page: str):
    world = World(tmp_path)
    world.publish()
    test = turn_to(app(world.layout.published), page)
    assert not test.exception
    assert len(test.info) + len(test.caption) > 1


def test_a_new_snapshot_shows_on_the_next_rerun(app: Open, tmp_path):
    world = World(tmp_path)
    world.price(output="15")
    world.call("2026-10-01 10:10", {"key_alias": "a"}, output=1_000_000)
    world.publish()
    test = app(world.layout.published)
    assert figures(test)["Inference cost"] == "$15.00"
    world.call("2026-10-01 11:10", {"key_alias": "a"}, output=1_000_000)
    world.publish()
    assert figures(test.run())["Inference cost"] == "$30.00"


def test_a_held_publication_is_said_above_the_last_good_figures(app: Open, published, tmp_path):
    folder = shutil.copytree(published, tmp_path / "published")
    pointer = json.loads((folder / "current.json").read_text())
    (folder / "current.json").write_text(json.dumps({**pointer, "held": ["bill = ledger (billed) of 2026-10 USD"]}))
    test = app(folder)
    assert "bill = ledger (billed) of 2026-10 USD" in test.error[0].value
    assert "newer figures are held back" in test.error[0].value
    assert figures(test) == figures(app())


def test_a_first_publication_that_is_held_says_so(app: Open, tmp_path):
    (tmp_path / "current.json").write_text(
        json.dumps({"held": ["events = requests at 2026-10-01 10:00"], "held_count": 1})
    )
    test = app(tmp_path)
    assert not test.exception
    assert "events = requests" in test.error[0].value


def test_a_damaged_snapshot_is_a_message_with_the_remedy(app: Open, published, tmp_path):
    folder = shutil.copytree(published, tmp_path / "published")
    next((folder / "files").glob("cost_day-*")).unlink()
    test = app(folder)
    assert not test.exception
    assert "inferledger publish" in test.error[0].value


def test_a_file_that_is_no_parquet_is_a_message_with_the_remedy(app: Open, published, tmp_path):
    folder = shutil.copytree(published, tmp_path / "published")
    for file in (folder / "files").glob("cost_day-*"):
        file.write_bytes(b"half a file")
    test = app(folder)
    assert not test.exception
    assert "cannot be read" in test.error[0].value
    assert "inferledger publish" in test.error[0].value


def test_without_its_environment_the_application_says_what_is_missing(monkeypatch):
    monkeypatch.delenv(PUBLISHED, raising=False)
    test = AppTest.from_file(str(APP), default_timeout=60).run()
    assert not test.exception
    assert PUBLISHED in test.error[0].value


def test_every_read_has_a_scope(snapshot: Snapshot):
    assert snapshot.scope == Scope.everything("test")
