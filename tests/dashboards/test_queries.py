"""What pages compute beside the measures."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

import pytest

from dashboards import attention, bill_queries, overview, queries, task_queries
from dashboards.filters import View, view
from warehouse import measures
from warehouse.measures import Filters
from warehouse.snapshot import Snapshot


@pytest.fixture
def chosen(snapshot: Snapshot) -> View:
    return view(snapshot, date(2026, 10, 15), date(2026, 10, 28), {})


def test_a_change_is_volume_and_rate_to_the_cent(snapshot: Snapshot, chosen: View):
    frame = overview.movers(snapshot, chosen, "team").set_index("team")
    assert frame.index[0] == "support"  # the runaway
    for name in ("search", "support"):
        row = frame.loc[name]
        assert row["volume"] + row["rate"] == pytest.approx(row["change"], abs=1e-9)
    assert frame.loc["search", "relative"] > 0.9


def test_what_is_in_one_period_only_costs_nothing_in_the_other(snapshot: Snapshot, chosen: View):
    where = replace(chosen.filters, first_day=date(2026, 10, 28))
    late = View(where, replace(where, first_day=date(2026, 10, 27), last_day=date(2026, 10, 27)))
    frame = overview.movers(snapshot, late, "model").set_index("model")
    assert frame.loc["mystery", "cost_before"] == 0
    assert frame.loc["mystery", "cost"] != frame.loc["mystery", "cost"]  # unknown is not nothing


def test_unit_costs_of_bill_and_price_book(snapshot: Snapshot, chosen: View):
    frame = attention.against_book(snapshot, chosen).set_index("model")
    assert frame.loc["claude", "drift"] == pytest.approx(0, abs=1e-3)
    assert frame.loc["mystery", "drift"] != frame.loc["mystery", "drift"]


def test_kinds_and_owners_add_up_to_the_bill_exactly(snapshot: Snapshot):
    rows = bill_queries.identities(snapshot)
    assert {row["cost_basis"] for row in rows} == {"billed", "effective"}
    for row in rows:
        assert row["kind_difference"] == Decimal(0)
        assert row["owner_difference"] == Decimal(0)
        assert row["by_kind"] == row["by_owner"]
        assert row["by_kind"] + row["rounding"] == row["bill"]


def test_parts_of_the_bill_are_the_measures(snapshot: Snapshot):
    kinds = bill_queries.parts(snapshot, "2026-10", "USD", "kind").set_index("name")["effective"]
    rows = measures.table(snapshot, ["effective_cost_usd"], ["kind"]).to_pylist()
    assert kinds.to_dict() == pytest.approx({row["kind"]: float(row["effective_cost_usd"]) for row in rows})


def test_every_token_of_the_bill_meets_the_log(snapshot: Snapshot, chosen: View):
    frame = bill_queries.matches(snapshot, chosen.filters, True)
    left = frame["bill_tokens"] + frame["missing_tokens"] + frame["variance_tokens"]
    assert (left == frame["event_tokens"] + frame["unexplained_tokens"]).all()


def test_a_day_that_was_still_filling_is_no_restatement(snapshot: Snapshot):
    found = bill_queries.restatements(snapshot, "USD")
    assert [(row["charge_day"], row["effective_change"]) for row in found] == [(date(2026, 10, 3), Decimal("-212.4"))]


def test_how_far_the_bill_reaches(snapshot: Snapshot):
    assert [str(row["billed_until"]) for row in bill_queries.watermarks(snapshot)] == ["2026-10-27 12:00:00"]
    reach = queries.coverage(snapshot, date(2026, 10, 1), date(2026, 10, 28))
    assert (reach["open_from"], reach["estimated_from"]) == (date(2026, 10, 1), date(2026, 10, 28))


def test_tasks_are_counted_whole_in_the_period_of_their_last_call(snapshot: Snapshot):
    every = task_queries.summary(snapshot, Filters(first_day=date(2026, 10, 1), last_day=date(2026, 10, 28)))
    halves = [
        task_queries.summary(snapshot, Filters(first_day=first, last_day=last))
        for first, last in ((date(2026, 10, 1), date(2026, 10, 14)), (date(2026, 10, 15), date(2026, 10, 28)))
    ]
    assert every["tasks"] == 29
    assert sum(half["tasks"] for half in halves) == 29
    assert sum(half["cost"] for half in halves) == pytest.approx(every["cost"])
    by_measure = measures.table(snapshot, ["task_cost_usd"]).to_pylist()[0]["task_cost_usd"]
    assert every["cost"] == pytest.approx(float(by_measure))


def test_a_task_without_an_outcome_is_open_for_a_day(snapshot: Snapshot):
    where = Filters(first_day=date(2026, 10, 1), last_day=date(2026, 10, 28))
    frame = task_queries.outcomes(snapshot, where).set_index("outcome", drop=False)
    # task-26, without an outcome, ended on the 27th at 10:03, more than a day before as-of: closed, outcome unknown.
    assert set(frame["outcome"].dropna()) == {"merged", "failed"}
    assert frame["outcome"].isna().sum() == 1
    assert task_queries.summary(snapshot, where)["open_tasks"] == 0


def test_tasks_of_a_chosen_model_are_those_that_used_it(snapshot: Snapshot):
    where = Filters(first_day=date(2026, 10, 1), last_day=date(2026, 10, 28), model=("nova-pro",))
    assert task_queries.summary(snapshot, where)["tasks"] == 0
    assert task_queries.summary(snapshot, replace(where, model=("claude",)))["tasks"] == 29


def test_a_runaway_has_many_times_the_cost_and_the_requests_of_its_peers(snapshot: Snapshot, chosen: View):
    frame = task_queries.runaways(snapshot, chosen.filters)
    assert frame["task_id"].tolist() == ["task-runaway"]
    assert frame["times_median"].iloc[0] == pytest.approx(246 / 1.0275, rel=1e-3)


def test_claims_of_calls_without_a_team(snapshot: Snapshot):
    assert queries.claims(snapshot)["claims"].tolist() == ["key_alias: stray"]


def test_a_measure_knows_what_it_cannot_be_split_by():
    assert queries.splits("inference_cost_usd", Filters(model=("claude",)))
    assert not queries.splits("cost_per_task_usd", Filters(model=("claude",)))
    assert queries.splits("cost_per_task_usd", Filters(team=("search",)))


def test_answers_are_cached_by_snapshot_scope_and_question(snapshot: Snapshot, search_only: Snapshot, chosen: View):
    assert queries.identity(snapshot) != queries.identity(search_only)
    whole = queries.totals(snapshot, ("requests",), chosen.filters)
    own = queries.totals(search_only, ("requests",), chosen.filters)
    assert whole["requests"] > own["requests"]
    assert queries.totals(snapshot, ("requests",), replace(chosen.filters, team=("search",))) == own
