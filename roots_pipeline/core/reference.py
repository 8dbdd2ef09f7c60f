"""The schema of recipes as pages to read: every key of every section, source and stage.

    python -m roots_pipeline.core.reference docs/recipe.schema.json > docs/recipes.md
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from roots_pipeline.core.recipe import SECTIONS
from roots_pipeline.core.storage import read_json

_HEAD = """\
# Recipes

Every key of a recipe. Made from the classes that check recipes (`make docs`): edit their docstrings, not this.

A recipe is a YAML file with up to four sections, and says only what is different from the recipe that it `extends`
(default: `sample`). A key of a section replaces the whole value that it inherits. Editors that know JSON schema
complete and check a recipe that begins with this line (the path as seen from the recipe):

    # yaml-language-server: $schema=docs/recipe.schema.json
"""
_OF_SECTION = {
    "corpus": "Raw text to documents. Sources and stages are lists, whose entries are described below.",
    "tokenizer": "Documents to a vocabulary.", "mixture": "Documents to weighted token files.",
    "train": "Token files to a model.",
}
_LISTS = {"sources": ("kind", "Sources"), "stages": ("stage", "Stages")}

Schema = Mapping[str, Any]


def as_markdown(schema: Schema) -> str:
    """The page."""
    sections = "".join(line for name in SECTIONS for line in _section(name, schema["properties"][name]))
    return f"{_HEAD}\n{sections.rstrip()}\n"


def _section(name: str, schema: Schema) -> Iterator[str]:
    yield f"## {name}\n\n{_OF_SECTION[name]}\n\n"
    yield from _table(schema, {key: value for key, value in schema["properties"].items() if key not in _LISTS})
    for key, (chooser, title) in _LISTS.items():
        if key in schema["properties"]:
            entries = schema["properties"][key]["items"]["oneOf"]
            shared = set.intersection(*(set(entry["properties"]) for entry in entries)) - {chooser}
            first = entries[0]["properties"]
            yield f"### {title}\n\nEvery entry has `{chooser}`, and may have:\n\n"
            yield from _table(entries[0], {name: first[name] for name in first if name in shared})
            for entry in entries:
                own = {name: value for name, value in entry["properties"].items() if name not in {*shared, chooser}}
                yield f"#### {chooser}: {entry['title']}\n\n{_cell(entry['description'])}\n\n"
                yield from _table(entry, own)


def _table(schema: Schema, properties: Schema) -> Iterator[str]:
    if not properties:
        return
    yield "| key | value | default | |\n|---|---|---|---|\n"
    required = schema.get("required", [])
    inner: list[tuple[str, Schema]] = []
    for name, value in properties.items():
        default = "required" if name in required else f"`{_json(value['default'])}`" if "default" in value else ""
        yield f"| `{name}` | {_cell(_kind(value))} | {_cell(default)} | {_cell(value.get('description', ''))} |\n"
        inner += [(f"{name}{choice}", part) for choice, part in _objects(value)]
    yield "\n"
    for name, part in inner:
        said = f": {_cell(part['description'])}" if part.get("description") else ""
        yield f"`{name}`{said}\n\n"
        yield from _table(part, part["properties"])


def _objects(value: Schema) -> Iterator[tuple[str, Schema]]:
    """The objects with keys of their own that a value may be, each with what tells it from the others."""
    if "properties" in value:
        chosen = [f" of {key} {part['const']}" for key, part in value["properties"].items() if "const" in part]
        yield (chosen[0] if chosen else ""), value
    inside = [value[key] for key in ("items", "additionalProperties") if isinstance(value.get(key), dict)]
    for part in (*value.get("anyOf", ()), *value.get("oneOf", ()), *inside):
        yield from _objects(part)


def _kind(value: Schema) -> str:
    """What a value may be, in words."""
    if "const" in value:
        return f"`{_plain(value['const'])}`"
    if "enum" in value:
        return ", ".join(f"`{_plain(choice)}`" for choice in value["enum"])
    parts = [*value.get("anyOf", ()), *value.get("oneOf", ())]
    if parts:
        return " or ".join(dict.fromkeys(_kind(part) for part in parts))
    if value.get("type") == "array":
        inside = value.get("items") or {"anyOf": value.get("prefixItems", [])}
        number, least = value.get("maxItems"), value.get("minItems")
        return f"list of {number} of {_kind(inside)}" if number and number == least else f"list of {_kind(inside)}"
    words = {"integer": "whole number", "boolean": "true, false", "null": "null", "object": "keys", "string": "text"}
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"names with {_kind(value['additionalProperties'])}"
    bounds = [f"{sign} {value[name]:g}" for name, sign in (
        ("minimum", "≥"), ("exclusiveMinimum", ">"), ("maximum", "≤"), ("exclusiveMaximum", "<")) if name in value]
    kind = str(value.get("type", "anything"))
    return " ".join([words.get(kind, kind), *bounds])


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value else _json(value)


def _json(value: Any) -> str:
    text = orjson.dumps(value).decode()
    return text if len(text) <= 60 else f"{text[:57]}..."


def _cell(text: str) -> str:
    """Text inside a table: one line, no column marks."""
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(as_markdown(read_json(sys.argv[1])))
