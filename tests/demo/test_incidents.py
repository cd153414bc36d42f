"""Every planted incident is in the data, with the size the truth says."""

from datetime import datetime
from typing import Any

import pytest

from demo.organisation import deliver_restatement, write
from tests.demo.conftest import Company

Record = dict[str, Any]

NAMES = {
    "cache_collapse",
    "runaway_agent",
    "retry_storm",
    "unpriced_model",
    "untagged",
    "price_change",
    "bill_restatement",
    "unseen_usage",
}


def seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()


def cost_of(company: Company, where: str) -> int:
    ((nano,),) = company.sql(f"SELECT sum(cost_nano_usd)::BIGINT FROM by_call WHERE {where}")
    assert isinstance(nano, int)
    return nano


def test_all_incidents_happen(company: Company) -> None:
    incidents = company.truth["incidents"]
    assert {incident["name"] for incident in incidents} == NAMES
    for incident in incidents:
        assert "2026-11-05T00:00:00Z" <= incident["start"] < "2026-11-15T00:00:00Z"
        assert incident["end"] is None or incident["start"] < incident["end"] <= "2026-11-15T00:00:00Z"


def test_cache_collapse(company: Company, records: list[Record]) -> None:
    incident = company.incident("cache_collapse")
    start, end = seconds(incident["start"]), seconds(incident["end"])
    reads = {True: 0, False: 0}
    prompts = {True: 0, False: 0}
    for one in records:
        if f"app:{incident['app']}" in one["request_tags"] and one["status"] == "success":
            during = start <= one["startTime"] < end
            reads[during] += one["metadata"]["usage_object"].get("cache_read_input_tokens", 0)
            prompts[during] += one["prompt_tokens"]
    assert reads[True] / prompts[True] < 0.02
    assert reads[False] / prompts[False] > 0.75
    assert incident["cost_nano_usd"] == cost_of(company, "is_cache_collapse")
    assert 0 < incident["details"]["extra_cost_nano_usd"] < incident["cost_nano_usd"]
    assert 0 < incident["details"]["lost_cache_read_tokens"] < incident["tokens"]


def test_runaway_agent(company: Company, records: list[Record]) -> None:
    incident = company.incident("runaway_agent")
    mine = [one for one in records if one["trace_id"] == incident["details"]["task"]]
    assert len(mine) == incident["calls"]
    assert sum(one["total_tokens"] for one in mine) == incident["tokens"]
    assert company.sql(f"SELECT calls, cost_nano_usd FROM by_task WHERE task = '{incident['details']['task']}'") == [
        (incident["calls"], incident["cost_nano_usd"])
    ]
    assert company.sql("SELECT task FROM by_task ORDER BY calls DESC LIMIT 1") == [(incident["details"]["task"],)]


def test_retry_storm(company: Company, records: list[Record]) -> None:
    """Two successes of one trace, with the same prompt, the second two seconds after the first."""
    incident = company.incident("retry_storm")
    answers: dict[str, list[Record]] = {}
    for one in records:
        if "app:product-search" in one["request_tags"] and one["call_type"] == "acompletion":
            answers.setdefault(one["trace_id"], []).append(one)
    pairs = [
        pair
        for pair in answers.values()
        if len({one["litellm_call_id"] for one in pair if one["status"] == "success"}) == 2
    ]
    assert len(pairs) == incident["calls"]
    for pair in pairs:
        first, second = sorted((one for one in pair if one["status"] == "success"), key=lambda one: one["startTime"])
        assert first["prompt_tokens"] == second["prompt_tokens"]
        assert 2 <= second["startTime"] - first["startTime"] < 2.1
        assert seconds(incident["start"]) <= first["startTime"] < seconds(incident["end"])
    assert incident["cost_nano_usd"] == cost_of(company, "is_retry_storm")


def test_unpriced_model(company: Company, records: list[Record]) -> None:
    incident = company.incident("unpriced_model")
    mine = [one for one in records if incident["model"] in one["model"]]
    assert len(mine) == incident["calls"]
    assert sum(one["total_tokens"] for one in mine) == incident["tokens"]
    for one in mine:
        assert one["response_cost"] == 0
        assert one["response_cost_failure_debug_info"]["error_str"].startswith("This model isn't mapped yet")
    billed = company.sql(
        "SELECT sum(nano)::BIGINT, min(line_item_usage_start_date) FROM cur"
        " WHERE line_item_usage_type LIKE '%NovaUltra2%'"
    )
    assert 0 < billed[0][0] <= incident["cost_nano_usd"]
    assert billed[0][1].timestamp() >= seconds(incident["start"]) - 3600


def test_untagged(company: Company, records: list[Record]) -> None:
    incident = company.incident("untagged")
    mine = [one for one in records if one["metadata"]["user_api_key_alias"] is None]
    assert len(mine) == incident["calls"]
    assert sum(one["total_tokens"] for one in mine) == incident["tokens"]
    for one in mine:
        assert seconds(incident["start"]) <= one["startTime"] < seconds(incident["end"])
        assert one["metadata"]["user_api_key_team_id"] is None
        assert one["metadata"]["user_api_key_user_id"] is None
    assert company.sql("SELECT sum(cost_nano_usd)::BIGINT, count(team) FROM by_hour WHERE cause = 'untagged'") == [
        (incident["cost_nano_usd"], 0)
    ]


def test_price_change(company: Company) -> None:
    incident = company.incident("price_change")
    rates = company.sql(
        f"""
        SELECT line_item_usage_start_date >= TIMESTAMP '{incident["start"].rstrip("Z")}' AS after,
               list(DISTINCT line_item_unblended_rate ORDER BY line_item_unblended_rate)
        FROM cur WHERE line_item_usage_type LIKE 'USE1-NovaPro-%-tokens' GROUP BY 1 ORDER BY 1
        """
    )
    assert rates == [(False, ["0.0008000000", "0.0032000000"]), (True, ["0.0006400000", "0.0025600000"])]
    after = incident["details"]["cost_after_nano_usd"]
    assert incident["cost_nano_usd"] * 4 == -after  # 20 % off: what is saved is a quarter of what is left


def test_unseen_usage(company: Company) -> None:
    incident = company.incident("unseen_usage")
    unseen = company.sql(
        """
        SELECT cause, sum(cost_nano_usd)::BIGINT, count(team), count(actual_team) > 0
        FROM by_hour WHERE cause IN ('timed_out', 'cut_off') GROUP BY 1 ORDER BY 1
        """
    )
    assert unseen == [
        (cause, incident["details"][cause]["cost_nano_usd"], 0, True) for cause in ("cut_off", "timed_out")
    ]
    assert sum(nano for _, nano, _, _ in unseen) == incident["cost_nano_usd"]
    assert company.sql("SELECT count(id) FROM by_call WHERE status = 'cut_off'") == [(0,)]
    ((total,),) = company.sql("SELECT sum(cost_nano_usd)::BIGINT FROM by_hour")
    assert 0.0005 < incident["cost_nano_usd"] / total < 0.01


@pytest.fixture(scope="module")
def restated(tmp_path_factory: pytest.TempPathFactory) -> Company:
    company = Company(write(tmp_path_factory.mktemp("restated"), days=6, scale=0.02))
    deliver_restatement(company.out)
    return company


def test_bill_restatement(restated: Company) -> None:
    """Between the deliveries only one day of one model and one late line differ, by exactly the recorded size."""
    incident = restated.incident("bill_restatement")
    first, second = (
        f"SELECT * FROM cur WHERE of_model AND filename LIKE '%{delivery['execution_id']}%'"
        for delivery in restated.truth["deliveries"]
    )
    query = f"""
        WITH cur AS (
            SELECT *, round(line_item_unblended_cost * 1e9)::BIGINT AS nano,
                   line_item_line_item_type = 'Usage' AND line_item_usage_type SIMILAR TO '.*([Tt]oken).*' AS of_model
            FROM read_parquet('{restated.out}/cur/*/data/*/*/*.parquet', filename = true)
        ), old AS ({first}), new AS ({second})
        SELECT new.line_item_usage_type, new.line_item_resource_id, new.line_item_usage_start_date::VARCHAR AS hour,
               new.nano, old.nano, new.line_item_usage_amount = old.line_item_usage_amount
        FROM new FULL JOIN old USING (line_item_usage_account_id, line_item_usage_type, line_item_resource_id,
                                      line_item_usage_start_date)
        WHERE new.nano IS DISTINCT FROM old.nano
    """
    changed = restated.sql(query)
    late = [row for row in changed if row[4] is None]
    line = incident["details"]["late_line"]
    assert [(row[0], row[1], row[3]) for row in late] == [
        (line["usage_type"], line["resource_id"], line["cost_nano_usd"])
    ]
    rerated = [row for row in changed if row[4] is not None]
    assert rerated
    for usage_type, _, hour, new, old, same_usage in rerated:
        assert "Claude4.6Opus" in usage_type
        assert incident["start"][:10] == hour[:10]
        assert new < old
        assert same_usage
    difference = sum(row[3] - (row[4] or 0) for row in changed)
    assert difference == incident["cost_nano_usd"] == incident["details"]["rerated_nano_usd"] + line["cost_nano_usd"]


def test_the_restated_truth_is_the_second_delivery(restated: Company) -> None:
    (delivery,) = (one for one in restated.truth["deliveries"] if one["edition"] == "restated")
    assert restated.sql("SELECT sum(cost_nano_usd) FILTER (in_bill)::BIGINT FROM by_hour_restated") == [
        (delivery["model_usage_nano_usd"],)
    ]
    ((unbilled,),) = restated.sql("SELECT max(hour) FILTER (in_bill)::VARCHAR FROM by_hour_restated")
    assert unbilled < "2026-11-14 04"
