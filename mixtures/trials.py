"""Sweep and fit as the commands call them: an experiment by name, a run by folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mixtures.experiment import (
    Candidate,
    Domain,
    Experiment,
    find_domains,
    list_candidates,
    load_experiment,
)
from mixtures.experiment_report import write_report
from mixtures.findings import write_results
from mixtures.fit import Comparison, Fitted, compare, fit_sweep, proposed_candidate, write_fit
from mixtures.lock import NAME, Lock, check_inputs, read_lock
from mixtures.sweep import Proxy, Result, Say, Sweep, make_proxies
from roots_pipeline.core.errors import MixtureError
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.storage import join, lock_folder


@dataclass(frozen=True, slots=True)
class Trial:
    """An experiment on the mixture of a run."""

    name: str
    experiment: Experiment
    lock: Lock
    domains: list[Domain]
    sweep: Sweep

    def proxies(self, candidates: list[Candidate]) -> list[Proxy]:
        return make_proxies(self.experiment, self.lock, self.domains, candidates)

    def results(self, candidates: list[Candidate]) -> list[Result]:
        """What is known of these candidates."""
        return [result for proxy in self.proxies(candidates) if (result := self.sweep.result(proxy)) is not None]


def open_trial(name: str, run: str) -> Trial:
    """Raises RecipeError, StaleDataError or MixtureError, each naming what to change."""
    experiment = load_experiment(name)
    lock = read_lock(join(run, "mixture", NAME))
    tokenizer = read_manifest(join(run, "tokenizer"), made_by="python -m tokenizer train")
    check_inputs(lock, tokenizer=tokenizer.fingerprint)
    short = Path(name).stem
    return Trial(short, experiment, lock, find_domains(experiment, lock), Sweep(experiment, run, short))


def run_sweep(trial: Trial, say: Say, workers: int, minutes: float | None) -> int:
    """Train what is missing; returns how many proxies still are. `minutes` replaces those of the experiment."""
    candidates = list_candidates(trial.experiment, trial.domains)
    say(f"{len(candidates)} candidates x {len(trial.experiment.seeds)} seeds over {len(trial.domains)} domains.")
    with lock_folder(str(trial.sweep.folder)):
        limit = trial.experiment.minutes if minutes is None else minutes
        left = trial.sweep.train(trial.proxies(candidates), say, workers, limit)
        results = trial.results(candidates)
        write_results(str(trial.sweep.folder / "results.parquet"), results, trial.domains, trial.lock)
    return left


def run_fit(trial: Trial, say: Say, workers: int, confirm: bool) -> tuple[Fitted, Comparison | None]:
    """Fit, propose, train the proposal if `confirm`, and write tables and report."""
    results = _complete(trial)
    fitted = fit_sweep(trial.experiment, trial.lock, trial.domains, results)
    proposal = proposed_candidate(fitted, trial.domains)
    with lock_folder(str(trial.sweep.folder)):
        if confirm:
            say("Training the proposal.")
            trial.sweep.train(trial.proxies([proposal]), say, workers)
        results += trial.results([proposal])
        comparison = compare(fitted, trial.domains, trial.lock, results)
        write_fit(trial.sweep.folder, fitted, trial.domains, trial.lock, results, comparison)
        write_report(trial.sweep.folder / "report.html", trial.name, fitted, trial.domains, comparison)
    return fitted, comparison


def _complete(trial: Trial) -> list[Result]:
    """Results of the candidates of which all seeds are trained."""
    candidates = list_candidates(trial.experiment, trial.domains)
    results = trial.results(candidates)
    seeds = len(trial.experiment.seeds)
    found = [result.candidate for result in results]
    complete = [result for result in results if found.count(result.candidate) == seeds]
    if not complete:
        hint = "Run `python -m mixtures sweep` first, with the same experiment and run."
        raise MixtureError("no candidate has been trained with all seeds.", where=str(trial.sweep.folder), hint=hint)
    return complete
