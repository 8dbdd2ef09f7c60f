"""The one error tree of the project.

    RootbloomError
    ├── RecipeError        a recipe (YAML) or a command line asks for something impossible or unknown
    ├── SourceError        an input is missing or cannot be read at all
    ├── StorageError       writing or reading our own files failed (full disk, read-only folder, broken file)
    ├── StaleDataError     files on disk do not belong together (another corpus, another tokenizer, an older run)
    ├── EngineError        a task or a worker process died
    ├── EmptyOutputError   a step would write nothing, and nobody asked for that
    ├── TokenizerError     a vocabulary that cannot exist, a tokenizer file that cannot be used
    ├── MixtureError       weights, splits or samples that cannot be drawn
    └── TrainingError      a model, layout or checkpoint that cannot work

A message says what happened, where, the value that caused it, and what to do next. The command line prints it as
one sentence and exits with code 2; anything else that escapes is a bug of ours and keeps its traceback.
"""

from __future__ import annotations


class RootbloomError(Exception):
    """Base of every error a user can cause.

    `where` names the file and place, `hint` the next step; both are optional and become part of the message.
    """

    def __init__(self, message: str, *, where: str | None = None, hint: str | None = None) -> None:
        self.message, self.where, self.hint = message, where, hint
        place = f"{where}: " if where else ""
        advice = f" {hint}" if hint else ""
        super().__init__(f"{place}{message}{advice}")

    def __reduce__(self) -> tuple[object, ...]:  # keyword arguments survive the trip from a worker process
        return _rebuild, (type(self), self.message, self.where, self.hint)


def _rebuild(kind: type[RootbloomError], message: str, where: str | None, hint: str | None) -> RootbloomError:
    return kind(message, where=where, hint=hint)


class RecipeError(RootbloomError):
    """A recipe or a command line asks for something impossible or unknown."""


class SourceError(RootbloomError):
    """An input is missing or cannot be read at all."""


class StorageError(RootbloomError):
    """Writing or reading one of our own files failed."""


class StaleDataError(RootbloomError):
    """Files on disk do not belong together."""


class EngineError(RootbloomError):
    """A task or a worker process died."""


class EmptyOutputError(RootbloomError):
    """A step would write nothing, and nobody asked for that."""


class TokenizerError(RootbloomError):
    """A vocabulary that cannot exist, or a tokenizer file that cannot be used."""


class MixtureError(RootbloomError):
    """Weights, splits or samples that cannot be drawn."""


class TrainingError(RootbloomError):
    """A model, a parallel layout or a checkpoint that cannot work."""
