"""AWS's own bills, of either generation, as billing lines: what refuses them, which costs count, what is unavailable.

Sources: reference/billing.md 3.1, 4, 5; the SQL is in aws_line.sql and aws_check.sql.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb

from collector.billing.aws_files import REMEDY, open_files
from collector.billing.format import Staging
from collector.billing.refusal import reading
from collector.billing.waiting import forget, keep
from collector.queries import HERE, bare, literal, queries, quoted
from collector.source import CollectError

REQUIRED = (
    "bill_billing_entity",
    "bill_billing_period_start_date",
    "bill_payer_account_id",
    "line_item_currency_code",
    "line_item_line_item_description",
    "line_item_line_item_type",
    "line_item_operation",
    "line_item_product_code",
    "line_item_unblended_cost",
    "line_item_usage_account_id",
    "line_item_usage_amount",
    "line_item_usage_end_date",
    "line_item_usage_start_date",
    "line_item_usage_type",
)
UNAVAILABLE = {
    "bill_invoice_id": "whether a bill is final",
    "line_item_iam_principal": "cost by IAM principal (export option INCLUDE_IAM_PRINCIPAL_DATA)",
    "line_item_net_unblended_cost": "net cost of accounts with a discount in columns",
    "line_item_resource_id": "cost by inference profile and exact model id (export option INCLUDE_RESOURCES)",
    "pricing_public_on_demand_cost": "list cost",
    "pricing_unit": "token counts of the bill",
    "product": "product names, so Marketplace models such as Claude are not recognised",
    "product_region_code": "regions, beyond what usage types say",
    "reservation_effective_cost": "amortised cost of reserved instances",
    "resource_tags": "cost by tag",
    "savings_plan_savings_plan_effective_cost": "amortised cost of savings plans",
    "split_line_item_parent_resource_id": "recognising split-cost lines by their parent",
}
GPUS = "nullif(product['gpu'], '')"
"""How many GPUs a machine has stands in the map of its product, which has no place in billing_line."""

REPEATED = ("identity_time_interval", "product_operation", "product_pricing_unit", "product_usagetype")
"""Columns that say again what a column of billing_line says: the charge period, the operation, the unit, the usage."""

WRONG = {
    "lines_of_another_period": "lines are not of {period}",
    "lines_without_time": "lines have no charge period, or one that ends before it starts",
    "lines_without_currency": "lines have no currency",
    "lines_without_type": "lines have no line item type",
    "lines_without_cost": "lines have no cost, or one that is no number",
}


@dataclass(frozen=True)
class Basis:
    """How a billing month tells its discounts, and what it comes to either way."""

    month: datetime
    has_net: bool
    has_lines: bool
    unblended: Decimal
    net: Decimal

    @property
    def is_net(self) -> bool:
        """By net columns: they are filled, and agree with the discount lines if there are any."""
        near = max(Decimal("0.01"), abs(self.unblended) / 1_000_000)
        return self.has_net and (not self.has_lines or abs(self.unblended - self.net) <= near)


def stage(
    connection: duckdb.DuckDBPyConnection,
    files: Sequence[Path],
    period: str | None,
    where: str,
    never: Sequence[str] = (),
) -> Staging:
    """The files as `staged_line`, `staged_check` and `staged_split`; `never`: columns that the format cannot have.

    Raises CollectError for files that cannot be read, lack a required column, or have one line that cannot stand in a
    bill. `left_out` are split-cost lines, which repeat what the instance's own line says.
    """
    sql, checks = queries("billing/aws_line.sql"), queries("billing/aws_check.sql")
    connection.execute(f"CREATE OR REPLACE TEMP TABLE aws_shape ({bare(sql['columns'])})")
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE accelerator_family AS FROM read_csv(?, header = true, all_varchar = true)",
        [str(HERE / "billing" / "accelerator_family.csv")],
    )
    connection.execute("SET VARIABLE billing_period = ?", [period])
    shape = {row[0]: row[1] for row in connection.execute("DESCRIBE aws_shape").fetchall()}
    with reading(where, REMEDY):
        columns = open_files(connection, files, shape, where)
        missing = [column for column in REQUIRED if column not in columns]
        if files and columns and missing:
            raise CollectError(
                f"the export lacks columns that the bill cannot be understood without: {', '.join(missing)}",
                where,
                "Add them to the export (Data Exports: edit the export's query)",
            )
        check = _checked(connection, sql["check"], bool(files), period, where)
        months = [Basis(*row) for row in connection.execute(sql["basis"]).fetchall()]
        connection.execute("SET VARIABLE net_months = ?", [[each.month for each in months if each.is_net]])
        totals_only = connection.execute("SELECT coalesce(getvariable('totals_only'), FALSE)").fetchone() == (True,)
        filled = [] if totals_only else _filled(connection, sql["filled"], columns)
        lines = sql["line"].replace("{{shape}}", ", ".join(literal(column) for column in shape))
        other = _other([each for each in filled if each not in (*shape, *REPEATED)])
        keep(connection, "aws_line", lines.replace("{{other}}", other))
        connection.execute(sql["tags"].replace("{{tag_list}}", _tags(totals_only)))
        connection.execute(sql["macros"])
        connection.execute(sql["class"])
        keep(connection, "staged_line", sql["staged"])
        for step in ("macros", "split", "check"):
            connection.execute(checks[step])
        of_no_class, of_no_model = connection.execute(sql["unknown"]).fetchone() or (0, 0)
    connection.execute("DROP VIEW export_line")
    forget(connection, "aws_line")
    for table in ("aws_class", "aws_shape", "aws_tags", "accelerator_family"):
        connection.execute(f"DROP TABLE {table}")
    bases = {"net" if each.is_net else "unblended" for each in months} or {"unblended"}
    sums = {"unblended_cost": f"{sum(each.unblended for each in months):f}", "basis": " and ".join(sorted(bases))}
    return Staging(
        check["lines"],
        check["split_lines"],
        check["payer_account_id"] or "",
        sums,
        _notes(columns, months, frozenset(never)) + _unknown(of_no_class, of_no_model),
    )


def _checked(
    connection: duckdb.DuckDBPyConnection, sql: str, has_files: bool, period: str | None, where: str
) -> dict[str, Any]:
    """Figures of the delivery; refuses it whole when a line of it cannot stand in a bill."""
    outcome = connection.execute(sql)
    names = [column[0] for column in outcome.description or ()]
    check = dict(zip(names, outcome.fetchone() or (), strict=True))
    for name, what in WRONG.items():
        if check[name]:
            raise CollectError(
                f"{check[name]:,} of {check['lines']:,} {what.format(period=period or 'any month')}",
                where,
                "A bill is loaded whole or not at all; wait for the next delivery, or ask AWS support about this one",
            )
    if has_files and not check["lines"]:
        raise CollectError(
            "the manifest names data files, but there is not one line in them",
            where,
            "What is loaded of this month stays; check the export's WHERE clause, or wait for the next delivery",
        )
    return check


def _notes(columns: dict[str, str], months: Sequence[Basis], never: frozenset[str]) -> tuple[str, ...]:
    """What this delivery cannot tell, and choices that were made for it."""
    notes = [
        f"there is no column {column}, so {what} is unavailable"
        for column, what in UNAVAILABLE.items()
        if columns and column not in columns and column not in never
    ]
    notes += [
        f"discounts are stated twice in {each.month:%Y-%m} and the two differ (with discount lines {each.unblended}, "
        f"net columns {each.net}): the discount lines are used"
        for each in months
        if each.has_net and not each.is_net
    ]
    return tuple(notes)


def _unknown(of_no_class: int, of_no_model: int) -> tuple[str, ...]:
    """Lines of model APIs that nobody can place: their cost is in the bill, under no class or no model."""
    notes = []
    if of_no_class:
        notes.append(
            f"{of_no_class:,} lines of model APIs have a usage type of no class that is known: their cost is kept, "
            "their tokens are not counted"
        )
    if of_no_model:
        notes.append(f"{of_no_model:,} token-metered lines name no model: their cost is kept under none")
    return tuple(notes)


def _filled(connection: duckdb.DuckDBPyConnection, sql: str, columns: dict[str, str]) -> list[str]:
    """The export's columns that at least one line fills, by name, and `product_gpu` of the product's map."""
    said = {column: quoted(column) for column in columns}
    if "product" in columns:
        said["product_gpu"] = GPUS
    if not said:
        return []
    counts = ", ".join(f"count({text})" for text in said.values())
    row = connection.execute(sql.replace("{{counts}}", counts)).fetchone() or ()
    return sorted(name for name, count in zip(said, row, strict=True) if count)


def _other(columns: Sequence[str]) -> str:
    """Columns without a place in billing_line, as a map; a line that leaves one empty has NULL there."""
    if not columns:
        return "CAST(NULL AS MAP(VARCHAR, VARCHAR))"
    # several times as fast as MAP(), which looks for equal keys in every row
    pairs = ", ".join(f"{literal(column)}, {_written(column)}" for column in columns)
    return f"CAST(json_object({pairs}) AS MAP(VARCHAR, VARCHAR))"


def _written(column: str) -> str:
    return GPUS if column == "product_gpu" else f"nullif(CAST({quoted(column)} AS VARCHAR), '')"


def _tags(totals_only: bool) -> str:
    """Tags of all sorts as entries (k, v), keys normalised: lower case, `_` for signs, no `resource_tags_` in front."""
    if totals_only:
        return "CAST(NULL AS STRUCT(k VARCHAR, v VARCHAR)[])"
    return (
        "CASE WHEN cardinality(coalesce(resource_tags, MAP {})) + cardinality(coalesce(tags, MAP {})) > 0 THEN "
        "list_transform(list_concat(coalesce(map_entries(resource_tags), []), coalesce(map_entries(tags), [])), "
        "lambda tag: struct_pack(k := regexp_replace(regexp_replace(lower(tag.key), '[^a-z0-9]+', '_', 'g'), "
        "'^resource_tags_', ''), v := tag.value)) END"
    )
