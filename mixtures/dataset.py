"""What a training run reads: sample i of the blend of all groups, for every rank and after every resume.

In: a lock, a side of its split, a number of samples. Out: `dataset[i]`, S + 1 token ids (input and target
overlap by all but one). `dataset.location(i)` names the group and its sample, `dataset.spans(i)` the
documents; `dataset.counted(i)` tells which targets count, if samples are packed. Nothing here depends on
ranks, workers or time; `samplers` says which numbers a rank reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from mixtures.blend import blend, check_draws, sample_targets
from mixtures.cache import Arrays, cached
from mixtures.group import Span, open_group
from mixtures.indexed import IndexedReader
from mixtures.lock import Lock, check_group, read_lock
from mixtures.packed import PackedSamples, open_packed
from mixtures.splits import SIDES, sequences_of
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.storage import join

_AT_ONCE = 1 << 20  # samples whose labels are counted at a time


class BlendedDataset:
    """`samples` samples of a mixture, a sequence of int64 arrays [S + 1].

    `lock_path` is the mixture.lock.yaml beside the files; `side` is `train`, `validation` or `test`;
    `sequence_length` and `seed` default to those of the lock; `groups` restricts the blend to some groups,
    which keep their proportions; `cache` is the folder of the index arrays (default: `cache` beside the
    lock).

    Raises StaleDataError if the files are not those of the lock, MixtureError if a group cannot serve its
    share.
    """

    def __init__(
        self,
        lock_path: str,
        side: str,
        samples: int,
        *,
        sequence_length: int | None = None,
        seed: int | None = None,
        groups: Sequence[str] | None = None,
        cache: str | None = None,
    ) -> None:
        self._opened_with = (lock_path, side, samples, sequence_length, seed, groups, cache)
        if samples < 1:
            raise MixtureError(f"a dataset of {samples} samples was asked for.", hint="Ask for one or more.")
        self.lock = read_lock(lock_path)
        folder = os.path.dirname(lock_path) or "."
        self.side, self.samples = side, samples
        self.sequence_length = sequence_length or self.lock.sequence_length
        self.seed = self.lock.seed if seed is None else seed
        weights = _weights(self.lock, side, groups, folder)
        self.names = tuple(weights)
        for name in self.names:
            check_group(self.lock.groups[name], folder)
        cache = cache or join(folder, "cache")
        targets = sample_targets(list(weights.values()), samples, self.lock.variant)
        opened = open_packed if self.packed else open_group
        self.groups = [
            opened(self.lock, name, folder, side, wanted, self.sequence_length, self.seed, cache)
            for name, wanted in zip(self.names, targets, strict=True)
        ]

        def build() -> tuple[Arrays, Any]:
            drawn = blend(list(weights.values()), samples)
            check_draws(self.names, drawn.drawn.tolist(), [len(group) for group in self.groups])
            return {"group": drawn.groups, "number": drawn.numbers}, {"drawn": drawn.drawn.tolist()}

        arrays, facts = cached(cache, "blend", {"weights": list(weights.values()), "samples": samples}, build)
        check_draws(self.names, facts["drawn"], [len(group) for group in self.groups])
        self._group, self._number = arrays["group"], arrays["number"]
        self.drawn = dict(zip(self.names, facts["drawn"], strict=True))

    def __len__(self) -> int:
        return self.samples

    def __getitem__(self, index: int) -> npt.NDArray[np.int64]:
        group, number = self._place(index)
        return self.groups[group].sample(number)

    @property
    def packed(self) -> bool:
        """Whether samples are packed, so that some hold padding and not every label counts."""
        return self.lock.packing != "stream"

    def counted(self, index: int) -> npt.NDArray[np.bool_]:
        """Which of the S labels of sample `index`, its tokens from the second on, count in a loss."""
        group, number = self._place(index)
        samples = self.groups[group]
        return samples.counted(number) if isinstance(samples, PackedSamples) else np.ones(self.sequence_length, bool)

    def labels(self, numbers: Sequence[int] | npt.NDArray[np.int64]) -> int:
        """How many labels of these samples count; found in the index, without reading the samples."""
        found = 0
        for first in range(0, len(numbers), _AT_ONCE):
            part = np.asarray(numbers[first : first + _AT_ONCE], np.int64)
            if len(part) and not 0 <= part.min() <= part.max() < self.samples:
                raise IndexError(f"samples {part.min()} to {part.max()} of {self.samples}")
            groups, own = self._group[part], self._number[part]
            for place in np.unique(groups).tolist():
                here, samples = own[groups == place], self.groups[place]
                if isinstance(samples, PackedSamples):
                    found += int(samples.labels(here).sum())
                else:
                    found += len(here) * self.sequence_length
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        # A worker process maps the cached arrays again instead of receiving gigabytes.
        return _reopen, self._opened_with

    def location(self, index: int) -> tuple[str, int]:
        """Group of sample `index`, and which of that group's samples it is."""
        group, number = self._place(index)
        return self.names[group], number

    def spans(self, index: int) -> list[Span]:
        """From which sequences of the group's file sample `index` is read."""
        group, number = self._place(index)
        return self.groups[group].spans(number)

    def boundaries(self, index: int) -> npt.NDArray[np.int64]:
        """Where documents begin inside sample `index`; see `GroupSamples.boundaries`."""
        group, number = self._place(index)
        return self.groups[group].boundaries(number)

    def containing(self, group: str, sequences: Sequence[int]) -> npt.NDArray[np.int64]:
        """Numbers, rising, of the samples that hold a token of one of these sequences of a group's file."""
        if group not in self.names:
            return np.empty(0, np.int64)
        place = self.names.index(group)
        numbers = self.groups[place].containing(sequences)
        # A group's samples are drawn in the order of their numbers.
        drawn: npt.NDArray[np.int64] = np.flatnonzero(self._group == place)
        return drawn[numbers[numbers < len(drawn)]]

    def _place(self, index: int) -> tuple[int, int]:
        if not 0 <= index < self.samples:
            raise IndexError(f"sample {index} of {self.samples}")
        return int(self._group[index]), int(self._number[index])


def _reopen(
    lock_path: str,
    side: str,
    samples: int,
    sequence_length: int | None,
    seed: int | None,
    groups: Sequence[str] | None,
    cache: str | None,
) -> BlendedDataset:
    return BlendedDataset(
        lock_path, side, samples, sequence_length=sequence_length, seed=seed, groups=groups, cache=cache
    )


def _weights(lock: Lock, side: str, groups: Sequence[str] | None, folder: str) -> dict[str, float]:
    """Groups that are drawn, with their weights.

    Left out are groups of weight 0 and, but for training, those that hold out no token. If held-out data is asked for
    by name and none of the groups has a weight, they count by their tokens: what is not trained on can be looked at.
    """
    if side not in SIDES:
        raise MixtureError(f"there is no side '{side}' of a split.", hint=f"Use {', '.join(SIDES)}.")
    for name in groups or ():
        if name not in lock.groups:
            raise MixtureError(f"there is no group '{name}' in the mixture.", hint=nearest(name, list(lock.groups)))
    there = {name: facts for name, facts in lock.groups.items() if groups is None or name in groups}
    if side != "train":
        tokens = {name: _held_out_tokens(lock, name, side, folder) for name in there}
        there = {name: facts for name, facts in there.items() if tokens[name] > 0}
    chosen = {name: facts.weight for name, facts in there.items() if facts.weight > 0}
    if not chosen and groups is not None and side != "train":
        chosen = {name: float(tokens[name]) for name in there}
    if not chosen:
        raise MixtureError(
            f"no group has both a weight and tokens for {side}.",
            hint="Hold out a larger share, or choose other groups.",
        )
    return chosen


def _held_out_tokens(lock: Lock, name: str, side: str, folder: str) -> int:
    if side == "validation":
        return lock.groups[name].validation_tokens
    prefix = join(folder, lock.groups[name].file)
    lengths = IndexedReader(prefix).lengths
    return int(np.sum(lengths[sequences_of(lock.split, side, prefix, len(lengths), lock.variant)], dtype=np.int64))


def validation_sets(
    lock_path: str,
    samples: int,
    *,
    sequence_length: int | None = None,
    seed: int | None = None,
    cache: str | None = None,
) -> dict[str, BlendedDataset]:
    """The validation sets of BLOOM: `blend` of all groups, and one for each group by its name.

    Groups that hold out no token have no set of their own.
    """
    lock = read_lock(lock_path)
    names = list(_weights(lock, "validation", None, os.path.dirname(lock_path) or "."))

    def one(groups: Sequence[str] | None) -> BlendedDataset:
        return BlendedDataset(
            lock_path,
            "validation",
            samples,
            sequence_length=sequence_length,
            seed=seed,
            groups=groups,
            cache=cache,
        )

    return {"blend": one(None), **{name: one([name]) for name in names}}
