"""The step itself: RUN/corpus in, RUN/tokenizer out: counts, vocabulary, files for Hugging Face, manifest.

Order of work: count (`count_corpus`, skipped where nothing changed), weigh, train, export, measure. The same
run a second time does none of it; a changed vocabulary size or weight counts nothing anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from roots_pipeline.core.manifest import Manifest, note_history, write_manifest
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.storage import fingerprint, hash_file, join, lock_folder, size_of, sweep_temporaries
from roots_pipeline.core.tasks import Commit, Engine, Task, run_task
from tokenizer.alphabet import FIRST_MERGE_ID
from tokenizer.bpe import train_bpe
from tokenizer.compression import bytes_per_token
from tokenizer.config import TokenizerRecipe
from tokenizer.constraint import check_merges_found
from tokenizer.content import whole_result
from tokenizer.count_corpus import COUNTS, count_corpus
from tokenizer.counts_file import read_counts
from tokenizer.encode import Encoder
from tokenizer.export import FILES, tokenizer_files
from tokenizer.weights import integer_weights, weigh

_TRAIN_VERSION = 1  # raise it when the same counts would give another tokenizer
_SHAPE = {"divisible_by", "tensor_parallel", "padded_vocab_size"}  # of the embedding: no merge depends on it


def train_tokenizer(recipe: TokenizerRecipe, run: str, engine: Engine, progress: Progress) -> Manifest:
    """Train or complete the tokenizer of a run and return its manifest.

    Raises TokenizerError (impossible sizes, too few merges, bad weights), StaleDataError (no finished corpus),
    EmptyOutputError (a corpus without text), StorageError.
    """
    folder = join(run, "tokenizer")
    sizes = recipe.sizes
    started = time.time()
    with lock_folder(folder):
        sweep_temporaries(folder)
        counted = count_corpus(engine, join(run, "corpus"), folder)
        settings = recipe.model_dump(mode="json", exclude=_SHAPE)
        mark = fingerprint(["train", _TRAIN_VERSION, settings, counted.fingerprint])
        task = Task("train", join(folder, ".work", "train.json"), mark, train_and_export, {
            "counts": counted.path, "folder": folder, "languages": sorted(counted.languages), "recipe": recipe,
        })  # fmt: skip
        result = whole_result(task)
        if result is None:
            with progress.stage("merge pairs", sizes.merges) as bar:
                result = run_task(replace(task, arguments={**task.arguments, "advance": bar.advance}))
        files = {
            name: {"size": size_of(join(folder, name)), "xxh3": hash_file(join(folder, name))}
            for name in (*FILES, COUNTS)
        }
        manifest = write_manifest(
            folder,
            "tokenizer",
            config=recipe.model_dump(mode="json"),
            inputs={"corpus": counted.corpus, "documents": counted.documents, "bytes": counted.bytes},
            counts={
                "vocab_size": sizes.vocab_size, "padded_vocab_size": sizes.padded_vocab_size, "spare": sizes.spare,
                "merges": sizes.merges, **result, "languages": counted.languages,
            },
            fingerprint=fingerprint(files[FILES[0]]["xxh3"]),  # later steps depend on the ids and nothing else
            files=files,
        )  # fmt: skip
        note_history(folder, started, step="tokenizer", vocab_size=sizes.vocab_size)
    return manifest


def train_and_export(
    commit: Commit,
    counts: str,
    folder: str,
    languages: list[str],
    recipe: TokenizerRecipe,
    advance: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Task: learn the merges from a count table and write the files. `advance` hears of new merges.

    Result: `pieces`, the number of distinct ones, and `bytes_per_token` by language. Raises TokenizerError.
    """
    weights, scale = integer_weights(recipe.language_weights, languages)
    pieces = weigh(read_counts(counts), weights, scale)
    done = FIRST_MERGE_ID

    def on_progress(tokens: int) -> None:
        nonlocal done
        if advance is not None:
            advance(tokens - done)
        done = tokens

    vocabulary = train_bpe(
        pieces.data,
        pieces.offsets,
        pieces.counts,
        recipe.vocab_size,
        minimum_frequency=recipe.minimum_frequency * scale,
        max_token_length=recipe.max_token_length,
        on_progress=on_progress,
    )
    check_merges_found(len(vocabulary.merges), recipe.sizes, recipe.minimum_frequency)
    for name, content in tokenizer_files(vocabulary).items():
        with commit.file(join(folder, name)) as temporary, open(temporary, "wb") as out:
            out.write(content)
    packed = bytes_per_token(read_counts(counts), Encoder.from_file(join(folder, FILES[0])))
    return {
        "pieces": len(pieces.counts),
        "bytes_per_token": {name: round(value, 4) for name, value in packed.items()},
    }
