"""A run folder becomes facts: which steps are finished, and what each of them says.

A step that has not been run is left out, and the page names its command. What was written by a newer version, is
damaged, or does not fit together raises StaleDataError.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass

from roots_pipeline import __version__
from roots_pipeline.core.errors import StaleDataError
from roots_pipeline.core.evaluation import read_evaluation
from roots_pipeline.core.manifest import Manifest, check_files, read_manifest
from roots_pipeline.core.recipe_note import noted_recipe
from roots_pipeline.core.storage import exists, join
from roots_pipeline.report.corpus import collect_corpus
from roots_pipeline.report.facts import Corpus, Mixture, Run, State, Step, Tokenizer, Training
from roots_pipeline.report.history import read_cost
from roots_pipeline.report.mixture import collect_mixture
from roots_pipeline.report.reading import expecting
from roots_pipeline.report.tokenizer import collect_tokenizer
from roots_pipeline.report.training import collect_training


@dataclass(frozen=True, slots=True)
class _Kind:
    folder: str
    title: str
    command: str
    made_from: tuple[str, ...]  # folders of earlier steps whose fingerprints its manifest notes under `inputs`


KINDS = (
    _Kind("corpus", "Corpus", "python -m roots_pipeline run", ()),
    _Kind("tokenizer", "Tokenizer", "python -m tokenizer train", ("corpus",)),
    _Kind("mixture", "Mixture", "python -m mixtures write", ("corpus", "tokenizer")),
    _Kind("model", "Model", "python -m train run", ("mixture",)),
)


def collect(run: str) -> Run:
    """All facts of a run. Raises StaleDataError if nothing has finished, or if a step cannot be read."""
    if not exists(run):
        raise StaleDataError("there is no such run folder.", where=run, hint=_begin(run))
    manifests = {kind.folder: _manifest(run, kind) for kind in KINDS}
    logged = exists(join(run, "model", "log.jsonl"))
    if not any(manifests.values()) and not logged:
        begun = [kind.folder for kind in KINDS if exists(join(run, kind.folder))]
        state = f"{begun[0]} was begun but has not finished" if begun else "no step has been run"
        raise StaleDataError(f"there is nothing to report yet: {state}.", where=run, hint=_begin(run))
    tokenizer, training = _tokenizer(run, manifests), _training(run, manifests, logged)
    return Run(
        folder=run, version=__version__, steps=tuple(_step(run, kind, manifests) for kind in KINDS),
        corpus=_corpus(run, manifests), tokenizer=tokenizer, mixture=_mixture(run, manifests, training),
        training=training, evaluation=read_evaluation(join(run, "model", "evaluation.json")),
    )


Manifests = Mapping[str, Manifest | None]


def _corpus(run: str, manifests: Manifests) -> Corpus | None:
    if (manifest := manifests["corpus"]) is None:
        return None
    folder = join(run, "corpus")
    with expecting(folder, KINDS[0].command):
        return collect_corpus(folder, manifest)


def _tokenizer(run: str, manifests: Manifests) -> Tokenizer | None:
    if (manifest := manifests["tokenizer"]) is None:
        return None
    with expecting(join(run, "tokenizer", "manifest.json"), KINDS[1].command):
        return collect_tokenizer(manifest)


def _mixture(run: str, manifests: Manifests, training: Training | None) -> Mixture | None:
    if (manifest := manifests["mixture"]) is None:
        return None
    folder = join(run, "mixture")
    with expecting(folder, KINDS[2].command):
        return collect_mixture(folder, manifest, training.tokens if training else None)


def _training(run: str, manifests: Manifests, logged: bool) -> Training | None:
    if not logged:
        return None
    folder, tokenizer = join(run, "model"), manifests["tokenizer"]
    with expecting(folder, KINDS[3].command):
        vocab_size = int(tokenizer.counts["vocab_size"]) if tokenizer else None
        return collect_training(folder, manifests["model"], vocab_size)


def _manifest(run: str, kind: _Kind) -> Manifest | None:
    folder = join(run, kind.folder)
    path = join(folder, "manifest.json")
    if not exists(path):
        return None
    with expecting(path, kind.command):
        manifest = read_manifest(folder, made_by=kind.command)
        check_files(folder, manifest)
    return manifest


def _step(run: str, kind: _Kind, manifests: Manifests) -> Step:
    folder, manifest = join(run, kind.folder), manifests[kind.folder]
    state: State = "finished" if manifest else "unfinished" if exists(folder) else "missing"
    noted = noted_recipe(run, kind.folder)
    named = f" --recipe {shlex.quote(noted)}" if noted else ""
    command = f"{kind.command}{named} --run {shlex.quote(run)}"
    if manifest is None:
        return Step(kind.folder, kind.title, state, command)
    with expecting(join(folder, "manifest.json"), kind.command):
        old = [name for name in kind.made_from if (earlier := manifests[name])
               and manifest.inputs.get(name, earlier.fingerprint) != earlier.fingerprint]
    stale = f"made from an earlier {' and '.join(old)}" if old else None
    cost = read_cost(join(folder, "history.jsonl"))
    return Step(kind.folder, kind.title, state, command, manifest.fingerprint, cost, stale)


def _begin(run: str) -> str:
    return f"Run `{KINDS[0].command} --run {shlex.quote(run)}` first."
