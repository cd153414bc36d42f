"""The daily report of an organisation with a GPU fleet: what it cost, what did nothing and why, the dearest pool."""

from datetime import date
from decimal import Decimal

import pytest

from reports import words
from reports.build import build
from reports.settings import ReportSettings
from tests import fleet
from tests.fleet_world import HOUR, fill_fleet
from tests.reports.conftest import BY_KEY
from tests.world import World
from warehouse.settings import WarehouseSettings
from warehouse.snapshot import Scope, Snapshot

DAY = date(2026, 10, 7)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> World:
    world = World(tmp_path_factory.mktemp("fleet") / "data", WarehouseSettings.model_validate({"owners": BY_KEY}))
    fill_fleet(world)
    world.publish()
    return world


@pytest.fixture(scope="module")
def report(filled: World):
    snapshot = Snapshot.open(filled.layout.published, Scope.everything("test"))
    return build(snapshot, ReportSettings(name="daily-cost"), DAY)


def test_pools_idle_causes_and_the_dearest_pool_are_the_measures(report):
    found = report.figures.fleet
    assert (found.cost, found.idle.now, found.unmeasured) == (Decimal("36.6"), Decimal(12), Decimal(12))
    assert {(idle.names[2], idle.cause): idle.cost for idle in found.causes} == {
        ("llama-mixed", "no_traffic"): Decimal(6),
        (None, "not_requested"): Decimal(6),
    }
    assert {pool.names[2]: pool.cost for pool in found.pools} == {
        "qwen-mixed": Decimal("18.36"),
        "llama-mixed": Decimal("6.12"),
        "unlabelled": Decimal("6.12"),
    }
    assert found.dearest.names == ("east", "qwen", "qwen-mixed")
    assert found.dearest.per_mtok == pytest.approx(18.36 / 6490 * 1e6)


def test_every_form_of_the_report_says_it(report):
    slack = " ".join(block["text"]["text"] for block in report.message.blocks if isinstance(block.get("text"), dict))
    for form in (report.text, report.html, slack):
        flat = " ".join(form.split())
        assert "The own GPU fleet cost $36.60. $12.00 of it did nothing" in flat
        assert "No metric tells of $12.00." in flat
        assert "Dearest per million tokens: qwen-mixed (east) at $2,828.97" in flat
        assert "requested by no pod" in flat
        assert "nodes of east" in flat
    assert "fully loaded, with idle GPUs, support, tax and credits" in report.text
    assert "idle GPUs $12.00" in report.html
    assert report.message.data["fleet"] == {
        "cost": "36.600000000", "idle": "12.000000000", "under_used": "0.000000000", "unmeasured": "12.000000000",
    }  # fmt: skip


def test_a_report_of_some_teams_says_nothing_of_the_fleet(filled):
    settings = ReportSettings(name="search", teams=("search-1",))
    snapshot = Snapshot.open(filled.layout.published, settings.scope())
    report = build(snapshot, settings, DAY)
    assert report.figures.fleet is None
    assert report.message.data["fleet"] is None
    assert "GPU" not in report.text + report.html


def test_an_organisation_without_a_fleet_reads_nothing_of_one(snapshot, settings):
    report = build(snapshot, settings, date(2026, 10, 30))
    assert report.figures.fleet is None
    assert "GPU" not in report.text + report.html


def test_a_day_that_the_bill_has_not_reached_is_unknown_and_not_free(world):
    fleet.node(world, "n1", HOUR, 60)
    fleet.pod(world, "p1", "n1", HOUR, 60, app="qwen")
    fleet.engine(world, "p1", HOUR, running=[1] * 60, prompt=[5 * n for n in range(60)])
    fleet.asked(world, "2026-10-07 10:30", {"key_alias": "search-1"}, uncached_input=200)
    report = build(world.snapshot(), ReportSettings(name="daily-cost"), DAY)
    found = report.figures.fleet
    assert (found.cost, found.idle.now, found.unbilled_gpu_hours) == (None, None, 4)
    assert "the bill has not reached this day, so what it cost is unknown" in report.text
    assert report.message.data["fleet"]["idle"] is None


def test_kinds_and_causes_have_words():
    assert [words.kind(name) for name in ("idle", "under_used", "out_of_scope", "brand_new")] == [
        "idle GPUs", "under-used GPUs", "not inference", "brand new",
    ]  # fmt: skip
    assert words.cause("not_in_cluster") == "billed, but in no cluster"
    assert words.pool(("east", None, None)) == "nodes of east"
