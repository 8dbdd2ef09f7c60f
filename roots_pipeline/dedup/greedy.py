# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
"""Who stays, given pairs of similar documents; documents are numbered by rank, 0 is the best.

In: pairs (worse, better) without repetitions, sorted by worse, then better. Out: for each document the number of the
one it is dropped for, or -1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from roots_pipeline.text.memory import kernel

Numbers = npt.NDArray[np.int64]


def best_kept_twin(worse: Numbers, better: Numbers, documents: int) -> Numbers:
    """A document goes if it is similar to one that stays; the best of those is its cause."""
    cause = np.full(documents, -1, np.int64)
    _best_kept_twin(worse, better, cause)
    return cause


@kernel
def _best_kept_twin(worse, better, cause):
    # Pairs come by worse document, so all that could drop the better one was seen before.
    for k in range(worse.size):
        if cause[worse[k]] < 0 and cause[better[k]] < 0:
            cause[worse[k]] = better[k]


def best_of_component(worse: Numbers, better: Numbers, documents: int) -> Numbers:
    """Only the best of each connected component stays; it is the cause of all others."""
    root = np.arange(documents)
    _join(worse, better, root)
    return np.where(root == np.arange(documents), -1, root)


@kernel
def _join(worse, better, root):
    for k in range(worse.size):
        a, b = _find(root, worse[k]), _find(root, better[k])
        root[max(a, b)] = min(a, b)
    for k in range(root.size):
        root[k] = _find(root, k)


@kernel
def _find(root, k):
    while root[k] != k:
        root[k] = root[root[k]]
        k = root[k]
    return k
