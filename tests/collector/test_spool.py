"""Bytes on their way into the engine: joined, decompressed, cut; never parsed."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector import spool
from collector.source import Batch, StoredObject
from collector.spool import TruncatedGzip, cut, fetch_lines, gunzip, one_line
from collector.store import LocalStore


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}', b'{"a": 1}\n'),
        (b'{\n  "a": {\n    "b": 1\n  }\n}\n', b'{   "a": {     "b": 1   } }\n'),
        (b'{\r\n "a": 1\r\n}', b'{   "a": 1  }\n'),
        (b'{"a": 1,\n "b": 2}', b'{"a": 1,  "b": 2}\n'),
        (b'{"a": 1}\n{"b": 2}\n', b'{"a": 1}\n{"b": 2}\n'),
        (b'{"a": 1}\nrubbish\n', b'{"a": 1}\nrubbish\n'),
        (b'\xef\xbb\xbf{"a": 1}', b'{"a": 1}\n'),
        (b"[1,\n2]", b"[1,\n2]\n"),
        (b"", b"\n"),
    ],
)
def test_a_pretty_printed_object_becomes_a_line_and_lines_stay(content: bytes, line: bytes) -> None:
    assert one_line(content) == line


@pytest.mark.parametrize("lost", [1, 4, 8, 9, 100])
def test_a_gzip_file_that_ends_early_is_noticed(tmp_path: Path, lost: int) -> None:
    packed = gzip.compress(b"".join(f"{n}\n".encode() for n in range(1000)))
    (tmp_path / "a.gz").write_bytes(packed[:-lost])
    with pytest.raises(TruncatedGzip):
        gunzip(tmp_path / "a.gz", tmp_path / "a")


def test_a_gzip_file_with_a_flipped_byte_is_noticed(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(b"".join(f"{n}\n".encode() for n in range(1000))))
    packed[len(packed) // 2] ^= 0xFF
    (tmp_path / "a.gz").write_bytes(packed)
    with pytest.raises(TruncatedGzip):
        gunzip(tmp_path / "a.gz", tmp_path / "a")


@pytest.mark.parametrize("content", [b"", b"no gzip at all"])
def test_what_is_no_gzip_is_noticed_or_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(content)
    if content:
        with pytest.raises(TruncatedGzip):
            gunzip(tmp_path / "a.gz", tmp_path / "a")
    else:
        gunzip(tmp_path / "a.gz", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == b""


@settings(deadline=None)
@given(st.lists(st.binary(max_size=300), min_size=1, max_size=4), st.integers(0, 5))
def test_all_members_of_a_gzip_file_come_out_and_padding_does_not_matter(
    tmp_path_factory: pytest.TempPathFactory, members: list[bytes], padding: int
) -> None:
    folder = tmp_path_factory.mktemp("gzip")
    (folder / "a.gz").write_bytes(b"".join(map(gzip.compress, members)) + b"\0" * padding)
    gunzip(folder / "a.gz", folder / "a")
    assert (folder / "a").read_bytes() == b"".join(members)


def test_small_objects_are_joined_with_a_list_of_whose_lines_are_whose(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    for name, content in {
        "a": '{"n": 1}',
        "b": '{\n "n": 2\n}',
        "c": '{"n": 3}\n{"n": 4}\n',
        "d": "",
        "e": '{"n": 5}',
    }.items():
        (tmp_path / "log" / f"{name}.json").write_text(content)
    fetched = fetched_from(tmp_path / "log", tmp_path)
    assert [path.read_text() for path in fetched.files] == ['{"n": 1}\n{  "n": 2 }\n{"n": 3}\n{"n": 4}\n\n{"n": 5}\n']
    assert [tuple(row.values())[1:] for row in fetched.members.to_pylist()] == [
        (1, 1, "a.json"), (2, 2, "b.json"), (3, 4, "c.json"), (5, 5, "d.json"), (6, 6, "e.json"),
    ]  # fmt: skip


def test_joined_files_have_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "JOINED", 100)
    (tmp_path / "log").mkdir()
    for n in range(10):
        (tmp_path / "log" / f"{n}.json").write_text(f'{{"n": "{n:030d}"}}')
    fetched = fetched_from(tmp_path / "log", tmp_path)
    assert len(fetched.files) == 4
    assert "".join(path.read_text() for path in fetched.files).count("\n") == 10
    assert fetched.members.num_rows == 10


def fetched_from(folder: Path, tmp_path: Path) -> spool.Fetched:
    store = LocalStore(folder)
    place = tmp_path / "spool"
    place.mkdir(exist_ok=True)
    return fetch_lines(store, Batch("i", "d", objects=tuple(store.list())), place)


@settings(deadline=None)
@given(
    st.lists(
        st.text(st.characters(exclude_characters="\n\r\x01", exclude_categories=("Cs",)), max_size=40), min_size=1
    ),
    st.integers(1, 64),
)
def test_pieces_hold_every_line_once_with_its_number(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], size: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    written = [f"x{text}" for text in texts]
    path = folder / "a.jsonl"
    path.write_text("".join(f"{line}\n" for line in written), encoding="utf-8", newline="")
    before, spool.PIECE = spool.PIECE, size
    try:
        pieces = cut([path], folder).to_pylist()
    finally:
        spool.PIECE = before
    found: dict[int, str] = {}
    for piece in pieces:
        content = Path(piece["piece"]).read_bytes().decode()
        for offset, line in enumerate(content.removesuffix("\n").split("\n")):
            found[piece["first_line"] + offset] = line
    assert [found[n + 1].rstrip(" \t") for n in range(len(written))] == [line.rstrip(" \t") for line in written]


def test_size_of_a_batch_counts_what_gzip_will_unfold() -> None:
    from datetime import UTC, datetime

    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert spool.raw_size(StoredObject("a.jsonl", "v", 100, at)) == 100
    assert spool.raw_size(StoredObject("a.jsonl.gz", "v", 100, at)) > 500
