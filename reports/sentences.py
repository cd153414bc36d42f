"""What the figures mean, in a sentence: the headline, why a cost moved, how it goes on, what to be careful of."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

from reports import words
from reports.figures import Figures, Fleet, Month, Restated
from reports.queries import Effects
from warehouse.measures import MEASURES
from warehouse.snapshot import Snapshot

EFFECTS = {"volume": "volume", "mix": "mix", "cache": "cache", "price": "price"}
WORTH_NAMING = Decimal("0.2")
QUIET = timedelta(hours=6)


def audience(teams: frozenset[str] | None) -> str:
    """Whose cost it is."""
    if teams is None:
        return "the whole organisation"
    named = [words.name(team, "team") for team in sorted(teams)]
    shown = ", ".join(named[:5]) + (f" and {len(named) - 5} more" if len(named) > 5 else "")
    return f"{'team' if len(named) == 1 else 'teams'} {shown}"


def subject(figures: Figures, teams: frozenset[str] | None, currency: str, restated: bool) -> str:
    """One line for an inbox."""
    whose = "" if teams is None else f" of {audience(teams)}"
    against = "" if figures.base is None else f" ({_than(figures)})"
    what = f"{'Restated: i' if restated else 'I'}nference cost{whose}, {words.day(figures.period.day)}"
    return f"{what}: {least(figures)}{words.money(figures.figure, currency)}{against}"


def least(figures: Figures) -> str:
    """`at least` before a figure that some tokens of unknown cost are missing from."""
    return "at least " if figures.figure is not None and figures.gaps.unknown_tokens else ""


def _than(figures: Figures) -> str:
    if figures.figure is None or figures.base is None:
        return "no figure to compare"
    before = figures.headline.week_before if _is_week(figures) else figures.headline.day_before
    return f"{words.change(figures.figure, before)} on {words.day(figures.base)}"


def _is_week(figures: Figures) -> bool:
    return figures.base is not None and (figures.period.day - figures.base).days == 7


def summary(figures: Figures, currency: str) -> str:
    """What happened, and what did it."""
    if figures.figure is None:
        return "The cost of this day is unknown: the snapshot holds no priced usage and no bill for it."
    if figures.total is None or figures.base is None:
        return "There is no earlier day to compare with yet."
    change, base = figures.total.change, words.day(figures.base)
    if abs(change) < Decimal("0.01"):
        return f"As much as on {base}."
    direction = "more" if change > 0 else "less"
    start = f"{words.money(abs(change), currency)} {direction} than on {base}: {parts(figures.total, currency)}."
    if not figures.movers:
        return f"{start} Nothing moved it by a hundredth on its own."
    mover = figures.movers[0]
    return (
        f"{start} Largest: {mover_name(mover)}, {words.signed(mover.change, currency)} ({reason(mover, figures.base)})."
    )


def parts(effects: Effects, currency: str) -> str:
    """`cache +$9.41, volume +$5.80`: the parts of a change that round to a cent, the largest first."""
    found = [(getattr(effects, name), name) for name in EFFECTS]
    named = sorted(((v, n) for v, n in found if abs(v) >= Decimal("0.005")), key=lambda pair: -abs(pair[0]))
    return ", ".join(f"{name} {words.signed(value, currency)}" for value, name in named) or "no part of a cent"


def mover_name(effects: Effects) -> str:
    """`search / assistant`, or what belongs to nobody."""
    team, app = effects.names
    if team is None and app is None:
        return "no team"
    return f"{words.name(team, 'team')} / {words.name(app, 'app')}"


def reason(effects: Effects, base: date) -> str:
    """Why a cost moved: every effect that is worth naming, the largest first; and what could not be counted."""
    uncounted = f"; {words.tokens(effects.unknown_tokens)} tokens of unknown cost not counted"
    return _effects(effects, base) + (uncounted if effects.unknown_tokens else "")


def _effects(effects: Effects, base: date) -> str:
    if not effects.base_tokens and not effects.base:
        return f"new: nothing on {words.day(base)}"
    if not effects.tokens and not effects.cost:
        return f"nothing any more, after {words.tokens(effects.base_tokens)} tokens"
    largest = max(abs(getattr(effects, name)) for name in EFFECTS)
    found = [name for name in EFFECTS if abs(getattr(effects, name)) >= max(largest * WORTH_NAMING, Decimal("0.005"))]
    found.sort(key=lambda name: -abs(getattr(effects, name)))
    return "; ".join(_said(name, effects) for name in found) or "less than a cent"


def _said(name: str, effects: Effects) -> str:
    up = getattr(effects, name) > 0
    if name == "volume":
        moved = f"{words.tokens(effects.base_tokens)} to {words.tokens(effects.tokens)}"
        return f"{'more' if up else 'fewer'} tokens, {moved}"
    if name == "cache":
        before, now = effects.base_hit_ratio, effects.hit_ratio
        if before is not None and now is not None and abs(now - before) >= 0.005:
            return f"cache hits {words.percent(before, 0)} to {words.percent(now, 0)}"
        return f"{'more' if up else 'less'} written to the cache"
    if name == "mix":
        return f"{'dearer' if up else 'cheaper'} mix of models and output"
    return f"{'higher' if up else 'lower'} price per token"


def fleet(found: Fleet, currency: str) -> str:
    """What the own GPUs cost, what of it did nothing and why, and the dearest pool."""
    if found.cost is None:
        return "The own GPU fleet: the bill has not reached this day, so what it cost is unknown."
    said = f"The own GPU fleet cost {words.money(found.cost, currency)}."
    if found.causes:
        largest = found.causes[0]
        said += (
            f" {words.money(found.idle.now, currency)} of it did nothing, most of all {words.pool(largest.names)}: "
            f"{words.cause(largest.cause)}, {words.money(largest.cost, currency)}."
        )
    if found.unmeasured:
        said += f" No metric tells of {words.money(found.unmeasured, currency)}."
    if found.dearest is not None and found.dearest.per_mtok is not None:
        each = words.unit_cost(found.dearest.per_mtok, currency)
        said += f" Dearest per million tokens: {words.pool(found.dearest.names)} at {each}, all its cost counted."
    if found.unbilled_gpu_hours:
        said += f" The bill has not reached {found.unbilled_gpu_hours:,.1f} GPU-hours of the day."
    return said


def forecast(month: Month, currency: str) -> str:
    """How the forecast is made."""
    if month.forecast is None:
        return "no forecast without known days"
    if month.remaining == 0:
        return "the month is complete"
    rate = f"{words.money(month.rate, currency)}, the mean of the last {words.plural(month.rate_days, 'day')}"
    return f"to date, and {words.plural(month.remaining, 'more day')} at {rate}"


def basis(figures: Figures) -> str:
    """Billed, estimated or both."""
    if figures.figure is None:
        return "unknown"
    if figures.estimated is None or not figures.estimated:
        return "billed"
    return "billed and estimated" if figures.billed else "estimated"


def definition() -> str:
    """What the headline counts."""
    about = MEASURES["inference_cost_usd"].about
    return f"Inference cost is {about}; effective cost, amortised and net of discounts."


def notices(figures: Figures, snapshot: Snapshot, currency: str) -> list[str]:
    """What a reader has to know before believing the figure."""
    found = []
    if snapshot.held:
        found.append(
            f"Newer figures are held back because {words.plural(len(snapshot.held), 'control')} did not hold; this is "
            "the last good snapshot. `inferledger doctor` says what is wrong."
        )
    if figures.gaps.unknown_tokens:
        models = [words.name(model, "model") for model, _ in figures.gaps.unpriced[:3]]
        more = f" and {len(figures.gaps.unpriced) - 3} more models" if len(figures.gaps.unpriced) > 3 else ""
        found.append(
            f"{words.tokens(figures.gaps.unknown_tokens)} tokens of {', '.join(models)}{more} have no price and are "
            "not billed yet: their cost is unknown and not in the figure."
        )
    for code, amount in figures.gaps.other_currencies:
        found.append(f"{words.money(amount, code)} is not in the figure; currencies are never added up.")
    late = _late(figures)
    if late is not None:
        found.append(f"The last logged call ended {local(late, figures.period.zone)}; the day may be incomplete.")
    return found


def _late(figures: Figures) -> datetime | None:
    if figures.logged_to is None or figures.logged_to >= figures.period.end - QUIET:
        return None
    return figures.logged_to


def restatement(restated: Restated, currency: str) -> str:
    """One earlier day that changed."""
    moved = words.signed(restated.change, currency)
    if restated.before is None:
        return f"now {words.money(restated.now, currency)} ({moved} by this publication)"
    share = words.change(restated.now, restated.before)
    told = "told, partly an estimate" if restated.was_estimated else "told"
    return (
        f"{words.money(restated.before, currency)} {told}, now {words.money(restated.now, currency)} ({moved}, {share})"
    )


def local(instant: datetime | None, zone: str) -> str:
    """`Fri 30 Oct 12:00`, in the zone."""
    if instant is None:
        return words.UNKNOWN
    there = instant.astimezone(ZoneInfo(zone))
    return f"{words.day(there.date())} {there:%H:%M}"
