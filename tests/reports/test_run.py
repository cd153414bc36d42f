"""A period is told once; a restated one again only when it moved enough, and then it says so."""

import subprocess
import sys
import threading
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest
from sqlalchemy import select

from delivery.outbox import outbox_message
from reports import run as runs
from reports.operations import report_run
from reports.period import Period, due_at, last_covered_day
from reports.settings import ReportSettings
from tests.needs import ROOT
from warehouse.snapshot import Forbidden, Scope

NOW = datetime(2026, 10, 10, 9, 0, tzinfo=UTC)
DAYS = ("2026-10-07", "2026-10-08", "2026-10-09")


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "data" / "reports"


@pytest.fixture
def published(world):
    """Three days of one team at $10 a day, seen on the morning after the last one."""
    world.as_of = "2026-10-10 06:00"
    for day in DAYS:
        world.call(f"{day} 10:10", {"key_alias": "search", "tag.app": "bot"}, output=100)
        world.line(f"{day} 10:00", "10", token_class="output", tokens=100)
    return world


def tell(world, engine, folder, settings, channels=("slack",), now=NOW, scope=None, **more):
    snapshot = world.snapshot(scope or settings.scope())
    return runs.run(snapshot, settings, engine, channels, now, folder=folder, **more)


def messages(engine):
    with engine.connect() as connection:
        return connection.execute(select(outbox_message).order_by(outbox_message.c.seq)).all()


def rows(engine):
    with engine.connect() as connection:
        return connection.execute(select(report_run).order_by(report_run.c.period_start)).all()


def test_a_day_is_told_once_with_its_page_its_row_and_a_message_per_channel(published, engine, folder, settings):
    first = tell(published, engine, folder, settings, ("slack", "mail"))
    again = tell(published, engine, folder, settings, ("slack", "mail"))

    assert (first.outcome, first.messages) == ("told", 2)
    assert (again.outcome, again.messages) == ("known", 0)
    sent = messages(engine)
    assert {(m.channel, m.key) for m in sent} == {(name, "report/daily-cost/2026-10-09") for name in ("slack", "mail")}
    assert all(m.message["data"]["figure"] == "10.000000000" for m in sent)
    [row] = rows(engine)
    assert (row.period_start, row.period_end) == (
        datetime(2026, 10, 9, tzinfo=UTC),
        datetime(2026, 10, 10, tzinfo=UTC),
    )
    assert (row.manifest, row.message_key) == (first.manifest, sent[0].key)
    page = folder / "daily-cost" / "2026-10-09.html"
    assert first.pages[0].path == page
    assert page.read_text() == sent[0].message["html"]
    assert [path.name for path in page.parent.iterdir()] == [page.name]


def test_a_page_that_was_removed_is_written_again_without_a_message(published, engine, folder, settings):
    page = tell(published, engine, folder, settings).pages[0].path
    page.unlink()
    assert tell(published, engine, folder, settings, by_hand=True).messages == 0
    assert page.exists()


@pytest.mark.parametrize("point", ["before-page", "after-page", "before-commit", "after-commit"])
def test_killed_anywhere_and_run_again_it_tells_once(published, engine, folder, settings, point):
    published.publish()
    url = engine.url.render_as_string(hide_password=False)
    command = [sys.executable, "-m", "tests.reports.run_process", published.layout.published, url, folder, point]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert killed.returncode == -9, killed.stderr
    assert len(messages(engine)) == len(rows(engine)) == (1 if point == "after-commit" else 0)

    tell(published, engine, folder, settings)

    assert len(messages(engine)) == len(rows(engine)) == 1
    assert (folder / "daily-cost" / "2026-10-09.html").exists()


def test_a_message_that_cannot_be_written_leaves_no_row(published, engine, folder, settings, monkeypatch):
    def broken(*_, **__):
        raise OSError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(runs.outbox, "enqueue", broken)
        with pytest.raises(OSError, match="disk full"):
            tell(published, engine, folder, settings)
    assert rows(engine) == []
    assert tell(published, engine, folder, settings).outcome == "told"


def test_two_runs_at_once_tell_once(published, engine, folder, settings):
    published.publish()
    snapshots = [published.snapshot() for _ in range(2)]
    found = []

    def go(snapshot):
        found.append(runs.run(snapshot, settings, engine, ("slack",), NOW, folder=folder).messages)

    threads = [threading.Thread(target=go, args=(snapshot,)) for snapshot in snapshots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [0, 1]
    assert len(messages(engine)) == len(rows(engine)) == 1


def test_a_figure_that_moved_a_little_is_no_second_message(published, engine, folder, settings):
    tell(published, engine, folder, settings)
    published.line("2026-10-09 11:00", "0.40", token_class="output", tokens=4)
    again = tell(published, engine, folder, settings)
    assert (again.outcome, again.messages, len(messages(engine))) == ("known", 0, 1)


def test_a_figure_that_moved_more_is_told_again_and_says_so(published, engine, folder, settings):
    page = tell(published, engine, folder, settings).pages[0].path
    published.line("2026-10-09 11:00", "4", token_class="output", tokens=40)

    again = tell(published, engine, folder, settings)

    assert (again.outcome, again.messages) == ("restated", 1)
    message = messages(engine)[-1].message
    assert messages(engine)[-1].key == "report/daily-cost/2026-10-09/restated-1"
    assert message["subject"].startswith("Restated: inference cost, Fri 9 Oct: $14.00")
    for form in (message["html"], message["text"], str(message["blocks"]), page.read_text()):
        assert "this day was told as $10.00 and is now $14.00 (+40 %)" in form
    assert message["data"]["restated_from"] == "10.000000000"
    [row] = rows(engine)
    assert (row.manifest, row.message_key) == (again.manifest, "report/daily-cost/2026-10-09/restated-1")

    assert tell(published, engine, folder, settings).messages == 0
    published.line("2026-10-09 12:00", "-4", token_class="output", tokens=40)
    assert tell(published, engine, folder, settings).pages[0].message_key.endswith("/restated-2")


def test_an_earlier_day_that_moved_is_told_again_and_one_that_moved_less_is_mentioned(
    published, engine, folder, settings
):
    for as_of in ("2026-10-08 06:00", "2026-10-09 06:00"):
        published.as_of = as_of
        tell(published, engine, folder, settings)
    published.line("2026-10-07 11:00", "0.40", token_class="output", tokens=4)
    published.line("2026-10-08 11:00", "5", token_class="output", tokens=50)
    published.as_of = "2026-10-10 06:00"

    done = tell(published, engine, folder, settings)

    assert [(page.day.isoformat(), page.outcome) for page in done.pages] == [
        ("2026-10-08", "restated"),
        ("2026-10-09", "told"),
    ]
    newest = messages(engine)[-1].message["html"]
    assert "$10.00 told, now $10.40 (+$0.40, +4.0 %)" in newest
    assert "$10.00 told, now $15.00 (+$5.00, +50 %)" in newest


def test_a_figure_that_becomes_known_is_told_again(world, engine, folder, settings):
    world.as_of = "2026-10-10 06:00"
    world.call("2026-10-09 10:10", {"key_alias": "search"}, output=1_000_000)
    assert tell(world, engine, folder, settings).pages[0].figure is None
    assert "unknown" in messages(engine)[0].message["subject"]
    world.price(output="15")
    again = tell(world, engine, folder, settings)
    assert (again.outcome, again.pages[0].figure) == ("restated", Decimal(15))
    assert "told as unknown and is now $15.00" in messages(engine)[1].message["text"]


def test_an_estimate_that_the_bill_replaces_says_so(world, engine, folder, settings):
    world.as_of = "2026-10-10 06:00"
    world.price(output="15")
    world.call("2026-10-09 10:10", {"key_alias": "search"}, output=1_000_000)
    tell(world, engine, folder, settings)
    world.line("2026-10-09 10:00", "12", token_class="output", tokens=1_000_000)
    tell(world, engine, folder, settings)
    first, second = (row.message for row in messages(engine))
    assert (first["data"]["basis"], second["data"]["basis"]) == ("estimated", "billed")
    assert "told as $15.00 and is now $12.00 (−20 %). That figure was partly an estimate." in second["text"]


def test_it_waits_for_its_time_unless_made_by_hand(published, engine, folder, settings):
    early = datetime(2026, 10, 10, 7, 59, tzinfo=UTC)
    waiting = tell(published, engine, folder, settings, now=early)
    assert (waiting.outcome, waiting.messages, waiting.due_at) == ("waiting", 0, datetime(2026, 10, 10, 8, tzinfo=UTC))
    assert messages(engine) == []
    assert tell(published, engine, folder, settings, now=early, by_hand=True).messages == 1


def test_a_report_without_a_schedule_is_made_by_hand_only(published, engine, folder):
    settings = ReportSettings(name="by-hand", schedule=None)
    assert tell(published, engine, folder, settings).outcome == "waiting"
    assert tell(published, engine, folder, settings, by_hand=True).outcome == "told"


def test_two_reports_of_one_day_are_two(published, engine, folder, settings):
    tell(published, engine, folder, settings)
    tell(published, engine, folder, ReportSettings(name="search-cost", teams=("search",)))
    assert [m.key for m in messages(engine)] == ["report/daily-cost/2026-10-09", "report/search-cost/2026-10-09"]


def test_without_a_channel_the_page_is_made_all_the_same(published, engine, folder, settings):
    done = tell(published, engine, folder, settings, channels=())
    assert (done.outcome, done.messages, done.problems) == ("told", 0, ())
    assert done.pages[0].path.exists()


def test_a_channel_that_does_not_exist_is_a_problem_and_the_others_get_the_message(published, engine, folder):
    settings = ReportSettings(name="daily-cost", channels=("slack", "slakc"))
    done = tell(published, engine, folder, settings, channels=("slack", "mail"))
    assert done.problems == ("report `daily-cost`: channel `slakc` is not configured; add it under delivery.channels",)
    assert [m.channel for m in messages(engine)] == ["slack"]


def test_an_empty_organisation_tells_nothing_and_says_why(world, engine, folder, settings):
    done = tell(world, engine, folder, settings)
    assert (done.outcome, done.pages, messages(engine)) == ("no_data", (), [])
    assert "covers no whole day yet" in done.problems[0]


def test_a_snapshot_of_another_scope_is_refused(published, engine, folder, settings):
    team = ReportSettings(name="team", teams=("search",))
    with pytest.raises(Forbidden, match="shows team search, but the snapshot was opened for the whole organisation"):
        tell(published, engine, folder, team, scope=Scope.everything("test"))
    with pytest.raises(Forbidden, match="shows the whole organisation, but"):
        tell(published, engine, folder, settings, scope=Scope.of("test", ["search"]))
    assert not folder.exists()


def test_the_last_covered_day_has_ended_in_the_zone_and_has_evidence(published):
    published.as_of = "2026-10-09 23:59"
    assert last_covered_day(published.snapshot()) == date(2026, 10, 8)
    published.as_of = "2026-10-10 00:00"
    assert last_covered_day(published.snapshot()) == date(2026, 10, 9)
    published.as_of = "2026-10-13 00:00"
    assert last_covered_day(published.snapshot()) == date(2026, 10, 9)


def test_a_local_day_may_have_23_or_25_hours():
    lengths = [Period.of(date(2026, *day), "Europe/Paris") for day in ((3, 29), (10, 25), (10, 26))]
    assert [(period.end - period.start) / timedelta(hours=1) for period in lengths] == [23, 25, 24]


def test_a_report_is_due_at_its_time_in_the_zone(settings):
    assert due_at(settings, Period.of(date(2026, 10, 24), "Europe/Paris")) == datetime(2026, 10, 25, 7, tzinfo=UTC)
    assert due_at(settings, Period.of(date(2026, 7, 1), "Europe/Paris")) == datetime(2026, 7, 2, 6, tzinfo=UTC)
