"""INFERLEDGER_NO_SKIPS=1 turns every skip into a failure, but for the samples' absence."""

import pytest

from tests import needs

CONFTEST = "from tests.conftest import pytest_make_collect_report, pytest_runtest_makereport"


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    pytester.syspathinsert(needs.ROOT)
    pytester.makeconftest(CONFTEST)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # importing hypothesis anew for each run takes a second
    monkeypatch.setenv("INFERLEDGER_NO_SKIPS", "1")
    monkeypatch.setenv("INFERLEDGER_SAMPLES", str(pytester.path / "no-samples"))
    return pytester


SKIPS_OF_ONE_TEST = {
    "call": "def test_it(): pytest.skip('no browser')",
    "marker": "@pytest.mark.skip(reason='no browser')\ndef test_it(): pass",
    "skipif": "@pytest.mark.skipif(True, reason='no browser')\ndef test_it(): pass",
    "fixture": "@pytest.fixture\ndef page(): pytest.skip('no browser')\ndef test_it(page): pass",
    "unittest": "import unittest\nclass Test(unittest.TestCase):\n  def test_it(self): self.skipTest('no browser')",
}


@pytest.mark.parametrize("source", SKIPS_OF_ONE_TEST.values(), ids=SKIPS_OF_ONE_TEST.keys())
def test_a_skipped_test_fails_and_says_why(suite: pytest.Pytester, source: str) -> None:
    suite.makepyfile(f"import pytest\n{source}")
    result = suite.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*INFERLEDGER_NO_SKIPS=1 forbids it: no browser*"])
    assert "skipped" not in result.parseoutcomes()


@pytest.mark.parametrize(
    "source",
    ["pytest.skip('no browser', allow_module_level=True)", "pytest.importorskip('a_library_that_is_not_there')"],
    ids=["skip", "importorskip"],
)
def test_a_skipped_module_fails(suite: pytest.Pytester, source: str) -> None:
    suite.makepyfile(f"import pytest\n{source}\ndef test_it(): pass")
    result = suite.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*INFERLEDGER_NO_SKIPS=1 forbids it*"])


@pytest.mark.parametrize(
    "source",
    ["def test_it(): needs.samples('billing')", "needs.samples()\ndef test_it(): pass"],
    ids=["test", "module"],
)
def test_a_skip_for_absent_samples_stays_a_skip(suite: pytest.Pytester, source: str) -> None:
    suite.makepyfile(f"from tests import needs\n{source}")
    result = suite.runpytest_inprocess("-ra")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines([f"SKIPPED*{needs.SAMPLES_ABSENT}*"])


def test_an_expected_failure_is_no_skip(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n@pytest.mark.xfail(strict=True)\ndef test_it(): assert False")
    suite.runpytest_inprocess().assert_outcomes(xfailed=1)


def test_without_the_variable_a_skip_is_a_skip(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INFERLEDGER_NO_SKIPS")
    suite.makepyfile("import pytest\ndef test_it(): pytest.skip('no browser')")
    suite.runpytest_inprocess().assert_outcomes(skipped=1)
