"""When the daemon runs each job: cron expressions in the configured zone."""

from typing import Annotated

from apscheduler.triggers.cron import CronTrigger
from pydantic import AfterValidator, Field

from warehouse.settings import Settings


def _is_cron(value: str) -> str:
    try:
        CronTrigger.from_crontab(value, timezone="UTC")
    except ValueError as error:
        raise ValueError(
            f"`{value}` is no cron expression ({str(error).rstrip('.').lower()}); "
            "write minute, hour, day, month and weekday, such as `*/15 * * * *`, or null for never"
        ) from error
    return value


Cron = Annotated[str, AfterValidator(_is_cron)]


class ScheduleSettings(Settings):
    """When `inferledger run` does what. Jobs that are due at once run one after the other, in this order."""

    collect: Cron | None = Field(default="*/15 * * * *", description="load what is new")
    attribute: Cron | None = Field(default="*/15 * * * *", description="bring the ledger up to date")
    publish: Cron | None = Field(default="*/15 * * * *", description="make a snapshot for readers")
    alert: Cron | None = Field(default="*/15 * * * *", description="evaluate the alert rules on the snapshot")
    report: Cron | None = Field(default="*/15 * * * *", description="make the reports that are due by then")
    deliver: Cron | None = Field(default="* * * * *", description="send messages that wait")
