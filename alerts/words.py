"""How alerts name things and write figures. Figures stay decimals until here."""

import json
from decimal import Decimal

from alerts.data import is_additive
from alerts.settings import AnomalyRule, ThresholdRule
from alerts.state import StateName
from warehouse.measures import MEASURES

NAMES = {
    "controls_failed": "number of failed controls",
    "bill_checks_failed": "number of failed checks of the bill",
    "restated_usd": "restated cost of days long past",
    "ownerless_cost_usd": "cost without a team",
    "unattributed_share": "share of cost that no usage explains",
    "idle_cost_usd": "cost of idle GPUs",
    "fleet_idle_cost_usd": "cost of idle GPUs",
    "under_used_cost_usd": "cost of under-used GPUs",
    "unmeasured_cost_usd": "cost of GPUs that no metric tells of",
    "gpu_unmeasured_share": "share of GPU time that no metric tells of",
    "gpu_busy_share": "busy share of the GPUs",
}

CAUSES = {
    "no_traffic": "no traffic",
    "not_requested": "requested by no pod",
    "not_in_cluster": "billed, but in no cluster",
}

PAGES = {
    "unattributed_share": "reconciliation",
    "unattributed_cost_usd": "reconciliation",
    "ownerless_cost_usd": "teams",
    "ownerless_share": "teams",
    "unpriced_tokens": "reconciliation",
    "controls_failed": "reconciliation",
    "bill_checks_failed": "reconciliation",
    "restated_usd": "reconciliation",
    "cost_per_mtok_usd": "models",
    "idle_cost_usd": "fleet",
    "under_used_cost_usd": "fleet",
    "unmeasured_cost_usd": "fleet",
}


def measure_name(measure: str) -> str:
    """What a measure is called in a sentence: its title unless that needs its column to be understood."""
    if measure in NAMES:
        return NAMES[measure]
    known = MEASURES.get(measure)
    return known.title.lower() if known else measure.removesuffix("_usd").replace("_", " ")


def figure(measure: str, value: Decimal | None, currency: str) -> str:
    """A figure for people: `$1,234.56`, `1,234.56 EUR`, `7.2 %`, `1,234 tokens`, or `unknown`."""
    if value is None:
        return "unknown"
    if measure.endswith("_usd"):
        sign, size = ("-" if value < 0 else ""), abs(value)
        places = 2 if size >= 1 or not size else 4
        written = f"{size:,.{places}f}"
        return f"{sign}${written}" if currency == "USD" else f"{sign}{written} {currency}"
    if measure.endswith(("_share", "_ratio")):
        return f"{value * 100:.1f} %"
    if measure in MEASURES and MEASURES[measure].unit == "gpu_ms":
        return f"{value / 3_600_000:,.1f} GPU-hours"
    whole = value.to_integral_value()
    number = f"{whole:,.0f}" if value == whole else f"{value.normalize():,f}"
    return f"{number} tokens" if measure.endswith("_tokens") else number


def of_series(measure: str, series: str) -> str:
    """`usage cost of team search`; the measure alone when the series is everything."""
    name = measure_name(measure)
    return name if series == "{}" else f"{name} of {series_name(series)}"


def series_name(series: str) -> str:
    """`team search, model claude` for people; `everything` without dimensions."""
    parts = [f"{name} {value}" if value is not None else f"no {name}" for name, value in json.loads(series).items()]
    return ", ".join(parts) or "everything"


def part_name(dimension: str, value: str | None) -> str:
    """What a part is called: `no team`, `requested by no pod`, or its own name."""
    if value is None:
        return f"no {dimension}"
    return CAUSES.get(value, value) if dimension == "reason" else value


def page(rule: ThresholdRule | AnomalyRule) -> str:
    """The dashboard page that shows this rule's figures."""
    if rule.measure in PAGES:
        return PAGES[rule.measure]
    if rule.measure.startswith(("gpu_", "fleet_", "self_hosted_")):
        return "fleet"
    for dimension, name in (("agent", "tasks"), ("team", "teams"), ("app", "teams"), ("model", "models")):
        if dimension in rule.by:
            return name
    return "overview"


def remedy(rule: ThresholdRule | AnomalyRule, state: StateName) -> str:
    """What to do: the rule's own words, or what fits its kind; nothing when all is well again."""
    if state == "ok":
        return ""
    if state in ("no_data", "unknown", "no_judgement"):
        return "run `inferledger doctor`: a source may have stopped, or this series came to its end"
    if rule.remedy is not None:
        return rule.remedy
    if isinstance(rule, AnomalyRule) and is_additive(rule.measure):
        return (
            "look at what contributes: more requests (a loop, retries), longer prompts, a cache that stopped "
            "hitting, or another model; if it is meant, silence it until it is history"
        )
    return "open the dashboard and look at what contributes"
