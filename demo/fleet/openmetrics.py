"""Write samples as OpenMetrics text, as they come out of a Prometheus: by family and series, with timestamps."""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from demo.clock import HOUR, instant

FOLDER = "metrics"
FILE_HOURS = 6
COMPRESSION_LEVEL = 1


@dataclass(frozen=True)
class Target:
    """Something that is scraped: the instants, in whole milliseconds, ascending."""

    at_us: np.ndarray
    stamps: list[str] = field(repr=False)

    @staticmethod
    def of(at_us: np.ndarray) -> "Target":
        return Target(at_us, [f"{ms // 1000}.{ms % 1000:03d}" for ms in (at_us // 1000).tolist()])


@dataclass(frozen=True)
class Series:
    """One series: samples `first`, `first + 1`, ... of its target. `values`: numbers, or their texts."""

    family: str
    kind: str
    name: str
    labels: str
    target: Target
    values: Sequence[object]
    first: int = 0


def labels(**pairs: str) -> str:
    """A label set in canonical order: `{a="1",b="2"}`."""
    inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in sorted(pairs.items()))
    return "{" + inner + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def ratios(values: np.ndarray) -> list[str]:
    """Fractions with six decimals at most."""
    return [f"{value:.6f}".rstrip("0").rstrip(".") or "0" for value in values.tolist()]


def write(out: Path, cluster: str, series: list[Series]) -> tuple[list[Path], int]:
    """Write `out/metrics/<cluster>/<day>T<hour>.om.gz`, one file per six hours. Returns files and number of samples."""
    series = sorted(series, key=lambda one: (one.family, one.labels, one.name, one.first))
    every_us = FILE_HOURS * HOUR
    starts = [int(one.target.at_us[one.first]) // every_us for one in series if len(one.values)]
    if not starts:
        return [], 0
    ends = [int(one.target.at_us[one.first + len(one.values) - 1]) // every_us for one in series if len(one.values)]
    files, samples = [], 0
    for number in range(min(starts), max(ends) + 1):
        lines = _lines(series, number * every_us, (number + 1) * every_us)
        if not lines:
            continue
        samples += sum(1 for line in lines if not line.startswith("#"))
        at = instant(number * every_us)
        file = out / FOLDER / cluster / f"{at:%Y-%m-%dT%H}.om.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines.append("# EOF\n")
        file.write_bytes(gzip.compress("\n".join(lines).encode(), COMPRESSION_LEVEL, mtime=0))
        files.append(file)
    return files, samples


def _lines(series: list[Series], start_us: int, end_us: int) -> list[str]:
    """The samples of all series within [start, end), each family under its type."""
    lines: list[str] = []
    family = metric = None
    pending: dict[str, list[str]] = {}  # by name of the series of one metric
    for one in series:
        low, high = np.searchsorted(one.target.at_us, (start_us, end_us)).tolist()
        low, high = max(low, one.first), min(high, one.first + len(one.values))
        if low >= high:
            continue
        if (one.family, one.labels) != metric:
            lines += _interleaved(pending)
            metric, pending = (one.family, one.labels), {}
        if one.family != family:
            lines.append(f"# TYPE {one.family} {one.kind}")
            family = one.family
        head = one.name + one.labels
        values, stamps = one.values[low - one.first : high - one.first], one.target.stamps[low:high]
        found = [f"{head} {value} {stamp}" for value, stamp in zip(values, stamps, strict=True)]
        pending.setdefault(one.name, []).extend(found)
    return lines + _interleaved(pending)


def _interleaved(pending: dict[str, list[str]]) -> list[str]:
    """The series of one metric (a counter and its `_created`) have to be in order of time together."""
    if len(pending) == 1:
        return next(iter(pending.values()))
    return [line for together in zip(*pending.values(), strict=True) for line in together]
