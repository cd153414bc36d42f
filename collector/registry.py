"""Finds every format: a module in ``collector.billing``, ``.usage`` or ``.metrics`` that has a ``KIND``.

A new log or export format is one new file there (and its SQL); nothing else changes.
"""

import importlib
import pkgutil
from functools import cache
from types import ModuleType

import collector.billing
import collector.metrics
import collector.usage
from collector.source import Kind

ROOMS: tuple[ModuleType, ...] = (collector.billing, collector.usage, collector.metrics)


@cache
def kinds() -> dict[str, Kind]:
    """Kind by its word in the configuration, in order of that word."""
    found: dict[str, Kind] = {}
    for room in ROOMS:
        for module in pkgutil.iter_modules(room.__path__, room.__name__ + "."):
            kind = getattr(importlib.import_module(module.name), "KIND", None)
            if isinstance(kind, Kind):
                if kind.kind in found:
                    raise RuntimeError(f"two modules offer the source kind `{kind.kind}`; the second is {module.name}")
                found[kind.kind] = kind
    return dict(sorted(found.items()))
