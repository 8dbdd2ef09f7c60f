"""Options for Beam: everything goes to Beam and the runner unchanged, but what nobody knows is an error.

Beam itself only logs a warning about an option that neither it nor the runner knows, and runs without it.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from importlib import import_module

from apache_beam.options.pipeline_options import PipelineOptions, StandardOptions

from roots_pipeline.core.errors import RecipeError
from roots_pipeline.core.recipe import nearest

_DEFAULT = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"  # a bare DirectRunner tries to download one
DASK = "apache_beam.runners.dask.dask_runner.DaskRunner"
# Their options are known to a job server only, which is asked when the job is submitted.
_WITH_JOB_SERVER = ("portablerunner", "flinkrunner", "sparkrunner")
_LOGGER = logging.getLogger("apache_beam.options.pipeline_options")
_HINT = "See docs/engines.md for the options of each runner."


def options_from(arguments: Sequence[str]) -> PipelineOptions:
    """Parsed options. Raises RecipeError for what cannot be understood."""
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            options = PipelineOptions(list(arguments))
            standard = options.view_as(StandardOptions)
            standard.runner = _runner(standard.runner if _names_runner(arguments) else _DEFAULT)
            if standard.runner.lower() not in _WITH_JOB_SERVER:
                with refuse_unknown():
                    options.get_all_options()
            if standard.runner == DASK:
                _cut_finely(options)
    except SystemExit as error:
        sentence = told.getvalue().strip().rpartition("error: ")[2].splitlines()[-1:] or ["unknown"]
        raise RecipeError(f"Beam does not understand its options: {sentence[0]}.", hint=_HINT) from error
    return options


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
