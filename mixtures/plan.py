"""How much of each group a training run of N tokens would read, and how often.

In: a lock and a number of tokens, as a trainer counts them: samples x sequence length. Out: a row for each group, and
warnings for groups that would be repeated more often than the recipe wants. A packed sample reads as many tokens as it
holds on average, padding left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from mixtures.lock import Lock
from mixtures.packed import Fill
from roots_pipeline.core.errors import MixtureError


@dataclass(frozen=True, slots=True)
class Row:
    """One group: its training tokens, its weight, the tokens read from it and how many epochs that is.

    `fill` is the share of its samples that is no padding; `repeated` are the tokens among those read that were read
    before.
    """

    name: str
    tokens: int
    weight: float
    read: float
    epochs: float
    fill: float = 1.0

    @property
    def repeated(self) -> float:
        return max(0.0, self.read - self.tokens)


def printable(name: str) -> str:
    """A name that a terminal shows as it is: control characters become escapes such as \\x1b."""
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in name
    )


def plan_rows(lock: Lock, tokens: int, fills: Mapping[str, Fill] | None = None) -> list[Row]:
    """Rows in order of weight; `fills` are those of packed samples. Raises MixtureError for less than one sample."""
    if tokens < lock.sequence_length:
        raise MixtureError(
            f"{tokens} tokens are less than one sample of {lock.sequence_length}.",
            hint="Plan for more tokens.",
        )
    rows = []
    for name, group in lock.groups.items():
        read, fill = tokens * group.weight, (fills or {}).get(name)
        if fill is not None:
            read *= fill.tokens / fill.samples / lock.sequence_length
        epochs = read / group.train_tokens if group.train_tokens else 0.0
        rows.append(Row(name, group.train_tokens, group.weight, read, epochs, fill.share if fill else 1.0))
    return sorted(rows, key=lambda row: (-row.weight, row.name))


def warnings(rows: list[Row], max_epochs: float) -> list[str]:
    """One sentence for each group above `max_epochs`, and for each group that is left out."""
    repeated = [
        f"{printable(row.name)} would be read {row.epochs:.1f} times, more than {max_epochs:g}." for row in rows
        if row.epochs > max_epochs
    ]  # fmt: skip
    left_out = [printable(row.name) for row in rows if row.weight == 0]
    return repeated + ([f"Left out (weight 0): {', '.join(left_out)}."] if left_out else [])
