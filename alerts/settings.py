"""What alerts can be told: rules, where their messages go, how often they repeat."""

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Settings(BaseModel):
    """Base of every settings model: unknown keys are errors, values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


Dimension = Literal[
    "team",
    "app",
    "cost_center",
    "agent",
    "environment",
    "model",
    "provider",
    "account_id",
    "region",
    "cluster",
    "pool",
    "service_tier",
    "token_class",
    "kind",
    "name",
    "source",
    "reason",
]
Severity = Literal["info", "warning", "critical"]
Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_.-]*$")]
Share = Annotated[Decimal, Field(ge=0, lt=1)]


class RuleBase(Settings):
    """What both kinds of rule have. One rule watches one series per distinct combination of `by`."""

    name: Name
    measure: str = Field(pattern=r"^[a-z][a-z0-9_]*$", description="a name that warehouse measures know")
    by: tuple[Dimension, ...] = ()
    where: dict[Dimension, tuple[str | None, ...]] = Field(
        default_factory=dict, description="keep only these values of a dimension in `by`; null is 'without one'"
    )
    severity: Severity = "warning"
    channels: tuple[str, ...] | None = Field(default=None, description="default: alerts.channels")
    min_usd: Annotated[Decimal, Field(ge=0)] = Field(default=Decimal(0), description="less money than this is no alert")
    periods: int = Field(default=1, ge=1, le=14, alias="for", description="this many periods in a row")
    margin: Share = Field(
        default=Decimal("0.1"), description="how far back inside its limit a figure must be to resolve"
    )
    include_estimates: bool = Field(
        default=True, description="for bill measures: add the estimate for what is not billed yet"
    )
    no_data: Literal["quiet", "notify"] = Field(default="quiet", description="when a series that was fine goes absent")
    remedy: str | None = Field(default=None, description="what to do, shown in the message")

    @model_validator(mode="after")
    def _where_is_in_by(self) -> "RuleBase":
        for dimension in self.where:
            if dimension not in self.by:
                raise ValueError(f"rule `{self.name}`: `where: {dimension}` needs `{dimension}` in `by`")
        return self


class ThresholdRule(RuleBase):
    """A figure above or below a fixed limit. Limits are dollars, tokens, or shares (0.05 is 5 %)."""

    kind: Literal["threshold"]
    grain: Literal["day", "hour", "total"] = "day"
    above: Decimal | None = None
    below: Decimal | None = None
    absent: Literal["no_data", "clear"] = Field(
        default="no_data", description="clear: where the snapshot has the period but not the series, nothing is wrong"
    )

    @model_validator(mode="after")
    def _one_limit(self) -> "ThresholdRule":
        if (self.above is None) == (self.below is None):
            raise ValueError(f"rule `{self.name}`: write exactly one of `above` and `below`")
        return self


class AnomalyRule(RuleBase):
    """A day against the series' own history: robust z = |x - median| / (1.4826 * MAD).

    It breaches when z passes `sensitivity` and the difference passes `min_usd` and `min_change` of the median.
    Fewer than seven days of history give no judgement, and the alert says so.
    """

    kind: Literal["anomaly"]
    history_days: int = Field(default=28, ge=7, le=366)
    sensitivity: float = Field(default=3.5, gt=0)
    min_change: Annotated[Decimal, Field(ge=0)] = Field(default=Decimal("0.2"), description="share of the median")
    seasonality: Literal["weekday", "none"] = Field(
        default="weekday", description="weekday: working days are held against working days, weekends against weekends"
    )
    direction: Literal["up", "down", "both"] = "up"


Rule = Annotated[ThresholdRule | AnomalyRule, Field(discriminator="kind")]

SHIPPED_RULES: tuple[ThresholdRule | AnomalyRule, ...] = (
    AnomalyRule(kind="anomaly", name="team-cost", measure="inference_cost_usd", by=("team",), min_usd=Decimal(20)),
    AnomalyRule(kind="anomaly", name="model-cost", measure="inference_cost_usd", by=("model",), min_usd=Decimal(20)),
    ThresholdRule(
        kind="threshold",
        name="unattributed-share",
        measure="unattributed_share",
        above=Decimal("0.05"),
        min_usd=Decimal(5),
        remedy="open Reconciliation and see which account, model or key has no usage log",
    ),
    ThresholdRule(
        kind="threshold",
        name="unpriced-tokens",
        measure="unpriced_tokens",
        by=("model",),
        above=Decimal(0),
        remedy="add the model's price under prices.contract, or update the price book",
    ),
    ThresholdRule(
        kind="threshold",
        name="failed-controls",
        measure="controls_failed",
        grain="total",
        above=Decimal(0),
        severity="critical",
        remedy="run `inferledger doctor`; the hours that failed keep their last good figures",
    ),
    ThresholdRule(
        kind="threshold",
        name="bill-restated",
        measure="restated_usd",
        grain="total",
        above=Decimal(1),
        severity="info",
        remedy="nothing: the ledger followed; Reconciliation names the days and services",
    ),
    ThresholdRule(
        kind="threshold",
        name="bill-checks",
        measure="bill_checks_failed",
        grain="total",
        above=Decimal(0),
        remedy="run `inferledger doctor`: it says both sides and what to do",
    ),
    ThresholdRule(
        kind="threshold",
        name="cost-without-owner",
        measure="ownerless_cost_usd",
        above=Decimal(5),
        remedy="add a rule under owners for the claims that Teams and apps lists",
    ),
    ThresholdRule(
        kind="threshold",
        name="idle-gpus",
        measure="idle_cost_usd",
        above=Decimal(100),
        remedy="scale down the pools without traffic, or let nodes go whose GPUs no pod requests; see GPU and pools",
    ),
    ThresholdRule(
        kind="threshold",
        name="unmeasured-gpus",
        measure="unmeasured_cost_usd",
        above=Decimal(20),
        remedy="run `inferledger doctor`: it names the pods without engine metrics and the gaps of kube-state-metrics",
    ),
)


class AlertSettings(Settings):
    """Everything the alerts room reads from the configuration."""

    rules: tuple[Rule, ...] = Field(default=(), description="a rule with a shipped rule's name replaces it")
    without: tuple[Name, ...] = Field(default=(), description="shipped rules to leave out")
    channels: tuple[str, ...] = Field(default=(), description="where messages go; none named: every channel")
    repeat_after_hours: float = Field(default=24, gt=0, description="remind of what still fires, in newer periods")
    digest_above: int = Field(default=10, ge=1, description="more messages than this at once become one digest")
    look_back: int = Field(default=3, ge=1, le=31, description="periods judged again, for late and restated figures")
    dashboard_url: str | None = Field(default=None, pattern=r"^https?://\S+$")

    @model_validator(mode="after")
    def _names(self) -> "AlertSettings":
        names = [rule.name for rule in self.rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two rules are called `{name}`; rename one")
        shipped = {rule.name for rule in SHIPPED_RULES}
        for name in self.without:
            if name not in shipped:
                raise ValueError(f"`without: {name}` is no shipped rule; those are {', '.join(sorted(shipped))}")
        return self

    def all_rules(self) -> tuple[ThresholdRule | AnomalyRule, ...]:
        """Shipped rules that are neither left out nor replaced, then the configured ones."""
        left_out = {*self.without, *(rule.name for rule in self.rules)}
        return (*(rule for rule in SHIPPED_RULES if rule.name not in left_out), *self.rules)
