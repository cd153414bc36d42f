"""Bills below one location: every layout, every format, each found from what is there.

A delivery is the whole bill of a month so far. It is read only through its manifest where there is one, is refused
whole when anything of it is missing or broken, and replaces the month in one transaction. Source: billing.md 2.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import duckdb
from pydantic import Field

from collector.billing import data_exports, legacy_layout, waiting
from collector.billing.aws_files import header
from collector.billing.bill import Export, Wish, compared_with, deliver, periods_of
from collector.billing.delivery import Delivery, Layout, merged
from collector.billing.format import Format, Staging, formats
from collector.billing.loose import loose
from collector.billing.packed import complete
from collector.queries import queries
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

LAYOUTS: tuple[Layout, ...] = (data_exports.LAYOUT, legacy_layout.LAYOUT)
PERIOD = re.compile(r"(metadata/BILLING_PERIOD=[^/]+|\d{8}-\d{8})/$")
"""What of a manifest's folder is the month's; before it is the export's."""

WAIT = "Nothing of this delivery was loaded; copy the missing files, or wait for the next delivery"


class BillSettings(SourceSettings):
    """Exports of a cloud bill: a folder or bucket prefix with one or several of them, in any format that is known.

    CUR 2.0, legacy CUR and FOCUS, with AWS's manifests or as files alone. Every delivery that is there is read: of the
    newest the lines, of older ones the totals, so that a restatement can be explained.
    """

    kind: Literal["bill"]
    role: Wish = Field(
        default="auto",
        description="auto: of several exports that tell one account's month one is the record and the others are only "
        "compared; record: always counts; cross_check: never counts",
    )


@dataclass(frozen=True)
class Bill:
    """The exports below one location. Batches: deliveries not loaded yet, of each period the newest first."""

    settings: BillSettings
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
        layout_of = {each.key: layout for each in found for layout in LAYOUTS if layout.is_manifest(each.key)}
        batches = self._without_manifest(found, layout_of)
        manifests = [each for each in found if each.key in layout_of]
        read: list[Delivery] = []
        for each in state.unseen(self.name, manifests):
            try:
                read.append(layout_of[each.key].read(self.store, each))
            except CollectError as error:
                batches.append(Batch(f"{each.key}@{each.version}", each.key, each.key, plan={"error": error}))
        deliveries = list(merged(read, {each.key: each.size for each in found}))
        folders = {_root(each.key, layout_of[each.key]) for each in manifests}
        folders |= {PERIOD.sub("", batch.order) for batch in batches if batch.plan.get("untold")}
        alone = loose(found, folders)
        if not manifests and not batches and not alone:
            raise CollectError(
                "no bill is here: neither an export with its manifest nor a file of one (CSV, Parquet)",
                self.store.place,
                "Point `location` at the export's folder (a data export holds `data` and `metadata`), or wait for a "
                "delivery",
            )
        deliveries += alone
        return batches + [_batch(each) for each in deliveries if not state.is_loaded(self.name, each.identity)]

    def _without_manifest(self, found: Sequence[StoredObject], manifests: Mapping[str, Layout]) -> list[Batch]:
        """A period that has data and no manifest cannot be known to be complete."""
        told = {key.rsplit("/", 1)[0] + "/" for key in manifests}
        # a manifest in an execution's own folder tells of its period too
        told |= {folder.rstrip("/").rsplit("/", 1)[0] + "/" for folder in told}
        untold: dict[str, str] = {}
        for each in found:
            places = [place for layout in LAYOUTS if (place := layout.place_of(each.key)) is not None]
            if places and each.key not in manifests and places[0] not in told:
                untold.setdefault(places[0], each.key)
        return [
            Batch(
                f"{key}:no-manifest",
                key,
                order=place,
                plan={
                    "untold": True,
                    "error": CollectError(
                        "the data has no manifest, so nobody can tell whether it is complete",
                        f"{self.store.place}/{place}",
                        "Copy the export's manifest too, or wait: AWS writes the manifest last",
                    ),
                },
            )
            for place, key in sorted(untold.items())
        ]

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
            where = f"{self.store.place}/{delivery.manifests[0].key}"
            files = tuple(complete(path, spool, where) for path in self.store.fetch(objects, spool))
            again = self._again(delivery)
            if again == delivery:
                return Fetched(_batch(delivery), files, spool, MEMBERS.empty_table())
            delivery = again
        raise CollectError(
            "the delivery was rewritten three times while it was being read",
            f"{self.store.place}/{delivery.manifests[0].key}",
            "Collect again later; what was loaded stays as it is",
        )

    def _data_objects(self, delivery: Delivery) -> list[StoredObject] | None:
        """The delivery's files as they are now; None when an old, replaced delivery is not there any more."""
        folders = {key.rsplit("/", 1)[0] if "/" in key else "" for key in delivery.data}
        listed = {each.key: each for folder in sorted(folders) for each in self.store.list(folder)}
        missing = [key for key in delivery.data if key not in listed]
        if missing and delivery.superseded:
            return None
        if missing:
            raise CollectError(
                f"{len(missing)} of the {len(delivery.data)} data files that the manifest names are not there "
                f"(the first is {missing[0]})",
                f"{self.store.place}/{delivery.manifests[0].key}",
                WAIT,
            )
        return [listed[key] for key in delivery.data]

    def _again(self, delivery: Delivery) -> Delivery:
        """The delivery as its first manifest tells it now; the same unless it was rewritten meanwhile."""
        key = delivery.manifests[0].key
        now = {each.key: each for each in self.store.list(key.rsplit("/", 1)[0] if "/" in key else "")}
        if key not in now:
            raise CollectError("the manifest is gone", f"{self.store.place}/{key}", "Collect again")
        if now[key].version == delivery.manifests[0].version:
            return delivery
        layouts = [layout for layout in LAYOUTS if layout.is_manifest(key)]
        fresh = layouts[0].read(self.store, now[key]) if layouts else loose([now[key]], ())[0]
        return replace(fresh, superseded=delivery.superseded, size=delivery.size)

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        delivery = fetched.batch.plan["delivery"]
        assert isinstance(delivery, Delivery)
        if delivery.superseded and not fetched.files:
            gone = f"the delivery {delivery.identity} is gone; its totals are not in the history"
            return Staged(fetched, load_id, {}, (gone,))
        where = f"{self.store.place}/{delivery.manifests[0].key}"
        chosen = _format(connection, fetched.files, where)
        waiting.begin(connection, fetched.files, fetched.spool)
        for table, columns in (("staged_check", "bill_check"), ("staged_split", "split_cost_line")):
            connection.execute(
                f"CREATE OR REPLACE TEMP TABLE {table} AS "
                f"SELECT * EXCLUDE (load_id, export_name) FROM {columns} LIMIT 0"
            )
        # of a delivery that a later one has replaced only the totals count
        replaced = connection.execute(
            "SELECT count(*) > 0 FROM load WHERE source = ? AND identity = ?", [self.name, delivery.superseded]
        ).fetchone()
        connection.execute("SET VARIABLE totals_only = ?", [replaced == (True,)])
        staging = chosen.stage(connection, fetched.files, delivery.period, where)
        account = staging.account or delivery.account or "-"
        name = f"{account}/{delivery.export}" if delivery.period else f"{self.name}/{delivery.export}"
        group = f"{self.name}/{delivery.root}" if delivery.period else f"{self.name}/{chosen.name}"
        export = Export(name, group, chosen.name, self.settings.role)
        return Staged(fetched, load_id, {"staging": staging, "export": export}, staging.notes)

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        delivery = staged.fetched.batch.plan["delivery"]
        assert isinstance(delivery, Delivery)
        if not staged.facts:
            return LoadResult(0, 0, notes=staged.notes)
        staging, export = staged.facts["staging"], staged.facts["export"]
        assert isinstance(staging, Staging)
        assert isinstance(export, Export)
        periods = [delivery.period] if delivery.period else periods_of(connection, export.name)
        notes, loaded, compared = list(staged.notes), 0, list[str]()
        for period in periods:
            is_newest = deliver(connection, export, period, staged.load_id, delivery.identity, delivery.made_at)
            figures = _figures(connection)
            if is_newest:
                loaded += figures["lines"]
                compared += [f"{period}: account {account}" for account in compared_with(connection)]
            else:
                notes.append(
                    f"{delivery.identity} is older than the delivery in the warehouse; only its totals were kept"
                )
            if figures["unknown_units"]:
                notes.append(
                    f"{figures['unknown_units']:,} token-metered lines of {period} have a unit that is not known, "
                    "and so an unknown number of tokens"
                )
        if compared:
            notes.append(
                f"{export.name} is a cross-check and not counted where another export tells the same bill ("
                f"{'; '.join(compared)}). If it holds other lines, set `role: record` on both sources"
            )
        totals = connection.execute(queries("billing/bill.sql")["totals"]).fetchall()
        sums = {f"{name} {currency}": amount for name, currency, amount in totals if amount is not None}
        first_at, last_at = connection.execute(queries("billing/bill.sql")["span"]).fetchone() or (None, None)
        return LoadResult(
            rows_read=staging.lines,
            rows_loaded=loaded,
            rows_filtered=staging.left_out,
            first_at=first_at,
            last_at=last_at,
            sums={**staging.sums, **sums},
            notes=tuple(notes),
        )


def _figures(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    outcome = connection.execute(queries("billing/bill.sql")["outcome"])
    names = [column[0] for column in outcome.description or ()]
    return dict(zip(names, outcome.fetchone() or (), strict=True))


def _root(key: str, layout: Layout) -> str:
    """The folder of the export that a manifest is of."""
    match = (data_exports.MANIFEST if layout is data_exports.LAYOUT else legacy_layout.MANIFEST).match(key)
    return (match["root"] or "") if match else ""


def _format(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], where: str) -> Format:
    """The one format whose header the first file has."""
    for path in files:
        columns = frozenset(header(connection, path, where))
        if not columns:
            continue
        for each in formats():
            if each.recognises(columns):
                return each
        raise CollectError(
            f"{path.name} is no bill that is known: its header is of neither CUR 2.0, legacy CUR nor FOCUS",
            where,
            "Read it with another source kind, or take it out of the bill's folder; a file read as one column has "
            "another separator than the comma",
        )
    # nothing but emptied chunks: any format makes no line of them
    return formats()[0]


def _batch(delivery: Delivery) -> Batch:
    newest = delivery.superseded is None
    return Batch(
        identity=delivery.identity,
        detail=f"{delivery.export} {delivery.period or ''}".rstrip()
        + f", delivery of {delivery.made_at:%Y-%m-%d %H:%M:%SZ}",
        order=f"{delivery.place} {not newest:d} {delivery.made_at.isoformat()}",
        objects=delivery.manifests,
        size=delivery.size,
        plan={"delivery": delivery},
    )


def _open(settings: BillSettings) -> Source:
    return Bill(settings, open_store(settings))


KIND = Kind("bill", BillSettings, _open)
