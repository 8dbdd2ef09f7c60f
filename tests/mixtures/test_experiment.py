"""Experiments: domains, candidates, and a sweep whose trainer is a formula."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mixtures.__main__ import app
from mixtures.dataset import BlendedDataset
from mixtures.experiment import (
    Candidate,
    Domain,
    Experiment,
    find_domains,
    list_candidates,
    load_experiment,
    objective_of,
)
from mixtures.findings import domain_bits
from mixtures.lock import NAME, read_lock
from mixtures.sweep import Sweep, make_proxies
from roots_pipeline.core.errors import EngineError, MixtureError, RecipeError
from roots_pipeline.core.manifest import write_manifest
from tests.mixtures.build import build_mixture, numbered_groups

DOMAINS = {"code": ["code.*"], "english": ["*.en"], "rest": ["*"]}


def experiment(**changes: Any) -> Experiment:
    given: dict[str, Any] = {
        "domains": DOMAINS, "candidates": [{"method": "dirichlet", "count": 5, "concentration": 6}],
        "seeds": [1, 2], "held_out_samples": 4, **changes,
    }  # fmt: skip
    return Experiment.model_validate(given)


def mixture(folder: Path) -> str:
    sizes = {"web.en": [30] * 8, "web.fr": [30] * 6, "books.fr": [10] * 6, "code.go": [20] * 8}
    build_mixture(folder / "mixture", numbered_groups(sizes))
    write_manifest(str(folder / "tokenizer"), "tokenizer", config={}, inputs={}, counts={}, fingerprint="7ea")
    return str(folder)


def domains_of(run: str, **changes: Any) -> list[Domain]:
    return find_domains(experiment(**changes), read_lock(f"{run}/mixture/{NAME}"))


def test_domains(tmp_path: Path) -> None:
    run = mixture(tmp_path)
    found = domains_of(run)
    assert [(d.name, sorted(d.tokens), d.base) for d in found] == [
        ("code", ["code.go"], 0.25), ("english", ["web.en"], 0.25), ("rest", ["books.fr", "web.fr"], 0.5),
    ]  # fmt: skip
    with pytest.raises(MixtureError, match=r"group books\.fr belongs to no domain"):
        domains_of(run, domains={"code": ["code.*"], "web": ["web.*"]})
    with pytest.raises(MixtureError, match="domain news has no training tokens"):
        domains_of(run, domains={"news": ["news.*"], "rest": ["*"]})
    with pytest.raises(MixtureError, match=r"objective names 'cod'.*Did you mean 'code'"):
        domains_of(run, objective={"cod": 1})
    assert objective_of(experiment(objective={"code": 3, "rest": 1}), found) == {
        "code": 0.75, "english": 0.0, "rest": 0.25}  # fmt: skip


@given(st.integers(2, 4), st.integers(1, 9), st.booleans())
def test_a_grid_holds_every_point_once(count: int, steps: int, zeros: bool) -> None:
    domains = [Domain(f"d{place}", {f"d{place}.en": 1}, 1 / count) for place in range(count)]
    asked = experiment(candidates=[{"method": "grid", "steps": steps, "zeros": zeros}])
    if steps < count and not zeros:
        with pytest.raises(MixtureError, match="cannot be used"):
            list_candidates(asked, domains)
        return
    found = list_candidates(asked, domains)
    points = {tuple(round(weight * steps) for weight in one.weights.values()) for one in found[1:]}
    lowest = 0 if zeros else 1
    every = {
        point for point in np.ndindex(*[steps + 1] * count) if sum(point) == steps and min(point) >= lowest
    }
    base = tuple([steps // count] * count) if steps % count == 0 else None  # listed once, as the base
    assert points == every - {base} and len(found) == len(points) + 1
    assert all(math.isclose(sum(one.weights.values()), 1) for one in found)


def test_random_candidates_and_perturbations() -> None:
    domains = [Domain("a", {"a.en": 1}, 0.7), Domain("b", {"b.en": 1}, 0.2), Domain("c", {"c.en": 1}, 0.1)]
    many = list_candidates(experiment(candidates=[
        {"method": "dirichlet", "count": 400, "concentration": 20}]), domains)  # fmt: skip
    assert many[0] == Candidate("base", {"a": 0.7, "b": 0.2, "c": 0.1}) and len({one.name for one in many}) == 401
    mean = np.mean([list(one.weights.values()) for one in many[1:]], axis=0)
    assert np.allclose(mean, [0.7, 0.2, 0.1], atol=0.03)
    again = list_candidates(experiment(candidates=[
        {"method": "dirichlet", "count": 500, "concentration": 20}]), domains)  # fmt: skip
    assert again[:401] == many  # more candidates do not change the first
    more = list_candidates(experiment(candidates=[{"method": "perturbations", "factor": 2}]), domains)
    assert [one.name for one in more[1:]] == ["a-more", "a-less", "b-more", "b-less", "c-more", "c-less"]
    assert more[3].weights == pytest.approx({"a": 0.7 / 1.2, "b": 0.4 / 1.2, "c": 0.1 / 1.2})
    listed = {"method": "list", "weights": [{"a": 1, "c": 1}, {"a": 7, "b": 2, "c": 1}]}
    assert [one.weights for one in list_candidates(experiment(candidates=[listed]), domains)[1:]] == [
        {"a": 0.5, "b": 0.0, "c": 0.5}]  # fmt: skip


@pytest.mark.parametrize(("weights", "text"), [
    ({"d": 1}, "weights 'd'"), ({"a": -1, "b": 2}, "cannot be used"), ({"a": 0}, "cannot be used"),
    ({"a": math.nan}, "cannot be used"), ({"a": math.inf}, "cannot be used"),
])  # fmt: skip
def test_impossible_candidates(weights: dict[str, float], text: str) -> None:
    domains = [Domain(name, {f"{name}.en": 1}, 1 / 3) for name in "abc"]
    with pytest.raises(MixtureError, match=text):
        list_candidates(experiment(candidates=[{"method": "list", "weights": [weights]}]), domains)


def test_experiments_are_checked(tmp_path: Path) -> None:
    assert len(load_experiment("sample").domains) >= 2
    with pytest.raises(RecipeError, match=r"no experiment 'smple'.*Did you mean 'sample'"):
        load_experiment("smple")
    for text, wanted in (
        ("domains: {a: [a]", "YAML"), ("[]", "the file"), ("", "the file"), ("domains: {a: [a]}", "domains"),
        ("seed: 1", "seeds"), ("candidates: [{method: dirichlet, count: 0, concentration: 1}]", "candidates"),
    ):  # fmt: skip
        path = tmp_path / "broken.yaml"
        path.write_text(text)
        with pytest.raises(RecipeError, match=r"broken\.yaml") as caught:
            load_experiment(str(path))
        assert wanted.split(",")[0] in str(caught.value) or "domains" in str(caught.value)


class FormulaTrainer:
    """Stands for `python -m train run`: reads recipe and lock as it does, and writes the losses of a known law."""

    def __init__(self, noise: float = 0.002) -> None:
        self.noise, self.masked = noise, False
        self.trained: list[str] = []
        self.fails: set[str] = set()

    def __call__(self, command: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        folder = Path(command[command.index("--run") + 1])
        recipe = yaml.safe_load(Path(command[command.index("--recipe") + 1]).read_text())
        self.trained.append(folder.name)
        if folder.name in self.fails:
            return subprocess.CompletedProcess(command, 2, "", "error: the loss became nan.\n")
        assert (folder / "tokenizer" / "manifest.json").exists()
        lock = read_lock(str(folder / "mixture" / NAME))
        wanted = recipe["train"]["validation_groups"]
        BlendedDataset(str(folder / "mixture" / NAME), "validation", 4, groups=wanted[:1])
        random = np.random.RandomState(recipe["train"]["seed"])
        sets = {}
        for name in wanted:
            language = name.rpartition(".")[2]
            near = sum(g.weight for other, g in lock.groups.items() if other.endswith(language))
            bits = (1.5 + 2 * math.exp(-3 * near)) * math.exp(self.noise * random.randn())
            sets[name] = {"loss": bits * math.log(2) * 4, "bits_per_byte": bits}  # four bytes a token
        if self.masked:
            sets["books.fr"]["bits_per_byte"] = math.nan  # its held-out documents were masked: no bytes
        (folder / "model").mkdir()
        lines = [{"step": 0, "validation": {}}, {"step": 5, "loss": 1.0}, {"step": 5, "validation": sets}, {"step": 5}]
        (folder / "model" / "log.jsonl").write_bytes(b"\n".join(map(orjson.dumps, lines)))
        return subprocess.CompletedProcess(command, 0, "", "")


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> FormulaTrainer:
    fake = FormulaTrainer()
    monkeypatch.setattr("mixtures.sweep.Children.run", fake)
    return fake


def write_experiment(folder: Path, **changes: Any) -> str:
    path = folder / "mine.yaml"
    path.write_text(yaml.safe_dump(experiment(**changes).model_dump(mode="json")))
    return str(path)


def test_a_sweep_resumes_grows_and_stops_in_time(tmp_path: Path, trainer: FormulaTrainer) -> None:
    run = mixture(tmp_path)
    lock, asked = read_lock(f"{run}/mixture/{NAME}"), experiment()
    domains = find_domains(asked, lock)
    proxies = make_proxies(asked, lock, domains, list_candidates(asked, domains))
    assert len(proxies) == 12 and len({proxy.lock.seed for proxy in proxies}) == 2
    for proxy in proxies:
        assert math.isclose(sum(group.weight for group in proxy.lock.groups.values()), 1)
        parts = [proxy.lock.groups[name].weight for name in ("books.fr", "web.fr")]
        tokens = [lock.groups[name].train_tokens for name in ("books.fr", "web.fr")]
        assert math.isclose(parts[0] / parts[1], tokens[0] / tokens[1])
    sweep = Sweep(asked, run, "mine")
    assert sweep.train(proxies, print, 2, minutes=0) == 12 and trainer.trained == []
    trainer.fails = {proxies[4].name}
    with pytest.raises(EngineError, match=f"{proxies[4].name} failed and said: error: the loss became nan"):
        sweep.train(proxies, print, 1)
    assert trainer.trained == [proxy.name for proxy in proxies[:5]]
    trainer.fails, trainer.trained = set(), []
    assert sweep.train(proxies, print, 3) == 0
    assert sorted(trainer.trained) == sorted(proxy.name for proxy in proxies[4:])
    assert list((sweep.folder / "runs").iterdir()) == []  # checkpoints do not stay
    trainer.trained, trainer.masked = [], True
    more = experiment(candidates=[{"method": "dirichlet", "count": 7, "concentration": 6}])
    others = make_proxies(more, lock, domains, list_candidates(more, domains))
    assert sweep.train(others, print, 1) == 0 and len(trainer.trained) == 4
    last = sweep.result(others[-1])
    assert last is not None and "books.fr" not in last.bits_per_byte and domain_bits(last, domains[2], lock) > 0
    # Another proxy, or other data, is another result.
    changed = Sweep(experiment(train={"lr": 0.1}), run, "mine")
    assert changed.result(proxies[0]) is None and sweep.result(proxies[0]) is not None
    (sweep.folder / "results" / f"{proxies[0].name}.json").write_text("[]")
    assert sweep.result(proxies[0]) is None


def test_commands_from_sweep_to_confirmed_proposal(tmp_path: Path, trainer: FormulaTrainer) -> None:
    run = mixture(tmp_path)
    path = write_experiment(tmp_path, candidates=[{"method": "dirichlet", "count": 11, "concentration": 6}])
    runner = CliRunner()

    def call(*words: str) -> str:
        result = runner.invoke(app, [*words, "--experiment", path, "--run", run, "--quiet", "--workers", "2"])
        if result.exception is not None:
            raise result.exception
        return result.stdout

    with pytest.raises(MixtureError, match="no candidate has been trained"):
        call("fit")
    assert "proxies are left" in call("sweep", "--minutes", "0")
    assert "all proxies are trained" in call("sweep")
    folder = Path(run) / "experiments" / "mine"
    said = call("fit", "--confirm")
    assert "leave-one-out rank correlation" in said and "the proposal is better than the base" in said
    table = pq.read_table(folder / "results.parquet")
    assert len(table) == (12 + 1) * 2 * (3 + 4) and set(table.column("level").to_pylist()) == {"domain", "group"}
    proposal = json.loads((folder / "proposal.json").read_text())
    assert proposal["leave_one_out"]["log-linear"]["rank_correlation"] > 0.8
    for weights in (proposal["weights"], proposal["group_weights"]):
        assert math.isclose(sum(weights.values()), 1)
    assert all(epochs <= 4 + 1e-9 for epochs in proposal["epochs"].values())
    assert proposal["trained"]["gain"] > 0
    page = (folder / "report.html").read_text()
    assert page.count("<svg") == 1 + 3 + 3 and "<script" not in page and "http://www.w3.org" in page
    assert len(trainer.trained) == 12 * 2 + 2
    call("fit")  # the trained proposal is found again, and is not fitted on
    assert len(trainer.trained) == 12 * 2 + 2 and "trained" in json.loads((folder / "proposal.json").read_text())
