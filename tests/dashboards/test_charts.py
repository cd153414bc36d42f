"""Charts tell billed from estimated, open from final, unknown from zero."""

from datetime import date, timedelta

import pandas as pd
import pytest

from dashboards import theme
from dashboards.charts import days, fleet, flow, parts, spread

DAYS = (date(2026, 11, 1), date(2026, 11, 4))


def costs(*rows: tuple[int, str | None, str, float]) -> pd.DataFrame:
    return pd.DataFrame(
        [(date(2026, 11, day), team, basis, cost) for day, team, basis, cost in rows],
        columns=["day", "team", "basis", "cost"],
    )


def per_day(frame: pd.DataFrame, open_from: date | None = None):
    return days.cost_per_day(frame, "team", theme.colours(frame["team"]), {None: "no team"}, "USD", open_from, DAYS)


def test_what_is_estimated_is_hatched_in_the_same_colour():
    figure = per_day(costs((1, "search", "billed", 2.0), (2, "search", "estimated", 1.0)))
    billed, estimated, key = figure.data
    assert billed.marker.pattern.shape == ""
    assert estimated.marker.pattern.shape == "/"
    assert estimated.marker.pattern.fgcolor == billed.marker.color
    assert (key.name, key.marker.pattern.shape) == ("estimated", "/")


def test_without_an_estimate_nothing_is_hatched():
    assert [bar.name for bar in per_day(costs((1, "search", "billed", 2.0))).data] == ["search"]


def test_those_without_a_team_have_a_name_and_a_colour_of_their_own():
    figure = per_day(costs((1, None, "billed", 2.0), (1, "search", "billed", 1.0)))
    assert [(bar.name, bar.marker.color) for bar in figure.data] == [
        ("no team", theme.UNKNOWN), ("search", theme.SERIES[0]),
    ]  # fmt: skip


def test_beyond_eight_the_rest_is_one():
    frame = costs(*((1, f"team-{number:02d}", "billed", 20.0 - number) for number in range(12)))
    figure = per_day(frame)
    assert [bar.name for bar in figure.data][-1] == "4 others"
    assert sum(sum(bar.y) for bar in figure.data) == frame["cost"].sum()


def test_days_whose_bill_is_open_are_shaded():
    figure = per_day(costs((1, "search", "billed", 2.0)), open_from=date(2026, 11, 3))
    assert [(shape.x0, shape.x1) for shape in figure.layout.shapes] == [("2026-11-02 12:00", "2026-11-04 12:00")]
    assert "not final" in figure.layout.annotations[0].text
    assert not per_day(costs((1, "search", "billed", 2.0)), open_from=date(2026, 11, 9)).layout.shapes


def test_a_day_of_unknown_cost_is_a_gap_and_not_zero():
    values = pd.Series([1.0, float("nan"), 2.0], index=[DAYS[0] + timedelta(days=number) for number in range(3)])
    figure = days.lines_per_day([("usage", theme.PRIMARY, "solid", values)], "USD", DAYS, {DAYS[0]})
    line = figure.data[0]
    assert pd.isna(line.y[1])
    assert line.connectgaps is False
    assert list(line.marker.color) == ["white", theme.PRIMARY, theme.PRIMARY]
    assert list(line.customdata) == ["$1.00, partly estimated", "unknown", "$2.00"]


def test_a_name_has_one_colour_whatever_else_is_shown():
    everything = theme.colours(["support", "search", None])
    assert everything == theme.colours(["search", "support"])
    assert len({theme.colours(f"m{number}" for number in range(10))[f"m{number}"] for number in range(10)}) == 10


def test_the_waterfall_ends_at_the_bill():
    figure = parts.waterfall(["Usage", "Credits", "Tax"], [100.0, -20.0, 5.0], ["#000000"] * 3, "Bill", "USD")
    bars = figure.data[0]
    assert list(bars.base) == [0, 100, 80, 0]
    assert list(bars.y) == [100, -20, 5, 85]
    assert list(bars.customdata) == ["$100.00", "-$20.00", "$5.00", "$85.00"]


def test_a_label_never_stands_left_of_a_negative_bar():
    figure = parts.bars(["Usage", "Credits"], [100.0, -20.0], ["#000000"] * 2, ["$100.00", "-$20.00"])
    assert list(figure.data[1].x) == [100, 0]


def test_areas_add_up_and_a_branch_says_its_total():
    frame = pd.DataFrame(
        {"team": ["a", "a", None], "app": ["x", "y", None], "model": ["m", "m", "m"], "cost": [1.0, 2.0, 4.0]}
    )
    tree = parts.treemap(frame, ("team", "app", "model"), theme.colours(["a"]), "USD").data[0]
    assert sum(tree.values) == 7
    assert tree.branchvalues == "remainder"
    assert "a   $3.00" in tree.labels
    assert "no team   $4.00" in tree.labels
    assert len(set(tree.ids)) == len(tree.ids)


def test_shares_of_nothing_are_nothing():
    frame = pd.DataFrame({"model": ["m", "none"], "input": [3, 0], "output": [1, 0]})
    titles = {"input": "Input", "output": "Output"}
    figure = parts.shares(frame, "model", ("input", "output"), dict.fromkeys(titles, "#000000"), titles)
    assert [list(bar.x) for bar in figure.data] == [[0.75, 0], [0.25, 0]]


def test_a_model_without_a_latency_keeps_its_row():
    frame = pd.DataFrame(
        {"model": ["a", "b"], "ttft_p50_ms": [100.0, None], "ttft_p95_ms": [200.0, None], "ttft_p99_ms": [900.0, None]}
    )
    figure = spread.percentiles(frame, "model", "ttft", {})
    assert list(figure.layout.yaxis.categoryarray) == ["a", "b"]


def test_quantiles_are_marked_on_the_logarithmic_scale():
    frame = pd.DataFrame({"lower": [0.1, 1.0], "upper": [1.0, 10.0], "tasks": [5, 2], "cost": [2.0, 9.0]})
    figure = spread.histogram(frame, {"P50": 0.5, "P90": 0.8, "P99": None}, "USD")
    texts = [note.text for note in figure.layout.annotations]
    assert texts == ["P50 $0.500", "P90 $0.800"]
    assert [note.yshift for note in figure.layout.annotations] == pytest.approx([0, 15])


def test_each_level_of_a_flow_is_the_same_total():
    frame = pd.DataFrame(
        {
            "bill": ["Bill"] * 3,
            "service": ["EC2", "EC2", "Bedrock"],
            "team": ["search", "nobody", "search"],
            "amount": [3.0, 5.0, 2.0],
        }
    )
    figure = flow.sankey(frame, ("bill", "service", "team"), [{}, {}, {}], "USD").data[0]
    assert list(figure.node.label) == ["Bill  $10.00", "EC2  $8.00", "Bedrock  $2.00", "nobody  $5.00", "search  $5.00"]
    assert sum(figure.link.value) == 20
    assert list(figure.link.value) == [8, 2, 3, 5, 2]


def test_an_hour_without_a_bill_is_a_gap_and_the_hour_that_comes_twice_adds_up():
    at = pd.to_datetime(["2026-10-25 02:00", "2026-10-25 02:00", "2026-10-26 02:00"])
    frame = pd.DataFrame({"at": at, "amount": [1.0, 2.0, None], "no_traffic": [1.0, 2.0, None]})
    heat = fleet.day_by_hour(frame, "#C2A33E", "USD", {"no_traffic": "No traffic"}).data[0]
    assert heat.z[2][0] == 3
    assert pd.isna(heat.z[2][1])
    assert tuple(heat.customdata[2]) == ("<b>$3.00</b><br>No traffic: $3.00", "<b>unknown</b>")
    assert tuple(heat.customdata[3]) == ("no metric, no bill", "no metric, no bill")


def test_states_that_never_were_have_no_bar():
    frame = pd.DataFrame(
        {"at": pd.to_datetime(["2026-11-01"]), "busy": [7_200_000], "starting": [0], "unmeasured": [None]}
    )
    span = (pd.Timestamp("2026-11-01"), pd.Timestamp("2026-11-02"))
    bars = fleet.states(frame, ("busy", "starting", "unmeasured"), span, is_hourly=False).data
    assert [(bar.name, list(bar.y)) for bar in bars] == [("Busy", [2.0])]


def test_a_bar_of_parts_says_what_it_comes_to():
    frame = pd.DataFrame({"pool": ["a", "b"], "busy": [3.0, None], "idle": [1.0, 2.0]})
    titles = {"busy": "Busy", "idle": "Idle"}
    figure = parts.stacked(frame, "pool", ("busy", "idle"), dict.fromkeys(titles, "#000000"), titles, str)
    assert [list(bar.x) for bar in figure.data] == [[3, 0], [1, 2], [4, 2]]
    assert list(figure.data[2].text) == [" 4.0", " 2.0"]
