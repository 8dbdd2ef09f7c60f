"""Plans: code that hands tasks to an engine step by step, and can be followed again from the start by anybody.

A plan is a function of an engine. Later tasks may depend on the results of earlier ones. All results are kept in the
records of the tasks, so a plan can be replayed: `Replay` answers from records, and stops at the first step that has
work left. An engine that has no way back from its workers to this process (a Beam pipeline, a chain of Slurm jobs)
can so follow a whole plan: somewhere on the cluster it is replayed, the tasks at which it stops are done, and so on.

A plan must be picklable, and must not do anything else of consequence than `engine.run`, since it runs many times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

from roots_pipeline.core.tasks import Engine, Task, finished_result

T = TypeVar("T")
Plan = Callable[[Engine], T]


class Unfinished(Exception):
    """A replay has come to a step with tasks to do. `tasks`: all of the step; `todo`: the places of the open ones."""

    def __init__(self, title: str, tasks: Sequence[Task], todo: Sequence[int]) -> None:
        super().__init__(f"{title}: {len(todo)} of {len(tasks)} tasks are not done")
        self.title, self.tasks, self.todo = title, tasks, todo


class Replay:
    """An engine that does nothing: it returns what is recorded, and raises Unfinished where something is not.

    `known` is filled with what was found, by record and fingerprint; what is in it is not looked for again. So whoever
    only waits for tasks to be finished looks at open ones alone.
    """

    def __init__(self, known: dict[tuple[str, str], dict[str, Any]] | None = None) -> None:
        self._known = known

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """The recorded results of all tasks."""
        results = [self._result(task) for task in tasks]
        if todo := [place for place, result in enumerate(results) if result is None]:
            raise Unfinished(title, tasks, todo)
        return [result for result in results if result is not None]

    def _result(self, task: Task) -> dict[str, Any] | None:
        if self._known is None:
            return finished_result(task)
        key = task.record, task.fingerprint
        if key not in self._known and (result := finished_result(task)) is not None:
            self._known[key] = result
        return self._known.get(key)


@dataclass(frozen=True, slots=True)
class OneStep:
    """The plan of a single step."""

    tasks: tuple[Task, ...]
    title: str

    def __call__(self, engine: Engine) -> list[dict[str, Any]]:
        return engine.run(self.tasks, self.title)


@runtime_checkable
class PlanEngine(Protocol):
    """An engine that takes a plan as a whole. `rounds`: how many steps with tasks it has, about."""

    def follow(self, plan: Plan[T], rounds: int) -> T: ...


def follow(plan: Plan[T], engine: Engine, rounds: int) -> T:
    """Follow a plan on any engine and return what it returns."""
    return engine.follow(plan, rounds) if isinstance(engine, PlanEngine) else plan(engine)
