"""Data files of a bill as they are read: proved whole, and unpacked where DuckDB cannot."""

import gzip
import zipfile
import zlib
from pathlib import Path
from typing import IO

from collector.source import CollectError

BLOCK = 1 << 20
REMEDY = "Nothing of this delivery was loaded; copy the file again, or wait for the next delivery"


def complete(path: Path, spool: Path, where: str) -> Path:
    """The file to read: a ZIP's one member, unpacked into `spool`; any other file as it is.

    A gzip file is read to its end first, for DuckDB takes one that was cut off at the end of a line for whole. Raises
    CollectError for one that is not.
    """
    with path.open("rb") as file:
        mark = file.read(4)
    try:
        if mark == b"PK\x03\x04":
            return _member(path, spool, where)
        if mark[:2] == b"\x1f\x8b":
            with gzip.open(path, "rb") as packed:
                while packed.read(BLOCK):
                    pass
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError):
        raise CollectError(f"the data file {path.name} is truncated or damaged", where, REMEDY) from None
    return path


def _member(path: Path, spool: Path, where: str) -> Path:
    with zipfile.ZipFile(path) as archive:
        members = [each for each in archive.infolist() if not each.is_dir()]
        if len(members) != 1:
            raise CollectError(f"the data file {path.name} holds {len(members)} files, not one", where, REMEDY)
        # the member's own name says nothing and may point anywhere
        target = spool / f"{path.stem}.member"
        with archive.open(members[0]) as packed, target.open("wb") as file:
            _copy(packed, file)
        return target


def _copy(packed: IO[bytes], file: IO[bytes]) -> None:
    while block := packed.read(BLOCK):
        file.write(block)
