"""The weights that a law likes best, among those that repeat no domain too often.

In: a fitted law, the domains, a cap of epochs and a budget of training tokens. Out: weights. Random weights around
the base are moved under the caps, the law predicts each, and the mean of the best ones is proposed: one best point
would follow the noise of the fit (RegMix, arXiv 2407.01492, section 3.3). The caps are convex, so the mean keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mixtures.experiment import Domain
from mixtures.laws import Law
from roots_pipeline.core.errors import MixtureError

Floats = npt.NDArray[np.float64]
_TRIALS, _BEST = 20_000, 100
_NOTHING = 1e-9  # weights that are smaller in all cannot say how to share out a rest


def caps_of(domains: Sequence[Domain], max_epochs: float, budget: int) -> Floats:
    """The largest weight of each domain that a run of `budget` tokens can serve with `max_epochs` epochs of it.

    Raises MixtureError if no mixture can: all domains together hold too little.
    """
    caps = np.array([max_epochs * domain.total / budget for domain in domains])
    if caps.sum() < 1:
        tokens = sum(domain.total for domain in domains)
        raise MixtureError(
            f"{budget:,} tokens cannot be drawn from {tokens:,} with at most {max_epochs:g} epochs.",
            hint="Raise max_epochs, or lower budget_tokens, in the experiment.",
        )
    return np.asarray(np.minimum(caps, 1.0))


def under_caps(weights: Floats, caps: Floats) -> Floats:
    """Weights [n, domains] moved under the caps: what is too much goes to the others in proportion."""
    result = np.array(weights, np.float64)
    for row in result:
        free = np.ones(len(row), bool)
        while True:
            over = free & (row > caps)
            if not over.any():
                break
            free &= ~over
            row[~free] = caps[~free]
            left = 1.0 - row[~free].sum()
            if not free.any():
                break
            total = row[free].sum()
            row[free] = row[free] * (left / total) if total > _NOTHING else left / free.sum()
    return result


def propose(law: Law, base: Floats, objective: Floats, caps: Floats, tried: Floats, seed: int = 0) -> Floats:
    """Weights [domains]. `tried` are the candidates that were trained; they are considered, too."""
    random = np.random.Generator(np.random.PCG64(seed))
    center = np.maximum(base, 1e-3)
    center /= center.sum()
    # From close to the base to the whole simplex, as far as the candidates reached: a law knows nothing beyond them.
    rows = np.concatenate([random.dirichlet(center * size, _TRIALS // 4) for size in (4.0, 8.0, 16.0, 64.0)])
    rows = rows[np.all((rows >= tried.min(axis=0) * 0.5) & (rows <= tried.max(axis=0)), axis=1)]
    rows = under_caps(np.concatenate([rows, tried]), caps)
    predicted = law.predict(rows) @ objective
    best = np.argsort(predicted, kind="stable")[: max(1, min(_BEST, len(rows) // 50))]
    return np.asarray(rows[best].mean(axis=0))
