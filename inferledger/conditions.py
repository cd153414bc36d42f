"""Filters as SQL."""

from dataclasses import dataclass

from warehouse.measures import Filters


@dataclass(frozen=True)
class Condition:
    """A WHERE clause and what is bound in it."""

    text: str
    bound: tuple[object, ...]


def condition(where: Filters, prefix: str = "") -> Condition:
    """Filters as SQL over a mart that has their dimensions."""
    parts: list[str] = ["TRUE"]
    bound: list[object] = []
    for operator, day in ((">=", where.first_day), ("<=", where.last_day)):
        if day is not None:
            parts.append(f"{prefix}day {operator} ?")
            bound.append(day)
    for name, values in where.chosen().items():
        known = [value for value in values if value is not None]
        either = [f"{prefix}{name} IN ({', '.join('?' * len(known))})"] if known else []
        either += [f"{prefix}{name} IS NULL"] if None in values else []
        parts.append(f"({' OR '.join(either)})")
        bound += known
    return Condition(" AND ".join(parts), tuple(bound))
