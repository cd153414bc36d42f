"""FOCUS, the FinOps Open Cost and Usage Specification, 1.0 to 1.3, of any provider: CSV, CSV.GZ and Parquet.

Two decisions, from the specification (1.2, columns EffectiveCost and BillingCurrency):

- EffectiveCost is mandatory and never null; a file without it, or with a line that lacks it, is refused whole. There is
  no fallback to BilledCost: where something was bought ahead the two differ, and to take the one for the other would
  count that money twice.
- BillingCurrency is mandatory and a national currency (ISO 4217). A line in tokens or credits without a cost holds no
  money: it is left out, counted and told. With a cost it is an amount of nothing that is money: refused whole.

What prices are in (PricingCurrency and its costs) stays in x_other; a line that is priced in tokens and billed in
dollars is a line in dollars.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from collector.billing.focus_files import REMEDY, open_files
from collector.billing.format import Staging
from collector.billing.refusal import reading
from collector.billing.waiting import forget, keep
from collector.queries import HERE, bare, literal, queries, quoted
from collector.source import CollectError

MARKS = frozenset({"billedcost", "effectivecost", "chargeperiodstart"})
"""Header names, in lower case, that only FOCUS has together."""

UNAVAILABLE = {
    ("BillingAccountId",): "telling billing accounts apart (all lines are of one account, `-`)",
    ("BillingPeriodEnd",): "the end of a billing period (a month is taken)",
    (
        "ServiceProviderName",
        "ProviderName",
        "PublisherName",
        "HostProviderName",
        "InvoiceIssuerName",
    ): "cost by provider",
    ("ServiceName",): "cost by service, and which lines are of a model API or support",
    ("ServiceCategory",): "classes of cost (compute, storage, network) and purchase options",
    ("InvoiceId",): "whether a bill is final",
    ("SubAccountId",): "cost by sub-account",
    ("RegionId",): "cost by region",
    ("ResourceId",): "cost by resource",
    ("Tags",): "cost by tag",
    ("ListCost",): "list cost",
    ("ContractedCost",): "contracted cost",
    ("ChargeClass",): "which lines correct an earlier bill",
    ("ConsumedQuantity", "PricingQuantity"): "quantities and token counts",
    ("ConsumedUnit", "PricingUnit"): "token counts of the bill",
    ("SkuMeter", "SkuPriceDetails", "x_UsageType", "x_SkuMeterName"): "token classes, beyond what descriptions say",
    ("CommitmentDiscountId",): "cost by commitment, and which purchases are commitments",
    ("CommitmentDiscountStatus",): "unused commitments",
}
"""What a file cannot tell that has none of these columns."""

PLACED = frozenset(
    """
    BilledCost EffectiveCost ListCost ContractedCost BillingCurrency BillingPeriodStart BillingPeriodEnd
    ChargePeriodStart ChargePeriodEnd BillingAccountId SubAccountId InvoiceId InvoiceIssuerName ChargeCategory
    ChargeClass ChargeFrequency ChargeDescription ServiceName RegionId AvailabilityZone ResourceId SkuId
    ConsumedQuantity ConsumedUnit CommitmentDiscountId CommitmentDiscountStatus Tags x_ServiceCode x_UsageType
    x_Operation
    """.lower().split()
)
"""Columns that billing_line has whole; everything else is kept in x_other too, as it is written."""

COSTS = ("billed_cost", "effective_cost", "list_cost", "contracted_cost")
TABLES = {
    "focus_currency": "currency.csv",
    "focus_provider": "focus_provider.csv",
    "focus_service": "focus_service.csv",
}
NO_OTHER = "CAST(NULL AS MAP(VARCHAR, VARCHAR))"
NO_TAGS = "CAST(NULL AS STRUCT(k VARCHAR, v VARCHAR)[])"
WRONG = {
    "lines_without_period": "have no billing period, or one that is no time",
    "lines_of_an_unclear_day": "have a billing period that is written with slashes and, with the month before the day, "
    "does not begin and end on the first of a month",
    "lines_of_another_period": "are of another billing period",
    "lines_without_time": "have no charge period, one that is no time, or one that ends before it starts",
    "lines_without_currency": "have a cost and no national currency (BillingCurrency)",
    "lines_without_billed_cost": "have no BilledCost, or one that is no number",
    "lines_without_effective_cost": "have no EffectiveCost, or one that is no number (BilledCost is no substitute)",
    "lines_with_a_wrong_cost": "have a ListCost or ContractedCost that is no number",
    "lines_without_category": "have no ChargeCategory",
}
"""What refuses files, by the count in `check` that says so."""

REMARKS = {
    "lines_without_money": "are only in a virtual currency (tokens, credits), hold no money and are not in the bill",
    "corrections": "correct an earlier bill (ChargeClass Correction): they count in the bill they are on",
    "earlier": "charge for a time before their billing period: the time of use and the bill are kept apart",
    "later": "charge for a time after their billing period: the time of use and the bill are kept apart",
    "without_class": "of a model API are of no token class (or of one that is not known)",
    "without_tokens": "are metered in tokens in a unit that is not known, and so of an unknown number of tokens",
    "without_model": "of a model API name no model",
    "without_tags": "have tags that are no JSON; they are not read",
}
READINGS = {
    "has_slashes": "dates are written with slashes: the month was read before the day",
    "has_signs": "amounts are written with signs ($ and thousands' commas): the signs were left out",
}


@dataclass(frozen=True)
class Focus:
    """The format. A file may hold several billing periods, accounts and currencies; each line carries its own."""

    name: str = "focus"

    def recognises(self, columns: frozenset[str]) -> bool:
        """Whether a header, in any case of letters, is FOCUS."""
        return {column.lower() for column in columns} >= MARKS

    def stage(
        self, connection: duckdb.DuckDBPyConnection, files: Sequence[Path], period: str | None, where: str
    ) -> Staging:
        """The files as `staged_line`. `left_out` are lines in tokens or credits that hold no money.

        Raises CollectError for files that cannot be read, lack a required column, or have one line that cannot stand
        in a bill: of another billing period than `period`, without time, currency, cost or category.
        """
        sql, classes = queries("billing/focus.sql"), queries("billing/focus_class.sql")
        connection.execute(f"CREATE OR REPLACE TEMP TABLE focus_shape ({bare(sql['columns'])})")
        for table, file in TABLES.items():
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS FROM read_csv(?, header = true, all_varchar = true)",
                [str(HERE / "billing" / file)],
            )
        connection.execute("SET VARIABLE billing_period = ?", [period])
        connection.execute(sql["macros"])
        connection.execute(classes["macros"])
        with reading(where, REMEDY):
            columns = open_files(connection, files, where)
            connection.execute(sql["charge"])
            check = _checked(connection, sql, columns, files, where)
            keep(connection, "focus_line", _line(connection, sql, check["filled"]))
            connection.execute(classes["class"].replace("{{way}}", bare(sql["way"])))
            keep(connection, "staged_line", sql["staged"])
            staging = _staging(connection, sql, columns, check, where)
        for view in ("focus_charge", "focus_file"):
            connection.execute(f"DROP VIEW {view}")
        forget(connection, "focus_line")
        for table in ("focus_class", "focus_shape", *TABLES):
            connection.execute(f"DROP TABLE {table}")
        return staging


FORMAT = Focus()


def _checked(
    connection: duckdb.DuckDBPyConnection,
    sql: Mapping[str, str],
    columns: Sequence[str],
    files: Sequence[Path],
    where: str,
) -> dict[str, Any]:
    """Figures of the files; refuses them whole when a line of them cannot stand in a bill."""
    counts = ", ".join(f"count({quoted(column)}) > 0" for column in columns) or "FALSE"
    outcome = connection.execute(sql["check"].replace("{{counts}}", counts))
    names = [column[0] for column in outcome.description or ()]
    check = dict(zip(names, outcome.fetchone() or (), strict=True))
    for name, what in WRONG.items():
        if check[name]:
            raise CollectError(f"{check[name]:,} of {check['lines']:,} lines {what}", where, REMEDY)
    if files and not check["lines"]:
        raise CollectError("there is not one line in the files", where, "What is loaded of this bill stays; " + REMEDY)
    check["filled"] = [column for column, is_filled in zip(columns, check["filled"], strict=False) if is_filled]
    return check


def _line(connection: duckdb.DuckDBPyConnection, sql: Mapping[str, str], filled: Sequence[str]) -> str:
    """The statement that reads the lines; of a delivery that a later one replaced only the totals count."""
    row = connection.execute("SELECT coalesce(getvariable('totals_only'), FALSE)").fetchone()
    if row is not None and row[0]:
        filled = []
    kept = [column for column in filled if column.lower() not in PLACED]
    other = f"MAP([{', '.join(map(literal, kept))}], [{', '.join(map(quoted, kept))}])" if kept else NO_OTHER
    way = ", ".join(f"coalesce(CAST({column.strip()} AS VARCHAR), '')" for column in bare(sql["way"]).split(","))
    replaced = {
        "other": other,
        "tags": "focus_tags(Tags)" if "tags" in {column.lower() for column in filled} else NO_TAGS,
        "way": way,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda match: replaced[match[1]], sql["line"])


def _staging(
    connection: duckdb.DuckDBPyConnection,
    sql: Mapping[str, str],
    columns: Sequence[str],
    check: Mapping[str, Any],
    where: str,
) -> Staging:
    """What there is to say of the staged lines, once their sums are those that were read."""
    uneven = connection.execute(sql["uneven"]).fetchone()
    if uneven != (0,):
        raise CollectError(
            "the staged lines do not add up to the lines that were read", where, "Report this; nothing was loaded"
        )
    rows = connection.execute(sql["sums"]).fetchall()
    sums = {
        name if len(rows) == 1 else f"{name} {currency}": amount
        for currency, *amounts in rows
        for name, amount in zip(COSTS, amounts, strict=True)
        if amount is not None
    }
    outcome = connection.execute(sql["told"])
    names = [column[0] for column in outcome.description or ()]
    told = dict(check) | dict(zip(names, outcome.fetchone() or (), strict=True))
    present = {column.lower() for column in columns}
    notes = [
        f"there is no column {' or '.join(group)}, so {what} is unavailable"
        for group, what in UNAVAILABLE.items()
        if columns and not present & {column.lower() for column in group}
    ]
    notes += [f"{told[name]:,} lines {what}" for name, what in REMARKS.items() if told[name]]
    notes += [what for name, what in READINGS.items() if check[name]]
    return Staging(check["lines"], check["lines_without_money"], check["account"] or "", sums, tuple(notes))
