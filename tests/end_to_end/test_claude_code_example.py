"""The example over real agent sessions meets the numbers that are known of them."""

import shutil
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from inferledger import config as configurations
from inferledger import jobs
from tests import needs
from warehouse import measures

pytestmark = pytest.mark.samples

EXAMPLE = Path(__file__).parents[2] / "examples" / "claude-code" / "inferledger.yaml"


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    requests = needs.samples("traces", "claude_code_agentic", "agentic_requests.parquet")
    folder = tmp_path_factory.mktemp("claude-code")
    settings = yaml.safe_load(EXAMPLE.read_text())
    settings["sources"][0]["location"] = str(requests)
    (folder / "inferledger.yaml").write_text(yaml.safe_dump(settings))
    configuration = configurations.load(folder / "inferledger.yaml")
    report = jobs.collect(configuration)
    assert report.findings == ()
    assert report.total("rows_filtered") == 3_116
    jobs.attribute(configuration)
    jobs.publish(configuration)
    yield jobs.snapshot(configuration)
    shutil.rmtree(folder, ignore_errors=True)


def figure(snapshot, name):
    return measures.table(snapshot, [name]).to_pylist()[0][name]


def test_requests_tasks_and_tokens_are_the_known_ones(snapshot):
    assert figure(snapshot, "requests") == 46_218
    assert figure(snapshot, "tasks") == 692
    assert figure(snapshot, "input_tokens") == 5_467_403_989
    assert figure(snapshot, "output_tokens") == 20_339_420


@pytest.mark.parametrize(
    ("measure", "usd"),
    [
        ("uncached_cost_usd", "23451.69"),
        ("list_base_cost_usd", "3714.70"),
        ("list_cost_usd", "4272.68"),
        ("usage_cost_usd", "4272.68"),
        ("estimated_cost_usd", "4272.68"),
    ],
)
def test_the_prices_come_out_to_the_cent(snapshot, measure, usd):
    assert round(figure(snapshot, measure), 2) == Decimal(usd)


def test_the_hit_rate_is_by_token_not_by_request(snapshot):
    assert round(figure(snapshot, "cache_hit_ratio"), 3) == 0.962


def test_the_dearest_task_costs_what_is_known(snapshot):
    rows = snapshot.sql("SELECT estimated_nano FROM task_cost ORDER BY estimated_nano DESC LIMIT 1").to_pylist()
    assert round(Decimal(rows[0]["estimated_nano"]).scaleb(-9), 2) == Decimal("42.03")
