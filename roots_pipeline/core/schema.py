"""JSON schema of recipes, from the classes that check them, so that editors complete and mark keys.

    python -m <package> schema               prints the schema with the package's section
    python -m <package> schema --into FILE   adds the section to a schema file (`make docs` does so for all four)

Every class becomes an object without references. What its docstring (lines that begin with the name of a field in
backticks) and the comments beside its fields say of them becomes their description. Keys of a section are never
required: what is left out comes from the recipe that is extended.
"""

from __future__ import annotations

import inspect
import io
import re
import tokenize
from collections.abc import Collection, Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any, get_args, get_type_hints

import orjson
from pydantic import BaseModel, TypeAdapter

from roots_pipeline.core.errors import StorageError
from roots_pipeline.core.recipe import SECTIONS
from roots_pipeline.core.storage import exists, read_json, write_bytes

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_FIELD = re.compile(r"^((?:`[\w-]+`(?:, )?)+)(?::|\s\s)\s*(.*)")
_NO_SCHEMA = ("$defs", "discriminator", "ge", "gt", "le", "lt")  # of pydantic's own; the last ones slip out of sizes
_DECLARED = re.compile(r"\s{4}(\w+)\s*:")

Schema = dict[str, Any]


def describe(kind: type[Any], leave_out: Collection[str] = ()) -> Schema:
    """The schema of a dataclass or model, unknown keys refused; fields that are not for recipes are left out."""
    whole = TypeAdapter(kind).json_schema(by_alias=True)
    definitions = whole.get("$defs", {})
    for inner in set(_inner_classes(kind)):
        for name, text in field_notes(inner).items():
            if name in definitions.get(inner.__name__, {}).get("properties", {}):
                definitions[inner.__name__]["properties"][name].setdefault("description", text)
    schema: Schema = _inlined(whole, definitions)
    properties = {name: entry for name, entry in schema.get("properties", {}).items() if name not in leave_out}
    for name, text in field_notes(kind).items():
        if name in properties:
            properties[name].setdefault("description", text)
    required = [name for name in schema.get("required", []) if name in properties]
    return {"type": "object", "description": first_paragraph(kind), "properties": properties,
            **({"required": required} if required else {}), "additionalProperties": False}


def section(name: str, body: Schema) -> Schema:
    """The schema of a recipe of which only one section is known."""
    return _with_section({
        "$schema": DIALECT, "title": "Rootbloom recipe", "type": "object", "additionalProperties": False,
        "properties": {
            "extends": {"type": "string", "description": "The recipe that holds what is left out here "
                                                         "(default: sample)."},
            **{other: {"type": ["object", "null"]} for other in SECTIONS},
        },
    }, name, body)


def add_section(path: str, name: str, body: Schema) -> None:
    """Put a section into a schema file, which is begun if it is not there."""
    found = read_json(path) if exists(path) else section(name, body)
    if not (isinstance(found, dict) and isinstance(found.get("properties"), dict)):
        raise StorageError("this is no schema of recipes.", where=path, hint="Delete the file or name another one.")
    whole = _with_section(found, name, body)
    write_bytes(path, orjson.dumps(whole, option=orjson.OPT_INDENT_2) + b"\n")


def _with_section(schema: Schema, name: str, body: Schema) -> Schema:
    optional = {key: value for key, value in body.items() if key != "required"}
    return {**schema, "properties": {**schema["properties"], name: {**optional, "type": ["object", "null"]}}}


def first_paragraph(kind: type[Any]) -> str:
    """What the docstring of a class begins with, on one line."""
    return " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())


def field_notes(kind: type[Any]) -> dict[str, str]:
    """What is said of the fields of a class and of those that it inherits from."""
    notes: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "typing", "pydantic", "abc"):
            notes |= _comments(base) | dict(_lines(base.__doc__ or ""))
    return notes


def _inner_classes(kind: type[Any]) -> Iterator[type[Any]]:
    """The classes that the fields of a class hold, and those inside them."""
    for hint in get_type_hints(kind).values():
        for found in _classes_of(hint):
            yield found
            yield from _inner_classes(found)


def _classes_of(hint: Any) -> Iterator[type[Any]]:
    if inspect.isclass(hint) and (is_dataclass(hint) or issubclass(hint, BaseModel)):
        yield hint
    for part in get_args(hint):
        yield from _classes_of(part)


def _lines(docstring: str) -> Iterator[tuple[str, str]]:
    """Names of fields and what the lines of a docstring that begin with them say; further lines are indented."""
    names: list[str] = []
    text: list[str] = []
    prose = False  # "`name`: text" goes on to the end of its paragraph, "`name`  text" as far as lines are indented
    for line in [*inspect.cleandoc(docstring).split("\n"), ""]:
        begin = _FIELD.match(line)
        if begin or not line or not (line.startswith(" ") or prose):
            yield from ((name, " ".join(text)) for name in names if text)
            names = re.findall(r"`([\w-]+)`", begin[1]) if begin else []
            text = [begin[2]] if begin else []
            prose = begin is not None and begin[0].startswith(f"{begin[1]}:")
        elif names:
            text.append(line.strip())


def _comments(kind: type[Any]) -> dict[str, str]:
    """The comment behind a field, or in the lines before it."""
    try:
        source = inspect.cleandoc("\n" + inspect.getsource(kind))
    except (OSError, TypeError):
        return {}
    lines = source.split("\n")
    behind = {token.start[0]: token.string.lstrip("# ") for token in tokenize.generate_tokens(
        io.StringIO(source).readline) if token.type == tokenize.COMMENT}
    notes: dict[str, str] = {}
    before: list[str] = []
    for number, line in enumerate(lines, 1):
        if line.strip().startswith("#"):
            before.append(behind[number])
            continue
        text = " ".join([*before, *([behind[number]] if number in behind else [])])
        if text and (declared := _DECLARED.match(line)):
            notes[declared[1]] = text
        before = []
    return notes


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    """Without references and without the titles that pydantic makes of names; descriptions on one line."""
    if isinstance(value, list):
        return [_inlined(entry, definitions) for entry in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        own = {key: entry for key, entry in value.items() if key != "$ref"}
        return _inlined({**definitions[value["$ref"].rpartition("/")[2]], **own}, definitions)
    found: Schema = {}
    for key, entry in value.items():
        if key == "properties":
            found[key] = {name: _inlined(part, definitions) for name, part in entry.items()}
        elif key == "description":
            found[key] = " ".join(entry.split("\n\n")[0].split())
        elif key not in _NO_SCHEMA and not (key == "title" and isinstance(entry, str)):
            found[key] = _inlined(entry, definitions)
    return found


