"""AWS Cost and Usage Report 2.0: Data Exports in Parquet, by manifest, in both layouts (create-new and overwrite).

A delivery is the whole bill of a month so far. It is read only through its manifest, is refused whole when anything of
it is missing or broken, and replaces the month in one transaction. Sources: reference/billing.md 2.1-2.4, 3.1, 4, 5.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import duckdb
from pydantic import Field

from collector.billing.bill import Export, Wish, compared_with, deliver, stands
from collector.queries import NOT_THE_FILE, queries
from collector.source import (
    MEMBERS,
    Batch,
    CollectError,
    Fetched,
    Kind,
    LoadResult,
    Moment,
    Source,
    SourceSettings,
    Staged,
    State,
    StoredObject,
)
from collector.store import Store, open_store

MANIFEST = re.compile(
    r"^(?P<root>.*?/)?metadata/BILLING_PERIOD=(?P<period>\d{4}-\d{2})/(?P<run>[^/]+/)?[^/]*Manifest\.json$"
)
DATA = re.compile(r"^(?P<root>.*?/)?data/BILLING_PERIOD=(?P<period>\d{4}-\d{2})/")
RUN_TIME = re.compile(r"^(\d{4})-?(\d{2})-?(\d{2})T(\d{2})[:\-]?(\d{2})[:\-]?(\d{2})")
MADE_AT = ("createdAt", "executionTime", "lastUpdated", "timestamp")

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


REPEATED = ("identity_time_interval", "product_operation", "product_pricing_unit", "product_usagetype")
"""Columns that say again what a column of billing_line says: the charge period, the operation, the unit, the usage."""


class Cur2Settings(SourceSettings):
    """A CUR 2.0 export: its folder, or any folder above several exports. Every delivery that is there is read: of the
    newest the lines, of older ones the totals, so that a restatement can be explained."""

    kind: Literal["cur2"]
    role: Wish = Field(
        default="auto",
        description="auto: of several exports that tell one account's month one is the record and the others are only "
        "compared; record: always counts; cross_check: never counts",
    )


@dataclass(frozen=True)
class Delivery:
    """One execution of an export for one billing period, as its manifest tells it.

    root         folder of the export, "" or ending in `/`
    made_at      naive UTC; orders the deliveries of a period
    manifests    its manifest objects: the execution's own and the period's, when both are there
    data         keys of its data files, relative to `root`
    superseded   whether a newer delivery of the period is there too
    """

    root: str
    period: str
    export: str
    execution: str
    made_at: datetime
    manifests: tuple[StoredObject, ...]
    data: tuple[str, ...]
    account: str | None
    superseded: bool = False
    size: int = 0

    @property
    def identity(self) -> str:
        return f"{self.export}/{self.period}/{self.execution}"


@dataclass(frozen=True)
class Cur2:
    """The exports below one location. Batches: deliveries not loaded yet, of each period the newest first."""

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
        found = self.store.list()
        sizes = {each.key: each.size for each in found}
        manifests = {each.key: match for each in found if (match := MANIFEST.match(each.key))}
        batches = [*self._without_manifest(found, manifests.values())]
        if not manifests and not batches:
            raise CollectError(
                "no CUR 2.0 export is here: there is no metadata/BILLING_PERIOD=YYYY-MM/<export>-Manifest.json",
                self.store.place,
                "Point `location` at the export's folder (it holds `data` and `metadata`), or wait for a delivery",
            )
        deliveries: dict[tuple[str, str], Delivery] = {}
        for each in state.unseen(self.name, [each for each in found if each.key in manifests]):
            match = manifests[each.key]
            try:
                delivery = self._read_manifest(each, match)
            except CollectError as error:
                batches.append(Batch(f"{each.key}@{each.version}", each.key, match["period"], plan={"error": error}))
                continue
            place = (delivery.root + delivery.period, delivery.execution)
            known = deliveries.get(place)
            deliveries[place] = _one_delivery(known, delivery) if known else delivery
        newest: dict[str, Delivery] = {}
        for delivery in deliveries.values():
            period = delivery.root + delivery.period
            if period not in newest or _order(newest[period]) < _order(delivery):
                newest[period] = delivery
        for delivery in deliveries.values():
            superseded = newest[delivery.root + delivery.period] is not delivery
            if not state.is_loaded(self.name, delivery.identity):
                size = sum(sizes.get(delivery.root + key, 0) for key in delivery.data)
                batches.append(_batch(replace(delivery, superseded=superseded, size=size)))
        return batches

    def _without_manifest(self, found: Sequence[StoredObject], manifests: Iterable[re.Match[str]]) -> list[Batch]:
        """A period that has data and no manifest cannot be known to be complete."""
        told = {(match["root"], match["period"]) for match in manifests}
        untold = {
            (match["root"], match["period"]): each.key
            for each in found
            if (match := DATA.match(each.key)) and (match["root"], match["period"]) not in told
        }
        return [
            Batch(
                f"{key}:no-manifest",
                key,
                period,
                plan={
                    "error": CollectError(
                        f"the data of {period} has no manifest, so nobody can tell whether it is complete",
                        f"{self.store.place}/{root or ''}metadata/BILLING_PERIOD={period}/",
                        "Copy the export's `metadata` folder too, or wait: AWS writes the manifest last",
                    )
                },
            )
            for (root, period), key in sorted(untold.items(), key=lambda item: item[1])
        ]

    def _read_manifest(self, found: StoredObject, match: re.Match[str]) -> Delivery:
        where = f"{self.store.place}/{found.key}"
        content = self.store.read(found)
        try:
            told = json.loads(content)
            files = told.get("dataFiles", told.get("reportKeys", told.get("files")))
            keys = [_tail(file, match["period"]) for file in files]
        except (ValueError, AttributeError, TypeError, KeyError):
            raise CollectError(
                "the manifest is half-written or no manifest of a data export",
                where,
                "Nothing of this delivery was loaded; wait until AWS has finished it, or deliver it anew",
            ) from None
        wrong = [key for key in keys if not key.endswith(".parquet")]
        if wrong:
            raise CollectError(
                f"the export delivers `{wrong[0].rsplit('/', 1)[-1]}`, not Parquet",
                where,
                "Set the export's format to Parquet (Data Exports: Format=PARQUET, Compression=PARQUET)",
            )
        execution = str(told.get("executionId") or told.get("assemblyId") or "")
        arn = re.match(r"arn:[^:]*:[^:]*:[^:]*:(\d+):", str(told.get("exportArn", "")))
        return Delivery(
            root=match["root"] or "",
            period=match["period"],
            export=found.key.rsplit("/", 1)[-1].removesuffix("Manifest.json").rstrip("-") or "export",
            execution=execution or hashlib.md5(content, usedforsecurity=False).hexdigest(),
            made_at=_made_at(told, match["run"], found),
            manifests=(found,),
            data=tuple(dict.fromkeys(keys)),
            account=arn[1] if arn else None,
        )

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        error = batch.plan.get("error")
        if isinstance(error, CollectError):
            raise error
        delivery = batch.plan["delivery"]
        assert isinstance(delivery, Delivery)
        for _ in range(3):
            objects = self._data_objects(delivery)
            if objects is None:
                return Fetched(batch, (), spool, MEMBERS.empty_table())
            files = self.store.fetch(objects, spool)
            again = self._again(delivery)
            if again == delivery:
                return Fetched(_batch(delivery), tuple(files), spool, MEMBERS.empty_table())
            delivery = again
        raise CollectError(
            "the delivery was rewritten three times while it was being read",
            f"{self.store.place}/{delivery.manifests[0].key}",
            "Collect again later; what was loaded stays as it is",
        )

    def _data_objects(self, delivery: Delivery) -> list[StoredObject] | None:
        """The delivery's files as they are now; None when an old, replaced delivery is not there any more."""
        listed = {each.key: each for each in self.store.list(f"{delivery.root}data/BILLING_PERIOD={delivery.period}")}
        missing = [key for key in delivery.data if delivery.root + key not in listed]
        if missing and delivery.superseded:
            return None
        if missing:
            raise CollectError(
                f"{len(missing)} of the {len(delivery.data)} data files that the manifest names are not there "
                f"(the first is {missing[0]})",
                f"{self.store.place}/{delivery.manifests[0].key}",
                "Nothing of this delivery was loaded; copy the missing files, or wait for the next delivery",
            )
        return [listed[delivery.root + key] for key in delivery.data]

    def _again(self, delivery: Delivery) -> Delivery:
        """The delivery as its first manifest tells it now; the same unless it was rewritten meanwhile."""
        key = delivery.manifests[0].key
        now = {each.key: each for each in self.store.list(key.rsplit("/", 1)[0])}
        match = MANIFEST.match(key)
        if key not in now or match is None:
            raise CollectError("the manifest is gone", f"{self.store.place}/{key}", "Collect again")
        if now[key].version == delivery.manifests[0].version:
            return delivery
        return replace(self._read_manifest(now[key], match), superseded=delivery.superseded, size=delivery.size)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        delivery = fetched.batch.plan["delivery"]
        assert isinstance(delivery, Delivery)
        if delivery.superseded and not fetched.files:
            gone = f"the delivery {delivery.identity} is gone; its totals are not in the history"
            return Staged(fetched, load_id, {}, (gone,))
        sql = queries("billing/cur2.sql")
        where = f"{self.store.place}/{delivery.manifests[0].key}"
        connection.execute(f"CREATE OR REPLACE TEMP TABLE cur2_shape ({_statement(sql['columns'])})")
        connection.execute("SET VARIABLE billing_period = ?", [delivery.period])
        connection.execute("SET VARIABLE files = ?", [[str(path) for path in fetched.files]])
        columns = _columns(connection, fetched.files, where)
        missing = [column for column in REQUIRED if column not in columns]
        if fetched.files and missing:
            raise CollectError(
                f"the export lacks columns that the bill cannot be understood without: {', '.join(missing)}",
                where,
                "Add them to the export's SELECT list (Data Exports: edit the export's query)",
            )
        if fetched.files:
            connection.execute(sql["export_line"])
        else:
            connection.execute("CREATE OR REPLACE TEMP VIEW export_line AS SELECT *, '' AS x_file_path FROM cur2_shape")
        check = _checked(connection, sql["check"], delivery, where)
        check["is_net"] = check["has_net"] and not (
            check["discount_lines"] and _differ(check["unblended"], check["net"])
        )
        connection.execute("SET VARIABLE is_net = ?", [check["is_net"]])
        payer = check["payer_account_id"] or delivery.account or "-"
        check["export_name"] = f"{payer}/{delivery.export}"
        # Of a delivery that is older than the one in the warehouse only the totals count.
        standing = stands(connection, check["export_name"], delivery.period)
        totals_only = standing is not None and (delivery.made_at, delivery.identity) < standing
        with _reading(where):
            shape, filled = _shape(connection), _filled(connection, sql["filled"], columns)
            connection.execute(
                sql["line"]
                .replace("{{shape}}", ", ".join(f"'{column}'" for column in shape))
                .replace("{{tag_list}}", _tags(totals_only))
                .replace(
                    "{{other}}",
                    _other([] if totals_only else [each for each in filled if each not in (*shape, *REPEATED)]),
                )
                .replace("{{digest}}", _digest([] if totals_only else filled))
            )
        connection.execute(sql["class"])
        connection.execute(sql["staged"])
        said_twice = queries("billing/aws_check.sql")
        with _reading(where):
            for step in ("macros", "split", "check"):
                connection.execute(said_twice[step])
        connection.execute("DROP VIEW export_line")
        for table in ("cur2_class", "cur2_line", "cur2_shape"):
            connection.execute(f"DROP TABLE {table}")
        return Staged(fetched, load_id, check, _notes(delivery, columns, check))

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        delivery = staged.fetched.batch.plan["delivery"]
        assert isinstance(delivery, Delivery)
        check, notes = staged.facts, list(staged.notes)
        if not check:
            return LoadResult(0, 0, notes=staged.notes)
        replaced = deliver(
            connection,
            Export(check["export_name"], f"{self.name}/{delivery.root}", "cur2", self.settings.role),
            delivery.period,
            staged.load_id,
            delivery.identity,
            delivery.made_at,
        )
        outcome = connection.execute(queries("billing/bill.sql")["outcome"])
        names = [column[0] for column in outcome.description or ()]
        figures = dict(zip(names, outcome.fetchone() or (), strict=True))
        if not replaced:
            notes.append(f"{delivery.identity} is older than the delivery in the warehouse; only its totals were kept")
        elif others := compared_with(connection):
            notes.append(
                f"{check['export_name']} {delivery.period} is a cross-check and not counted, for another export tells the "
                f"same bill: account {', '.join(others)}. If it holds other lines, set `role: record` on both sources"
            )
        if figures["lines_of_unknown_unit"] != "0":
            notes.append(
                f"{figures['lines_of_unknown_unit']} token-metered lines of {delivery.period} have a unit that is not "
                "known, and so an unknown number of tokens"
            )
        return LoadResult(
            rows_read=check["lines"],
            rows_loaded=figures["lines"] if replaced else 0,
            rows_filtered=check["split_lines"],
            first_at=figures["first_at"],
            last_at=figures["last_at"],
            sums={
                "billed_cost": figures["billed_cost"],
                "effective_cost": figures["effective_cost"],
                "list_cost": figures["list_cost"],
                "x_tokens": figures["x_tokens"],
                "unblended_cost": check["unblended"] or "0",
                "basis": "net" if check["is_net"] else "unblended",
            },
            notes=tuple(notes),
        )


def _notes(delivery: Delivery, columns: dict[str, str], check: dict[str, Any]) -> tuple[str, ...]:
    """What this delivery cannot tell, and choices that were made for it."""
    notes = [
        f"{delivery.export} has no column {column}, so {what} is unavailable"
        for column, what in UNAVAILABLE.items()
        if columns and column not in columns
    ]
    if check["has_net"] and not check["is_net"]:
        notes.append(
            f"{delivery.period} states discounts twice and the two differ (with discount lines {check['unblended']}, "
            f"net columns {check['net']}): the discount lines are used"
        )
    return tuple(notes)


def _batch(delivery: Delivery) -> Batch:
    return Batch(
        identity=delivery.identity,
        detail=f"{delivery.export} {delivery.period}, delivery of {delivery.made_at:%Y-%m-%d %H:%M:%SZ}",
        order=f"{delivery.root}{delivery.period} {delivery.superseded:d} {delivery.made_at.isoformat()}",
        objects=delivery.manifests,
        size=delivery.size,
        plan={"delivery": delivery},
    )


def _order(delivery: Delivery) -> tuple[datetime, str]:
    return delivery.made_at, delivery.identity


def _one_delivery(one: Delivery, other: Delivery) -> Delivery:
    """Two manifests of one execution: the one in the execution's own folder says when it was made."""
    own, period = (one, other) if len(one.manifests[0].key) > len(other.manifests[0].key) else (other, one)
    return replace(own, manifests=own.manifests + period.manifests)


def _tail(file: Any, period: str) -> str:
    """Key relative to the export's folder, of a data file that a manifest names by URL, key or object."""
    if isinstance(file, dict):
        file = file.get("key") or file.get("path") or file.get("url") or file["s3Uri"]
    marker = f"data/BILLING_PERIOD={period}/"
    at = file.rfind(marker)
    if at < 0:
        raise ValueError(file)
    return str(file[at:])


def _made_at(told: dict[str, Any], run: str | None, found: StoredObject) -> datetime:
    """When a delivery was made: its folder's name, else the manifest's own word, else when the manifest was written."""
    for text in (run, *(told.get(word) for word in MADE_AT)):
        match = RUN_TIME.match(str(text or ""))
        if match:
            return datetime(*(int(part) for part in match.groups()))  # type: ignore[arg-type]
    return found.modified.astimezone(UTC).replace(tzinfo=None)


def _statement(section: str) -> str:
    return "\n".join(line for line in section.splitlines() if not line.startswith("--"))


def _columns(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], where: str) -> dict[str, str]:
    """Type by column of all files together; refuses the delivery when one is no complete Parquet file."""
    for path in files:
        try:
            connection.execute("SELECT count(*) FROM parquet_file_metadata(?)", [str(path)]).fetchone()
        except duckdb.Error:
            raise CollectError(
                f"the data file {path.name} is truncated or no Parquet",
                where,
                "Nothing of this delivery was loaded; copy the file again, or wait for the next delivery",
            ) from None
    if not files:
        return {}
    rows = connection.execute(
        "DESCRIBE SELECT * FROM read_parquet(getvariable('files'), union_by_name = true, hive_partitioning = false)"
    ).fetchall()
    return {row[0].lower(): row[1] for row in rows}


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """A statement that reads the delivery's files: what is wrong with them refuses it."""
    try:
        yield
    except NOT_THE_FILE:
        raise
    except duckdb.Error as error:
        raise CollectError(
            f"the data files cannot be read ({type(error).__name__})",
            where,
            "Nothing of this delivery was loaded; copy the files again, or wait for the next delivery",
        ) from None


def _checked(connection: duckdb.DuckDBPyConnection, sql: str, delivery: Delivery, where: str) -> dict[str, Any]:
    """Figures of the delivery; refuses it whole when a line of it cannot stand in a bill."""
    with _reading(where):
        outcome = connection.execute(sql)
    names = [column[0] for column in outcome.description or ()]
    check = dict(zip(names, outcome.fetchone() or (), strict=True))
    wrong = {
        "lines_of_another_period": f"lines are not of {delivery.period}",
        "lines_without_time": "lines have no charge period, or one that ends before it starts",
        "lines_without_currency": "lines have no currency",
        "lines_without_type": "lines have no line item type",
        "lines_without_cost": "lines have no cost, or one that is no number",
    }
    for name, what in wrong.items():
        if check[name]:
            raise CollectError(
                f"{check[name]:,} of {check['lines']:,} {what}",
                where,
                "A bill is loaded whole or not at all; wait for the next delivery, or ask AWS support about this one",
            )
    if delivery.data and not check["lines"]:
        raise CollectError(
            "the manifest names data files, but there is not one line in them",
            where,
            "What is loaded of this month stays; check the export's WHERE clause, or wait for the next delivery",
        )
    return check


def _differ(one: str | None, other: str | None) -> bool:
    return abs(Decimal(one or 0) - Decimal(other or 0)) > max(Decimal("0.01"), abs(Decimal(one or 0)) / 1_000_000)


def _quoted(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _shape(connection: duckdb.DuckDBPyConnection) -> list[str]:
    return [row[0] for row in connection.execute("DESCRIBE cur2_shape").fetchall()]


def _filled(connection: duckdb.DuckDBPyConnection, sql: str, columns: dict[str, str]) -> list[str]:
    """The export's columns that at least one line fills, by name."""
    if not columns:
        return []
    counts = ", ".join(f"count({_quoted(column)})" for column in columns)
    row = connection.execute(sql.replace("{{counts}}", counts)).fetchone() or ()
    return sorted(column for column, count in zip(columns, row, strict=True) if count)


def _other(columns: Sequence[str]) -> str:
    """Columns without a place in billing_line, as a map; NULL where a line leaves one empty."""
    if not columns:
        return "CAST(NULL AS MAP(VARCHAR, VARCHAR))"
    names = ", ".join(map(_literal, columns))
    return f"MAP([{names}], [{', '.join(map(_written, columns))}])"


def _digest(columns: Sequence[str]) -> str:
    """md5 of what a line says: its filled columns with their names, and the basis its costs are on."""
    said = ["CAST(getvariable('is_net') AS VARCHAR)"]
    for column in columns:
        if column != "identity_line_item_id":
            said.append(f"{_literal(column + '=')} || {_written(column)}")
    return f"md5(concat_ws(chr(31), {', '.join(said)}))"


def _written(column: str) -> str:
    return f"nullif(CAST({_quoted(column)} AS VARCHAR), '')"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


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


def _open(settings: Cur2Settings) -> Source:
    return Cur2(settings, open_store(settings))


KIND = Kind("cur2", Cur2Settings, _open)
