"""AWS Cost and Usage Report 2.0 (Data Exports), Parquet, read by its manifests.

A delivery is the whole month again, so one (export, billing period) is replaced in one transaction; the hours whose
lines differ are touched. Both layouts are read: overwrite, and create-new with a folder per execution. The manifest is
written after its data files and is read again after they were fetched: if it moved, the delivery is fetched anew.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import duckdb
import pyarrow as pa
from pydantic import Field

from collector.queries import queries
from collector.source import MEMBERS, Batch, CollectError, Fetched, Kind, LoadResult, Moment, Source, SourceSettings, State, StoredObject
from collector.store import Store, open_store

PERIOD = re.compile(r"(?:^|/)BILLING_PERIOD=(\d{4}-\d{2})/", re.IGNORECASE)
EXECUTION = re.compile(r"/(\d{8}T\d{6}(?:\d{3})?Z?)-[^/]+/[^/]+$")
ATTEMPTS = 3

REQUIRED = (
    "line_item_line_item_type", "line_item_usage_start_date", "line_item_usage_end_date", "line_item_product_code",
    "line_item_usage_type", "line_item_operation", "line_item_usage_account_id", "line_item_usage_amount",
    "line_item_unblended_cost", "line_item_currency_code", "line_item_line_item_description", "bill_billing_entity",
    "bill_billing_period_start_date", "bill_payer_account_id", "bill_invoice_id",
)
"""Without these a bill cannot be read at all."""

OPTIONAL = {
    "line_item_resource_id": "models are read from usage types only, and no line can be traced to a resource",
    "line_item_iam_principal": "callers beside the gateway cannot be named (INCLUDE_IAM_PRINCIPAL_DATA)",
    "line_item_net_unblended_cost": "discounts are only seen as lines of their own",
    "pricing_public_on_demand_cost": "list cost is unavailable",
    "pricing_unit": "usage cannot be turned into tokens",
    "product": "Marketplace models are recognised by resource id only",
    "savings_plan_savings_plan_effective_cost": "Savings Plan usage has no effective cost",
    "reservation_effective_cost": "reserved usage has no effective cost",
}
"""What is unavailable when an optional column is missing."""


class Cur2Settings(SourceSettings):
    """A CUR 2.0 export: the folder that holds its `data/` and `metadata/`."""

    kind: Literal["cur2"]
    from_period: str = Field("0000-00", pattern=r"^\d{4}-\d{2}$", description="earlier billing periods (YYYY-MM) are left alone")


@dataclass(frozen=True)
class Manifest:
    """One delivery. `delivered` orders deliveries of one period: execution folder, manifest's own time, or file time."""

    key: str
    version: str
    period: str
    export: str
    execution: str
    delivered: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Cur2:
    """One export. Batches: the newest delivery of each billing period."""

    settings: Cur2Settings
    store: Store
    family: str = "billing"

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def is_remote(self) -> bool:
        return self.store.is_remote

    def discover(self, state: State) -> Sequence[Batch]:
        manifests: dict[str, list[StoredObject]] = {}
        for found in self.store.listing("metadata"):
            period = PERIOD.search(found.key)
            if period and found.key.endswith("-Manifest.json"):
                manifests.setdefault(period[1], []).append(found)
        for found in self.store.listing("data"):
            period = PERIOD.search(found.key)
            if period:
                manifests.setdefault(period[1], [])
        if not manifests:
            raise CollectError(
                "no delivery found", self.store.place,
                "Point `location` at the export's own folder, the one with `data/` and `metadata/`; the first delivery "
                "takes up to 24 hours",
            )
        batches = []
        for period, candidates in sorted(manifests.items()):
            if period < self.settings.from_period:
                continue
            batch = self._batch(period, candidates)
            if "error" in batch.plan or not state.is_loaded(self.name, batch.identity):
                batches.append(batch)
        return batches

    def _batch(self, period: str, candidates: Sequence[StoredObject]) -> Batch:
        try:
            manifest = self._newest(period, candidates)
        except CollectError as error:
            return Batch(f"unreadable:{period}", f"{self.name} {period}", period, plan={"error": error})
        identity = f"{manifest.export}:{period}:{manifest.execution}:{manifest.delivered}"
        return Batch(identity, f"{manifest.export} {period}, delivered {manifest.delivered}", period, plan={"manifest": manifest})

    def _newest(self, period: str, candidates: Sequence[StoredObject]) -> Manifest:
        if not candidates:
            raise CollectError(
                f"data of {period} has no manifest", f"{self.store.place}/metadata/BILLING_PERIOD={period}",
                "AWS writes the manifest last: wait for the delivery to end, or restore the `metadata` folder",
            )
        return max((self._read(found) for found in candidates), key=lambda each: (each.delivered, each.execution, each.key))

    def _read(self, found: StoredObject) -> Manifest:
        where = f"{self.store.place}/{found.key}"
        try:
            content: dict[str, Any] = json.loads(self.store.read(found))
        except ValueError as error:
            raise CollectError(
                "the manifest is half-written or no JSON", where, "Wait for AWS to finish the delivery; it is read again next time"
            ) from error
        files = content.get("dataFiles") or content.get("reportKeys") if isinstance(content, dict) else None
        if not isinstance(files, list) or not all(isinstance(each, str) for each in files):
            raise CollectError(
                "the manifest names no data files", where, "It should have `dataFiles`; check that this is a Data Exports manifest"
            )
        period = cast("re.Match[str]", PERIOD.search(found.key))[1]
        folder = EXECUTION.search(found.key)
        folder = folder or (EXECUTION.search(files[0]) if files else None)
        delivered = folder[1] if folder else f"{found.modified:%Y%m%dT%H%M%SZ}"
        export = str(content.get("exportName") or Path(found.key).name.removesuffix("-Manifest.json"))
        execution = str(content.get("executionId") or content.get("assemblyId") or found.version)
        return Manifest(found.key, found.version, period, export, execution, delivered, tuple(map(str, files)))

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        if "error" in batch.plan:
            raise cast(CollectError, batch.plan["error"])
        manifest = cast(Manifest, batch.plan["manifest"])
        for _ in range(ATTEMPTS):
            objects = self._listed(manifest)
            files = self.store.fetch(objects, spool)
            for found, path in zip(objects, files, strict=True):
                _whole(path, f"{self.store.place}/{found.key}")
            now = self._again(manifest)
            if now == manifest.version:
                members = pa.table(
                    [[str(path) for path in files], [1] * len(files), [None] * len(files), [each.key for each in objects]],
                    schema=MEMBERS,
                )
                return Fetched(batch, tuple(files), spool, members)
            manifest = self._read(next(each for each in self.store.listing("metadata") if each.key == manifest.key))
        raise CollectError(
            f"the delivery of {manifest.period} changed {ATTEMPTS} times while it was read", f"{self.store.place}/{manifest.key}",
            "AWS is writing it; it is read again next time",
        )

    def _again(self, manifest: Manifest) -> str | None:
        return next((each.version for each in self.store.listing("metadata") if each.key == manifest.key), None)

    def _listed(self, manifest: Manifest) -> list[StoredObject]:
        there = {found.key: found for found in self.store.listing("data")}
        objects = []
        for url in manifest.files:
            key = "data/" + url.replace("\\", "/").rpartition("/data/")[2].lstrip("/")
            if key not in there:
                raise CollectError(
                    f"the manifest of {manifest.period} names a data file that is not there", f"{self.store.place}/{key}",
                    "Copy the whole export, or wait for the delivery to end",
                )
            objects.append(there[key])
        return objects

    def load(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> LoadResult:
        manifest = cast(Manifest, fetched.batch.plan["manifest"])
        newer = connection.execute(
            "SELECT max(sums['delivered']) FROM load WHERE source = ? AND sums['billing_period'] = ?", [self.name, manifest.period]
        ).fetchone()
        plan = {"billing_period": manifest.period, "delivered": manifest.delivered, "export": manifest.export}
        if newer and newer[0] and str(newer[0]) > manifest.delivered:
            return LoadResult(0, 0, sums=plan, notes=(f"{fetched.batch.detail} is older than what is loaded and was left out",))
        try:
            return self._replace(connection, fetched, manifest, load_id, plan)
        except (duckdb.InvalidInputException, duckdb.IOException, duckdb.ConversionException, duckdb.BinderException) as error:
            raise CollectError(
                f"the delivery of {manifest.period} cannot be read as CUR 2.0 Parquet ({type(error).__name__})",
                f"{self.store.place}, execution {manifest.execution}",
                "Compare its columns with `aws bcm-data-exports get-table`, or have AWS deliver it again",
            ) from error

    def _replace(
        self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, manifest: Manifest, load_id: str, plan: Mapping[str, str]
    ) -> LoadResult:
        sql = queries("billing/cur2.sql")
        notes = _open_lines(connection, fetched, sql["known"], self.store.place)
        rows = _check_rows(connection, manifest, self.store.place)
        notes += _choose_basis(connection, sql["basis"])
        for name, value in {"load_id": load_id, "export_name": self.name, "billing_period": manifest.period,
                            "identity": fetched.batch.identity, "delivered": manifest.delivered}.items():
            connection.execute(f"SET VARIABLE {name} = ?", [value])
        connection.execute(sql["macros"])
        connection.execute(sql["product"])
        connection.execute(sql["mapped"].replace("{{other}}", _other(connection, sql["known"])))
        connection.execute(sql["touched"])
        connection.execute("DELETE FROM billing_line WHERE export_name = ? AND billing_period = ?", [self.name, manifest.period])
        connection.execute("INSERT INTO billing_line BY NAME SELECT * FROM new_line ORDER BY charge_period_start, line_digest")
        connection.execute(sql["version"])
        total = connection.execute(
            "SELECT count(*), min(charge_period_start), max(charge_period_start), sum(billed_cost), sum(effective_cost), "
            "count(*) FILTER (x_token_class IS NOT NULL AND x_tokens IS NULL) FROM new_line"
        ).fetchone()
        assert total is not None
        if total[5]:
            notes += (f"{total[5]:,} token-metered lines have a unit that is not known; their cost is unattributed",)
        connection.execute("DROP TABLE new_line")
        return LoadResult(
            rows_read=rows, rows_loaded=total[0], rows_filtered=rows - total[0], first_at=total[1], last_at=total[2],
            sums={**plan, "billed_cost": str(total[3] or 0), "effective_cost": str(total[4] or 0)}, notes=notes,
        )


def _whole(path: Path, where: str) -> None:
    """A Parquet file ends with its own magic word; one that was cut off does not."""
    with path.open("rb") as file:
        file.seek(0, 2)
        size = file.tell()
        file.seek(max(size - 4, 0))
        ending = file.read(4)
    if size < 12 or ending != b"PAR1":
        raise CollectError("the Parquet file is truncated", where, "Fetch it again, or have AWS deliver the period again")


def _open_lines(connection: duckdb.DuckDBPyConnection, fetched: Fetched, known: str, place: str) -> tuple[str, ...]:
    """Make the temporary view `raw_line`: the delivery's rows with every known column, without split-cost rows."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE known_column AS SELECT * FROM ({known}) WHERE false")
    connection.execute("DROP VIEW IF EXISTS raw_line")
    if not fetched.files:
        connection.execute("CREATE OR REPLACE TEMP VIEW all_line AS SELECT *, NULL::VARCHAR AS filename FROM known_column")
    else:
        names = ", ".join("'" + str(path).replace("'", "''") + "'" for path in fetched.files)
        read = f"read_parquet([{names}], union_by_name = true, filename = true, hive_partitioning = false)"
        present = {str(row[0]) for row in connection.execute(f"DESCRIBE SELECT * FROM {read}").fetchall()}
        missing = [name for name in REQUIRED if name not in present]
        if missing:
            raise CollectError(
                f"columns are missing without which a bill cannot be read: {', '.join(missing)}", place,
                "Add them to the export's query (docs/aws-billing.md lists it)",
            )
        connection.execute(
            f"CREATE OR REPLACE TEMP VIEW all_line AS SELECT * FROM known_column UNION ALL BY NAME SELECT * FROM {read}"
        )
    connection.execute(
        "CREATE OR REPLACE TEMP VIEW raw_line AS SELECT * FROM all_line WHERE coalesce(line_item_operation, '') "
        "NOT IN ('EKSPod-EC2', 'ECSTask-EC2') AND coalesce(split_line_item_parent_resource_id, '') = ''"
    )
    if not fetched.files:
        return ()
    return tuple(f"`{name}` is not in the export, so {what}" for name, what in OPTIONAL.items() if name not in present)


def _check_rows(connection: duckdb.DuckDBPyConnection, manifest: Manifest, place: str) -> int:
    row = connection.execute(
        """
        SELECT count(*),
            count(*) FILTER (strftime(bill_billing_period_start_date, '%Y-%m') IS DISTINCT FROM ?),
            count(*) FILTER (line_item_unblended_cost IS NULL OR isnan(line_item_unblended_cost) OR isinf(line_item_unblended_cost)),
            count(*) FILTER (line_item_usage_start_date IS NULL OR line_item_usage_end_date IS NULL
                OR line_item_usage_end_date < line_item_usage_start_date),
            count(*) FILTER (bill_payer_account_id IS NULL OR line_item_currency_code IS NULL OR line_item_line_item_type IS NULL)
        FROM all_line
        """,
        [manifest.period],
    ).fetchone()
    assert row is not None
    count, other_period, costless, timeless, nameless = row
    for number, what in (
        (other_period, f"belong to another billing period than {manifest.period}"),
        (costless, "have no cost"),
        (timeless, "have no charge period, or one that ends before it starts"),
        (nameless, "have no account, currency or line item type"),
    ):
        if number:
            raise CollectError(f"{number:,} of {count:,} lines {what}", place, "Have AWS deliver the period again")
    return int(count)


def _choose_basis(connection: duckdb.DuckDBPyConnection, sql: str) -> tuple[str, ...]:
    """Net columns or discount rows, never both: one basis for the whole period."""
    row = connection.execute(sql).fetchone()
    assert row is not None
    has_net, unblended, discounts, net = row
    same = abs(unblended - net) < 0.01
    use_net = bool(has_net and (not discounts or same))
    connection.execute("SET VARIABLE use_net = ?", [use_net])
    if has_net and not use_net:
        return ("net columns and discount lines disagree; the lines are used",)
    return ()


def _other(connection: duckdb.DuckDBPyConnection, known: str) -> str:
    """SQL for x_other: columns that AWS did not document when this was written, kept as text."""
    present = [str(row[0]) for row in connection.execute("DESCRIBE all_line").fetchall()]
    documented = DOCUMENTED | {str(row[0]) for row in connection.execute("DESCRIBE known_column").fetchall()}
    unknown = [name for name in present if name not in documented and name != "filename"]
    if not unknown:
        return ", CAST(NULL AS MAP(VARCHAR, VARCHAR))"
    entries = ", ".join(
        "{'key': '" + name.replace("'", "''") + "', 'value': CAST(\"" + name.replace('"', '""') + '" AS VARCHAR)}' for name in unknown
    )
    return f", map_from_entries(list_filter([{entries}], x -> x.value IS NOT NULL))"


_GROUPS = {
    "identity": "line_item_id time_interval",
    "bill": "bill_type billing_entity billing_period_start_date billing_period_end_date invoice_id invoicing_entity "
    "payer_account_id payer_account_name",
    "line_item": "availability_zone blended_cost blended_rate currency_code iam_principal legal_entity line_item_description "
    "line_item_type net_unblended_cost net_unblended_rate normalization_factor normalized_usage_amount operation product_code "
    "resource_id tax_type unblended_cost unblended_rate usage_account_id usage_account_name usage_amount usage_start_date "
    "usage_end_date usage_type user_identifier",
    "pricing": "currency lease_contract_length offering_class public_on_demand_cost public_on_demand_rate purchase_option "
    "rate_code rate_id term unit",
    "product": "comment fee_code fee_description from_location from_location_type from_region_code instance_family instance_type "
    "instancesku location location_type operation pricing_unit product_family region_code servicecode sku to_location "
    "to_location_type to_region_code usagetype",
    "reservation": "amortized_upfront_cost_for_usage amortized_upfront_fee_for_billing_period effective_cost recurring_fee_for_usage "
    "unused_amortized_upfront_fee_for_billing_period unused_normalized_unit_quantity unused_quantity unused_recurring_fee "
    "upfront_value net_amortized_upfront_cost_for_usage net_amortized_upfront_fee_for_billing_period net_effective_cost "
    "net_recurring_fee_for_usage net_unused_amortized_upfront_fee_for_billing_period net_unused_recurring_fee net_upfront_value "
    "availability_zone end_time modification_status normalized_units_per_reservation number_of_reservations reservation_a_r_n "
    "start_time subscription_id total_reserved_normalized_units total_reserved_units units_per_reservation",
    "savings_plan": "amortized_upfront_commitment_for_billing_period recurring_commitment_for_billing_period "
    "savings_plan_effective_cost savings_plan_rate total_commitment_to_date used_commitment "
    "net_amortized_upfront_commitment_for_billing_period net_recurring_commitment_for_billing_period "
    "net_savings_plan_effective_cost end_time instance_type_family offering_type payment_option purchase_term region "
    "savings_plan_a_r_n start_time",
    "discount": "bundled_discount total_discount",
    "capacity_reservation_capacity_reservation": "arn status type",
    "split_line_item": "actual_usage reserved_usage split_usage split_usage_ratio split_cost unused_cost net_split_cost "
    "net_unused_cost public_on_demand_split_cost public_on_demand_unused_cost parent_resource_id",
}
DOCUMENTED = frozenset({f"{group}_{name}" for group, names in _GROUPS.items() for name in names.split()}) | {
    "product", "discount", "resource_tags", "cost_category", "tags",
}
"""Every column of the CUR 2.0 table as AWS documents it; anything else is kept in x_other."""


def _open(settings: Cur2Settings) -> Source:
    return Cur2(settings, open_store(settings))


KIND = Kind("cur2", Cur2Settings, _open)
