"""The step itself: RUN/corpus in, RUN/tokenizer out: counts, vocabulary, files for Hugging Face, manifest.

Order of work: sample and count (`count_corpus`, skipped where nothing changed), weigh, learn or take over, export,
measure. The same run a second time does none of it; a changed vocabulary size or weight counts nothing anew; a run that
was killed while it merged goes on from its last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from roots_pipeline.core.errors import TokenizerError
from roots_pipeline.core.manifest import Manifest, check_files, note_history, read_manifest, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import fingerprint, hash_file, join, lock_folder, size_of, sweep_temporaries
from roots_pipeline.core.tasks import Commit, Engine, Task, run_task
from tokenizer.checkpoint import MergeCheckpoint
from tokenizer.compression import bytes_per_token
from tokenizer.config import TokenizerRecipe
from tokenizer.constraint import VocabularySizes
from tokenizer.content import whole_result
from tokenizer.count_corpus import COUNTS, CorpusCounts, count_corpus
from tokenizer.counts_file import Group, read_counts
from tokenizer.encode import Encoder
from tokenizer.export import FILES
from tokenizer.learn import learn_byte_fallback, learn_byte_level, read_earlier, take_over
from tokenizer.pretokenizers import choice_of
from tokenizer.sampling.config import Proportional
from tokenizer.sampling.sample import group_ratios

_TRAIN_VERSION = 2  # raise it when the same counts would give another tokenizer
_SHAPE = {"divisible_by", "tensor_parallel", "padded_vocab_size"}  # of the embedding: no merge depends on it


def train_tokenizer(recipe: TokenizerRecipe, run: str, engine: Engine, progress: Progress) -> Manifest:
    """Train, take over or complete the tokenizer of a run and return its manifest.

    Raises TokenizerError (impossible sizes, too few merges, bad weights, an unusable tokenizer file), StaleDataError
    (no finished corpus), EmptyOutputError (a corpus without text), StorageError.
    """
    folder = join(run, "tokenizer")
    recipe = usable_recipe(recipe)
    sizes = recipe.sizes
    started = time.time()
    with lock_folder(folder):
        sweep_temporaries(folder)
        counted = count_corpus(engine, join(run, "corpus"), folder, recipe.patterns, recipe.sampling)
        settings = recipe.model_dump(mode="json", exclude=_SHAPE)
        outside = [hash_file(path) for path in (recipe.continue_from, recipe.existing) if path is not None]
        mark = fingerprint(["train", _TRAIN_VERSION, settings, outside, counted.fingerprint])
        task = Task("train", join(folder, ".work", "train.json"), mark, train_and_export, {
            "counts": counted.path, "folder": folder, "recipe": recipe, "ratios": _ratios(recipe, counted),
            "texts": [shard.path for shard in counted.shards],
        })  # fmt: skip
        result = whole_result(task)
        checkpoint = MergeCheckpoint(join(folder, ".work", "merges.json"), mark)
        if result is None:
            with progress.stage("merge pairs", sizes.merges) as bar:
                result = run_task(replace(task, arguments={
                    **task.arguments, "advance": bar.advance, "say": progress.say, "checkpoint": checkpoint,
                }))  # fmt: skip
        checkpoint.forget()
        manifest = _write_manifest(folder, recipe, sizes, counted, result)
        note_history(folder, started, step="tokenizer", vocab_size=sizes.vocab_size)
    return manifest


def usable_recipe(recipe: TokenizerRecipe) -> TokenizerRecipe:
    """The recipe with all that decides the size; what cannot be used is told before anything is counted."""
    recipe = _with_size_of_import(recipe)
    _check_byte_fallback(recipe)
    read_earlier(recipe)
    return recipe


def preview(recipe: TokenizerRecipe, run: str) -> dict[str, Any]:
    """What `train_tokenizer` would make, from recipe and corpus manifest alone. Raises like it."""
    sizes = usable_recipe(recipe).sizes
    corpus = join(run, "corpus")
    manifest = read_manifest(corpus, made_by="python -m roots_pipeline run")
    check_files(corpus, manifest)
    return {
        "vocab_size": sizes.vocab_size, "padded_vocab_size": sizes.padded_vocab_size, "spare": sizes.spare,
        "merges": 0 if recipe.existing else sizes.merges, "sampling": recipe.sampling.rule,
        "documents": manifest.counts["kept"], "bytes": manifest.counts["kept_bytes"],
    }  # fmt: skip


def train_and_export(
    commit: Commit,
    counts: str,
    folder: str,
    recipe: TokenizerRecipe,
    ratios: dict[Group, float],
    texts: list[str],
    advance: Callable[[int], None] | None = None,
    say: Callable[[str], None] | None = None,
    checkpoint: MergeCheckpoint | None = None,
) -> dict[str, Any]:
    """Task: learn the merges from a count table and write the files.

    `ratios`: how often each occurrence of a group counts; `texts`: the counted documents, for those who cannot learn
    from counts. `advance` hears of new merges, `say` of the memory needed; `checkpoint` keeps merges meanwhile. Result:
    `pieces`, the number of distinct ones, `bytes_per_token` by language, and what pruning left out. Raises
    TokenizerError.
    """
    if recipe.existing is not None:
        files, facts = take_over(recipe.existing)
    elif recipe.pretokenizer == "sentencepiece":
        files, facts = learn_byte_fallback(recipe, texts)
    else:
        files, facts = learn_byte_level(
            recipe, counts, ratios, advance or (lambda _: None), say or (lambda _: None), checkpoint
        )
    for name, content in files.items():
        with commit.file(join(folder, name)) as temporary, open(temporary, "wb") as out:
            out.write(content)
    packed = bytes_per_token(read_counts(counts), Encoder.from_file(join(folder, FILES[0])))
    return {**facts, "bytes_per_token": {name: round(value, 4) for name, value in packed.items()}}


def _with_size_of_import(recipe: TokenizerRecipe) -> TokenizerRecipe:
    """The recipe with the vocabulary size and the pre-tokenizer of the tokenizer that is to be imported."""
    if recipe.existing is None:
        return recipe
    encoder = Encoder.from_file(recipe.existing)
    _ = encoder.end_id  # the chain ends every document with it
    pretokenizer, digits = choice_of(encoder.patterns)
    return recipe.model_copy(update={
        "vocab_size": encoder.vocab_size, "reserved": 0, "pretokenizer": pretokenizer, "digits": digits,
    })  # fmt: skip


def _check_byte_fallback(recipe: TokenizerRecipe) -> None:
    if recipe.pretokenizer != "sentencepiece" or recipe.existing is not None:
        return
    weighted = recipe.sampling.apply == "weights" and not isinstance(recipe.sampling, Proportional)
    if weighted or recipe.language_weights or recipe.continue_from or recipe.digits != "whole":
        raise TokenizerError(
            "a vocabulary with byte fallback (pretokenizer: sentencepiece) is learned from documents, not from counts: "
            "language_weights, continue_from, digits and sampling by weights do not work with it.",
            hint="Use sampling with apply: documents.",
        )


def _ratios(recipe: TokenizerRecipe, counted: CorpusCounts) -> dict[Group, float]:
    drawn = recipe.sampling.apply == "documents"
    return dict.fromkeys(counted.sizes, 1.0) if drawn else group_ratios(recipe.sampling, counted.sizes)


def _write_manifest(
    folder: str, recipe: TokenizerRecipe, sizes: VocabularySizes, counted: CorpusCounts, result: dict[str, Any]
) -> Manifest:
    files = {
        name: {"size": size_of(join(folder, name)), "xxh3": hash_file(join(folder, name))} for name in (*FILES, COUNTS)
    }
    return write_manifest(
        folder,
        "tokenizer",
        config=recipe.model_dump(mode="json", by_alias=True),
        inputs={"corpus": counted.corpus, "documents": counted.documents, "bytes": counted.bytes},
        counts={
            "vocab_size": sizes.vocab_size, "padded_vocab_size": sizes.padded_vocab_size, "spare": sizes.spare,
            "merges": sizes.merges, **result, "languages": counted.languages,
            **({"sample": counted.sample} if counted.sample else {}),
        },
        fingerprint=fingerprint(files[FILES[0]]["xxh3"]),  # later steps depend on the ids and nothing else
        seeds={"sampling": recipe.sampling.seed} if recipe.sampling.draws else {},
        files=files,
    )  # fmt: skip
