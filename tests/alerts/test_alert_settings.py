"""The alerts section of the configuration: what it says without a word, and what it refuses."""

from decimal import Decimal
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from alerts.settings import SHIPPED_RULES, AlertSettings, AnomalyRule, ThresholdRule

EXAMPLE = """
channels: [costs]
dashboard_url: https://inferledger.example.com
repeat_after_hours: 12
without: [cost-without-owner]
rules:
  - name: agents-over-budget
    kind: threshold
    measure: usage_cost_usd
    by: [agent]
    grain: day
    above: 250
    for: 2
    severity: critical
    channels: [costs, oncall]
  - name: team-cost
    kind: anomaly
    measure: inference_cost_usd
    by: [team]
    sensitivity: 5
    min_usd: 50
    direction: both
"""


def test_without_a_word_the_shipped_rules_are_on() -> None:
    assert AlertSettings().all_rules() == SHIPPED_RULES


def test_rules_are_added_replaced_and_switched_off_by_name() -> None:
    rules = {rule.name: rule for rule in AlertSettings.model_validate(yaml.safe_load(EXAMPLE)).all_rules()}

    assert set(rules) == {*(rule.name for rule in SHIPPED_RULES), "agents-over-budget"} - {"cost-without-owner"}
    budget, team = rules["agents-over-budget"], rules["team-cost"]
    assert isinstance(budget, ThresholdRule)
    assert (budget.above, budget.periods, budget.channels) == (Decimal(250), 2, ("costs", "oncall"))
    assert isinstance(team, AnomalyRule)
    assert (team.sensitivity, team.history_days, team.min_usd) == (5, 28, Decimal(50))


def test_a_limit_is_exact_however_it_is_written() -> None:
    rule = {"kind": "threshold", "name": "r", "measure": "unattributed_share", "above": yaml.safe_load("0.05")}
    assert ThresholdRule.model_validate(rule).above == Decimal("0.05")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rules": [{"kind": "threshold", "name": "r", "measure": "requests"}]}, "exactly one of `above` and `below`"),
        (
            {"rules": [{"kind": "threshold", "name": "r", "measure": "requests", "above": 1, "below": 2}]},
            "exactly one of `above` and `below`",
        ),
        ({"rules": [{"kind": "threshold", "name": "r", "measure": "requests", "abov": 1}]}, "abov"),
        ({"rules": [{"kind": "guess", "name": "r", "measure": "requests"}]}, "guess"),
        (
            {
                "rules": [
                    {"kind": "threshold", "name": "r", "measure": "requests", "above": 1, "where": {"team": ["a"]}}
                ]
            },
            "`where: team` needs `team` in `by`",
        ),
        (
            {"rules": [{"kind": "threshold", "name": "r", "measure": "requests", "above": n} for n in (1, 2)]},
            "two rules are called `r`",
        ),
        ({"without": ["no-such-rule"]}, "is no shipped rule; those are bill-checks, bill-restated, cost-without-owner"),
        ({"dashboard_url": "javascript:alert(1)"}, "dashboard_url"),
    ],
)
def test_a_mistake_is_refused_by_name(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        AlertSettings.model_validate(settings)
