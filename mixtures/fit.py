"""Fit the results of a sweep, propose weights, and write down how far that can be trusted.

    python -m mixtures fit --experiment sample --run RUN [--confirm]

Out, in RUN/experiments/NAME: `results.parquet`, `fit.parquet` (predictions of leave-one-out), `proposal.json`, and
`report.html`. With `--confirm` the proposal is trained with the same seeds and compared with the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from mixtures.experiment import BASE, PROPOSAL, Candidate, Domain, Experiment, objective_of
from mixtures.findings import Measured, measure, write_results
from mixtures.laws import KINDS, Check, Law, better, fit_law, leave_one_out
from mixtures.lock import Lock
from mixtures.proposal import caps_of, propose
from mixtures.sweep import Result
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.storage import commit_file, write_json

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Fitted:
    """The better law of two, both checks, and the proposal with what the law expects of it [domains]."""

    measured: Measured
    checks: list[Check]
    law: Law
    objective: Floats
    caps: Floats
    budget: int
    proposal: Floats
    expected: Floats

    @property
    def used(self) -> Check:
        return next(check for check in self.checks if check.kind == self.law.kind)


def fit_sweep(
    experiment: Experiment, lock: Lock, domains: Sequence[Domain], results: Sequence[Result]
) -> Fitted:
    """Fit what was measured; the proposal itself, if it was trained before, is left out.

    Raises MixtureError for too few candidates, or caps that no mixture keeps.
    """
    measured = measure([result for result in results if result.candidate != PROPOSAL], domains, lock)
    if BASE not in measured.names:
        raise MixtureError("the base has not been trained.", hint="Run `python -m mixtures sweep` to its end.")
    shares = objective_of(experiment, list(domains))
    objective = np.array([shares[domain.name] for domain in domains])
    checks = [leave_one_out(kind, measured.weights, measured.bits, objective) for kind in KINDS]
    law = fit_law(better(checks).kind, measured.weights, measured.bits)
    budget = experiment.budget_tokens or sum(domain.total for domain in domains)
    caps = caps_of(domains, experiment.max_epochs, budget)
    base = measured.weights[measured.row(BASE)]
    proposal = propose(law, base, objective, caps, measured.weights)
    expected = law.predict(proposal[None, :])[0]
    return Fitted(measured, checks, law, objective, caps, budget, proposal, expected)


def proposed_candidate(fitted: Fitted, domains: Sequence[Domain]) -> Candidate:
    """The proposal as a candidate that can be trained."""
    weights = {domain.name: float(weight) for domain, weight in zip(domains, fitted.proposal, strict=True)}
    return Candidate(PROPOSAL, weights)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The trained proposal beside the base: bits per byte [domains], and the objective of each seed."""

    base: Floats
    proposal: Floats
    base_seeds: list[float]
    proposal_seeds: list[float]

    @property
    def gain(self) -> float:
        """Mean objective of the base minus that of the proposal; above 0 the proposal is better."""
        return float(np.mean(self.base_seeds) - np.mean(self.proposal_seeds))

    @property
    def all_seeds_better(self) -> bool:
        return max(self.proposal_seeds) < min(self.base_seeds)


def compare(fitted: Fitted, domains: Sequence[Domain], lock: Lock, results: Sequence[Result]) -> Comparison | None:
    """The comparison if the proposal has been trained with these weights."""
    weights = proposed_candidate(fitted, domains).weights
    trained = [result for result in results if result.candidate == PROPOSAL and result.weights == weights]
    if not trained:
        return None
    after = measure(trained, domains, lock)
    base = fitted.measured.by_seed[BASE]
    return Comparison(
        base.mean(axis=0),
        after.bits[0],
        (base @ fitted.objective).tolist(),
        (after.by_seed[PROPOSAL] @ fitted.objective).tolist(),
    )


def write_fit(
    folder: Path, fitted: Fitted, domains: Sequence[Domain], lock: Lock, results: Sequence[Result],
    comparison: Comparison | None,
) -> None:
    """The tables and the proposal."""  # fmt: skip
    write_results(str(folder / "results.parquet"), results, domains, lock)
    names = [domain.name for domain in domains]
    rows: list[dict[str, Any]] = []
    for check in fitted.checks:
        for row, candidate in enumerate(fitted.measured.names):
            for place, name in enumerate(names):
                rows.append({
                    "law": check.kind, "candidate": candidate, "domain": name,
                    "measured": fitted.measured.bits[row, place], "predicted_without_it": check.predictions[row, place],
                })  # fmt: skip
    with commit_file(str(folder / "fit.parquet")) as temporary:
        pq.write_table(pa.Table.from_pylist(rows), temporary, compression="zstd")
    epochs = [float(weight) * fitted.budget / domain.total
              for domain, weight in zip(domains, fitted.proposal, strict=True)]  # fmt: skip
    value: dict[str, Any] = {
        "weights": proposed_candidate(fitted, domains).weights,
        "epochs": dict(zip(names, epochs, strict=True)),
        "budget_tokens": fitted.budget,
        "law": fitted.law.kind,
        "leave_one_out": {
            check.kind: {"rank_correlation": check.correlation, "mean_error": check.error,
                         "rank_correlation_by_domain": dict(zip(names, check.by_domain, strict=True))}
            for check in fitted.checks
        },
        "expected_bits_per_byte": dict(zip(names, fitted.expected.tolist(), strict=True)),
        "group_weights": group_weights(fitted, domains),
    }  # fmt: skip
    if comparison is not None:
        value["trained"] = {
            "bits_per_byte": dict(zip(names, comparison.proposal.tolist(), strict=True)),
            "base_bits_per_byte": dict(zip(names, comparison.base.tolist(), strict=True)),
            "objective_by_seed": {"base": comparison.base_seeds, "proposal": comparison.proposal_seeds},
            "gain": comparison.gain,
            "every_seed_better": comparison.all_seeds_better,
        }
    write_json(str(folder / "proposal.json"), value)


def group_weights(fitted: Fitted, domains: Sequence[Domain]) -> dict[str, float]:
    """The proposal as weights of groups, ready for `weights: {rule: explicit}` of a recipe."""
    return {
        group: float(weight) * tokens / domain.total
        for domain, weight in zip(domains, fitted.proposal, strict=True)
        for group, tokens in domain.tokens.items()
    }
