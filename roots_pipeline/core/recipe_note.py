"""Which recipe made which step of a run, noted in RUN/recipes, so that nobody goes on with another one by mistake.

A command that is given no recipe takes `sample`; in a run that was made with another one it asks for a name instead, or
a run of days would be replaced by the sample.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.storage import exists, join, read_json, write_json

STEPS = ("corpus", "tokenizer", "mixture", "model")
_DEFAULT = "sample"


def note_recipe(run: str, step: str, recipe: str) -> None:
    """Note that a step is made with a recipe (a name or a path, as it was given)."""
    write_json(join(run, "recipes", f"{step}.json"), {"recipe": recipe})


@contextmanager
def noting(run: str, step: str, recipe: str) -> Iterator[None]:
    """Note the recipe of a step when it is finished, or at once if nothing is noted: a run in use keeps its note."""
    if noted_recipe(run, step) is None:
        note_recipe(run, step, recipe)
    yield
    note_recipe(run, step, recipe)


def noted_recipe(run: str, step: str) -> str | None:
    """The recipe that a step was last made with."""
    path = join(run, "recipes", f"{step}.json")
    value = read_json(path) if exists(path) else None
    found = value.get("recipe") if isinstance(value, dict) else None
    return found if isinstance(found, str) else None


def recipe_for(run: str, step: str, named: str | None) -> str:
    """The recipe of a command: the one that was named, or `sample`.

    Raises RecipeError if none was named and the step, or the newest one before it, was made with another than `sample`.
    """
    if named is not None:
        return named
    known = ((name, noted_recipe(run, name)) for name in reversed(STEPS[: STEPS.index(step) + 1]))
    made, noted = next(((name, noted) for name, noted in known if noted), ("", _DEFAULT))
    if noted != _DEFAULT:
        word = shlex.quote(noted)
        raise RecipeError(f"the {made} of this run was made with the recipe '{noted}', and no recipe was named.",
                          where=run, hint=f"Add --recipe {word} (with make: RECIPE={word}), or --recipe {_DEFAULT}.")
    return _DEFAULT
