"""Generated parts of docs/configuration.md and docs/commands.md: tables of keys, options and exit codes.

python -m inferledger.reference     writes them anew, between their markers; a test holds the files against this
"""

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from inferledger import complaints
from inferledger.cli import app
from inferledger.config import Configuration
from inferledger.exits import MEANING

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"(<!-- (?P<what>[\w ]+): generated -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(text: str) -> str:
    """A document with what lies between its markers made anew."""
    made = {"keys": keys, "commands": commands, "exit codes": exit_codes}
    return BLOCK.sub(lambda found: f"{found[1]}{made[found['what']]()}{found[3]}", text)


def keys() -> str:
    """A section per model, a row per key."""
    return "".join(_section(path, model) for path, model in models())


def models() -> list[tuple[str, type[BaseModel]]]:
    """Every model that the configuration consists of, with the path of its keys, outermost first."""
    found: list[tuple[str, type[BaseModel]]] = []

    def enter(path: str, model: type[BaseModel]) -> None:
        if (path, model) in found:
            return
        found.append((path, model))
        for key, field in complaints.fields(model).items():
            for suffix, inner in _inside(field.annotation):
                enter(f"{path}.{key}{suffix}".strip("."), inner)

    enter("", Configuration)
    return found


def _inside(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    origin = get_origin(annotation)
    if complaints.is_model(annotation):
        yield "", annotation
    elif origin is dict:
        for suffix, model in _inside(get_args(annotation)[1]):
            yield f".<name>{suffix}", model
    else:
        for argument in get_args(annotation):
            for suffix, model in _inside(argument):
                yield f"[]{suffix}" if origin in (tuple, list) else suffix, model


def _section(path: str, model: type[BaseModel]) -> str:
    kind = complaints.fields(model).get("kind")
    words = get_args(kind.annotation) if kind is not None else ()
    title = f"`{path}`" if path else "The whole file"
    title += f", kind `{words[0]}`" if words and len(words) == 1 else ""
    about = " ".join((inspect.getdoc(model) or "").split("\n\n")[0].split())
    rows = "".join(
        f"| `{key}` | {_kind(field.annotation)} | {_default(field)} | {_cell(field.description or '')} |\n"
        for key, field in complaints.fields(model).items()
    )
    return f"\n### {title}\n\n{about}\n\n| key | holds | default | meaning |\n|---|---|---|---|\n{rows}"


def _kind(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if complaints.is_model(annotation):
        return "keys below"
    if origin in (tuple, list):
        return f"list of {_kind(arguments[0])}"
    if origin is dict:
        return f"name: {_kind(arguments[1])}"
    literals = complaints.words(annotation)
    if literals:
        return " or ".join(f"`{word}`" for word in literals)
    if arguments:
        kinds = list(
            dict.fromkeys(
                _kind(each)
                for each in arguments
                if each is not type(None)
                and isinstance(each, type | object)
                and (isinstance(each, type) or get_origin(each) is not None)
            )
        )
        return " or ".join(kinds)
    return {
        "str": "text",
        "int": "number",
        "float": "number",
        "Decimal": "number",
        "bool": "true or false",
        "date": "day",
        "Path": "path",
        "datetime": "instant",
    }.get(getattr(annotation, "__name__", ""), "value")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    value = field.get_default(call_default_factory=True) if field.default_factory is None else None
    if value is None or value is PydanticUndefined or value in ((), {}) or isinstance(value, BaseModel):
        return ""
    if isinstance(value, tuple):
        return ", ".join(f"`{getattr(each, 'name', each)}`" for each in value)
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def commands() -> str:
    """A section per command: what it does, its arguments and options."""
    root = typer.main.get_command(app)
    return "".join(_command(name, command) for name, command in _leaves("inferledger", root))


def _leaves(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for key, each in inner.items():
        yield from _leaves(f"{name} {key}", each)


def _command(name: str, command: Any) -> str:
    text = f"\n### `{name}`\n\n{inspect.cleandoc(command.help or '')}\n"
    parameters = [each for each in command.params if each.name != "help"]
    if parameters:
        rows = "".join(
            f"| {_spelled(each)} | {_cell(getattr(each, 'help', None) or '')}{_shown(each)} |\n" for each in parameters
        )
        text += f"\n| option | meaning |\n|---|---|\n{rows}"
    return text


def _spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    value = "" if getattr(parameter, "is_flag", False) else f" {parameter.metavar}" if parameter.metavar else " ..."
    return (
        ", ".join(f"`{word}`" for word in parameter.opts[:-1])
        + (", " if parameter.opts[1:] else "")
        + f"`{parameter.opts[-1]}{value}`"
    )


def _shown(parameter: Any) -> str:
    annotation = parameter.type_descriptor.annotation
    choices = list(annotation) if isinstance(annotation, type) and issubclass(annotation, Enum) else []
    said = f" One of {', '.join(f'`{_word(choice)}`' for choice in choices)}." if choices else ""
    default, help_text = parameter.default, parameter.help or ""
    if default not in (None, False, ()) and not callable(default) and "efault" not in help_text:
        said += f" Default: `{_word(default)}`."
    return said + (f" Also ${parameter.envvar}." if parameter.envvar else "")


def _word(choice: Any) -> str:
    return str(getattr(choice, "value", choice))


def exit_codes() -> str:
    """A row per exit code."""
    rows = "".join(f"| {code.value} | {_cell(meaning)} |\n" for code, meaning in MEANING.items())
    return f"\n| code | meaning |\n|---|---|\n{rows}"


def main() -> None:
    """Write the generated parts anew."""
    for name in ("configuration.md", "commands.md"):
        path = DOCS / name
        path.write_text(rewritten(path.read_text()))


if __name__ == "__main__":
    main()
