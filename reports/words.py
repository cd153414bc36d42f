"""How reports write figures. Figures stay decimals until here. NaN is a ratio without anything to divide by: `none`."""

from datetime import date
from decimal import Decimal
from typing import TypeGuard

UNKNOWN, NONE = "unknown", "none"
LONGEST_NAME = 44
KINDS = {
    "usage": "usage",
    "under_used": "under-used GPUs",
    "idle": "idle GPUs",
    "unmeasured": "unmeasured GPUs",
    "shared": "shared",
    "credit": "credits",
    "unattributed": "in no log",
    "out_of_scope": "not inference",
    "future": "hours to come",
    "rounding": "rounding",
}
CAUSES = {
    "no_traffic": "no traffic",
    "not_requested": "requested by no pod",
    "starting": "starting",
    "stopping": "stopping",
    "not_in_cluster": "billed, but in no cluster",
}
WORTH_COLOUR = Decimal("0.05")
Number = Decimal | float | int | None


def there(value: Number) -> TypeGuard[Decimal | float | int]:
    """Whether there is a figure: neither unknown nor without anything to divide by."""
    return value is not None and value == value


def money(value: Number, currency: str = "USD") -> str:
    """An amount, to the cent: `$1,234.56`, `1,234.56 EUR`, `under $0.01`, or `unknown`."""
    if not there(value):
        return UNKNOWN if value is None else NONE
    amount = Decimal(str(value))
    written = f"{abs(amount):,.2f}"
    if amount and not written.strip("0."):
        return f"under {_in('0.01', currency)}"
    return ("−" if amount < 0 else "") + _in(written, currency)


def unit_cost(value: Number, currency: str = "USD") -> str:
    """What one of something costs: to the cent, below a dollar to three figures."""
    if not there(value):
        return UNKNOWN if value is None else NONE
    amount = Decimal(str(value))
    if not amount or abs(amount) >= 1:
        return money(value, currency)
    return ("−" if amount < 0 else "") + _in(f"{abs(amount):,.{min(2 - amount.adjusted(), 9)}f}", currency)


def exact(value: Decimal | None, currency: str = "USD") -> str:
    """An amount of the books: to the cent, and every digit below it that is not zero."""
    if value is None:
        return UNKNOWN
    whole, _, rest = f"{abs(value):,.18f}".rstrip("0").partition(".")
    return ("−" if value < 0 else "") + _in(f"{whole}.{rest.ljust(2, '0')}", currency)


def signed(value: Decimal | None, currency: str = "USD") -> str:
    """A change, to the cent: `+$12.00`, `−$3.10`, `$0.00`."""
    if value is None:
        return UNKNOWN
    cents = value.quantize(Decimal("0.01"))
    return ("+" if cents > 0 else "−" if cents < 0 else "") + _in(f"{abs(cents):,.2f}", currency)


def percent(value: Number, places: int = 1) -> str:
    """A share: `7.2 %`."""
    if not there(value):
        return UNKNOWN if value is None else NONE
    return f"{float(value) * 100:.{places}f} %"


def change(now: Number, before: Number) -> str:
    """A change as a share of what was: `+31 %`, `×12`, `new`, or `unknown` when either side is."""
    if not (there(now) and there(before)):
        return UNKNOWN if now is None or before is None else NONE
    share = relative(now, before)
    if share is None:
        return "new" if now else "no change"
    if share >= 9:
        return f"×{share + 1:,.0f}"
    written = f"{abs(share) * 100:.{1 if abs(share) < Decimal('0.0995') else 0}f}"
    if not written.strip("0."):
        return "no change"
    return f"{'+' if share > 0 else '−'}{written} %"


def direction(now: Number, before: Number) -> int:
    """1 for a rise, -1 for a fall, 0 for a change too small to colour, or unknown."""
    share = relative(now, before)
    return 0 if share is None or abs(share) < WORTH_COLOUR else (1 if share > 0 else -1)


def relative(now: Number, before: Number) -> Decimal | None:
    """The change as a share of what was; None when either is unknown or nothing was."""
    if not (there(now) and there(before)) or not before:
        return None
    return (Decimal(str(now)) - Decimal(str(before))) / abs(Decimal(str(before)))


def count(value: Number) -> str:
    """`12,345`."""
    if not there(value):
        return UNKNOWN if value is None else NONE
    return f"{value:,.0f}"


def tokens(value: Number) -> str:
    """`431`, `12.4 k`, `3.1 M`, `5.5 B`."""
    if not there(value):
        return UNKNOWN if value is None else NONE
    for size, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if abs(float(value)) >= size:
            return f"{float(value) / size:,.1f} {letter}"
    return f"{value:,.0f}"


def name(value: str | None, dimension: str) -> str:
    """What somebody called a thing, on one line and not too long; `no team` where nobody did."""
    if value is None:
        return f"no {dimension.replace('_', ' ')}"
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def kind(value: str) -> str:
    """A kind of cost, as people say it."""
    return KINDS.get(value, value.replace("_", " "))


def cause(value: str) -> str:
    """Why a GPU was idle."""
    return CAUSES.get(value, value.replace("_", " "))


def pool(names: tuple[str | None, str | None, str | None]) -> str:
    """`qwen-decode (east)`, `nodes of east`."""
    cluster, _, called = names
    if called is None:
        return f"nodes of {name(cluster, 'cluster')}"
    return f"{name(called, 'pool')} ({name(cluster, 'cluster')})"


def day(value: date) -> str:
    """`Fri 30 Oct`."""
    return f"{value:%a} {value.day} {value:%b}"


def long_day(value: date) -> str:
    """`Friday 30 October 2026`."""
    return f"{value:%A} {value.day} {value:%B %Y}"


def plural(number: int, one: str) -> str:
    """`1 day`, `2 days`."""
    return f"{number:,} {one}{'' if number == 1 else 's'}"


def _in(written: str, currency: str) -> str:
    return f"${written}" if currency == "USD" else f"{written} {currency}"
