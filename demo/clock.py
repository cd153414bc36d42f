"""Time in the demonstration: whole microseconds of UTC since the epoch, never a float, never the machine's clock."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 3600 * SECOND
DAY = 24 * HOUR

BILL_LAG = 20 * HOUR
"""How far the bill stays behind: AWS delivers up to three times a day and hours arrive late (billing.md 2.3)."""

FINAL_AFTER_DAYS = 6
"""A month is invoiced some days into the next one; support is computed on the 6th-7th (billing.md 2.3)."""


def microseconds(moment: datetime) -> int:
    """An aware instant as whole microseconds since the epoch."""
    delta = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return delta.days * DAY + delta.seconds * SECOND + delta.microseconds


def instant(at_us: int) -> datetime:
    """The inverse of `microseconds`."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(at_us))


def iso(at_us: int) -> str:
    """`2026-11-14T04:00:00Z`, seconds precision, as AWS prints instants."""
    return instant(at_us).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True)
class Period:
    """One billing month. `first_us` inclusive, `end_us` exclusive (the first day of the next month)."""

    label: str
    start_us: int
    end_us: int
    final: bool


@dataclass(frozen=True)
class Window:
    """The days the company is observed: [start_us, as_of_us)."""

    days: int
    end: date

    @property
    def as_of_us(self) -> int:
        """The instant at which the company 'is': `end` at 00:00Z."""
        return microseconds(datetime(self.end.year, self.end.month, self.end.day, tzinfo=UTC))

    @property
    def start_us(self) -> int:
        return self.as_of_us - self.days * DAY

    @property
    def billed_until_us(self) -> int:
        """End of the last hour that is in the bill (a whole hour)."""
        return (self.as_of_us - BILL_LAG) // HOUR * HOUR

    def day_start_us(self, day: int) -> int:
        return self.start_us + day * DAY

    def weekday(self, day: int) -> int:
        """0 = Monday."""
        return (self.end - timedelta(days=self.days - day)).weekday()

    def periods(self) -> list[Period]:
        """Every billing month with at least one billed hour, oldest first."""
        found: list[Period] = []
        at = instant(self.start_us).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        while microseconds(at) < max(self.billed_until_us, self.start_us + HOUR):
            after = (at + timedelta(days=32)).replace(day=1)
            final = self.as_of_us >= microseconds(after) + FINAL_AFTER_DAYS * DAY
            found.append(Period(at.strftime("%Y-%m"), microseconds(at), microseconds(after), final))
            at = after
        return found
