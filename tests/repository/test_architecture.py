"""Arrows point one way (docs/development.md, Layout): which room may import which."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from tests import needs
from tests.repository import tracked

# What a room may import beside itself: a room, or one module of it.
MAY_IMPORT: dict[str, set[str]] = {
    "alerts": {"delivery", "warehouse"},
    "collector": {"warehouse.engine", "warehouse.schema", "warehouse.settings"},
    "dashboards": {"delivery", "warehouse"},
    "delivery": set(),
    "demo": set(tracked.ROOMS),
    "inferledger": set(tracked.ROOMS) - {"demo"},
    "migrations": {"warehouse"},
    "reports": {"delivery", "warehouse"},
    "warehouse": set(),
}
# Single files that may import more than their room.
EXCEPTIONS: dict[Path, set[str]] = {Path("inferledger/commands/demo.py"): {"demo"}}

OURS = {*tracked.ROOMS, "bench", "tests"}


def imports(source: str, module: str, is_package: bool) -> set[str]:
    """Every module of this project that a source imports, wherever in it; `from a import b` counts as a.b."""
    package = module if is_package else module.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            base = importlib.util.resolve_name(name, package) if node.level else name
            found |= {f"{base}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in {"import_module", "__import__", "run_module"} and isinstance(node.args[0].value, str):
                found.add(importlib.util.resolve_name(node.args[0].value, package))
    return {name for name in found if name.partition(".")[0] in OURS}


def within(name: str, allowed: set[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in allowed)


def dotted(path: Path) -> tuple[str, bool]:
    is_package = path.name == "__init__.py"
    return ".".join((path.parent if is_package else path.with_suffix("")).parts), is_package


def strings(source: str) -> set[str]:
    """The strings that a source uses; docstrings only speak of things."""
    tree = ast.parse(source)
    spoken = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    found = {n for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return {str(node.value) for node in found if id(node) not in spoken}


def test_every_room_has_a_rule_and_every_rule_a_room():
    assert set(MAY_IMPORT) == set(tracked.ROOMS)
    rooms = {path.parts[0] for path in tracked.files() if path.name == "__init__.py"} - {"bench", "tests"}
    assert rooms == set(tracked.ROOMS)
    assert all((needs.ROOT / path).is_file() for path in EXCEPTIONS)


@pytest.mark.parametrize("room", tracked.ROOMS)
def test_imports_point_one_way(room):
    wrong = []
    for path in tracked.shipped_python():
        if path.parts[0] != room:
            continue
        allowed = MAY_IMPORT[room] | {room} | EXCEPTIONS.get(path, set())
        found = imports((needs.ROOT / path).read_text(), *dotted(path))
        wrong += [f"{path} imports {name}" for name in sorted(found) if not within(name, allowed)]
    assert wrong == []


TRUTH_FILE = re.compile(r"(^|[/\\])truth([-_.]\w+)*([/\\]|$)")


def test_only_tests_and_benches_know_the_truth_file():
    """The demo's truth is written by demo/truth.py; who attributes cost must not be able to look it up."""
    wrong = []
    for path in tracked.files():
        if path.parts[0] in {"bench", "docs", "tests"} or path == Path("demo/truth.py"):
            continue
        text = tracked.text(path)
        if text is None:
            continue
        if path.suffix == ".py":
            if path.parts[0] != "demo" and any(within(name, {"demo.truth"}) for name in imports(text, *dotted(path))):
                wrong.append(f"{path} imports demo.truth")
            named = [string for string in strings(text) if TRUTH_FILE.search(string)]
        else:
            named = re.findall(r"\btruth[-_\w]*(?:\.(?:json|jsonl|csv|parquet|ya?ml|duckdb|db)\b|/)", text)
        wrong += [f"{path} names {name!r}" for name in named]
    assert wrong == []


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import warehouse.schema", {"warehouse.schema"}),
        ("from warehouse import schema, marts", {"warehouse.schema", "warehouse.marts"}),
        ("from . import measures", {"reports.measures"}),
        ("def late():\n    import demo.truth as t", {"demo.truth"}),
        ("import importlib\nimportlib.import_module('demo.truth')", {"demo.truth"}),
        ("import json, warehouses", set()),
    ],
)
def test_the_rule_sees_every_way_to_import(source, found):
    assert imports(source, "reports.daily", False) == found


@pytest.mark.parametrize(
    "name", ["truth.json", ".demo/truth.json", "truth", "truth/incidents.csv", "out/truth-v1.json"]
)
def test_the_rule_sees_the_truth_file(name):
    assert TRUTH_FILE.search(name)


@pytest.mark.parametrize("name", ["the truth is out", "truthful", "claims/untruth.json"])
def test_the_rule_leaves_the_word_alone(name):
    assert not TRUTH_FILE.search(name)
