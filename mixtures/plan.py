"""How much of each group a training run of N tokens would read, and how often.

In: a lock and a number of tokens. Out: a row for each group, and warnings for groups that would be repeated
more often than the recipe wants.
"""

from __future__ import annotations

from dataclasses import dataclass

from mixtures.lock import Lock
from roots_pipeline.core.errors import MixtureError


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its training tokens, its weight, the tokens read from it and how many epochs that is.

    `repeated` are the tokens among those read that were read before.
    """

    name: str
    tokens: int
    weight: float
    read: float
    epochs: float

    @property
    def repeated(self) -> float:
        return max(0.0, self.read - self.tokens)


def printable(name: str) -> str:
    """A name that a terminal shows as it is: control characters become escapes such as \\x1b."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in name
    )


def plan_rows(lock: Lock, tokens: int) -> list[Row]:
    """Rows in order of weight. Raises MixtureError for a budget below one sample."""
    if tokens < lock.sequence_length:
        raise MixtureError(
            f"{tokens} tokens are less than one sample of {lock.sequence_length}.",
            hint="Plan for more tokens.",
        )
    rows = [
        Row(
            name,
            group.train_tokens,
            group.weight,
            tokens * group.weight,
            tokens * group.weight / group.train_tokens if group.train_tokens else 0.0,
        )
        for name, group in lock.groups.items()
    ]
    return sorted(rows, key=lambda row: (-row.weight, row.name))


def warnings(rows: list[Row], max_epochs: float) -> list[str]:
    """One sentence for each group above `max_epochs`, and for each group that is left out."""
    repeated = [
        f"{printable(row.name)} would be read {row.epochs:.1f} times, more than {max_epochs:g}." for row in rows
        if row.epochs > max_epochs
    ]  # fmt: skip
    left_out = [printable(row.name) for row in rows if row.weight == 0]
    return repeated + ([f"Left out (weight 0): {', '.join(left_out)}."] if left_out else [])
