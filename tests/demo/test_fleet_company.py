"""The company's GPU fleet: engines, log, bill and truth say the same."""

import time
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from demo.clock import Window
from demo.fleet import company as fleets
from demo.fleet.company import FleetOfCompany
from demo.fleet.usage import legs_by_life
from demo.organisation import write
from tests.demo.conftest import Company

Record = dict[str, Any]


@pytest.fixture(scope="module")
def fleet() -> FleetOfCompany:
    """Six days, simulated but not written."""
    return fleets.simulate(7, Window(6, date(2026, 11, 14)), 0.1)


def test_gpu_time_of_requests_adds_up_to_the_stepping_time(fleet: FleetOfCompany) -> None:
    """Per process of an engine, to the microsecond: failed and unlogged work is among the requests."""
    worked = legs_by_life(fleet.fleet.attempts)
    for replica in fleet.fleet.replicas:
        for life in replica.lives:
            used = sum(sum(leg.gpu_us) for leg in worked.get(id(life), []))
            assert used == life.stepping_ns * replica.spec.gpus // 1000
    assert {attempt.outcome.name for attempt in fleet.fleet.attempts} >= {"SUCCESS", "TIMED_OUT", "CANCELLED"}


def test_minutes_add_up_to_what_the_engine_stepped_and_lie_within_each_other(fleet: FleetOfCompany) -> None:
    for replica, rows in fleet.minutes:
        assert int(rows["step_us"].sum()) == sum(life.stepping_ns // 1000 for life in replica.lives)
        assert int(rows["running_us"].sum()) == sum(life.running_ns // 1000 for life in replica.lives)
        # a minute's edge rounds down to a microsecond
        assert (rows["step_us"] <= rows["running_us"] + 1).all()
        assert (rows["running_us"] <= rows["ready_us"] + 1).all()
        assert (rows["ready_us"] <= rows["held_us"]).all()


def test_records_of_the_log_are_the_attempts_of_the_truth(company: Company, fleet_records: list[Record]) -> None:
    true = company.sql("SELECT DISTINCT id, litellm_call_id, attempt FROM fleet_request WHERE id IS NOT NULL")
    logged = Counter(
        (one["id"], one["litellm_call_id"], one["metadata"].get("attempted_retries", 0)) for one in fleet_records
    )
    assert logged == Counter(true)
    assert company.sql("SELECT count(*) FROM fleet_request WHERE bypassed AND id IS NOT NULL") == [(0,)]
    assert company.truth["fleet"]["gateway_records"] == len(fleet_records)


def test_tokens_of_the_log_are_those_that_engines_processed(company: Company, fleet_records: list[Record]) -> None:
    true = {
        call: tokens
        for call, *tokens in company.sql(
            """
            SELECT id, sum(uncached_input_tokens)::BIGINT, sum(cache_read_tokens)::BIGINT, sum(output_tokens)::BIGINT
            FROM fleet_request WHERE status = 'success' AND NOT bypassed AND id IS NOT NULL GROUP BY id
            """
        )
    }
    answered = [one for one in fleet_records if one["status"] == "success"]
    assert len(answered) == len(true) > 5000
    for one in answered:
        usage = one["metadata"]["usage_object"]
        read_tokens = usage["prompt_tokens_details"]["cached_tokens"]
        assert true[one["id"]] == [usage["prompt_tokens"] - read_tokens, read_tokens, usage["completion_tokens"]]
        assert one["response_cost"] == 0
        assert one["response_cost_failure_debug_info"] is not None


def test_failed_attempts_are_tried_in_the_other_region(fleet_records: list[Record]) -> None:
    answers = {one["litellm_call_id"]: one for one in fleet_records if one["status"] == "success"}
    failures = [one for one in fleet_records if one["status"] == "failure"]
    assert {one["error_information"]["error_class"] for one in failures} >= {"Timeout", "ServiceUnavailableError"}
    moved = 0
    for one in failures:
        answer = answers.get(one["litellm_call_id"])
        if answer is not None:
            assert (one["model_id"][-9:], answer["model_id"][-9:]) == ("us-east-1", "eu-west-1")
            assert answer["startTime"] > one["endTime"]
            moved += 1
    assert moved >= 3


def test_the_bill_holds_every_node_hour_at_its_effective_price(company: Company) -> None:
    differing = company.sql(
        """
        WITH bill AS (
            SELECT line_item_resource_id AS instance_id, line_item_usage_start_date AS hour,
                   sum(line_item_usage_amount * 3600) AS seconds,
                   sum(CASE line_item_line_item_type WHEN 'Usage' THEN nano
                       ELSE round(savings_plan_savings_plan_effective_cost * 1e9) END)::BIGINT AS nano
            FROM cur WHERE line_item_resource_id LIKE 'i-0%' AND resource_tags['aws_eks_cluster_name'] IS NOT NULL
              AND line_item_line_item_type IN ('Usage', 'SavingsPlanCoveredUsage')
            GROUP BY ALL
        ), truth AS (
            SELECT instance_id, hour::TIMESTAMP AS hour, seconds_billed, cost_nano FROM fleet_node_hour WHERE in_bill
        )
        SELECT * FROM bill FULL JOIN truth USING (instance_id, hour)
        WHERE nano IS DISTINCT FROM cost_nano OR abs(seconds - seconds_billed) > 1e-6 OR seconds IS NULL
        """
    )
    assert differing == []


def test_the_savings_plan_is_a_fee_an_hour_of_which_a_part_is_not_used(company: Company) -> None:
    (row,) = company.sql(
        """
        SELECT count(*), count(DISTINCT line_item_usage_start_date), min(nano), max(nano),
               bool_and(savings_plan_used_commitment <= savings_plan_total_commitment_to_date + 1e-9),
               count(*) FILTER (savings_plan_used_commitment BETWEEN 1 AND savings_plan_total_commitment_to_date - 1)
        FROM cur WHERE line_item_line_item_type = 'SavingsPlanRecurringFee'
        """
    )
    hours, distinct, least, most, bounded, partly = row
    assert hours == distinct == 26 * 24  # to the end of the month
    assert least == most == company.truth["fleet"]["savings_plan_commitment_nano_an_hour"]
    assert bounded
    assert partly > 24
    assert company.sql(
        """
        SELECT bool_and(abs(sum_used - used) < 1e-6) FROM (
            SELECT line_item_usage_start_date, sum(savings_plan_savings_plan_effective_cost) AS sum_used,
                   sum(savings_plan_used_commitment) AS used
            FROM cur WHERE line_item_line_item_type LIKE 'SavingsPlan%' GROUP BY 1)
        """
    ) == [(True,)]


def test_gpus_requested_never_pass_those_of_the_node(company: Company) -> None:
    assert company.sql(
        "SELECT count(*) FROM fleet_node_hour WHERE gpu_us_requested > seconds_billed * 1000000 * gpus + 1000000"
    ) == [(0,)]
    ((idle,),) = company.sql(
        """
        SELECT count(*) FROM fleet_node_hour WHERE instance_type = 'p5.48xlarge' AND seconds_billed = 3600
          AND gpu_us_requested = 4 * 3600 * 1000000::BIGINT
        """
    )
    assert idle > 20, "half of the second p5 is requested by nobody"


def test_planted_events_are_there(company: Company) -> None:
    planted = {event["name"] for event in company.truth["fleet"]["planted"]}
    assert planted >= {
        "node_loss",
        "spot_interruption",
        "engine_restart",
        "canary",
        "rollout",
        "idle_weekend",
        "metrics_outage",
        "scrape_gap",
        "scale_up",
        "scale_down",
    }
    versions = company.sql("SELECT DISTINCT version FROM fleet_replica_minute WHERE route = 'qwen3-32b' ORDER BY 1")
    assert versions == [("0.19.1",), ("0.33.0",)]


def test_the_truth_of_the_fleet_has_whole_numbers_only(company: Company) -> None:
    for view in ("fleet_request", "fleet_replica_minute", "fleet_node_hour"):
        types = {kind for _, kind, *_ in company.sql(f"DESCRIBE {view}")}
        assert types <= {"VARCHAR", "BIGINT", "BOOLEAN", "TIMESTAMP WITH TIME ZONE"}


def test_another_scale_has_other_traffic_but_the_same_base_fleet() -> None:
    window = Window(2, date(2026, 11, 14))
    small, large = (fleets.simulate(7, window, scale) for scale in (0.01, 0.05))
    assert 3 * len(small.fleet.requests) < len(large.fleet.requests)
    assert {node.instance_type.name for node in small.fleet.nodes} == {
        node.instance_type.name for node in large.fleet.nodes
    }


def test_a_small_company_with_its_fleet_is_fast(tmp_path: Path) -> None:
    started = time.process_time()
    write(tmp_path, days=2, scale=0.05)
    assert time.process_time() - started < 15
