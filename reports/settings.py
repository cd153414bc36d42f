"""What reports can be told: which there are, when they are due, who gets them, whose cost they show."""

from decimal import Decimal
from typing import Annotated, Literal

from apscheduler.triggers.cron import CronTrigger
from pydantic import AfterValidator, Field

from warehouse.settings import Settings
from warehouse.snapshot import Scope


def _is_cron(value: str) -> str:
    try:
        CronTrigger.from_crontab(value, timezone="UTC")
    except ValueError as error:
        raise ValueError(
            f"`{value}` is no cron expression ({str(error).rstrip('.').lower()}); write minute, hour, day, month and "
            "weekday, such as `0 8 * * *`, or null to make the report by hand only"
        ) from error
    return value


Cron = Annotated[str, AfterValidator(_is_cron)]


class ReportSettings(Settings):
    """One report. Its days are cut in the warehouse's zone, in which its schedule is read too."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$", description="also its folder under data/reports")
    kind: Literal["daily_cost"] = "daily_cost"
    schedule: Cron | None = Field(
        default="0 8 * * *", description="the first time after a day's end at which it is due"
    )
    channels: tuple[str, ...] = Field(default=(), description="where it goes; none named: every channel")
    teams: tuple[str, ...] = Field(default=(), description="only the cost of these teams; none named: the organisation")
    top: int = Field(default=5, ge=1, le=15, description="how many teams, models, apps, movers and tasks it lists")
    restated_share: Decimal = Field(
        default=Decimal("0.05"),
        gt=0,
        description="a day is told again once its cost moved by more than this share of what was told",
    )
    restated_usd: Decimal = Field(default=Decimal(1), ge=0, description="and by more than this amount")
    restated_days: int = Field(default=3, ge=0, le=31, description="how many earlier days are looked at for that")
    dashboard_url: str | None = Field(default=None, pattern=r"^https?://\S+$", description="linked from the report")

    def scope(self) -> Scope:
        """The scope that the snapshot has to be opened with: a report of some teams never reads the others."""
        who = f"report {self.name}"
        return Scope.of(who, self.teams) if self.teams else Scope.everything(who)


def _names_differ(value: tuple[ReportSettings, ...]) -> tuple[ReportSettings, ...]:
    names = [report.name for report in value]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two reports are called `{name}`; rename one")
    return value


Reports = Annotated[tuple[ReportSettings, ...], AfterValidator(_names_differ)]

DEFAULT_REPORTS: tuple[ReportSettings, ...] = (ReportSettings(name="daily-cost"),)
