"""Tasks from files: questions with choices, missing endings, and texts.

A YAML file lists tasks; each names a JSON Lines file and says how a line becomes text:

    tasks:
      - {name: hellaswag, kind: choice, file: hellaswag.jsonl, context: "{ctx}", choices: endings, answer: label}
      - {name: lambada, kind: cloze, file: lambada.jsonl, context: "{text}", target: " {word}"}
      - {name: pile, kind: text, file: pile.jsonl, context: "{text}"}

`{field}` is a field of the line. `choices` is a field with a list, or a list of templates; `answer` a field with the
number of the right one, or its text. `examples` (a file of the same form) and `shots` put solved lines before each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Self

import orjson
import yaml
from pydantic import NonNegativeInt, PositiveInt, ValidationError, model_validator

from roots_pipeline.core.errors import RecipeError, SourceError
from roots_pipeline.core.evaluation_records import record_key
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.yaml_hints import parse_yaml
from train.settings import Strict

TASKS = Path(__file__).parents[1] / "tasks"
_FIELD = re.compile(r"\{(\w+)\}")


class TaskConfig(Strict):
    """One task; paths are relative to the file that lists it."""

    name: str
    kind: Literal["choice", "cloze", "text"]
    file: str
    context: str
    choices: str | list[str] | None = None
    answer: str | None = None
    target: str | None = None
    delimiter: str = " "  # between a context and a choice
    description: str = ""  # before everything
    examples: str | None = None
    shots: NonNegativeInt = 0
    between: str = "\n\n"  # between examples
    limit: PositiveInt | None = None
    evaluation: str | None = None  # the corpus' evaluation set that its lines are of; null: by name, else by lines

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind == "choice" and (self.choices is None or self.answer is None):
            raise ValueError(f"the task {self.name} needs choices and answer.")
        if self.kind == "cloze" and self.target is None:
            raise ValueError(f"the task {self.name} needs a target.")
        if self.shots and (self.examples is None or self.kind == "text"):
            raise ValueError(f"the task {self.name} needs a file of examples for its shots, and none for a text.")
        return self


class TaskFile(Strict):
    """The whole file."""

    tasks: list[TaskConfig]


@dataclass(frozen=True, slots=True)
class Item:
    """One question: its context, the continuations to compare, and which of them is right (a text has none)."""

    context: str
    continuations: tuple[str, ...]
    lengths: tuple[int, ...]  # characters of each choice without what joins it
    answer: int
    record: bytes = b""  # the line that it was made of, see roots_pipeline.core.evaluation_records


def find_tasks(name: str) -> Path:
    """A YAML file, by its path or, for one that comes with the package, by its name. Raises RecipeError."""
    path, built_in = Path(name), TASKS / f"{name}.yaml"
    if path.is_file():
        return path
    if "/" not in name and built_in.is_file():
        return built_in
    known = [one.stem for one in TASKS.glob("*.yaml")]
    raise RecipeError(f"there is no file of tasks '{name}'.", hint=nearest(name, known) or f"Built in: {known[0]}.")


def read_tasks(path: Path) -> list[TaskConfig]:
    """The tasks of a YAML file; raises RecipeError with what is wrong."""
    try:
        value = parse_yaml(path.read_text("utf-8"))
        found = TaskFile.model_validate(value).tasks
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"the tasks cannot be read ({error}).", where=str(path)) from error
    except yaml.YAMLError as error:
        raise RecipeError(f"cannot be read as YAML: {error}.", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        if not isinstance(value, dict):
            hint = "List at least one below `tasks:`."
            raise RecipeError("the file: it holds no tasks.", where=str(path), hint=hint) from error
        raise RecipeError(f"{place}: {first.get('ctx', {}).get('error', first['msg'])}", where=str(path)) from error
    if not found:
        raise RecipeError("it lists no task.", where=str(path), hint="Write at least one below `tasks:`.")
    names = [task.name for task in found]
    if len(set(names)) < len(names):
        raise RecipeError("two tasks have one name.", where=str(path), hint="Give each its own.")
    return found


def read_items(task: TaskConfig, folder: Path) -> list[Item]:
    """The questions of a task, examples in front. Raises SourceError for a line that does not fit, with its number."""
    shown = ""
    if task.shots and task.examples is not None:
        solved = [_item(task, line, where) for line, where in _lines(folder / task.examples, task.shots)]
        if len(solved) < task.shots:
            raise SourceError(f"{task.shots} examples are wanted, {len(solved)} are there.", where=task.examples)
        shown = "".join(f"{one.context}{one.continuations[one.answer]}{task.between}" for one in solved)
    before, items = task.description + shown, []
    for line, where in _lines(folder / task.file, task.limit):
        one = _item(task, line, where)
        items.append(replace(one, context=before + one.context, record=record_key(line)))
    if not items:
        raise SourceError("there is no line in it.", where=str(folder / task.file))
    return items


def _item(task: TaskConfig, line: dict[str, Any], where: str) -> Item:
    context = _filled(task.context, line, where)
    if task.kind == "text":
        return Item("", (context,), (len(context),), 0)
    if task.kind == "cloze":
        target = _filled(task.target or "", line, where)
        if not target:
            raise SourceError("the target is empty.", where=where)
        return Item(context, (target,), (len(target),), 0)
    if isinstance(task.choices, list):
        choices = [_filled(one, line, where) for one in task.choices]
    else:
        found = line.get(str(task.choices))
        if not isinstance(found, list) or not found or not all(isinstance(one, str) and one for one in found):
            raise SourceError(f"the field {task.choices} is no list of texts.", where=where)
        choices = found
    answer = line.get(str(task.answer))
    if isinstance(answer, str):
        answer = choices.index(answer) if answer in choices else int(answer) if answer.isdecimal() else None
    if not isinstance(answer, int) or isinstance(answer, bool) or not 0 <= answer < len(choices):
        raise SourceError(f"the field {task.answer} ({line.get(str(task.answer))!r}) names no choice.", where=where)
    continuations = tuple(task.delimiter + choice for choice in choices)
    return Item(context, continuations, tuple(len(choice) for choice in choices), answer)


def _filled(template: str, line: dict[str, Any], where: str) -> str:
    """A template with the fields of a line; nothing but fields is looked at."""

    def field(match: re.Match[str]) -> str:
        value = line.get(match[1])
        if not isinstance(value, (str, int, float)):
            raise SourceError(f"the field {match[1]} is {'missing' if value is None else 'no text'}.", where=where)
        return str(value)

    return _FIELD.sub(field, template)


def _lines(path: Path, limit: int | None) -> Iterator[tuple[dict[str, Any], str]]:
    try:
        with path.open("rb") as file:
            taken = 0
            for number, line in enumerate(file, 1):
                if limit is not None and taken >= limit:
                    return
                if not line.strip():
                    continue
                where = f"{path}:{number}"
                try:
                    value = orjson.loads(line)
                except orjson.JSONDecodeError as error:
                    raise SourceError(f"this line is no JSON ({error}).", where=where) from error
                if not isinstance(value, dict):
                    raise SourceError("this line is no JSON object.", where=where)
                taken += 1
                yield value, where
    except OSError as error:
        raise SourceError(f"the file cannot be read ({error.strerror}).", where=str(path)) from error
