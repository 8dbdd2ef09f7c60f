"""Recipes: YAML in, checked settings out, errors with file and line.

A recipe file has up to four sections, one for each package: `corpus`, `tokenizer`, `mixture`, `train`. A key or a
section that is missing comes from the recipe named by `extends` (default `sample`), so a user's file only says what
is different. A recipe is named (`sample`: the file `recipes/sample.yaml` of each package) or given by path.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import BaseModel, ValidationError

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.yaml_hints import yaml_hint

SECTIONS = ("corpus", "tokenizer", "mixture", "train")
PACKAGES = ("roots_pipeline", "tokenizer", "mixtures", "train")
_Model = TypeVar("_Model", bound=BaseModel)


def load_section(recipe: str, section: str, model: type[_Model], folder: Path) -> _Model:
    """One section of a recipe, checked by `model`; `folder` holds the package's built-in recipes.

    Raises RecipeError with file and line: unreadable YAML, unknown keys (with the nearest name), wrong values.
    """
    values, origins = _merged(recipe, section, folder, seen=())
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise _explain(error, section, model, origins, str(recipe)) from error


def nearest(name: str, known: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    """' Did you mean …?' for a misspelt name, with all names if none is near."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(names)}."


def _merged(
    recipe: str, section: str, folder: Path, seen: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, tuple[Path, dict[tuple[Any, ...], int]]]]:
    path = _locate(recipe, folder)
    if str(path) in seen:
        raise RecipeError(f"`extends` goes round in a circle: {' -> '.join([*seen, str(path)])}.", where=str(path))
    document, lines = _read(path)
    for key in document:
        if key not in (*SECTIONS, "extends"):
            hint = nearest(str(key), (*SECTIONS, "extends"))
            raise RecipeError(f"unknown section '{key}'.", where=f"{path}:{lines.get((key,), 1)}", hint=hint)
    base = document.get("extends", None if path == folder / "sample.yaml" else "sample")
    values: dict[str, Any] = {}
    origins: dict[str, tuple[Path, dict[tuple[Any, ...], int]]] = {}
    if base is not None:
        if not isinstance(base, str):
            raise RecipeError(f"`extends` must name a recipe, not {base!r}.", where=f"{path}:{lines[('extends',)]}")
        values, origins = _merged(base, section, folder, (*seen, str(path)))
    own = document.get(section)
    if own is None:
        own = {}
    if not isinstance(own, dict):
        raise RecipeError(
            f"section '{section}' must hold keys, not {type(own).__name__}.", where=f"{path}:{lines[(section,)]}"
        )
    for key, value in own.items():
        values[key] = value
        origins[key] = (path, lines)
    return values, origins


def _locate(recipe: str, folder: Path) -> Path:
    path = Path(recipe)
    if len(recipe.encode()) > 4000 or "\0" in recipe:
        raise RecipeError("this is no name and no path of a recipe.", where=f"{recipe[:40]!r}…")
    if path.suffix in (".yaml", ".yml") or "/" in recipe:
        if not path.is_file():
            raise RecipeError("there is no such recipe file.", where=recipe, hint=_similar_file(path))
        return path
    # A name is good for the whole chain even if only one package has a recipe of that name: its section is used where
    # it matters, and the other packages take what the recipe extends.
    folders = [folder, *(folder.parent.parent / package / folder.name for package in PACKAGES)]
    built_in = next((found for place in folders if (found := place / f"{recipe}.yaml").is_file()), None)
    if built_in is None:
        names = {entry.stem for place in folders for entry in place.glob("*.yaml")}
        raise RecipeError(f"there is no built-in recipe '{recipe}'.", where=str(folder.parent.name),
                          hint=nearest(recipe, sorted(names)) + " A path to your own must end in .yaml.")
    return built_in


def _similar_file(path: Path) -> str:
    names = [entry.name for entry in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
    close = difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean '{path.parent / close[0]}'?" if close else "Check the path given as RECIPE."


def _read(path: Path) -> tuple[dict[Any, Any], dict[tuple[Any, ...], int]]:
    """The document and, for every key path, its line."""
    try:
        text = path.read_text("utf-8")
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
            raise RecipeError("anchors and aliases (&, *) are not used in recipes.", where=str(path),
                              hint="Write the values out, or use `extends`.")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except RecursionError as error:
        raise RecipeError("cannot be read as YAML: it is nested too deeply.", where=str(path)) from error
    except (yaml.YAMLError, ValueError, OSError) as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{path}:{mark.line + 1}" if mark else str(path)
        problem = getattr(error, "problem", None) or str(error)
        raise RecipeError(f"cannot be read as YAML: {problem}.", where=place, hint=yaml_hint(problem)) from error
    if document is None:
        raise RecipeError("this recipe is empty.", where=str(path), hint="Name a built-in recipe to run it unchanged.")
    if not isinstance(document, dict):
        hint = f"Known: {', '.join(SECTIONS)}."
        raise RecipeError("a recipe must hold sections with keys.", where=str(path), hint=hint)
    lines: dict[tuple[Any, ...], int] = {}
    _note_lines(node, (), lines, path)
    return document, lines


def _note_lines(node: Any, place: tuple[Any, ...], lines: dict[tuple[Any, ...], int], path: Path) -> None:
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys:  # YAML would silently keep the last one
                raise RecipeError(f"the key '{key.value}' is given twice.", where=f"{path}:{key.start_mark.line + 1}")
            keys.add(key.value)
            lines[(*place, key.value)] = key.start_mark.line + 1
            _note_lines(value, (*place, key.value), lines, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*place, index)] = value.start_mark.line + 1
            _note_lines(value, (*place, index), lines, path)


def _explain(
    error: ValidationError, section: str, model: type[BaseModel],
    origins: dict[str, tuple[Path, dict[tuple[Any, ...], int]]], recipe: str,
) -> RecipeError:
    first = error.errors()[0]
    place = tuple(first["loc"])
    own = next((origin for origin in reversed(origins.values()) if str(origin[0]) == recipe), (Path(recipe), {}))
    path, lines = origins.get(str(place[0]), own) if place else own
    # A check of several keys together may name them all (`keys` of its error): one set in the user's own file is shown.
    involved = getattr(first.get("ctx", {}).get("error"), "keys", ())
    marked = next((key for key in involved if (section, *place, key) in own[1]), None)
    path, lines, spot = (path, lines, place) if marked is None else (*own, (*place, marked))
    line = next((lines[key] for length in range(len(spot), -1, -1)
                 if (key := (section, *spot[:length])) in lines), 1)
    name = ".".join(str(part) for part in (section, *place))
    message, hint = f"{name}: {first['msg']}", None
    if first["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        message = f"unknown key '{place[-1]}' in {'.'.join(str(part) for part in (section, *place[:-1]))}."
        hint = nearest(str(place[-1]), _known_keys(model, place[:-1]))
    elif first["type"] == "missing":
        message = f"{name} is missing."
    elif first["type"] == "value_error":
        message = str(first["ctx"]["error"]) if len(place) == 0 else f"{name}: {first['ctx']['error']}"
    else:
        message = f"{message} (found {first['input']!r})."[:300]
        if first["type"] == "list_type" and isinstance(first["input"], dict):
            hint = "Write a list: begin each entry with `- `."
    more = len(error.errors()) - 1
    if more:
        hint = " ".join(filter(None, (hint, f"({more} more problem{'s' * (more > 1)} in this recipe.)")))
    return RecipeError(message, where=f"{path}:{line}", hint=hint)


def _known_keys(model: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """Field names of the (nested) model that an error speaks of."""
    current: Any = model
    for part in place:
        if isinstance(part, int):
            continue
        field = getattr(current, "model_fields", {}).get(part)
        inner = [] if field is None else _models_in(field.annotation)
        current = inner[0] if inner else current
    return list(cast(type[BaseModel], current).model_fields)


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in getattr(annotation, "__args__", ()) for found in _models_in(part)]
