"""Options for Beam: everything goes to Beam and the runner unchanged, but what nobody knows is an error.

Beam itself only logs a warning about an option that neither it nor the runner knows, and runs without it. One option
among them is ours, `--stall_minutes`: how long a job may go on without finishing a task.
"""

from __future__ import annotations

import argparse
import io
import logging
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from importlib import import_module

from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions, StandardOptions

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import nearest

_DEFAULT = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"  # a bare DirectRunner tries to download one
DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"
# Their options are known to a job server only, which is asked when the job is submitted.
_WITH_JOB_SERVER = ("portablerunner", "flinkrunner", "sparkrunner")
_DIRECT = ("fnapirunner", "directrunner", "bundlebaseddirectrunner")
_LOGGER = logging.getLogger("apache_beam.options.pipeline_options")
STALL_MINUTES = 30.0
_HINT = "See docs/engines.md for the options of each runner."


def options_from(arguments: Sequence[str]) -> tuple[PipelineOptions, float]:
    """Beam's options, and the seconds after which a job without progress is given up.

    Raises RecipeError for what cannot be understood.
    """
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            ours, rest = _own_options().parse_known_args(list(arguments))
            options = PipelineOptions(rest)
            standard = options.view_as(StandardOptions)
            standard.runner = _runner(standard.runner if _names_runner(rest) else _DEFAULT)
            if standard.runner.lower() not in _WITH_JOB_SERVER:
                with refuse_unknown():
                    options.get_all_options()
            if standard.runner == DASK:
                _cut_finely(options)
    except SystemExit as error:
        sentence = told.getvalue().strip().rpartition("error: ")[2].splitlines()[-1:] or ["unknown"]
        raise RecipeError(f"Beam does not understand its options: {sentence[0]}.", hint=_HINT) from error
    return options, 60 * ours.stall_minutes


def _own_options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(allow_abbrev=False, add_help=False)
    parser.add_argument("--stall_minutes", "--stall-minutes", type=_minutes, default=STALL_MINUTES)
    return parser


def _minutes(given: str) -> float:
    value = float(given)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{given} is not a time in minutes")
    return value


def tasks_run_here(options: PipelineOptions) -> bool:
    """Whether the runner does all work in this process, so that no worker can be lost without this one."""
    name = options.view_as(StandardOptions).runner.rpartition(".")[2].lower()
    mode = options.view_as(DirectOptions).direct_running_mode
    return name in _DIRECT and mode == "in_memory"


def _names_runner(arguments: Sequence[str]) -> bool:
    return any(argument == "--runner" or argument.startswith("--runner=") for argument in arguments)


def _runner(name: str) -> str:
    """The runner's name, once the module that holds its options is loaded."""
    path = {"fnapirunner": _DEFAULT, "daskrunner": DASK}.get(name.lower(), name)
    module, _, runner = path.rpartition(".")
    known = {short.lower() for short in StandardOptions.KNOWN_RUNNER_NAMES}
    if not module and runner.lower() not in known:
        raise RecipeError(f"Beam knows no runner {runner!r}. {nearest(runner, StandardOptions.KNOWN_RUNNER_NAMES)}",
                          where="--runner", hint=_HINT)
    try:
        if module and not hasattr(import_module(module), runner):
            raise RecipeError(f"there is no runner {runner!r} in {module}.", where="--runner", hint=_HINT)
        if path == DASK:
            import_module("dask.distributed")
    except ImportError as error:
        raise RecipeError(f"this runner cannot be loaded ({error}).", where=f"--runner {name}",
                          hint="Install what it needs; for Dask: pip install 'rootbloom[dask]'.") from error
    return path


def _cut_finely(options: PipelineOptions) -> None:
    """Partitions of one element, unless the user chose: Beam's default for Dask is 128, too many for one worker."""
    view = options.view_as(import_module(DASK.rpartition(".")[0]).DaskOptions)
    if view.npartitions is None and view.partition_size is None:
        view.partition_size = 1


class _Refusal(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if message.startswith(("Discarding unparseable args", "Discarding flag")):
            raise RecipeError(f"Beam and the runner do not know these options: {message.partition(': ')[2] or message}",
                              hint=_HINT)


@contextmanager
def refuse_unknown() -> Iterator[None]:
    """Inside, an option that Beam would leave out with a warning raises RecipeError."""
    handler = _Refusal()
    _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
