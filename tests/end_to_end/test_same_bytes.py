"""Loading everything twice, in another order, or killed at any step and run again publishes the same bytes."""

import random
import subprocess
import time

import pytest

from demo import organisation
from warehouse import derived

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def expected(company, tmp_path_factory):
    """What one undisturbed run publishes after both deliveries of the bill."""

    site = company.copy(tmp_path_factory.mktemp("expected") / "acme")
    organisation.deliver_restatement(site.folder)
    site.whole_way()
    return site.published_bytes()


def test_loading_everything_twice_and_files_copied_anew_changes_nothing(site, expected):
    organisation.deliver_restatement(site.folder)
    site.whole_way()
    assert site.collect().loaded == ()
    for path in (site.folder / "gateway").rglob("*.gz"):
        path.touch()
    assert site.collect().loaded != ()
    site.attribute()
    site.publish()
    assert site.published_bytes() == expected


def test_the_log_before_the_bill_and_a_publication_in_between(site, expected):
    site.collect("gateway")
    site.attribute()
    site.publish()
    site.collect("aws-bill")
    site.attribute()
    site.publish()
    organisation.deliver_restatement(site.folder)
    site.whole_way()
    assert site.published_bytes() == expected


def test_the_bill_first_and_the_log_day_by_day_backwards(site, expected):
    organisation.deliver_restatement(site.folder)
    gateway, waiting = site.folder / "gateway", site.folder / "waiting"
    gateway.rename(waiting)
    gateway.mkdir()
    site.collect("aws-bill")
    site.attribute()
    site.publish()
    for day in sorted(waiting.iterdir(), reverse=True):
        day.rename(gateway / day.name)
        site.collect("gateway")
        site.attribute()
    site.whole_way()
    assert site.published_bytes() == expected


def test_killed_at_any_step_and_run_again(site, expected):
    organisation.deliver_restatement(site.folder)
    chance = random.Random(4)
    killed = 0
    at = ["--as-of", site.as_of.isoformat()]
    for words in (["collect", *at], ["attribute", *at], ["publish"]):
        started = time.monotonic()
        for attempt in range(6):
            process = site.command(*words)
            delay = 0.4 + chance.random() * (0.7 + attempt * 0.5)
            try:
                process.communicate(timeout=delay)
            except subprocess.TimeoutExpired:
                process.kill()  # SIGKILL: no clean-up of any kind
                process.communicate()
                killed += 1
            else:
                break
        else:
            _, said = site.command(*words).communicate(timeout=120)
            assert b"Traceback" not in said
        assert time.monotonic() - started < 200
    assert killed >= 3
    site.whole_way()
    assert site.published_bytes() == expected


def test_a_crash_after_the_pointer_moved_is_a_publication_done_again(site, expected, monkeypatch):
    organisation.deliver_restatement(site.folder)
    site.collect()
    site.attribute()

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(derived, "remember", crash)
    with pytest.raises(KeyboardInterrupt):
        site.publish()
    monkeypatch.undo()
    site.publish()
    assert site.published_bytes() == expected
