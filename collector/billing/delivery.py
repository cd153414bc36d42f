"""A delivery of a bill: one execution of an export, as its manifest tells it, and how deliveries follow each other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Protocol

from collector.source import StoredObject
from collector.store import Store

RUN_TIME = re.compile(r"^(\d{4})-?(\d{2})-?(\d{2})T(\d{2})[:\-]?(\d{2})[:\-]?(\d{2})")


@dataclass(frozen=True)
class Delivery:
    """One execution of an export for one billing period, or one file that came without a manifest.

    export       the export's own name; the path of a file without a manifest
    root         folder of the export relative to the source's location, "" or ending in `/`
    period       billing period 'YYYY-MM'; None when only the content tells
    execution    the provider's id of this execution; a file's version
    made_at      naive UTC; orders the deliveries of a period
    manifests    its manifest objects: the execution's own and the period's, when both are there
    data         keys of its data files, relative to the source's location
    layout       name of the layout it was found in
    account      billing account, when the manifest says it
    superseded   identity of the newest delivery of the period that is there too; None when this is it
    size         bytes of its data files
    """

    export: str
    root: str
    period: str | None
    execution: str
    made_at: datetime
    manifests: tuple[StoredObject, ...]
    data: tuple[str, ...]
    layout: str
    account: str | None = None
    superseded: str | None = None
    size: int = 0

    @property
    def identity(self) -> str:
        return f"{self.export}/{self.period}/{self.execution}" if self.period else f"{self.export}@{self.execution}"

    @property
    def place(self) -> str:
        """What a newer delivery of the same place replaces."""
        return f"{self.root}{self.period or self.export}"

    @property
    def order(self) -> tuple[datetime, str]:
        return self.made_at, self.identity


class Layout(Protocol):
    """How an export lies in its folder: where its manifests are, and what they say."""

    @property
    def name(self) -> str: ...

    def is_manifest(self, key: str) -> bool:
        """Whether this key is a manifest of this layout."""

    def place_of(self, key: str) -> str | None:
        """Where the manifest of this data file must lie, as a folder; None when the key is no data of this layout."""

    def read(self, store: Store, found: StoredObject) -> Delivery:
        """What a manifest says; raises CollectError when it is half-written or no manifest."""


def merged(deliveries: Iterable[Delivery], sizes: Mapping[str, int]) -> Sequence[Delivery]:
    """One delivery for all manifests of an execution; each knows which one has taken its place."""
    executions: dict[tuple[str, str], Delivery] = {}
    for each in deliveries:
        known = executions.get((each.place, each.execution))
        executions[each.place, each.execution] = _one_of_two(known, each) if known else each
    newest: dict[str, Delivery] = {}
    for each in executions.values():
        if each.place not in newest or newest[each.place].order < each.order:
            newest[each.place] = each
    return [
        replace(
            each,
            superseded=None if newest[each.place] is each else newest[each.place].identity,
            size=sum(sizes.get(key, 0) for key in each.data),
        )
        for each in executions.values()
    ]


def _one_of_two(one: Delivery, other: Delivery) -> Delivery:
    """Two manifests of one execution: the one in the execution's own folder says when it was made."""
    own, period = (one, other) if len(one.manifests[0].key) > len(other.manifests[0].key) else (other, one)
    return replace(own, manifests=own.manifests + period.manifests)


def made_at(found: StoredObject, *texts: object) -> datetime:
    """When a delivery was made: the first text that begins with a time, else when the object was written; naive UTC."""
    for text in texts:
        match = RUN_TIME.match(str(text or ""))
        if match:
            return datetime(*(int(part) for part in match.groups()))  # type: ignore[arg-type]
    return found.modified.astimezone(UTC).replace(tzinfo=None)
