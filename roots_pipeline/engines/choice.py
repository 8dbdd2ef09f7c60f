"""The options of all commands that run tasks: `--engine`, `--workers`, and what follows `--`.

    python -m roots_pipeline run --recipe sample --run runs/mine --engine beam -- --runner FlinkRunner …

Beam and datatrove are imported only when they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated

import typer

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Engine
from roots_pipeline.engines.local import LocalEngine


class EngineName(StrEnum):
    """Who runs the tasks."""

    local = "local"
    beam = "beam"
    datatrove = "datatrove"


EngineOption = Annotated[EngineName, typer.Option("--engine", help="Who runs the tasks.")]
RunnerOptions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[-- RUNNER OPTIONS]", help="With --engine beam: all that follows `--` goes to Beam."),
]


@contextmanager
def open_engine(
    name: EngineName, workers: int | None, options: Sequence[str] | None, progress: Progress
) -> Iterator[Engine]:
    """The engine that was asked for. Raises RecipeError for options that do not belong to it."""
    if options and name is not EngineName.beam:
        raise RecipeError(f"the engine '{name.value}' has no use for {' '.join(options)!r}.", where="command line",
                          hint="Options of a Beam runner need --engine beam.")
    if workers is not None and name is EngineName.beam:
        raise RecipeError("with --engine beam the runner decides how many workers there are.", where="--workers",
                          hint="Use its own option after --, such as --direct_num_workers.")
    if name is EngineName.beam:
        from roots_pipeline.engines.beam import BeamEngine

        yield BeamEngine(options or (), progress)
    elif name is EngineName.datatrove:
        from roots_pipeline.engines.datatrove import DatatroveEngine

        yield DatatroveEngine(workers, progress)
    else:
        with LocalEngine(workers, progress) as engine:
            yield engine


def what_ran(engine: Engine) -> str:
    """For the closing line of a command: how much was done, or by whom."""
    return f"{engine.tasks_run} tasks run" if isinstance(engine, LocalEngine) else f"run by {engine}"
