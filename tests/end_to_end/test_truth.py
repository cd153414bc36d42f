"""What the ledger says against what really happened. Only tests and benches may know the latter."""

import json
from datetime import datetime

import duckdb
import pytest
import yaml

from demo import organisation
from tests.end_to_end.conftest import Site

pytestmark = pytest.mark.slow
# The own fleet's calls have a truth of their own, of what its engines did: bench/accuracy.py.
WITHOUT_METRICS = 19
MANAGED = "provider IS DISTINCT FROM 'self-hosted'"


@pytest.fixture(scope="module", params=[7, WITHOUT_METRICS])
def restated(request, tmp_path_factory) -> Site:
    """A company of five days, loaded, then restated and loaded again; the second without metrics of its own fleet."""
    folder = tmp_path_factory.mktemp("truth") / f"acme-{request.param}"
    organisation.write(folder, days=5, scale=0.06, seed=request.param)
    configuration = yaml.safe_load(organisation.config())
    if request.param == WITHOUT_METRICS:
        configuration["sources"] = [each for each in configuration["sources"] if each["kind"] != "openmetrics"]
    (folder / "inferledger.yaml").write_text(yaml.safe_dump(configuration))
    facts = folder / organisation.FACTS
    site = Site(folder, datetime.fromisoformat(json.loads(facts.read_text())["as_of"]))
    site.whole_way()
    organisation.deliver_restatement(folder)
    site.whole_way()
    return site


def truth(site: Site, sql: str):
    connection = duckdb.connect()
    connection.execute(f"CREATE VIEW truth AS FROM '{site.folder}/truth/cost_by_hour_restated.parquet' WHERE in_bill")
    return connection.execute(sql).fetchall()


def ledger(site: Site, sql: str):
    return [tuple(row.values()) for row in site.snapshot().sql(sql).to_pylist()]


def test_nothing_is_attributed_to_the_wrong_team(restated):
    real = dict(truth(restated, "SELECT team, sum(cost_nano_usd)::BIGINT FROM truth WHERE cause IS NULL GROUP BY team"))
    ours = dict(
        ledger(
            restated,
            "SELECT team, sum(effective_nano)::BIGINT FROM cost_day "
            f"WHERE kind = 'usage' AND basis = 'billed' AND team IS NOT NULL AND {MANAGED} GROUP BY team",
        )
    )
    assert set(ours) == set(real)
    too_much = sum(max(0, ours[team] - real[team]) for team in real)
    # a share may be a nano off per posting: what the truth splits by call, the ledger splits by bucket
    assert too_much < 1_000_000, {team: ours[team] - real[team] for team in real}


def test_what_has_no_owner_is_what_was_planted_as_such(restated):
    ((planted,),) = truth(restated, "SELECT sum(cost_nano_usd)::BIGINT FROM truth WHERE cause IS NOT NULL")
    ((ownerless,),) = ledger(
        restated,
        "SELECT sum(effective_nano)::BIGINT FROM cost_day WHERE team IS NULL "
        f"AND kind IN ('usage', 'unattributed') AND basis = 'billed' AND {MANAGED}",
    )
    assert planted > 0
    assert abs(ownerless - planted) <= planted // 100


def test_what_no_log_explains_is_what_the_gateway_did_not_see(restated):
    ((unseen,),) = truth(
        restated, "SELECT sum(cost_nano_usd)::BIGINT FROM truth WHERE cause IN ('timed_out', 'cut_off')"
    )
    ((unattributed,),) = ledger(
        restated, f"SELECT sum(effective_nano)::BIGINT FROM cost_day WHERE kind = 'unattributed' AND {MANAGED}"
    )
    assert abs(unattributed - unseen) <= max(unseen // 100, 1_000_000)


def test_every_app_costs_what_it_really_cost(restated):
    real = dict(truth(restated, "SELECT app, sum(cost_nano_usd)::BIGINT FROM truth WHERE cause IS NULL GROUP BY app"))
    ours = dict(
        ledger(
            restated,
            "SELECT app, sum(effective_nano)::BIGINT FROM cost_day WHERE kind = 'usage' "
            f"AND basis = 'billed' AND app IS NOT NULL AND {MANAGED} GROUP BY app",
        )
    )
    assert set(ours) == set(real)
    assert all(abs(ours[app] - real[app]) < 1_000_000 for app in real)


def test_closed_agent_tasks_cost_what_they_really_cost(restated):
    connection = duckdb.connect()
    real = dict(
        connection.execute(
            f"SELECT task, cost_nano_usd_restated FROM '{restated.folder}/truth/cost_by_task.parquet' WHERE all_in_bill"
        ).fetchall()
    )
    ours = dict(ledger(restated, "SELECT task_id, effective_nano FROM task_cost WHERE estimated_nano IS NULL"))
    common = set(real) & set(ours)
    assert len(common) > 20
    assert all(abs(ours[task] - real[task]) < 100_000 for task in common)


@pytest.mark.parametrize("restated", [7], indirect=True)
def test_each_model_of_the_own_fleet_costs_what_its_replicas_held(restated):
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    real = dict(
        connection.execute(
            f"""SELECT route, sum(cost_nano)::BIGINT FROM '{restated.folder}/truth/fleet_replica_minute.parquet'
                WHERE minute < (SELECT max(hour) + INTERVAL 1 HOUR
                                FROM '{restated.folder}/truth/fleet_node_hour.parquet' WHERE in_bill) GROUP BY route"""
        ).fetchall()
    )
    ours = dict(
        ledger(
            restated,
            "SELECT model, sum(effective_nano)::BIGINT FROM cost_day WHERE cluster IS NOT NULL AND basis = 'billed' "
            "AND line_class = 'accelerator' AND model IS NOT NULL GROUP BY model",
        )
    )
    assert set(ours) == set(real)
    assert all(abs(ours[model] - real[model]) < real[model] // 100 for model in real), (ours, real)


def test_the_books_balance_to_the_last_decimal(restated):
    rows = ledger(restated, "SELECT billing_period, cost_basis, difference_usd FROM balance")
    assert len(rows) >= 2
    assert {difference for *_, difference in rows} == {0}


def test_the_unpriced_model_is_unknown_until_billed_and_never_free(restated):
    rows = ledger(
        restated,
        "SELECT basis, effective_nano IS NULL, sum(tokens) FROM cost_day WHERE model = 'nova-ultra-2' "
        "GROUP BY ALL ORDER BY ALL",
    )
    assert rows, "the incident fits into ten days"
    assert all(is_null == (basis == "estimated") for basis, is_null, _ in rows)


def test_the_restatement_is_explained_by_day_and_service(restated):
    rows = ledger(
        restated,
        "SELECT charge_day::VARCHAR, service_name, effective_change_usd FROM bill_version "
        "WHERE delivery = 2 AND effective_change_usd <> 0 AND service_name LIKE '%Bedrock%'",
    )
    assert rows
