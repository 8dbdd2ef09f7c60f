"""From weights to losses: two regressions, and how well they tell candidates apart that they have not seen.

    log-linear       bits per byte of a domain = c + exp(linear in the weights) (the law of arXiv 2403.16952,
                     equation 6), with a ridge penalty; c and the penalty are those that predict left-out
                     candidates best
    boosted trees    gradient boosting on the weights (as RegMix does, arXiv 2407.01492)

In: weights [candidates, domains] and bits per byte [candidates, domains], means over seeds. Out: a fitted law for all
domains, and the predictions of leave-one-out: each candidate predicted by a law that was fitted without it, c and
penalty included.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.stats import spearmanr
from sklearn.ensemble import GradientBoostingRegressor

from roots_pipeline.core.errors import MixtureError

Floats = npt.NDArray[np.float64]
Kind = Literal["log-linear", "boosted trees"]
KINDS: tuple[Kind, ...] = ("log-linear", "boosted trees")
_PENALTIES = np.logspace(-6, 1, 15)
_IRREDUCIBLE = (0.0, 0.3, 0.6, 0.8, 0.9)  # shares of the smallest value: what no weights take away
FEWEST = 4


@dataclass(frozen=True, slots=True)
class Law:
    """`predict(weights [n, domains])` gives bits per byte [n, domains]."""

    kind: Kind
    predict: Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Check:
    """Leave-one-out: predictions [candidates, domains], and Spearman's rank correlation with what was measured.

    `correlation` is that of the objective, `by_domain` of each domain; NaN where all values are equal. `error` is the
    mean absolute error of the objective in bits per byte.
    """

    kind: Kind
    predictions: Floats
    correlation: float
    by_domain: list[float]
    error: float


def fit_law(kind: Kind, weights: Floats, bits: Floats) -> Law:
    """Fit one regression for each domain. Raises MixtureError for fewer than four candidates."""
    if len(weights) < FEWEST:
        raise MixtureError(f"{len(weights)} candidates are too few to fit.", hint=f"Sweep {FEWEST} or more.")
    if kind == "log-linear":
        curves = [_fit_curve(weights, bits[:, place]) for place in range(bits.shape[1])]
        return Law(kind, lambda rows: np.stack([curve(rows) for curve in curves], axis=1))
    trees = [
        GradientBoostingRegressor(
            n_estimators=60, learning_rate=0.1, max_depth=2, min_samples_leaf=2, subsample=1.0, random_state=0
        ).fit(weights, bits[:, place])
        for place in range(bits.shape[1])
    ]
    return Law(kind, lambda rows: np.stack([np.asarray(one.predict(rows), np.float64) for one in trees], axis=1))


def _fit_curve(weights: Floats, bits: Floats) -> Callable[[Floats], Floats]:
    """c + exp(a + t w) for one domain; every choice of c and penalty is judged by its own leave-one-out."""
    mean = weights.mean(axis=0)
    centred = weights - mean
    best, chosen = np.inf, (0.0, 0.0, np.zeros(weights.shape[1]))
    for share in _IRREDUCIBLE:
        floor = share * float(bits.min())
        values = np.log(bits - floor)
        middle = float(values.mean())
        for penalty in _PENALTIES:
            solved = np.linalg.solve(centred.T @ centred + penalty * np.eye(centred.shape[1]), centred.T)
            slopes = solved @ (values - middle)
            own = (centred * solved.T).sum(axis=1) + 1 / len(values)  # what each value adds to its own prediction
            left_out = values - (values - middle - centred @ slopes) / (1 - own)
            error = float(np.mean((floor + np.exp(left_out) - bits) ** 2))
            if error < best:
                best, chosen = error, (floor, middle, slopes)
    floor, middle, slopes = chosen
    return lambda rows: np.asarray(floor + np.exp(middle + (rows - mean) @ slopes))


def leave_one_out(kind: Kind, weights: Floats, bits: Floats, objective: Floats) -> Check:
    """Predict each candidate from all others. `objective` [domains] says how much each domain counts."""
    predictions = np.empty_like(bits)
    for place in range(len(weights)):
        others = np.arange(len(weights)) != place
        predictions[place] = fit_law(kind, weights[others], bits[others]).predict(weights[place : place + 1])[0]
    by_domain = [rank_correlation(predictions[:, place], bits[:, place]) for place in range(bits.shape[1])]
    wanted, found = bits @ objective, predictions @ objective
    return Check(kind, predictions, rank_correlation(found, wanted), by_domain, float(np.abs(found - wanted).mean()))


def better(checks: list[Check]) -> Check:
    """The regression that ranks unseen candidates best; the first of equals, and one that ranks nothing comes last."""
    return max(checks, key=lambda check: -2.0 if np.isnan(check.correlation) else check.correlation)


def rank_correlation(left: Floats, right: Floats) -> float:
    """Spearman's rank correlation; NaN if one side is constant."""
    if np.ptp(left) == 0 or np.ptp(right) == 0:
        return float("nan")
    return float(spearmanr(left, right).statistic)
