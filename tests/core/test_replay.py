"""Plans: what a replay returns, where it stops, and which engines are given a plan as a whole."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from roots_pipeline.core.replay import OneStep, Plan, Replay, T, Unfinished, follow
from roots_pipeline.core.tasks import run_task
from tests.engines.test_local import tasks


class Whole:
    """An engine that takes plans as a whole; all it does is to note what it got."""

    def __init__(self) -> None:
        self.rounds: list[int] = []

    def run(self, tasks: Any, title: str) -> list[dict[str, Any]]:
        raise AssertionError("the plan was not given as a whole")

    def follow(self, plan: Plan[T], rounds: int) -> T:
        self.rounds.append(rounds)
        return plan(Replay())


def test_a_replay_stops_at_the_first_step_with_work_left(tmp_path: Path) -> None:
    plan = pickle.loads(pickle.dumps(OneStep(tuple(tasks(tmp_path, 3)), "squares")))
    run_task(plan.tasks[1])
    with pytest.raises(Unfinished, match="squares: 2 of 3 tasks are not done") as caught:
        plan(Replay())
    assert list(caught.value.todo) == [0, 2] and len(caught.value.tasks) == 3
    for place in caught.value.todo:
        run_task(plan.tasks[place])
    assert [result["square"] for result in plan(Replay())] == [0, 1, 4]


def test_what_is_known_is_not_looked_for_again(tmp_path: Path) -> None:
    plan = OneStep(tuple(tasks(tmp_path, 3)), "squares")
    known: dict[tuple[str, str], dict[str, Any]] = {}
    run_task(plan.tasks[1])
    for gone in (False, True):
        with pytest.raises(Unfinished) as caught:
            plan(Replay(known))
        assert list(caught.value.todo) == [0, 2]
        if not gone:
            Path(plan.tasks[1].record).unlink()
    with pytest.raises(Unfinished, match="3 of 3"):
        plan(Replay())


def test_engines_get_plans_as_they_can_take_them(tmp_path: Path) -> None:
    plan = OneStep(tuple(tasks(tmp_path, 2)), "squares")
    for task in plan.tasks:
        run_task(task)
    engine = Whole()
    assert follow(plan, engine, 7) == follow(plan, Replay(), 7)
    assert engine.rounds == [7]
