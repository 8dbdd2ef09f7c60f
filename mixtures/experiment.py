"""An experiment on mixture weights: domains, candidate weights and the proxy that is trained with each of them.

In: a YAML file (`mixtures/experiments/NAME.yaml`, or a path) and the lock of a mixture. Out: the domains with their
groups and tokens, and the candidates in a fixed order. A domain is a set of groups that are weighted together; inside
it, groups share its weight by their tokens, so all groups of a domain are repeated equally often.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mixtures.lock import Lock
from roots_pipeline.core.errors import MixtureError, RecipeError
from roots_pipeline.core.recipe import nearest
from roots_pipeline.core.weights import Entry, owner_of
from roots_pipeline.core.yaml_hints import parse_yaml

EXPERIMENTS = Path(__file__).parent / "experiments"
BASE, PROPOSAL = "base", "proposal"
Weights = dict[str, float]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Dirichlet(_Strict):
    """`count` random weights around the base: the higher the concentration, the nearer (RegMix, arXiv 2407.01492)."""

    method: Literal["dirichlet"]
    count: int = Field(gt=0, le=10_000)
    concentration: float = Field(gt=0, allow_inf_nan=False)
    seed: int = Field(default=0, ge=0)


class Perturbations(_Strict):
    """The base with one domain's weight multiplied, and divided, by `factor`."""

    method: Literal["perturbations"]
    factor: float = Field(gt=1, allow_inf_nan=False)


class Grid(_Strict):
    """All weights that are multiples of 1 / `steps`, zeros left out unless `zeros` is set."""

    method: Literal["grid"]
    steps: int = Field(gt=0, le=64)
    zeros: bool = False


class Listed(_Strict):
    """Weights written out."""

    method: Literal["list"]
    weights: list[dict[str, float]]


Method = Annotated[Dirichlet | Perturbations | Grid | Listed, Field(discriminator="method")]


class Experiment(_Strict):
    """The file. `train` holds what differs from the recipe `extends` in its `train` section."""

    domains: dict[str, list[str]] = Field(min_length=2)
    candidates: list[Method] = Field(min_length=1)
    seeds: list[int] = Field(min_length=1)
    extends: str = "sample"
    train: dict[str, Any] = {}
    held_out_samples: int = Field(gt=0)
    objective: dict[str, float] = {}
    max_epochs: float = Field(default=4.0, gt=0, allow_inf_nan=False)
    budget_tokens: int | None = Field(default=None, gt=0)
    minutes: float | None = Field(default=None, gt=0)


@dataclass(frozen=True, slots=True)
class Domain:
    """Groups that are weighted together: training tokens by group, and the weight of the whole in the lock."""

    name: str
    tokens: dict[str, int]
    base: float

    @property
    def total(self) -> int:
        return sum(self.tokens.values())


@dataclass(frozen=True, slots=True)
class Candidate:
    """Weights of the domains, adding up to 1."""

    name: str
    weights: Weights


def load_experiment(name: str) -> Experiment:
    """A built-in experiment by name, or a YAML file by path. Raises RecipeError that names file and key."""
    path = Path(name) if name.endswith((".yaml", ".yml")) or "/" in name else EXPERIMENTS / f"{name}.yaml"
    if not path.is_file():
        known = sorted(entry.stem for entry in EXPERIMENTS.glob("*.yaml"))
        raise RecipeError(f"there is no experiment '{name}'.", hint=nearest(name, known) + " A path ends in .yaml.")
    try:
        return Experiment.model_validate(parse_yaml(path.read_text("utf-8")))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot be read as YAML ({error}).", where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        hint = nearest(str(first["loc"][-1]), list(Experiment.model_fields)) if "extra" in first["type"] else None
        raise RecipeError(f"{key or 'the file'}: {first['msg']}.", where=str(path), hint=hint) from error


def find_domains(experiment: Experiment, lock: Lock) -> list[Domain]:
    """The domains with their groups. Raises MixtureError for a domain without training tokens or groups left over."""
    entries = [Entry(name, 1.0, tuple(groups)) for name, groups in experiment.domains.items()]
    members: dict[str, dict[str, int]] = {entry.name: {} for entry in entries}
    for name, group in lock.groups.items():
        place = owner_of(name, entries)
        if place is None:
            hint = "Add it to one of them, or a domain with the pattern \"*\"."
            raise MixtureError(f"group {name} belongs to no domain of the experiment.", hint=hint)
        members[entries[place].name][name] = group.train_tokens
    for name, tokens in members.items():
        if not sum(tokens.values()):
            hint = "Correct its patterns, or leave it out."
            raise MixtureError(f"the domain {name} has no training tokens in this mixture.", hint=hint)
    for name in experiment.objective:
        if name not in members:
            raise MixtureError(f"the objective names '{name}', which is no domain.", hint=nearest(name, list(members)))
    weights = {name: sum(lock.groups[group].weight for group in tokens) for name, tokens in members.items()}
    return [Domain(name, tokens, weights[name]) for name, tokens in members.items()]


def objective_of(experiment: Experiment, domains: list[Domain]) -> Weights:
    """How much each domain counts in what is to be small; equal unless the experiment says otherwise."""
    given = experiment.objective or {domain.name: 1.0 for domain in domains}
    return to_one({domain.name: given.get(domain.name, 0.0) for domain in domains}, "objective")


def list_candidates(experiment: Experiment, domains: list[Domain]) -> list[Candidate]:
    """The base first, then what the methods give, in their order and without repetitions."""
    names = [domain.name for domain in domains]
    base = {domain.name: domain.base for domain in domains}
    found = [Candidate(BASE, base)]
    for method in experiment.candidates:
        for label, weights in _draw(method, names, base):
            if not any(_equal(weights, other.weights) for other in found):
                found.append(Candidate(label, weights))
    return found


def _draw(method: Method, names: list[str], base: Weights) -> list[tuple[str, Weights]]:
    if isinstance(method, Dirichlet):
        center = np.maximum([base[name] for name in names], 1e-3)
        random = np.random.Generator(np.random.PCG64(method.seed))
        rows = random.dirichlet(method.concentration * center / center.sum(), method.count)
        drawn = [dict(zip(names, row, strict=True)) for row in rows.tolist()]
        return [(f"dirichlet-{number:03}", weights) for number, weights in enumerate(drawn)]
    if isinstance(method, Perturbations):
        return [
            (f"{name}-{label}", to_one({**base, name: base[name] * factor}, name))
            for name in names
            for label, factor in (("more", method.factor), ("less", 1 / method.factor))
        ]
    if isinstance(method, Grid):
        return _grid(method, names)
    given = []
    for number, weights in enumerate(method.weights):
        for name in weights:
            if name not in names:
                raise MixtureError(f"the candidate {number} weights '{name}'.", hint=nearest(name, names))
        given.append((f"list-{number:03}", to_one({name: weights.get(name, 0.0) for name in names}, f"list {number}")))
    return given


def _grid(method: Grid, names: list[str]) -> list[tuple[str, Weights]]:
    lowest = 0 if method.zeros else 1
    count = math.comb(method.steps - lowest * len(names) + len(names) - 1, len(names) - 1)
    if not 0 < count <= 10_000 or method.steps < lowest * len(names):
        hint = "Use steps between the number of domains and a few more, or another method."
        raise MixtureError(f"a grid of {method.steps} steps over {len(names)} domains cannot be used.", hint=hint)
    rows: list[tuple[int, ...]] = [()]
    for place in range(len(names) - 1):
        least = lowest * (len(names) - 1 - place)
        rows = [(*row, part) for row in rows for part in range(lowest, method.steps - sum(row) - least + 1)]
    full = [(*row, method.steps - sum(row)) for row in rows]
    return [
        ("grid-" + "-".join(map(str, row)), {name: part / method.steps for name, part in zip(names, row, strict=True)})
        for row in full
    ]


def to_one(weights: Mapping[str, float], what: str) -> Weights:
    """Weights divided by their sum. Raises MixtureError if one is negative or not finite, or all are 0."""
    total = math.fsum(weights.values())
    if not all(0 <= weight < math.inf for weight in weights.values()) or not 0 < total < math.inf:
        shown = ", ".join(f"{name} {weight}" for name, weight in weights.items())
        hint = "Use numbers of 0 or more, not all 0."
        raise MixtureError(f"the weights of {what} cannot be used ({shown}).", hint=hint)
    return {name: weight / total for name, weight in weights.items()}


def _equal(left: Weights, right: Weights) -> bool:
    return all(math.isclose(left[name], right[name], abs_tol=1e-9) for name in left)
