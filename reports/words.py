"""How reports write figures. Figures stay decimals until here; what is not known is `unknown`."""

from datetime import date
from decimal import Decimal

from warehouse import measures

UNKNOWN = "unknown"
NOBODY = {"team": "no team", "app": "no app", "model": "no model", "agent": "no agent"}
LONGEST_NAME = 48


def money(value: Decimal | float | None, currency: str = "USD") -> str:
    """`$1,234.56`, `1,234.56 EUR`, four places below one, or `unknown`."""
    if value is None or value != value:
        return UNKNOWN
    value = Decimal(str(value))
    places = 2 if abs(value) >= Decimal("0.995") or not value else 4
    written = f"{abs(value):,.{places}f}"
    if value and not written.strip("0.,"):
        written = f"less than {'0'.join(('0.', '0' * (places - 2), '1')) if places > 2 else '0.01'}"
    sign = "−" if value < 0 and not written.startswith("less") else ""
    return f"{sign}${written}" if currency == "USD" else f"{sign}{written} {currency}"


def exact(value: Decimal | None, currency: str = "USD") -> str:
    """An amount of the books: to the cent, and every digit below it that is not zero."""
    if value is None:
        return UNKNOWN
    digits = f"{abs(value):,.18f}".rstrip("0")
    whole, _, rest = digits.partition(".")
    written = f"{whole}.{rest.ljust(2, '0')}"
    sign = "−" if value < 0 else ""
    return f"{sign}${written}" if currency == "USD" else f"{sign}{written} {currency}"


def signed(value: Decimal | None, currency: str = "USD") -> str:
    """A change: `+$12.00`, `−$3.10`, `±$0.00`."""
    if value is None:
        return UNKNOWN
    if not value.quantize(Decimal("0.01")):
        return "±" + money(Decimal(0), currency)
    return money(value, currency) if value < 0 else "+" + money(value, currency)


def percent(value: Decimal | float | None, places: int = 1) -> str:
    """A share: `7.2 %`."""
    return UNKNOWN if value is None or value != value else f"{float(value) * 100:.{places}f} %"


def change(now: Decimal | float | None, before: Decimal | float | None) -> str:
    """A change as a share of what was: `+31 %`, `×12`, `new`, or `unknown` when either side is."""
    share = relative(now, before)
    if share is None:
        if now is None or before is None or now != now or before != before:
            return UNKNOWN
        return "new" if now else "unchanged"
    if share >= 9:
        return f"×{share + 1:,.0f}"
    places = 1 if abs(share) < Decimal("0.0995") else 0
    written = f"{abs(share) * 100:.{places}f}"
    if not written.strip("0."):
        return "unchanged"
    return f"{'+' if share > 0 else '−'}{written} %"


def relative(now: Decimal | float | None, before: Decimal | float | None) -> Decimal | None:
    """The change as a share of what was; None when either is unknown or nothing was."""
    if now is None or before is None or now != now or before != before or not before:
        return None
    return (Decimal(str(now)) - Decimal(str(before))) / abs(Decimal(str(before)))


def count(value: int | None) -> str:
    """`12,345`."""
    return UNKNOWN if value is None else f"{value:,}"


def tokens(value: int | None) -> str:
    """`431`, `12.4 k`, `3.1 M`, `5.5 B`."""
    if value is None:
        return UNKNOWN
    for size, letter in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "k")):
        if abs(value) >= size:
            return f"{value / size:,.1f} {letter}"
    return f"{value:,}"


def name(value: str | None, dimension: str) -> str:
    """What somebody called a thing, on one line and not too long; nobody's has words of its own."""
    if value is None:
        return NOBODY.get(dimension, f"no {dimension.replace('_', ' ')}")
    line = " ".join("".join(c if c.isprintable() else " " for c in value).split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def day(value: date) -> str:
    """`Fri 30 Oct`."""
    return f"{value:%a} {value.day} {value:%b}"


def long_day(value: date) -> str:
    """`Friday 30 October 2026`."""
    return f"{value:%A} {value.day} {value:%B %Y}"


def says(measure: str) -> str:
    """What a measure says about itself."""
    return measures.MEASURES[measure].about
