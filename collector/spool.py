"""Line-oriented files on their way into the engine: joined, decompressed, proved complete, cut into lines.

Only bytes are moved here; nothing is parsed. The spool may hold prompt text, so ``collector.run`` empties it.
"""

import codecs
import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa

from collector.source import MEMBERS, Batch, Fetched, Refused, StoredObject
from collector.store import Store

SMALL = 1024 * 1024
JOINED = 64 * 1024 * 1024
BLOCK = 4 * 1024 * 1024
PIECE = 32 * 1024 * 1024
RAW_PER_GZIP_BYTE = 12

PIECES = pa.schema([("piece", pa.string()), ("path", pa.string()), ("first_line", pa.int64())])

INVALID_UTF8 = "\x01"
"""Stands for bytes that are no UTF-8 in a cut piece; JSON allows no such character, so the line is refused."""

codecs.register_error("inferledger-mark", lambda error: (INVALID_UTF8, error.end))  # type: ignore[attr-defined]


class TruncatedGzip(Exception):
    """The compressed file ends early or is damaged."""


def raw_size(found: StoredObject) -> int:
    """Bytes an object will take uncompressed, roughly."""
    return found.size * RAW_PER_GZIP_BYTE if found.key.endswith(".gz") else found.size


def fetch_lines(store: Store, batch: Batch, spool: Path) -> Fetched:
    """Bring a batch of JSON (or other line-oriented) objects to few plain files.

    Big ones are read in place or downloaded, gzip is decompressed and proved complete, small ones are joined to
    ~64 MB of JSON Lines with a side list of which lines are whose. A damaged gzip file is refused, the others go on.
    """
    zipped = [each for each in batch.objects if each.key.endswith(".gz")]
    plain = [each for each in batch.objects if not each.key.endswith(".gz")]
    big = [each for each in plain if each.size >= SMALL]
    small = [each for each in plain if each.size < SMALL]

    rows: list[tuple[str, int, int | None, str]] = [
        (str(path), 1, None, each.key) for each, path in zip(big, store.fetch(big, spool), strict=True)
    ]
    refused: list[Refused] = []
    with ThreadPoolExecutor(2) as pool:
        outcomes = pool.map(_gunzip, store.fetch(zipped, spool), (spool / f"{n:06d}.plain" for n in range(len(zipped))))
        for each, outcome in zip(zipped, outcomes, strict=True):
            if outcome is None:
                refused.append(_truncated(each))
            else:
                rows.append((str(outcome), 1, None, each.key))
    rows.extend(_join(store, small, spool))

    paths = dict.fromkeys(Path(row[0]) for row in rows)
    return Fetched(batch, tuple(paths), spool, _members(rows), tuple(refused))


def fetch_files(store: Store, batch: Batch, spool: Path) -> Fetched:
    """Bring a batch of files (CSV, Parquet) one by one; gzip is decompressed and proved complete."""
    rows: list[tuple[str, int, int | None, str]] = []
    refused: list[Refused] = []
    for number, (each, path) in enumerate(zip(batch.objects, store.fetch(batch.objects, spool), strict=True)):
        plain = _gunzip(path, spool / f"{number:06d}.plain") if each.key.endswith(".gz") else path
        if plain is None:
            refused.append(_truncated(each))
        else:
            rows.append((str(plain), 1, None, each.key))
    return Fetched(batch, tuple(Path(row[0]) for row in rows), spool, _members(rows), tuple(refused))


def gunzip(source: Path, target: Path) -> None:
    """Decompress a whole gzip file (several members allowed); raises TruncatedGzip if it ends early or is damaged."""
    engine = zlib.decompressobj(wbits=31)
    started = False
    with source.open("rb") as packed, target.open("wb") as plain:
        while block := packed.read(BLOCK):
            while block:
                try:
                    plain.write(engine.decompress(block))
                except zlib.error as error:
                    raise TruncatedGzip from error
                started = True
                block = engine.unused_data
                if engine.eof:
                    engine, started = zlib.decompressobj(wbits=31), False
                    block = block.lstrip(b"\0")
        if started:
            raise TruncatedGzip


def _truncated(found: StoredObject) -> Refused:
    return Refused(found.key, "truncated_gzip", "the file ends early or is damaged; deliver it anew")


def _members(rows: Sequence[tuple[str, int, int | None, str]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return pa.table([list(column) for column in columns], schema=MEMBERS)


def _gunzip(source: Path, target: Path) -> Path | None:
    try:
        gunzip(source, target)
    except TruncatedGzip:
        target.unlink(missing_ok=True)
        return None
    return target


def _join(store: Store, small: Sequence[StoredObject], spool: Path) -> Iterator[tuple[str, int, int | None, str]]:
    with ThreadPoolExecutor(16 if store.is_remote else 1) as pool:
        contents = zip(small, pool.map(store.read, small) if store.is_remote else map(store.read, small), strict=True)
        each, content = next(contents, (None, b""))
        number = 0
        while each is not None:
            path = spool / f"joined-{number:06d}.jsonl"
            number += 1
            line, size = 1, 0
            with path.open("wb") as file:
                while each is not None and size < JOINED:
                    block = one_line(content)
                    file.write(block)
                    lines = block.count(b"\n")
                    yield (str(path), line, line + lines - 1, each.key)
                    line, size = line + lines, size + len(block)
                    each, content = next(contents, (None, b""))


def one_line(content: bytes) -> bytes:
    """A pretty-printed JSON object as one line; JSON Lines stay as they are; always ends with a line break.

    A raw line break cannot stand inside a JSON string, and a pretty printer indents inner braces: a document whose
    first line does not end its object and that has one brace at the start of a line is one object.
    """
    content = content.removeprefix(codecs.BOM_UTF8).strip(b"\r\n \t")
    first = content.split(b"\n", 1)[0].rstrip()
    if content.startswith(b"{") and not first.endswith(b"}") and b"\n{" not in content:
        content = content.replace(b"\n", b" ").replace(b"\r", b" ")
    return content + b"\n"


def cut(files: Sequence[Path], spool: Path) -> pa.Table:
    """Cut files into pieces of whole lines that are valid UTF-8, for the tolerant pass.

    Answers an arrow table (piece, path of the file it came from, first_line of it, counted from 1).
    """
    rows: list[tuple[str, str, int]] = []
    for path in files:
        line = 1
        for content in _whole_lines(path):
            piece = spool / f"piece-{len(rows):06d}.txt"
            piece.write_text(content.decode("utf-8", "inferledger-mark"), encoding="utf-8", newline="")
            rows.append((str(piece), str(path), line))
            line += content.count(b"\n")
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.table([list(column) for column in columns], schema=PIECES)


def _whole_lines(path: Path) -> Iterator[bytes]:
    """A file in pieces of at most PIECE bytes that end at a line break (longer only if one line is)."""
    if path.stat().st_size < PIECE:
        yield one_line(path.read_bytes())
        return
    rest = b""
    with path.open("rb") as file:
        while block := file.read(PIECE):
            content = rest + block
            end = content.rfind(b"\n") + 1
            rest = content[end:]
            if end:
                yield content[:end]
    if rest:
        yield rest + b"\n"
