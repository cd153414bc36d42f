"""Lines of one billing month before they become a CUR: descriptions once per kind of line, amounts per line.

Amounts are integers of nano-dollars until the very end; `usage` is already the double that the bill shows.
"""

import hashlib
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from demo.clock import Period
from demo.cur_schema import DOUBLE, MAP, NUMBER_MAP, SCHEMA, STRING, TIME
from demo.models import PAYER, Account

Description = dict[str, str | dict[str, str] | None]
"""Column -> value, for the string and map columns that all lines of a kind share."""

ROW = np.dtype(
    [
        ("kind", "i4"),
        ("start_us", "i8"),
        ("end_us", "i8"),
        ("usage", "f8"),
        ("cost_nano", "i8"),
        ("public_nano", "i8"),  # list price; equals the cost but for Marketplace, where AWS shows 0
        ("plan_nano", "i8"),  # what usage covered by a Savings Plan costs under it
        ("commitment_nano", "i8"),  # of a Savings Plan in an hour, and what of it is used
        ("used_nano", "i8"),
    ]
)


def usd(nano: int, decimals: int = 10) -> str:
    """Nano-dollars as the bill prints rates: `0.0008000000`."""
    sign, nano = ("-", -nano) if nano < 0 else ("", nano)
    return f"{sign}{nano // 10**9}.{nano % 10**9:09d}{'0' * (decimals - 9)}"


def code(*parts: str, length: int = 16) -> str:
    """A stable opaque code, as AWS's SKUs and invoice numbers are: upper-case letters and digits."""
    digest = hashlib.blake2b("|".join(parts).encode(), digest_size=16).digest()
    alphabet = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
    number, text = int.from_bytes(digest), ""
    while len(text) < length:
        number, rest = divmod(number, len(alphabet))
        text += alphabet[rest]
    return text


def digits(*parts: str, length: int = 9) -> str:
    """A stable number of that many digits, as AWS's rate ids and invoices have."""
    digest = hashlib.blake2b("|".join(parts).encode(), digest_size=16).digest()
    return str(10 ** (length - 1) + int.from_bytes(digest) % (9 * 10 ** (length - 1)))


@dataclass
class Ledger:
    """The lines of one billing month."""

    period: Period
    kinds: list[Description] = field(default_factory=list)
    rows: list[np.ndarray] = field(default_factory=list)

    def kind(
        self, account: Account, billing_entity: str, line_type: str, **described: str | dict[str, str] | None
    ) -> int:
        """Register a kind of line; returns its number. `described` are CUR columns without the common ones."""
        marketplace = billing_entity == "AWS Marketplace"
        common: Description = {
            "bill_bill_type": "Anniversary",
            "bill_billing_entity": billing_entity,
            "bill_invoice_id": self.invoice("marketplace" if marketplace else "tax" if line_type == "Tax" else "aws"),
            "bill_invoicing_entity": "Amazon Web Services, Inc.",
            "bill_payer_account_id": PAYER.id,
            "bill_payer_account_name": PAYER.name,
            "line_item_currency_code": "USD",
            "line_item_legal_entity": "Anthropic, PBC" if marketplace else "Amazon Web Services, Inc.",
            "line_item_line_item_type": line_type,
            "line_item_usage_account_id": account.id,
            "line_item_usage_account_name": account.name,
            "resource_tags": {},
            "cost_category": {"environment": account.environment},
            "tags": {"accountTag/environment": account.environment},
        }
        self.kinds.append(common | described)
        return len(self.kinds) - 1

    def invoice(self, group: str) -> str:
        """Invoice number of a final month; empty while the month is open."""
        return digits("invoice", self.period.label, group, length=10) if self.period.final else ""

    def add(self, rows: np.ndarray) -> None:
        self.rows.append(rows)

    def add_one(self, kind: int, cost_nano: int, usage: float, start_us: int, end_us: int) -> None:
        """One line; list price = cost."""
        self.add(np.array([(kind, start_us, end_us, usage, cost_nano, cost_nano, 0, 0, 0)], dtype=ROW))

    def all_rows(self) -> np.ndarray:
        """Every line so far, by start and kind."""
        rows = np.concatenate(self.rows)
        return rows[np.lexsort((rows["kind"], rows["start_us"]))]

    def cost_by(self, column: str, rows: np.ndarray) -> dict[str, int]:
        """Exact nano-dollars of the given lines per value of a described column."""
        totals: dict[str, int] = {}
        for kind, nano in zip(rows["kind"].tolist(), rows["cost_nano"].tolist(), strict=True):
            value = str(self.kinds[kind].get(column))
            totals[value] = totals.get(value, 0) + nano
        return totals

    def table(self, rows: np.ndarray, line_ids: list[str]) -> pa.Table:
        """The CUR table of the given lines."""
        described = pa.table(
            {name: pa.array([kind.get(name) for kind in self.kinds], type=STRING) for name in _DESCRIBED_STRINGS}
            | {name: pa.array([_pairs(kind.get(name)) for kind in self.kinds], type=MAP) for name in _DESCRIBED_MAPS}
        ).take(pa.array(rows["kind"]))
        cost = pa.array(rows["cost_nano"] / 1e9)
        line_types = np.array([kind["line_item_line_item_type"] for kind in self.kinds])[rows["kind"]]
        covered, fee = line_types == "SavingsPlanCoveredUsage", line_types == "SavingsPlanRecurringFee"
        by_line = {
            "identity_line_item_id": pa.array(line_ids, type=STRING),
            "identity_time_interval": pa.array(_intervals(rows["start_us"], rows["end_us"]), type=STRING),
            "bill_billing_period_start_date": _constant_time(self.period.start_us, len(rows)),
            "bill_billing_period_end_date": _constant_time(self.period.end_us, len(rows)),
            "line_item_blended_cost": cost,
            "line_item_unblended_cost": cost,
            "line_item_usage_amount": pa.array(rows["usage"]),
            "line_item_usage_start_date": _times(rows["start_us"]),
            "line_item_usage_end_date": _times(rows["end_us"]),
            "pricing_public_on_demand_cost": pa.array(rows["public_nano"] / 1e9),
            "savings_plan_savings_plan_effective_cost": pa.array(rows["plan_nano"] / 1e9, mask=~covered),
            "savings_plan_total_commitment_to_date": pa.array(rows["commitment_nano"] / 1e9, mask=~fee),
            "savings_plan_used_commitment": pa.array(rows["used_nano"] / 1e9, mask=~fee),
            "savings_plan_recurring_commitment_for_billing_period": pa.array(rows["commitment_nano"] / 1e9, mask=~fee),
            "savings_plan_amortized_upfront_commitment_for_billing_period": pa.array(np.zeros(len(rows)), mask=~fee),
        }
        empty = {kind: pa.nulls(len(rows), kind) for kind in (STRING, DOUBLE, NUMBER_MAP)}
        columns = []
        for column in SCHEMA:
            if column.name in by_line:
                columns.append(by_line[column.name])
            elif column.name in described.column_names:
                columns.append(described.column(column.name))
            else:
                columns.append(empty[column.type])
        return pa.table(columns, schema=SCHEMA)


_BY_LINE = {"identity_line_item_id", "identity_time_interval"}
_UNUSED_GROUPS = ("reservation_", "capacity_reservation_", "split_line_item_")
_DESCRIBED_STRINGS = [
    column.name
    for column in SCHEMA
    if column.type == STRING and column.name not in _BY_LINE and not column.name.startswith(_UNUSED_GROUPS)
]
_DESCRIBED_MAPS = [column.name for column in SCHEMA if column.type == MAP]


def _pairs(value: object) -> list[tuple[str, str]] | None:
    return sorted(value.items()) if isinstance(value, dict) else None


def _times(at_us: np.ndarray) -> pa.Array:
    return pa.array(at_us // 1000, type=pa.int64()).cast(TIME)


def _constant_time(at_us: int, n: int) -> pa.Array:
    return _times(np.full(n, at_us, dtype=np.int64))


def _intervals(start_us: np.ndarray, end_us: np.ndarray) -> np.ndarray:
    texts = [np.datetime_as_string(at.astype("datetime64[us]"), unit="s") for at in (start_us, end_us)]
    return np.char.add(np.char.add(texts[0], "Z/"), np.char.add(texts[1], "Z"))
