"""The one contract every source of evidence meets: discover, fetch, load (stage, then write).

``discover`` lists what there is and names it in batches, ``fetch`` brings one batch to files on disk and proves that
they are complete, ``load`` turns those files into evidence rows by SQL. Loading has two halves, because in DuckDB an
error ends a transaction: ``stage`` reads the files into temporary tables, where a bad line may fail and be dealt with;
``load`` copies from there into evidence inside the transaction that ``collector.run`` holds open.
Python decides what to load and in which order; it never parses or loops over rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

import duckdb
import pyarrow as pa
from pydantic import Field, ValidationInfo, field_validator

from warehouse.settings import Settings


class CollectError(Exception):
    """One batch, or one source, could not be collected; nothing of it was loaded.

    what    what is wrong, in a sentence, without any text of a log or bill
    where   object key, file or bucket
    remedy  what a person can do about it
    """

    def __init__(self, what: str, where: str, remedy: str) -> None:
        super().__init__(f"{where}: {what}. {remedy}")
        self.what = what
        self.where = where
        self.remedy = remedy


class SourceSettings(Settings):
    """What every entry of `sources` has; each format adds its own keys."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_.\-]*$", description="stays with the rows; do not rename lightly"
    )
    kind: str
    location: str = Field(min_length=1, description="folder, file, or s3://bucket/prefix; relative to the config file")
    region: str | None = Field(default=None, description="AWS region of the bucket; default: AWS's own chain")
    profile: str | None = Field(default=None, description="AWS profile; credentials only come from AWS's own chain")
    endpoint_url: str | None = Field(default=None, description="an S3-compatible store other than AWS")

    @field_validator("location")
    @classmethod
    def _relative_to_the_configuration(cls, value: str, info: ValidationInfo) -> str:
        """Resolve a relative path against the folder given as validation context ``{"base": Path}``."""
        base = (info.context or {}).get("base")
        if value.startswith("s3://") or base is None:
            return value
        return str((Path(base) / Path(value).expanduser()).resolve())


@dataclass(frozen=True)
class StoredObject:
    """One file or S3 object, as listed.

    key       path relative to the source's location, `/` between parts
    version   ETag in S3; size and modification time of a local file. Another version is another content
    size      bytes
    modified  aware UTC instant
    """

    key: str
    version: str
    size: int
    modified: datetime


@dataclass(frozen=True)
class Batch:
    """What is loaded in one transaction: all of it or nothing.

    identity  the same content always has the same identity: object key and version, execution id, content hash
    detail    what a person recognises
    order     batches of one source are loaded in this order
    objects   the objects it consists of; they are skipped in later runs
    size      bytes it takes on disk while it is loaded, roughly
    plan      what the source itself wants to remember between discover, fetch and load
    """

    identity: str
    detail: str
    order: str = ""
    objects: tuple[StoredObject, ...] = ()
    size: int = 0
    plan: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Refused:
    """One file of a batch that was refused whole, while the rest of the batch is loaded."""

    key: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Fetched:
    """A batch on disk, complete.

    files    paths to read
    members  arrow table (path VARCHAR, first_line BIGINT, last_line BIGINT or NULL, key VARCHAR): which lines of which
             file came from which object, so that a refused line names its object
    refused  files that cannot be read at all; each becomes one rejected row
    spool    folder for files that a tolerant second pass needs
    """

    batch: Batch
    files: tuple[Path, ...]
    spool: Path
    members: pa.Table
    refused: tuple[Refused, ...] = ()


MEMBERS = pa.schema(
    [("path", pa.string()), ("first_line", pa.int64()), ("last_line", pa.int64()), ("key", pa.string())]
)


@dataclass(frozen=True)
class Staged:
    """A batch in temporary tables, ready to be written.

    facts  what the source found out while staging and needs for its result
    """

    fetched: Fetched
    load_id: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class LoadResult:
    """What one load did; written to the ``load`` table with the rows.

    sums   control sums by column, as decimal text
    notes  sentences for a person: what is missing and what that makes unavailable
    """

    rows_read: int
    rows_loaded: int
    rows_rejected: int = 0
    rows_filtered: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    sums: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Moment:
    """When a collection takes place: an explicit instant, never the clock.

    as_of      naive UTC
    tolerance  usage later than as_of by more than this is refused
    """

    as_of: datetime
    tolerance: timedelta = timedelta(minutes=15)

    @property
    def latest(self) -> datetime:
        return self.as_of + self.tolerance


class State(Protocol):
    """What has been loaded so far, for ``discover``."""

    def is_loaded(self, source: str, identity: str) -> bool:
        """Whether a batch of this identity is in the warehouse."""

    def unseen(self, source: str, objects: Sequence[StoredObject]) -> list[StoredObject]:
        """Those objects whose key and version no load holds yet, ordered by key."""

    def current(self, source: str) -> str | None:
        """Identity of the latest load of a source that is replaced as a whole (prices, aliases, rates)."""


class Source(Protocol):
    """One entry of `sources`, ready to be collected."""

    @property
    def name(self) -> str: ...

    @property
    def family(self) -> str:
        """billing, usage or prices: what ``load.kind`` says."""

    @property
    def is_remote(self) -> bool:
        """Whether fetching may take long, so that the warehouse is left open to others meanwhile."""

    def discover(self, state: State) -> Sequence[Batch]:
        """Batches not loaded yet, in any order; raises CollectError when the location cannot be listed."""

    def fetch(self, batch: Batch, spool: Path) -> Fetched:
        """Files of one batch, verified; raises CollectError when one is missing, short or has changed."""

    def stage(self, connection: duckdb.DuckDBPyConnection, fetched: Fetched, load_id: str, moment: Moment) -> Staged:
        """Read the files into temporary tables, outside any transaction; raises CollectError to refuse the batch."""

    def load(self, connection: duckdb.DuckDBPyConnection, staged: Staged) -> LoadResult:
        """Insert the batch's rows, rejected rows and touched hours, inside a transaction."""


@dataclass(frozen=True)
class Kind:
    """What a module in ``collector.billing``, ``.usage`` or ``.metrics`` offers as ``KIND``; the registry finds it.

    kind      the word in the configuration
    settings  its settings model; its `kind` field is ``Literal`` of that word
    open      makes a source of validated settings
    """

    kind: str
    settings: type[SourceSettings]
    open: Callable[[Any], Source]
