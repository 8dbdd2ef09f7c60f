"""Every engine makes the same bytes: documents, rejected, pairs, piece counts, `.bin/.idx`."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mixtures.config import load_mixture_recipe
from mixtures.write import write_mixture
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import hash_file
from roots_pipeline.engines.beam import BeamEngine
from roots_pipeline.engines.datatrove import DatatroveEngine
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from tests.engines.clusters import dask_cluster, portable_runner
from tokenizer.config import load_tokenizer_recipe
from tokenizer.count_corpus import count_corpus
from tokenizer.train import train_tokenizer

RECIPE = """
corpus:
  sources:
    - {name: web, kind: jsonl, path: "package://sample/web/e[su].jsonl", language_from: filename}
    - {name: english, kind: jsonl, path: package://sample/web/en.jsonl, language: en}
    - {name: bad, kind: jsonl, path: "package://sample/bad/*.jsonl"}
  maximum_bad_share: 0.9
  shard_size: 25kB
  stages:
    - {stage: massivetext}
    - {stage: thresholds}
    - {stage: exact_duplicates}
    - {stage: near_duplicates, threshold: 0.7, bands: 42, rows: 3}
    - {stage: repeated_passages, passage_bytes: 100}
    - stage: decontaminate
      evaluations:
        - {name: reading, path: package://sample/eval/reading.jsonl}
"""


@dataclass(frozen=True)
class Made:
    run: Path
    corpus: str
    files: dict[str, str]


def digests(run: Path) -> dict[str, str]:
    """Hash of every file of a run that people or later steps read, but for manifests (they hold times)."""
    files = [path for path in run.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(run)): hash_file(str(path)) for path in sorted(files)
        if not any(part.startswith(".") for part in path.relative_to(run).parts)
        and path.suffix in (".parquet", ".bin", ".idx", ".yaml")
    }


def make(run: Path, engine: Any, recipe: Path, tokenizer: Path | None = None) -> Made:
    quiet = Progress(quiet=True)
    corpus = run_corpus(load_corpus_recipe(str(recipe)), str(run / "corpus"), engine, quiet)
    if tokenizer is None:
        train_tokenizer(load_tokenizer_recipe("smoke"), str(run), engine, quiet)
    else:  # only counting is an engine's affair, and the counts must come out alike
        count_corpus(engine, str(run / "corpus"), str(run / "tokenizer"))
        shutil.copytree(tokenizer, run / "tokenizer", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*.parquet", ".*"))
    write_mixture(load_mixture_recipe("smoke"), str(run), engine, quiet)
    assert read_manifest(str(run / "corpus")).fingerprint == corpus.fingerprint
    return Made(run, corpus.fingerprint, digests(run))


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "engines.yaml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory, recipe: Path) -> Made:
    with LocalEngine(1) as engine:
        made = make(tmp_path_factory.mktemp("local"), engine, recipe)
    parts = {name.split("/")[0] + "/" + name.split("/")[1].split(".")[0] for name in made.files}
    assert {"corpus/documents", "corpus/rejected", "corpus/pairs", "corpus/quarantine", "tokenizer/counts"} <= parts
    assert any(name.endswith(".idx") for name in made.files)
    return made


@pytest.fixture(params=["local-2", "local-4", "fnapi", "fnapi-2", "portable", "dask", "datatrove-2"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    name, _, workers = request.param.partition("-")
    if name == "dask" and find_spec("distributed") is None:
        pytest.skip("needs the extra 'dask'")
    with ExitStack() as stack:
        if name == "local":
            yield stack.enter_context(LocalEngine(int(workers)))
        elif name == "datatrove":
            yield DatatroveEngine(int(workers))
        elif name == "portable":
            yield BeamEngine(stack.enter_context(portable_runner(tmp_path)))
        elif name == "dask":
            yield BeamEngine(stack.enter_context(dask_cluster(tmp_path)))
        else:
            more = ["--direct_num_workers", workers, "--direct_running_mode", "multi_processing"] if workers else []
            yield BeamEngine(more)


def test_all_engines_make_the_same_files(engine: Any, expected: Made, recipe: Path, tmp_path: Path) -> None:
    made = make(tmp_path / "run", engine, recipe, expected.run / "tokenizer")
    assert made.files == expected.files
    assert made.corpus == expected.corpus
