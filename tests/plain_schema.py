"""A plain validator for the part of JSON schema that our schema uses (2020-12), keyword by keyword."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

_TYPES: dict[str, Any] = {"object": dict, "array": list, "string": str, "null": type(None), "boolean": bool}
_NOTES = {"title", "description", "default", "$schema"}


def problems(value: Any, schema: Any, place: str = "") -> Iterator[str]:
    """What is wrong with a value; nothing if it is valid."""
    if isinstance(schema, bool):
        yield from () if schema else (f"{place}: nothing is allowed here",)
        return
    for keyword, wanted in schema.items():
        if keyword in ("properties", "additionalProperties", "items", "prefixItems"):
            yield from _inside(value, keyword, wanted, schema, place)
        elif keyword not in _NOTES and not _holds(value, keyword, wanted):
            yield f"{place}: {str(value)[:80]} against {keyword} {str(wanted)[:80]}"


def _holds(value: Any, keyword: str, wanted: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    checks = {
        "minimum": lambda: not number or value >= wanted, "maximum": lambda: not number or value <= wanted,
        "exclusiveMinimum": lambda: not number or value > wanted,
        "exclusiveMaximum": lambda: not number or value < wanted,
        "minItems": lambda: not isinstance(value, list) or len(value) >= wanted,
        "maxItems": lambda: not isinstance(value, list) or len(value) <= wanted,
        "pattern": lambda: not isinstance(value, str) or re.search(wanted, value) is not None,
        "minLength": lambda: not isinstance(value, str) or len(value) >= wanted,
        "const": lambda: _same(value, wanted), "enum": lambda: any(_same(value, choice) for choice in wanted),
        "required": lambda: not isinstance(value, dict) or all(name in value for name in wanted),
        "anyOf": lambda: any(not list(problems(value, part)) for part in wanted),
        "oneOf": lambda: sum(not list(problems(value, part)) for part in wanted) == 1,
        "type": lambda: any(_is(value, name) for name in ([wanted] if isinstance(wanted, str) else wanted)),
    }
    return bool(checks[keyword]())  # KeyError: a keyword that this validator does not know


def _inside(value: Any, keyword: str, wanted: Any, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if keyword == "properties" and isinstance(value, dict):
        for name in wanted.keys() & value.keys():
            yield from problems(value[name], wanted[name], f"{place}.{name}")
    elif keyword == "additionalProperties" and isinstance(value, dict):
        for name in value.keys() - schema.get("properties", {}).keys():
            yield from problems(value[name], wanted, f"{place}.{name}")
    elif keyword == "items" and isinstance(value, list):
        for number, entry in enumerate(value[len(schema.get("prefixItems", [])) :]):
            yield from problems(entry, wanted, f"{place}[{number}]")
    elif keyword == "prefixItems" and isinstance(value, list):
        for number, (entry, part) in enumerate(zip(value, wanted, strict=False)):
            yield from problems(entry, part, f"{place}[{number}]")


def _same(value: Any, choice: Any) -> bool:
    return bool(value == choice) and isinstance(value, bool) == isinstance(choice, bool)


def _is(value: Any, name: str) -> bool:
    if name in ("integer", "number"):
        right = isinstance(value, int) or (isinstance(value, float) and (name == "number" or value.is_integer()))
        return right and not isinstance(value, bool)
    return isinstance(value, _TYPES[name])
