"""Turns what pydantic says into lines for a person: where in the file, what is wrong, what to do."""

import difflib
import types
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails
from yaml.nodes import MappingNode, Node, SequenceNode

from inferledger.yaml_file import Problem, YamlFile

Loc = Sequence[str | int]

WANTED = {
    "string": "text belongs here",
    "int": "a whole number belongs here",
    "float": "a number belongs here",
    "decimal": "a number belongs here",
    "bool": "`true` or `false` belongs here",
    "date": "a day such as 2026-11-30 belongs here",
    "datetime": "an instant such as 2026-11-30T14:00:00Z belongs here",
    "tuple": "a list belongs here",
    "list": "a list belongs here",
    "dict": "`key: value` lines belong here",
    "model": "`key: value` lines belong here",
    "path": "a path belongs here",
}


def problem(file: YamlFile, model: type[BaseModel], error: ErrorDetails) -> Problem:
    """One pydantic error as a line for a person."""
    place = _Place(file.root, model)
    for element in error["loc"]:
        place.enter(element)
    what, remedy = _say(error, place)
    return Problem(file.name, place.line, place.path, what, remedy)


def at(file: YamlFile, loc: Loc, what: str, remedy: str) -> Problem:
    """A problem at a place that is known by its keys."""
    place = _Place(file.root, None)
    for element in loc:
        place.enter(element)
    return Problem(file.name, place.line, place.path, what, remedy)


def meant(word: str, known: Sequence[str]) -> str:
    """` (did you mean ...?)` when something known is close to the word, else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean `{close[0]}`?)" if close else ""


class _Place:
    """Walks the file and the model side by side, as far as each goes."""

    def __init__(self, root: Node | None, model: type[BaseModel] | None) -> None:
        self.node = root
        self.line = root.start_mark.line + 1 if root else 1
        self.path = ""
        self.kinds: list[Any] = [model] if model else []
        self.parents: list[Any] = []
        self.last: str | int = ""

    def enter(self, element: str | int) -> None:
        self.last = element
        if element == "[key]":
            return
        self.parents = self.kinds
        self.kinds = [kind for each in self.kinds for kind in _inside(each, element)] or self.kinds
        if isinstance(self.node, MappingNode):
            for key, value in self.node.value:
                if key.value == str(element):
                    self.line, self.node = key.start_mark.line + 1, value
                    self.path = f"{self.path}.{element}" if self.path else str(element)
                    return
        elif isinstance(self.node, SequenceNode) and isinstance(element, int) and element < len(self.node.value):
            self.node = self.node.value[element]
            self.line = self.node.start_mark.line + 1
            self.path = f"{self.path}[{element}]"

    def field(self) -> FieldInfo | None:
        """The field that the last key names, if the model has it."""
        for kind in self.parents:
            if is_model(kind) and (found := fields(kind).get(str(self.last))):
                return found
        return None

    def known(self) -> list[str]:
        """Keys that may stand beside the last one."""
        return [key for kind in self.parents if is_model(kind) for key in fields(kind)]


def _say(error: ErrorDetails, place: _Place) -> tuple[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        field = place.field()
        about = f" ({field.description})" if field is not None and field.description else ""
        return f"`{place.last}` is missing", f"add `{place.last}: ...`{about}"
    if kind == "extra_forbidden":
        return "there is no such key", _other_key(str(place.last), error["input"], place)
    if kind in ("literal_error", "enum", "union_tag_invalid"):
        expected = str(context.get("expected") or context.get("expected_tags"))
        known = [word.strip().strip("'") for word in expected.replace(" or ", ", ").split(",")]
        written = str(context.get("tag") or error["input"])
        where = (
            f"`{context['discriminator'].strip(chr(39))}: {written}`" if "discriminator" in context else f"`{written}`"
        )
        return f"{where} is not known", f"write one of {', '.join(known)}{meant(written, known)}"
    if kind == "union_tag_not_found":
        key = context["discriminator"].strip("'")
        return f"`{key}` is missing", f"add `{key}: ...`, one of {', '.join(_tags(place.kinds, key))}"
    if kind in ("value_error", "assertion_error"):
        what, _, remedy = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ").partition("; ")
        return what, remedy or "correct it"
    return _wrong_value(error, place)


def _wrong_value(error: ErrorDetails, place: _Place) -> tuple[str, str]:
    family = error["type"].split("_")[0]
    written = error["input"]
    if (
        family == "string"
        and error["type"] == "string_type"
        and isinstance(written, int | float)
        and not isinstance(written, bool)
    ):
        return f"{written} is a number, and text belongs here", f'write it in quotes: "{written}"'
    if error["type"].endswith(("_type", "_parsing", "_from_date_parsing")) and family in WANTED:
        shown = (
            "nothing"
            if written is None
            else "a list"
            if isinstance(written, list | tuple)
            else ("`key: value` lines" if isinstance(written, dict) else f"`{written}`")
        )
        return f"{WANTED[family]}, not {shown}", _described(place)
    if error["type"] == "string_pattern_mismatch":
        pattern = error.get("ctx", {}).get("pattern")
        return f"`{written}` is not of the form {pattern}", _described(place)
    what = error["msg"].replace("Input should be", "should be").replace("Value should", "should")
    what = what[0].lower() + what[1:]
    shown = f"`{written}` " if isinstance(written, str | int | float) or hasattr(written, "as_tuple") else ""
    return f"{shown}{what}", _described(place)


def _described(place: _Place) -> str:
    field = place.field()
    return (
        f"correct the value ({field.description})" if field is not None and field.description else "correct the value"
    )


def _other_key(word: str, value: object, place: _Place) -> str:
    known = place.known()
    if suggestion := meant(word, known):
        return f"correct it{suggestion}"
    homes = [
        (key, fields(inner)[word].annotation)
        for kind in place.parents
        if is_model(kind)
        for key, field in fields(kind).items()
        for inner in _models(field.annotation)
        if word in fields(inner)
    ]
    fitting = [key for key, annotation in homes if (get_origin(annotation) is dict) == isinstance(value, dict)]
    if fitting:
        return f"move it under `{fitting[0]}` (did you mean `{fitting[0]}.{word}`?)"
    return f"remove it; the keys here are {', '.join(known)}"


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """The keys of a model as they are written in the file."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def is_model(kind: object) -> TypeGuard[type[BaseModel]]:
    """Whether an annotation is a settings model itself."""
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _models(annotation: Any) -> list[type[BaseModel]]:
    """The models an annotation may hold at its own level."""
    if is_model(annotation):
        return [annotation]
    if get_origin(annotation) is Annotated:
        return _models(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [model for member in get_args(annotation) for model in _models(member)]
    return []


def _inside(annotation: Any, element: str | int) -> list[Any]:
    """What an annotation becomes after one element of a pydantic location."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _inside(arguments[0], element)
    if origin in (Union, types.UnionType):
        tagged = [m for model in _models(annotation) for m in [model] if element in _literals(model)]
        return tagged or [kind for member in arguments for kind in _inside(member, element)]
    if origin in (tuple, list) and isinstance(element, int):
        return [arguments[0]]
    if origin is dict:
        return [arguments[1]]
    if is_model(annotation):
        field = fields(annotation).get(str(element))
        return [field.annotation] if field is not None else []
    return []


def _literals(model: type[BaseModel]) -> set[object]:
    """The words by which a union tells this model from others."""
    return {
        word
        for field in model.model_fields.values()
        if get_origin(field.annotation) is Literal
        for word in get_args(field.annotation)
    }


def _tags(kinds: Sequence[Any], key: str) -> list[str]:
    found = [
        word
        for kind in kinds
        for model in _models(kind)
        if key in model.model_fields
        for word in get_args(model.model_fields[key].annotation)
    ]
    return sorted(str(word) for word in found)


def words(annotation: Any) -> tuple[str, ...]:
    """The words that an annotation of literals admits; none if it admits anything else."""
    if get_origin(annotation) is Literal:
        return tuple(str(word) for word in get_args(annotation))
    if get_origin(annotation) is Annotated:
        return words(get_args(annotation)[0])
    return ()
