"""Which recipe made which step of a run, noted in RUN/recipes, so that nobody goes on with another one by mistake.

A command that is given no recipe takes `sample`; in a run that was made with another one it asks for a name instead, or
a run of days would be replaced by the sample.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from roots_pipeline.core.errors import RecipeError, StorageError
from roots_pipeline.core.storage import exists, join, read_json, write_json

STEPS = ("corpus", "tokenizer", "mixture", "model")
_DEFAULT = "sample"


def note_recipe(run: str, step: str, recipe: str) -> None:
    """Note that a step is made with a recipe (a name or a path, as it was given)."""
    write_json(_path(run, step), {"recipe": recipe})


def _path(run: str, step: str) -> str:
    return join(run, "recipes", f"{step}.json")


@contextmanager
def noting(run: str, step: str, recipe: str) -> Iterator[None]:
    """Note the recipe of a step when it is finished, or at once if nothing is noted: a run in use keeps its note."""
    if noted_recipe(run, step) is None:
        note_recipe(run, step, recipe)
    yield
    note_recipe(run, step, recipe)


def noted_recipe(run: str, step: str) -> str | None:
    """The recipe that a step was last made with; None without a note, and for one that cannot be read."""
    path = _path(run, step)
    try:
        value = read_json(path) if exists(path) else None
    except StorageError:  # damaged: the next run with a recipe of its own writes it anew
        return None
    found = value.get("recipe") if isinstance(value, dict) else None
    return found if isinstance(found, str) and found else None


def recipe_for(run: str, step: str, named: str | None) -> str:
    """The recipe of a command: the one that was named, or `sample`.

    Raises RecipeError if none was named and the step, or the newest one before it, was made with another than `sample`,
    or with one that its damaged note does not tell.
    """
    if named is not None:
        return named
    made = next((name for name in reversed(STEPS[: STEPS.index(step) + 1]) if exists(_path(run, name))), None)
    if made is None:
        return _DEFAULT
    noted = noted_recipe(run, made)
    if noted is None:
        raise RecipeError(f"which recipe made the {made} of this run is no longer known: the note is damaged.",
                          where=_path(run, made), hint="Name the recipe with --recipe (with make: RECIPE=).")
    if noted != _DEFAULT:
        word = shlex.quote(noted)
        raise RecipeError(f"the {made} of this run was made with the recipe '{noted}', and no recipe was named.",
                          where=run, hint=f"Add --recipe {word} (with make: RECIPE={word}), or --recipe {_DEFAULT}.")
    return _DEFAULT
