"""The Beam engine: a whole run is one Beam job, on any runner.

    Create | GroupByKey | plan | GroupByKey | run tasks | GroupByKey | plan | GroupByKey | run tasks | …

`plan` replays the plan (`core.replay`) on some worker and emits the tasks of the first step that has work left; the
next GroupByKey deals them out; what was done comes back to one place, where the plan is replayed again. Text never
moves through Beam, only tasks: what they read and write lies on storage that all workers and this process share.
At the end this process replays the plan itself, so its result does not depend on what a runner delivers. Meanwhile it
watches the records: a job that finishes nothing for too long is cancelled (`watch`).

Only what every runner carries out is used: Create, FlatMap, GroupByKey; integer keys, bytes as values; one leaf. An
element may be lost, run twice, or run in two places at once: tasks commit atomically and write the same bytes.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions
from apache_beam.runners.runner import PipelineState

from roots_pipeline.core.errors import EngineError, RootbloomError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import OneStep, Plan, Replay, T, Unfinished
from roots_pipeline.core.stopping import Stopped
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.attempts import Job, attempt, code_mark, kept_error, pack, unpack
from roots_pipeline.engines.beam_options import DASK, options_from, refuse_unknown, tasks_run_here
from roots_pipeline.engines.watch import Stalled, run_watched

# The first byte of a value says what it is.
_PLAN, _TASK, _DONE, _FAILED, _NOTHING = b"P", b"T", b"D", b"F", b"N"
_Element = tuple[int, bytes]
# On Dask the first collection decides into how many partitions all later ones are cut: it must not be a single element.
_DASK_PARTITIONS = 8


class BeamEngine:
    """Follows plans as Beam jobs. `arguments`: options of Beam and of the runner, FnApiRunner where none is named.

    Raises RecipeError for options that nobody knows, EngineError if a job fails or loses work, and the errors of tasks.
    """

    def __init__(self, arguments: Sequence[str] = (), progress: Progress | None = None) -> None:
        self._options, self._stall_seconds = options_from(arguments)
        self._progress = progress or Progress(quiet=True)
        runner: str = self._options.view_as(StandardOptions).runner
        self.runner = runner.rpartition(".")[2]
        self._starts = _DASK_PARTITIONS if runner == DASK else 1

    def __str__(self) -> str:
        return f"Beam ({self.runner})"

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """Results of all tasks of one step, in their order."""
        return self.follow(OneStep(tuple(tasks), title), 1)

    def follow(self, plan: Plan[T], rounds: int) -> T:
        """Follow a whole plan in one job of so many rounds, and in further ones should they not suffice."""
        answer, left = _replayed(plan)
        while left is not None:
            job = Job(uuid.uuid4().hex, code_mark())
            self._progress.event("beam job", runner=self.runner, rounds=rounds, first_step=left.title)
            failure = self._submit(plan, rounds, job)
            before, (answer, left) = left, _replayed(plan)
            if left is not None:
                self._check(before, left, job, failure)
        assert answer is not None
        return answer()

    def _submit(self, plan: Plan[Any], rounds: int, job: Job) -> Exception | None:
        """Run one job to its end; returns what went wrong, if the runner says so."""
        running = _Running(self._options)
        _build(running.pipeline, pack(plan), rounds, job, self._starts)
        try:
            if tasks_run_here(self._options):
                state = running()
            else:
                known: dict[tuple[str, str], dict[str, Any]] = {}
                state = run_watched(running, lambda: _achieved(plan, known), running.cancel, self._stall_seconds)
        except RootbloomError:
            raise
        except Exception as error:  # runners fail in ways of their own
            if (stopped := _stopped(error)) is not None:
                raise stopped from None
            return error
        return None if state == PipelineState.DONE else RuntimeError(f"it ended in the state {state}")

    def _check(self, before: Unfinished, left: Unfinished, job: Job, failure: Exception | None) -> None:
        """Raise what explains that there is work left after a job; nothing, if it only needs more rounds."""
        todo = [left.tasks[place] for place in left.todo]
        if (error := kept_error(todo, job)) is not None:
            raise error
        if isinstance(failure, Stalled):
            raise EngineError(
                f"no task was finished for {failure.seconds / 60:g} minutes, so the job was cancelled"
                f"{'' if failure.cancelled else ', which the runner did not answer'}; under way was step "
                f"'{left.title}' with {len(todo)} of {len(left.tasks)} tasks to do, the first {todo[0].name}.",
                where=self.runner,
                hint="A worker may have died. Finished tasks are kept; once all workers run, the same command takes up "
                     "where this ended. Should a single task take so long, raise --stall_minutes (after --).",
            ) from failure
        if failure is not None:
            raise EngineError(
                f"the Beam job failed in step '{left.title}' ({_last_line(failure)}).", where=self.runner,
                hint="Its log is above, or with the runner; the same command takes up where this ended.",
            ) from failure
        if (left.title, left.todo) == (before.title, before.todo):
            raise EngineError(
                f"the runner reports success, but {len(todo)} of {len(left.tasks)} tasks of step '{left.title}' left "
                f"no result, the first {todo[0].record}.", where=self.runner,
                hint="All workers must see the folder of the run under the same path as this machine.",
            )


class _Running:
    """One job: called, it runs to its end and returns its state."""

    def __init__(self, options: PipelineOptions) -> None:
        with refuse_unknown():
            self.pipeline = beam.Pipeline(options=options)
        self._result: Any = None

    def __call__(self) -> str:
        with refuse_unknown():
            self._result = self.pipeline.run()
        try:
            return str(self._result.wait_until_finish())
        except (KeyboardInterrupt, Stopped):
            self.cancel()
            raise
        finally:
            if (client := getattr(self._result, "client", None)) is not None:  # Dask's would stay connected
                client.close()

    def cancel(self) -> None:
        """Ask the runner to end it; nothing where it has not said yet that the job runs."""
        if self._result is not None:
            self._result.cancel()


def _last_line(failure: Exception) -> str:
    """What an error says at last; gRPC's keep the sentence inside a description of many lines."""
    details = getattr(failure, "details", None)
    said = details() if callable(details) else str(failure)
    lines = str(said or "").strip().splitlines() or [type(failure).__name__]
    return lines[-1].strip()[:300]


def _achieved(plan: Plan[Any], known: dict[tuple[str, str], dict[str, Any]]) -> object:
    """Something that changes whenever a task is finished."""
    try:
        plan(Replay(known))
    except Unfinished as left:
        return left.title, len(left.todo)
    except RootbloomError as error:
        return str(error)
    return None


def _replayed(plan: Plan[T]) -> tuple[Callable[[], T] | None, Unfinished | None]:
    """The answer of a plan, wrapped since it may be None, or the step that is not finished."""
    try:
        answer = plan(Replay())
    except Unfinished as left:
        return None, left
    return (lambda: answer), None


def _stopped(error: BaseException | None) -> Stopped | None:
    """The signal behind an error: a runner in this process takes it for a fault of the task under way."""
    while error is not None and not isinstance(error, Stopped):
        error = error.__cause__ or error.__context__
    return error


def _build(pipeline: beam.Pipeline, plan: bytes, rounds: int, job: Job, starts: int) -> None:
    first = [(number, _PLAN + plan if number == 0 else _NOTHING) for number in range(starts)]
    elements = pipeline | "start" >> beam.Create(first).with_output_types(_Element)
    for number in range(rounds):
        elements = (
            elements
            | f"gather {number}" >> beam.GroupByKey()
            | f"plan {number}" >> beam.FlatMap(next_tasks).with_output_types(_Element)
            | f"deal {number}" >> beam.GroupByKey()
            | f"run {number}" >> beam.FlatMap(partial(run_tasks, job=job)).with_output_types(_Element)
        )


def next_tasks(element: tuple[int, Iterable[bytes]]) -> list[_Element]:
    """What is to be done next: the plan itself with key 0, its tasks with the keys from 1 on. Nothing once it is
    finished, and nothing after an error, which the driver tells."""
    values = list(element[1])
    plans = [value for value in values if value.startswith(_PLAN)]
    if not plans or _FAILED in values:
        return []
    try:
        unpack(plans[0][1:])(Replay())
    except Unfinished as left:
        tasks = [(number + 1, _TASK + pack(left.tasks[place])) for number, place in enumerate(left.todo)]
        return [(0, plans[0]), *tasks]
    except RootbloomError:
        return []  # the driver replays the plan as well, and meets the same error
    return []


def run_tasks(element: tuple[int, Iterable[bytes]], job: Job) -> list[_Element]:
    """Do the tasks of one key and tell how it went; a plan is passed on."""
    values = dict.fromkeys(element[1])
    return [(0, _told(value, job) if value.startswith(_TASK) else value) for value in values]


def _told(value: bytes, job: Job) -> bytes:
    return _DONE if attempt(unpack(value[1:]), job) is None else _FAILED
