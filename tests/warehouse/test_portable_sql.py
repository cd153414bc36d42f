"""Every waterfall file means the same on every engine: the lint, and the rows themselves on Spark."""

import pytest

from warehouse import render, waterfall


@pytest.mark.parametrize("name", waterfall.names())
def test_a_step_uses_only_constructs_that_mean_the_same_everywhere(name):
    assert render.forbidden(waterfall.text(name)) == []


@pytest.mark.parametrize("name", waterfall.names())
def test_a_step_states_its_grain_and_its_inputs(name):
    header = waterfall.text(name).split("SELECT")[0]
    assert header.startswith("-- Step ")
    assert "-- grain:" in header
    assert "-- inputs:" in header


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        ("SELECT a // b AS c FROM t", "//"),
        ("SELECT CAST(a * 1.5 AS BIGINT) AS c FROM t", "CAST"),
        ("SELECT sum(a) AS c FROM t", "HUGEINT"),
        ("SELECT time_bucket(INTERVAL 1 HOUR, a) AS c FROM t", "TIME_BUCKET"),
        ("SELECT epoch(a) AS c FROM t", "EPOCH"),
        ("SELECT a FROM t ASOF JOIN u ON t.a >= u.a", "ASOF"),
        ("SELECT a FROM t WHERE a NOT IN (SELECT b FROM u)", "NOT IN"),
        ("SELECT date_trunc('hour', a) AS c FROM t", "date_trunc"),
        ("SELECT regexp_replace(a, 'x', 'y') AS c FROM t", "REGEXP_REPLACE"),
        ("SELECT avg(a) AS c FROM t", "AVG"),
        ("SELECT a, count(*) AS n FROM t GROUP BY ALL", "GROUP BY ALL"),
        ("SELECT unnest(generate_series(a, b)) AS c FROM t", "GENERATE_SERIES"),
        ("SELECT quantile_cont(a, 0.5) AS c FROM t", "QUANTILE_CONT"),
        ("DELETE FROM t", "one SELECT"),
    ],
)
def test_the_lint_finds_what_differs(text, finding):
    assert any(finding.upper() in found.upper() for found in render.forbidden(text)), render.forbidden(text)
