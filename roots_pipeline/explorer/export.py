"""Changed limits and word lists as a recipe: the settings of the run, and what was changed.

Only judging and what follows it runs again, unless a word list was changed. Settings that a stage has by itself are
left out, so that the file says what is special about this corpus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, asdict, fields
from typing import Any

import yaml
from pydantic import ValidationError

from roots_pipeline.config import CorpusRecipe
from roots_pipeline.core.errors import RecipeError, StaleDataError
from roots_pipeline.core.manifest import Manifest
from roots_pipeline.core.stages import Stage
from roots_pipeline.rules.thresholds import Limits, Thresholds
from roots_pipeline.stage_table import STAGES, make_stage

_HEAD = """\
# The recipe of a corpus with changes made in the explorer. Into the folder of that run, it computes verdicts anew:
#     python -m roots_pipeline run --recipe THIS_FILE --run RUN
"""

WordLists = dict[str, list[str]]  # by language


def recipe_of(manifest: Manifest) -> CorpusRecipe:
    """The checked recipe that a corpus was made by. Raises StaleDataError if this version does not know its shape."""
    try:
        return CorpusRecipe.model_validate(_plain(manifest.config))
    except (ValidationError, KeyError, TypeError, AttributeError) as error:
        raise StaleDataError("its recipe is of another version.",
                             hint="Run `python -m roots_pipeline run` again.") from error


def with_words(recipe: CorpusRecipe, index: int, words: WordLists) -> CorpusRecipe:
    """The recipe with the stop words of some languages replaced in the stage at a place."""
    entry = recipe.stages[index]
    lists = {**getattr(entry.made, "stop_words", {}), **words}
    return _replaced(recipe, index, {**_own(entry.made), "stop_words": lists})


def with_limits(recipe: CorpusRecipe, index: int, changes: Limits) -> CorpusRecipe:
    """The recipe with limits changed in the stage `thresholds` at a place."""
    stage = recipe.stages[index].made
    if not isinstance(stage, Thresholds):
        raise RecipeError(f"stage {index + 1} of the recipe, '{stage.name}', has no limits.")
    limits = {language: dict(entries) for language, entries in stage.limits.items()}
    for language, entries in changes.items():
        limits.setdefault(language, {}).update(entries)
    return _replaced(recipe, index, {"preset": stage.preset, "limits": limits})


def as_yaml(recipe: CorpusRecipe) -> str:
    """The recipe as a file."""
    sources = [source.model_dump(mode="json", exclude_none=True) for source in recipe.sources]
    stages = [{"stage": entry.stage, **({"groups": entry.groups} if entry.groups is not None else {}),
               **_own(entry.made)} for entry in recipe.stages]
    rest = recipe.model_dump(mode="json", exclude={"sources", "stages"}, exclude_defaults=True)
    section = {"sources": sources, "stages": stages, **rest}
    text: str = yaml.safe_dump({"corpus": section}, allow_unicode=True, sort_keys=False, width=100)
    return _HEAD + text


def _replaced(recipe: CorpusRecipe, index: int, settings: Mapping[str, Any]) -> CorpusRecipe:
    section = {**recipe.model_dump(mode="json"), "stages": [
        {"stage": entry.stage, "groups": entry.groups, **(settings if place == index else _own(entry.made))}
        for place, entry in enumerate(recipe.stages)
    ]}
    try:
        return CorpusRecipe.model_validate(section)
    except ValidationError as error:
        raise RecipeError(str(error.errors()[0]["msg"])) from error


def _plain(config: Mapping[str, Any]) -> dict[str, Any]:
    """The section as a recipe has it: a manifest also says of each stage what else decides what it does."""
    stages = []
    for stage in config["stages"]:
        kind: Any = STAGES[stage["stage"]]
        settings = {"stage", "groups", *(entry.name for entry in fields(kind) if entry.init)}
        stages.append({key: value for key, value in stage.items() if key in settings})
    return {**config, "stages": stages}


def _own(stage: Stage) -> dict[str, Any]:
    """The settings of a stage that it does not have by itself."""
    usual = _usual(stage)
    own: dict[str, Any] = {}
    for name, value in asdict(stage).items():  # type: ignore[call-overload]
        if name in usual and usual[name] == value:
            continue
        if name in ("limits", "stop_words", "words") and isinstance(value, Mapping):
            own[name] = {key: entry for key, entry in value.items() if usual.get(name, {}).get(key) != entry}
            if name == "limits":
                own[name] = {key: _fewer(entry, usual.get(name, {}).get(key, {})) for key, entry in own[name].items()}
        else:
            own[name] = value
    return {name: _lists(value) for name, value in own.items()}


def _fewer(entries: Mapping[str, Any], usual: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entries.items() if name not in usual or usual[name] != value}


def _usual(stage: Stage) -> dict[str, Any]:
    """The settings of a stage of this kind of which nothing is set but what must be."""
    required = {entry.name for entry in fields(stage)  # type: ignore[arg-type]
                if entry.init and entry.default is MISSING and entry.default_factory is MISSING}
    if isinstance(stage, Thresholds):
        required.add("preset")  # the usual limits are those of the preset
    needed = {name: value for name, value in asdict(stage).items() if name in required}  # type: ignore[call-overload]
    usual = asdict(make_stage(stage.name, {name: _lists(value) for name, value in needed.items()}))  # type: ignore[call-overload]
    return {name: value for name, value in usual.items() if name not in needed}


def _lists(value: Any) -> Any:
    """Plain values that YAML can hold: tuples become lists."""
    if isinstance(value, Mapping):
        return {str(key): _lists(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_lists(entry) for entry in value]
    return value
