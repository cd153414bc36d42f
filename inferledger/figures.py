"""Figures as text: exact decimals for machines, rounded ones for people."""

from decimal import Decimal


def exact(value: Decimal | int | None) -> str | None:
    """Decimal text without an exponent; None stays None, which is unknown."""
    return None if value is None else format(Decimal(value), "f")


def ratio(value: float | None, places: int = 9) -> str | None:
    """A quotient as decimal text; None where its denominator is 0."""
    return None if value is None else format(round(Decimal(repr(value)), places), "f")


def money(value: str | Decimal | None, currency: str = "USD", places: int | None = None) -> str:
    """`$1,234.56`, `$0.0012`, `-$3.00`, `1,234.56 EUR`, `unknown`."""
    if value is None:
        return "unknown"
    amount = Decimal(value)
    size = abs(amount)
    if places is None:
        places = 2 if size >= 1 or not size else 4
    sign, written = ("-" if amount < 0 and round(size, places) else ""), f"{size:,.{places}f}"
    return f"{sign}${written}" if currency == "USD" else f"{sign}{written} {currency}"


def each(value: str | Decimal | None, currency: str = "USD") -> str:
    """A price of a million tokens: `$1.395`, `$0.1122`, `-` where there is none."""
    if value is None:
        return "-"
    return money(value, currency, 4 if abs(Decimal(value)) < 1 else 3)


def count(value: int | str | None) -> str:
    """`1,234,567`, or `unknown`."""
    return "unknown" if value is None else f"{int(value):,}"


def mtok(tokens: int | None) -> str:
    """Tokens in millions, the unit that prices have: `5,487.7 M`."""
    if tokens is None:
        return "unknown"
    millions = Decimal(tokens) / 1_000_000
    return f"{millions:,.1f} M" if millions >= 10 or not tokens else f"{millions:,.3f} M"


def percent(value: str | Decimal | None, places: int = 1) -> str:
    """`7.2 %`, or a dash where there is nothing to divide by."""
    return "-" if value is None else f"{Decimal(value) * 100:.{places}f} %"
