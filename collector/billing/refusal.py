"""What is wrong with the files of a bill refuses them, without a word of their content."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from collector.queries import NOT_THE_FILE
from collector.source import CollectError


@contextmanager
def reading(where: str, remedy: str) -> Iterator[None]:
    """Statements that read files: the engine's error about them becomes a CollectError that quotes nothing."""
    try:
        yield
    except NOT_THE_FILE:
        raise
    except duckdb.Error as error:
        line = re.search(r"Line: (\d+)", str(error))
        at = f" at line {line[1]}" if line else ""
        raise CollectError(
            f"the data files cannot be read{at} ({type(error).__name__}): a row that does not fit the header, a value "
            "that is no number or time, a number too large, or a damaged file",
            where,
            remedy,
        ) from None
