"""Train one small proxy for each candidate and seed, and keep what it loses on every held-out group.

    python -m mixtures sweep --experiment sample --run RUN

In: a finished mixture and an experiment. Out: RUN/experiments/NAME/results/<candidate>-s<seed>.json, and of all of
them `results.parquet`. A proxy is a normal `python -m train run` on the same `.bin/.idx` files with another lock, as
a process of its own, which ends with the sweep: the data and the loop are the ones that the large run will use. Its
checkpoints are deleted when its losses are known.

A result carries the fingerprint of all that decides it and is kept: a sweep that was stopped, or has got new
candidates, only trains what is missing.
"""

from __future__ import annotations

import math
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson
import yaml

from mixtures.attended import Children
from mixtures.experiment import Candidate, Domain, Experiment
from mixtures.lock import NAME, Lock, check_files, write_lock
from roots_pipeline.core.errors import EngineError, MixtureError, StaleDataError, StorageError
from roots_pipeline.core.stopping import Stopped
from roots_pipeline.core.storage import fingerprint, read_json, write_bytes, write_json

_FORMAT = 1
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Proxy:
    """One training run: a candidate, a seed, and the lock of its mixture."""

    candidate: Candidate
    seed: int
    lock: Lock
    groups: tuple[str, ...]  # whose held-out samples are looked at

    @property
    def name(self) -> str:
        return f"{self.candidate.name}-s{self.seed}"


@dataclass(frozen=True, slots=True)
class Result:
    """What a proxy lost: bits per byte, and nats per token, of every held-out group."""

    candidate: str
    seed: int
    weights: dict[str, float]
    bits_per_byte: dict[str, float]
    loss: dict[str, float]
    seconds: float


def make_proxies(
    experiment: Experiment, lock: Lock, domains: Sequence[Domain], candidates: Sequence[Candidate]
) -> list[Proxy]:
    """One proxy for each candidate and seed, all seeds of a candidate together."""
    groups = tuple(name for name, group in lock.groups.items() if group.validation_tokens > 0)
    for domain in domains:
        if not set(domain.tokens) & set(groups):
            hint = "Hold out a larger share in the mixture's recipe."
            raise MixtureError(f"the domain {domain.name} holds out nothing to look at.", hint=hint)
    return [
        Proxy(candidate, seed, weighted_lock(lock, domains, candidate.weights, seed), groups)
        for candidate in candidates
        for seed in experiment.seeds
    ]


def weighted_lock(lock: Lock, domains: Sequence[Domain], weights: dict[str, float], seed: int) -> Lock:
    """The same data with other weights, and another order."""
    share = {
        group: weights[domain.name] * tokens / domain.total
        for domain in domains
        for group, tokens in domain.tokens.items()
    }
    groups = {name: replace(group, weight=share[name]) for name, group in lock.groups.items()}
    return replace(lock, groups=groups, seed=seed)


class Sweep:
    """The folder of an experiment in a run."""

    def __init__(self, experiment: Experiment, run: str, name: str) -> None:
        self.experiment, self.run = experiment, Path(run).absolute()
        self.folder = self.run / "experiments" / name
        self._trainers = Children()

    def recipe_of(self, proxy: Proxy) -> dict[str, Any]:
        """The recipe with which the proxy is trained."""
        # Only the end of a proxy counts: nothing is saved or looked at on the way.
        fixed = {
            "seed": proxy.seed,
            "validation_samples": self.experiment.held_out_samples,
            "validation_groups": list(proxy.groups),
            "validation_group_samples": 0,  # as many as of the whole
            "evaluate_every": 0,
            "save_every": 0,
            "keep": 1,
        }
        return {"extends": self.experiment.extends, "train": {**self.experiment.train, **fixed}}

    def mark(self, proxy: Proxy) -> str:
        """Fingerprint of all that decides a result."""
        return fingerprint([_FORMAT, proxy.lock.fingerprint, self.recipe_of(proxy)])

    def result(self, proxy: Proxy) -> Result | None:
        """The result if it is known."""
        try:
            value = read_json(str(self.folder / "results" / f"{proxy.name}.json"))
            known = value.pop("fingerprint") == self.mark(proxy)
            return Result(**value) if known else None
        except (FileNotFoundError, StorageError, KeyError, TypeError, AttributeError):  # absent, or not ours
            return None

    def train(self, proxies: Sequence[Proxy], say: Say, workers: int, minutes: float | None = None) -> int:
        """Train what is missing, `workers` at a time, and return how many are still missing when time is up.

        Raises EngineError with what the proxy said if one fails; the others' results stay.
        """
        check_files(proxies[0].lock, str(self.run / "mixture"))
        missing = [proxy for proxy in proxies if self.result(proxy) is None]
        if len(missing) < len(proxies):
            say(f"{len(proxies) - len(missing)} of {len(proxies)} proxies are trained already.")
        started, done = time.monotonic(), 0
        queue: Iterator[Proxy] = iter(missing)
        with ThreadPoolExecutor(workers) as pool:
            running: set[Future[Result]] = set()
            try:
                while True:
                    while len(running) < workers and not _late(started, minutes):
                        proxy = next(queue, None)
                        if proxy is None:
                            break
                        running.add(pool.submit(self._train_one, proxy, workers))
                    if not running:
                        break
                    finished, running = wait(running, return_when=FIRST_COMPLETED)
                    for future in finished:
                        result, done = future.result(), done + 1
                        left = (time.monotonic() - started) / done * (len(missing) - done) / 60
                        mean = math.fsum(result.bits_per_byte.values()) / len(result.bits_per_byte)
                        say(
                            f"{done}/{len(missing)} {result.candidate} seed {result.seed}: mean {mean:.3f} bits per "
                            f"byte, {result.seconds:.0f} s; about {left:.0f} minutes left."
                        )
            except (KeyboardInterrupt, Stopped):
                self._trainers.end()
                raise
            finally:
                for future in running:
                    future.cancel()
        return len(missing) - done

    def _train_one(self, proxy: Proxy, workers: int) -> Result:
        folder = self.folder / "runs" / proxy.name
        shutil.rmtree(folder, ignore_errors=True)
        mixture = folder / "mixture"
        mixture.mkdir(parents=True)
        (folder / "tokenizer").symlink_to(self.run / "tokenizer")
        for group in proxy.lock.groups.values():
            for suffix in group.files:
                (mixture / (group.file + suffix)).symlink_to(self.run / "mixture" / (group.file + suffix))
        write_lock(str(mixture / NAME), proxy.lock)
        recipe = folder / "recipe.yaml"
        write_bytes(str(recipe), yaml.safe_dump(self.recipe_of(proxy), sort_keys=False).encode())
        command = ["train", "run", "--recipe", str(recipe), "--run", str(folder), "--quiet"]
        threads = str(max(1, (os.cpu_count() or 1) // workers))
        started = time.monotonic()
        done = self._trainers.run(command, {**os.environ, "OMP_NUM_THREADS": threads})
        if done.returncode:
            said = (done.stderr.strip() or done.stdout.strip() or "nothing").splitlines()[-1][-500:]
            raise EngineError(
                f"the proxy {proxy.name} failed and said: {said}", where=str(folder),
                hint="Change `train` in the experiment, or run its recipe by hand to see more.",
            )  # fmt: skip
        bits, loss = _held_out(folder / "model" / "log.jsonl", proxy.groups)
        result = Result(
            proxy.candidate.name, proxy.seed, proxy.candidate.weights, bits, loss, round(time.monotonic() - started, 1)
        )
        value = {**{name: getattr(result, name) for name in Result.__slots__}, "fingerprint": self.mark(proxy)}
        write_json(str(self.folder / "results" / f"{proxy.name}.json"), value)
        shutil.rmtree(folder)
        return result


def _late(started: float, minutes: float | None) -> bool:
    return minutes is not None and time.monotonic() - started > minutes * 60


def _held_out(log: Path, groups: Sequence[str]) -> tuple[dict[str, float], dict[str, float]]:
    """The last held-out losses in the log of a run."""
    lines = [orjson.loads(line) for line in log.read_bytes().splitlines()]
    found = next((line["validation"] for line in reversed(lines) if "validation" in line), None)
    if found is None or any(name not in found for name in groups):
        raise StaleDataError("the log holds no losses of held-out groups.", where=str(log))
    wrong = next((name for name in groups if not _is_number(found[name]["loss"])), None)
    if wrong is not None:
        raise StaleDataError(f"the held-out loss of {wrong} is no number.", where=str(log), hint="Lower train.lr.")
    # Masked documents hold no bytes: such a group says nothing.
    known = [name for name in groups if _is_number(found[name]["bits_per_byte"])]
    return ({name: float(found[name]["bits_per_byte"]) for name in known},
            {name: float(found[name]["loss"]) for name in known})  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
