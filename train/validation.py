"""Named validation sets: the blend of all groups, and single groups, each with its loss and its bits per byte.

Bits per byte can be compared between tokenizers, a loss per token cannot. It is the whole loss of the set's tokens in
bits, end-of-text tokens included, over the bytes that these tokens stand for (arXiv 2112.11446, section 4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mixtures.dataset import BlendedDataset
from mixtures.lock import read_lock
from tokenizer.encode import Encoder
from train.data import SampleSource, packed_source

BLEND = "blend"


@dataclass(frozen=True, slots=True)
class ValidationSet:
    """`samples` samples that are never trained on."""

    name: str
    source: SampleSource
    samples: int


@dataclass(frozen=True, slots=True)
class Counted:
    """What is known of a set before any model: entropy in nats of its tokens, and bytes per token."""

    entropy: float
    bytes_per_token: float

    def bits_per_byte(self, loss: float) -> float:
        """`loss` in nats per token; NaN if the tokens stand for no byte."""
        return loss / math.log(2) / self.bytes_per_token if self.bytes_per_token else math.nan


def token_bytes(tokenizer: Path) -> npt.NDArray[np.int64]:
    """How many bytes of text each token stands for, by id; special tokens stand for none."""
    encoder = Encoder.from_file(str(tokenizer))
    special = set(encoder.special_ids.values())
    return np.array([0 if number in special else len(token) for number, token in enumerate(encoder.tokens)], np.int64)


def count_tokens(validation: ValidationSet, lengths: npt.NDArray[np.int64] | None) -> Counted:
    """Read the labels that count of a set once; without `lengths` (see `token_bytes`) bits per byte are unknown.

    No model that ignores the context can have a lower loss than the entropy of the labels, so a loss below it proves
    that the model uses the context.
    """
    counts, packed = np.zeros(1, np.int64), packed_source(validation.source)
    for index in range(validation.samples):
        labels = validation.source[index][1:]
        found = np.bincount(labels if packed is None else labels[packed.counted(index)], minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
    if not counts.any():  # packed documents of one token each, alone in their samples
        return Counted(0.0, 0.0)
    share = counts[counts > 0] / counts.sum()
    size = math.nan
    if lengths is not None:
        known = min(len(counts), len(lengths))  # padding rows of the embedding are no tokens
        size = float(counts[:known] @ lengths[:known]) / float(counts.sum())
    return Counted(float(-(share * np.log(share)).sum()), size)


def open_validation(
    lock: str, length: int, samples: int, groups: Sequence[str] | str | int, group_samples: int
) -> list[ValidationSet]:
    """The blend and, if asked for, groups: `all` that hold out tokens, or so many of the heaviest of these.

    No samples, no sets.

    Raises MixtureError for a group that is not in the mixture or holds nothing out.
    """
    if not samples:
        return []
    blend = BlendedDataset(lock, "validation", samples, sequence_length=length)
    names = _chosen(lock, blend.names, groups)
    more = group_samples or samples
    single = [
        ValidationSet(
            name, BlendedDataset(lock, "validation", more, sequence_length=length, groups=[name]), more
        )
        for name in names
    ]  # fmt: skip
    return [ValidationSet(BLEND, blend, samples), *single]


def _chosen(lock: str, there: Sequence[str], groups: Sequence[str] | str | int) -> Sequence[str]:
    if isinstance(groups, int):
        weights = {name: group.weight for name, group in read_lock(lock).groups.items()}
        return sorted(there, key=lambda name: (-weights[name], name))[:groups]
    return there if groups == "all" else tuple(groups)
