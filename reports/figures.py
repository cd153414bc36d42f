"""What the daily report says, as data. None is unknown, everywhere."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from reports.period import Coverage, Period
from reports.queries import Effects, Split
from reports.series import Compared


@dataclass(frozen=True)
class Told:
    """What an earlier message said about a day: its cost, and how much of that was an estimate."""

    figure: Decimal | None
    estimated: Decimal | None


@dataclass(frozen=True)
class Bar:
    """One day of the chart."""

    day: date
    billed: Decimal | None
    estimated: Decimal | None


@dataclass(frozen=True)
class Month:
    """The month so far, and where it ends if the days to come cost what the last ones did."""

    first: date
    last: date
    known_from: date | None
    to_date: Decimal | None
    rate: Decimal | None
    rate_days: int
    remaining: int
    forecast: Decimal | None
    month_before: Decimal | None


@dataclass(frozen=True)
class Part:
    """One team, app or model: its cost on the day and on the day it is compared with."""

    names: tuple[str | None, ...]
    cost: Decimal | None
    base: Decimal | None
    share: float | None
    per_mtok: float | None


@dataclass(frozen=True)
class Ranking:
    """The dearest parts along one dimension, and what the rest of them cost together."""

    by: tuple[Split, ...]
    parts: tuple[Part, ...]
    others: int
    others_cost: Decimal | None


@dataclass(frozen=True)
class Waste:
    """Calls that failed or were repeated. `retries_cost` takes each retry at the mean cost of its model's calls."""

    requests: int | None
    failed: int | None
    timeouts: int | None
    retries: int | None
    retries_cost: Decimal | None


@dataclass(frozen=True)
class Task:
    """One agent task: its cost on the day and, where the scope shows it, for life."""

    task_id: str
    team: str | None
    agent: str | None
    cost: Decimal | None
    tokens: int
    life: Mapping[str, Any] | None


@dataclass(frozen=True)
class Pool:
    """One pool of the own fleet: all that its GPUs cost. `names`: cluster, model, pool; None per_mtok: no token."""

    names: tuple[str | None, str | None, str | None]
    cost: Decimal | None
    idle: Decimal | None
    under_used: Decimal | None
    unmeasured: Decimal | None
    busy_share: float | None
    per_mtok: float | None


@dataclass(frozen=True)
class Idle:
    """Money of GPUs that did nothing, for one cause. `names` as of a pool; its last is None for nodes of no pool."""

    names: tuple[str | None, str | None, str | None]
    cause: str
    cost: Decimal


@dataclass(frozen=True)
class Fleet:
    """The own GPUs on the day, all kinds of cost. Amounts are None while the bill has not reached the day."""

    cost: Decimal | None
    idle: Compared
    unbilled_gpu_hours: Decimal
    under_used: Decimal | None
    unmeasured: Decimal | None
    busy_share: float | None
    causes: tuple[Idle, ...]
    other_causes: int
    other_causes_cost: Decimal
    pools: tuple[Pool, ...]
    other_pools: int
    dearest: Pool | None


@dataclass(frozen=True)
class Gaps:
    """What is not known or belongs to nobody. `whole`: the scope shows what belongs to nobody."""

    whole: bool
    unattributed: Decimal | None
    unattributed_share: float | None
    ownerless: Decimal | None
    unknown_tokens: int | None
    unpriced: tuple[tuple[str | None, int], ...]
    other_currencies: tuple[tuple[str, Decimal | None], ...]


@dataclass(frozen=True)
class Books:
    """The bill against the ledger, what the newest bill is made of, and the controls."""

    balances: tuple[Mapping[str, Any], ...]
    kinds: tuple[tuple[str, Decimal | None], ...]
    kinds_period: str | None
    controls: int
    failed: int


@dataclass(frozen=True)
class Restated:
    """An earlier day whose cost is not what was told, or not what the snapshot before said."""

    day: date
    before: Decimal | None
    now: Decimal | None
    change: Decimal | None
    was_estimated: bool


@dataclass(frozen=True)
class Figures:
    """Everything the daily report says about one day. `base` is the day that parts and movers are compared with."""

    period: Period
    coverage: Coverage
    base: date | None
    headline: Compared
    billed: Decimal | None
    estimated: Decimal | None
    status: str
    loaded: Decimal | None
    history: tuple[Bar, ...]
    units: tuple[Compared, ...]
    tokens: Compared
    requests: Compared
    hit_ratio: Compared
    saving: Compared
    saving_month: Decimal | None
    month: Month
    total: Effects | None
    movers: tuple[Effects, ...]
    other_movers: tuple[Effects, ...]
    rankings: tuple[Ranking, ...]
    waste: Waste
    tasks: tuple[Task, ...]
    fleet: Fleet | None
    gaps: Gaps
    restated: tuple[Restated, ...]
    books: Books | None
    logged_to: datetime | None
    billed_to: datetime | None

    @property
    def figure(self) -> Decimal | None:
        """The one figure that the report is about."""
        return self.headline.now if isinstance(self.headline.now, Decimal) else None
