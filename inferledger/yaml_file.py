"""A YAML file as plain values, with the line of every key and value. Nothing of YAML 1.1 that surprises.

`yes`, `no`, `on`, `off`, dates and `12:30` stay text; the model decides what they are. Numbers with a point become
Decimal, so that a price is what is written. Keys are text.
"""

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong in a configuration file, and what to do about it."""

    file: str
    line: int
    path: str
    what: str
    remedy: str

    def __str__(self) -> str:
        path = f" {self.path}:" if self.path else ""
        return f"{self.file}:{self.line}:{path} {self.what}; {self.remedy}"


class ConfigError(Exception):
    """The configuration cannot be used; one line per problem, each with its place and its remedy."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class _Loader(yaml.SafeLoader):
    """Composes nodes; resolves only null, booleans and numbers."""


_Loader.yaml_implicit_resolvers = {}
for _tag, _pattern, _first in (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:int", r"[-+]?(0|[1-9][0-9_]*)", "-+0123456789"),
    ("tag:yaml.org,2002:float", r"[-+]?((0|[1-9][0-9_]*)(\.[0-9_]*)?|\.[0-9_]+)([eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
):
    _Loader.add_implicit_resolver(_tag, re.compile(rf"^(?:{_pattern})$"), list(_first))


@dataclass(frozen=True)
class YamlFile:
    """What was read: the values, the node tree they came from, and what was wrong beside the values."""

    name: str
    values: dict[str, object]
    root: Node | None
    problems: tuple[Problem, ...]


def read(path: Path, name: str) -> YamlFile:
    """Read one YAML file that holds a mapping; raises ConfigError when nothing can be made of it."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise ConfigError((Problem(name, line, "", "is not UTF-8", "save it as UTF-8"),)) from error
    except IsADirectoryError as error:
        raise ConfigError(
            (Problem(name, 1, "", "is a folder", f"name the file in it: {name}/inferledger.yaml"),)
        ) from error
    except PermissionError as error:
        remedy = "give the user that runs inferledger the right to read it"
        raise ConfigError((Problem(name, 1, "", "may not be read", remedy),)) from error
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        raise ConfigError((_syntax(name, text, error),)) from error
    except yaml.YAMLError as error:
        raise ConfigError(
            (Problem(name, 1, "", f"is no YAML ({error})".replace("\n", " "), "remove that character"),)
        ) from error
    if root is None:
        return YamlFile(name, {}, None, ())
    if not isinstance(root, MappingNode):
        what = "holds no keys at its top"
        raise ConfigError(
            (Problem(name, root.start_mark.line + 1, "", what, "write `key: value` lines, such as `currency: USD`"),)
        )
    reader = _Reader(name)
    values = reader.value(root, "")
    assert isinstance(values, dict)
    return YamlFile(name, values, root, tuple(reader.problems))


def _syntax(name: str, text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 1
    written = text.splitlines()[line - 1] if 0 < line <= len(text.splitlines()) else ""
    if "\t" in written[: len(written) - len(written.lstrip())] or "'\\t'" in str(error.problem):
        return Problem(name, line, "", "a tab stands where only spaces may", "indent with spaces")
    if "expected a single document" in str(error.context):
        return Problem(name, line, "", "a second document begins here", "remove the line `---`")
    what = " ".join(part for part in (error.context, error.problem) if part)
    return Problem(
        name, line, "", f"this is no YAML ({what})", "look for a missing colon, quote or bracket here or a line above"
    )


class _Reader:
    """Turns nodes into values, and notes doubled keys on the way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problems: list[Problem] = []
        self._open: set[int] = set()

    def value(self, node: Node, path: str) -> object:
        if id(node) in self._open:
            self._problem(node, path, "an alias that holds itself", "write the values out")
            return None
        self._open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            if isinstance(node, SequenceNode):
                return [self.value(item, f"{path}[{number}]") for number, item in enumerate(node.value)]
            assert isinstance(node, ScalarNode)
            return _scalar(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: MappingNode, path: str) -> dict[str, object]:
        values: dict[str, object] = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._problem(key_node, path, "a key that is no plain word", "write `key: value`")
                continue
            key = str(key_node.value)
            here = f"{path}.{key}" if path else key
            if key in values:
                self._problem(key_node, here, f"this key stands on line {lines[key]} already", "keep one of the two")
                continue
            lines[key] = key_node.start_mark.line + 1
            values[key] = self.value(value_node, here)
        return values

    def _problem(self, node: Node, path: str, what: str, remedy: str) -> None:
        self.problems.append(Problem(self.name, node.start_mark.line + 1, path, what, remedy))


def _scalar(node: ScalarNode) -> object:
    tag = node.tag.rpartition(":")[2]
    if tag == "null":
        return None
    if tag == "bool":
        return node.value.lower() == "true"
    text = str(node.value)
    try:
        if tag == "int":
            return int(text.replace("_", ""))
        if tag == "float":
            return Decimal(text.replace("_", ""))
    except (ValueError, InvalidOperation):
        return text  # `!!int abc`: the model says that it is no number
    return text
