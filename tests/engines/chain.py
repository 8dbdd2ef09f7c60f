"""The chain of steps that engines run, on a small part of the sample with every kind of exchange, and its digests."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mixtures.config import load_mixture_recipe
from mixtures.write import write_mixture
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.manifest import read_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import hash_file
from roots_pipeline.run import run_corpus
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
  shard_size: 50kB
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


def make_corpus(run: Path, engine: Any, recipe: Path) -> str:
    """The corpus alone; its fingerprint."""
    made = run_corpus(load_corpus_recipe(str(recipe)), str(run / "corpus"), engine, Progress(quiet=True))
    assert read_manifest(str(run / "corpus")).fingerprint == made.fingerprint
    return made.fingerprint


def make(run: Path, engine: Any, recipe: Path, tokenizer: Path | None = None) -> Made:
    """Corpus, tokenizer and mixture by an engine. With a tokenizer that is trained already, pieces are only counted."""
    quiet = Progress(quiet=True)
    corpus = make_corpus(run, engine, recipe)
    if tokenizer is None:
        train_tokenizer(load_tokenizer_recipe("smoke"), str(run), engine, quiet)
    else:  # only counting is an engine's affair, and the counts must come out alike
        count_corpus(engine, str(run / "corpus"), str(run / "tokenizer"))
        shutil.copytree(tokenizer, run / "tokenizer", dirs_exist_ok=True,
                        ignore=shutil.ignore_patterns("*.parquet", ".*"))
    write_mixture(load_mixture_recipe("smoke"), str(run), engine, quiet)
    return Made(run, corpus, digests(run))
