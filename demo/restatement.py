"""What AWS corrects after the first delivery: one past day of one model is re-rated, and one line arrives late."""

from dataclasses import dataclass

import numpy as np

from demo.clock import DAY, HOUR, Period, Window
from demo.metering import Rerating, Tariff, line_rates
from demo.models import DEPLOYMENTS

MODEL = "opus-4-6"
AIM_NANO = 200 * 10**9
"""How much the re-rating takes off the bill at scale 1, about."""

LATE_BELOW_NANO = 5 * 10**9


@dataclass(frozen=True)
class Restatement:
    """The correction. `late`: row of the metered lines that is missing from the first delivery; -1 for none."""

    rerating: Rerating | None
    late: int


def plan(metered: np.ndarray, tariff: Tariff, window: Window, scale: float, period: Period) -> Restatement:
    """Choose the day to re-rate and the line to hold back. `metered`: all lines that are due in the bill."""
    cost = metered["tokens"] * line_rates(metered, tariff)
    mine = (metered["hour_us"] >= period.start_us) & (metered["hour_us"] < period.end_us)
    of_model = np.array([deployment.model.slug == MODEL for deployment in DEPLOYMENTS])[metered["deployment"]]
    rerating = _rerating(metered["hour_us"], np.where(mine & of_model, cost, 0), window, scale)
    # the late line: the dearest small on-demand line of another model, some two days back
    age_us = window.billed_until_us - metered["hour_us"]
    candidates = mine & ~of_model & ~metered["batch"] & (age_us > HOUR) & (cost < LATE_BELOW_NANO)
    recent = candidates & (age_us > 36 * HOUR) & (age_us <= 60 * HOUR)
    wanted = recent if recent.any() else candidates
    late = int(np.argmax(np.where(wanted, cost, -1))) if wanted.any() else -1
    return Restatement(rerating, late)


def _rerating(hour_us: np.ndarray, cost: np.ndarray, window: Window, scale: float) -> Rerating | None:
    """The dearest whole day, four days back or earlier where there is one."""
    day = hour_us // DAY
    last = window.billed_until_us // DAY - 1
    per_day = {int(one): int(cost[day == one].sum()) for one in np.unique(day[cost > 0]) if one <= last}
    if not per_day:
        return None
    old = {one: nano for one, nano in per_day.items() if one <= last - 3} or per_day
    chosen = max(old, key=lambda one: (old[one], one))
    off_percent = round(100 * AIM_NANO * min(1.0, scale) / old[chosen])
    return Rerating(MODEL, chosen * DAY, (chosen + 1) * DAY, 100 - min(max(off_percent, 5), 50))
