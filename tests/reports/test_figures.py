"""Every figure of the report is the one that the measures give, and parts add up to their whole."""

from datetime import date, timedelta
from decimal import Decimal
from statistics import median

import pytest

from reports.build import build
from reports.figures import Figures
from reports.settings import ReportSettings
from warehouse.measures import Filters, table
from warehouse.snapshot import Snapshot

DAY = date(2026, 10, 30)
WEEK_BEFORE = date(2026, 10, 23)


@pytest.fixture(scope="module")
def figures(snapshot: Snapshot) -> Figures:
    return build(snapshot, ReportSettings(name="daily-cost"), DAY).figures


def value(snapshot, measure, first=DAY, last=None, **where):
    filters = Filters(first_day=first, last_day=last or first, **where)
    return table(snapshot, [measure], where=filters)[measure][0].as_py()


def test_the_headline_is_the_days_inference_cost_and_its_parts_are_billed_and_estimated(snapshot, figures):
    assert figures.figure == value(snapshot, "inference_cost_usd") > 0
    assert figures.billed == value(snapshot, "inference_cost_usd", basis=("billed",)) > 0
    assert figures.estimated == value(snapshot, "inference_cost_usd", basis=("estimated",)) > 0
    assert figures.billed + figures.estimated == figures.figure
    assert figures.loaded == value(snapshot, "fully_loaded_cost_usd")
    assert figures.status == "open"


def test_it_is_compared_with_the_day_before_the_week_before_and_the_median(snapshot, figures):
    history = [value(snapshot, "inference_cost_usd", DAY - timedelta(days=n)) for n in range(1, 29)]
    assert figures.headline.day_before == history[0]
    assert figures.headline.week_before == history[6] == value(snapshot, "inference_cost_usd", WEEK_BEFORE)
    assert figures.headline.median == median(history)
    assert figures.base == WEEK_BEFORE


def test_unit_costs_are_the_measures(snapshot, figures):
    assert [unit.measure for unit in figures.units] == [
        "cost_per_mtok_usd",
        "cost_per_request_usd",
        "cost_per_task_usd",
    ]
    for unit in figures.units:
        assert unit.now == value(snapshot, unit.measure)
        assert unit.day_before == value(snapshot, unit.measure, DAY - timedelta(days=1))
        assert unit.median == median(value(snapshot, unit.measure, DAY - timedelta(days=n)) for n in range(1, 29))


def test_the_month_is_the_sum_of_its_days_and_the_forecast_says_how_it_is_made(snapshot, figures):
    month = figures.month
    assert month.to_date == value(snapshot, "inference_cost_usd", date(2026, 10, 1), DAY)
    assert month.rate == value(snapshot, "inference_cost_usd", date(2026, 10, 24), DAY) / 7
    assert (month.remaining, month.forecast) == (1, month.to_date + month.rate)
    assert month.month_before is None  # the snapshot begins with October


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_ranking_and_its_rest_add_up_to_the_headline(snapshot, figures, position):
    ranking = figures.rankings[position]
    listed = sum((part.cost for part in ranking.parts if part.cost is not None), Decimal(0))
    assert listed + (ranking.others_cost or 0) == figures.figure
    for part in ranking.parts:
        chosen = {name: (given,) for name, given in zip(ranking.by, part.names, strict=True)}
        assert part.cost == value(snapshot, "inference_cost_usd", **chosen)
        assert part.base == value(snapshot, "inference_cost_usd", WEEK_BEFORE, **chosen)
        assert part.per_mtok == value(snapshot, "cost_per_mtok_usd", **chosen)


def test_a_model_without_a_price_is_listed_as_unknown_and_not_left_out(figures):
    models = {part.names[0]: part.cost for part in figures.rankings[1].parts}
    assert models["nova-premier-2"] is None
    assert [model for model, _ in figures.gaps.unpriced] == ["nova-premier-2"]


def test_cache_and_failures_are_the_measures(snapshot, figures):
    assert figures.hit_ratio.now == value(snapshot, "cache_hit_ratio")
    assert figures.saving.now == value(snapshot, "cache_saving_usd")
    assert figures.saving_month == value(snapshot, "cache_saving_usd", date(2026, 10, 1), DAY)
    waste = figures.waste
    assert (waste.requests, waste.failed, waste.timeouts, waste.retries) == tuple(
        value(snapshot, name) for name in ("requests", "failed_requests", "timeout_requests", "retried_requests")
    )
    rows = table(
        snapshot, ["usage_cost_usd", "retried_requests", "requests"], ["model"], Filters(first_day=DAY, last_day=DAY)
    ).to_pylist()
    assert waste.retries_cost == sum(
        row["usage_cost_usd"] * row["retried_requests"] / row["requests"]
        for row in rows
        if row["retried_requests"] and row["usage_cost_usd"] is not None
    )


def test_the_runaway_task_is_the_dearest(snapshot, figures):
    dearest = figures.tasks[0]
    assert dearest.task_id == "coder-1030-loop"
    assert dearest.cost == value(snapshot, "task_cost_usd", task_id=(dearest.task_id,))
    assert dearest.life["cost"] == dearest.cost
    assert [task.cost for task in figures.tasks] == sorted((task.cost for task in figures.tasks), reverse=True)


def test_what_belongs_to_nobody_is_told_apart(snapshot, figures):
    gaps = figures.gaps
    assert gaps.unattributed == value(snapshot, "unattributed_cost_usd") > 0
    assert gaps.ownerless == value(snapshot, "ownerless_cost_usd", kind=("usage",)) > 0
    assert gaps.unattributed + gaps.ownerless == value(snapshot, "ownerless_cost_usd")
    assert gaps.unknown_tokens == value(snapshot, "unknown_cost_tokens") > 0


def test_the_books_balance_and_the_kinds_are_the_whole_ledger(figures):
    books = figures.books
    assert {row["cost_basis"] for row in books.balances} == {"billed", "effective"}
    assert all(row["difference"] == 0 for row in books.balances)
    effective = next(row for row in books.balances if row["cost_basis"] == "effective")
    assert sum(amount for _, amount in books.kinds) == effective["ledger"]
    assert (books.failed, books.controls > 0) == (0, True)


def test_what_moved_adds_up_in_rows_and_columns(figures):
    movers = [*figures.movers, *figures.other_movers]
    for mover in [*movers, figures.total]:
        assert mover.volume + mover.mix + mover.cache + mover.price == mover.change == mover.cost - mover.base
    for column in ("cost", "base", "change", "volume", "mix", "cache", "price"):
        assert sum(getattr(mover, column) for mover in movers) == getattr(figures.total, column)
    assert figures.total.cost == figures.figure
    assert figures.total.base == figures.headline.week_before


def test_the_planted_causes_are_the_reasons_given(figures):
    movers = {mover.names: mover for mover in figures.movers}
    assistant, agent = movers["search", "assistant"], movers["platform", "code-agent"]
    assert assistant.cache > abs(assistant.volume) + abs(assistant.mix) + abs(assistant.price)
    assert assistant.hit_ratio < 0.1 < 0.6 < assistant.base_hit_ratio
    assert agent.volume > abs(agent.cache) + abs(agent.mix) + abs(agent.price)
