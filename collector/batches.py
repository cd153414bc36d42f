"""How many objects make one load: folder by folder, few enough transactions, little enough to hold at once."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from collector.source import Batch, StoredObject
from collector.spool import raw_size

BATCH_BYTES = 400 * 1024 * 1024
BATCH_OBJECTS = 20_000


def object_batches(found: Sequence[StoredObject]) -> list[Batch]:
    """Batches of new objects in the order of their keys; an identity says which versions of which objects.

    A batch takes whole folders as long as they fit; a big folder is split. The objects themselves are remembered in
    ``loaded_object``, so what arrives late in a folder is simply a later batch.
    """
    return [_batch(part) for part in _parts(found)]


def _parts(found: Iterable[StoredObject]) -> Iterator[list[StoredObject]]:
    part: list[StoredObject] = []
    size = 0
    for _, folder in groupby(found, key=lambda each: each.key.rpartition("/")[0]):
        for each in folder:
            if part and (size + raw_size(each) > BATCH_BYTES or len(part) >= BATCH_OBJECTS):
                yield part
                part, size = [], 0
            part.append(each)
            size += raw_size(each)
    if part:
        yield part


def _batch(part: list[StoredObject]) -> Batch:
    digest = hashlib.md5(usedforsecurity=False)
    for each in part:
        digest.update(f"{each.key}\0{each.version}\n".encode())
    first, last = part[0].key, part[-1].key
    detail = first if len(part) == 1 else f"{len(part):,} objects, {first} to {last}"
    return Batch(
        identity=f"objects:{digest.hexdigest()}",
        detail=detail,
        order=first,
        objects=tuple(part),
        size=sum(map(raw_size, part)),
    )
