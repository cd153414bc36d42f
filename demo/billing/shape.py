"""A shape of a bill: its lines, and what they come to by a formula that can be checked by hand."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from demo.billing.line import Line

NOTHING = Decimal(0)


@dataclass(frozen=True)
class Shape:
    """Amounts in the currency of the lines.

    `billed`: before the discounts of `Line.discounts`; `effective`: amortised, likewise; `listed`: public on-demand
    cost of the usage, as far as AWS shows it; `discount`: what the discounts take (off billed and effective alike).
    `bridge`: what leads from billed to effective, by term. `unspent`: the part of `effective` that lies in hours to
    come when the bill is open.
    """

    name: str
    lines: tuple[Line, ...]
    billed: Decimal
    effective: Decimal
    listed: Decimal = NOTHING
    discount: Decimal = NOTHING
    bridge: Mapping[str, Decimal] = field(default_factory=dict)
    unspent: Decimal = NOTHING

    def __post_init__(self) -> None:
        if self.billed + sum(self.bridge.values()) != self.effective:
            raise ValueError(f"{self.name}: the bridge does not lead from billed to effective cost")
