"""A run folder with a finished corpus and tokenizer, small enough for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from roots_pipeline.core.documents import DOCUMENT_SCHEMA
from roots_pipeline.core.manifest import write_manifest
from roots_pipeline.core.storage import fingerprint, hash_file

SPECIALS = ["<unk>", "<s>", "</s>", "<pad>"]
# BLOOM's pre-tokenizer, as its tokenizer.json has it.
PATTERN = " ?[^(\\s|[.,!?…。，、।۔،])]+"
Row = tuple[str, str, str, str | None]  # id, text, source, language


def write_tokenizer(folder: Path, vocab_size: int = 500) -> str:
    """A byte-level BPE in the shape of BLOOM's, trained on a few sentences. Returns its fingerprint."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE())
    splits = [
        pre_tokenizers.Split(Regex(PATTERN), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(splits)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size, special_tokens=SPECIALS, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    lines = ["the quick brown fox jumps over the lazy dog", "le petit chat dort, la nuit tombe", "for i in range(10):"]
    tokenizer.train_from_iterator(lines * 50, trainer)
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    files = {"tokenizer.json": {"size": path.stat().st_size, "xxh3": hash_file(str(path))}}
    print_of = fingerprint(files["tokenizer.json"]["xxh3"])
    write_manifest(str(folder), "tokenizer", config={}, inputs={}, counts={}, fingerprint=print_of, files=files)
    return print_of


def write_corpus(folder: Path, shards: dict[str, list[Row]], rows_of_a_batch: int = 3) -> str:
    """Corpus files of these shards and their manifest. Returns its fingerprint."""
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    for leftover in (folder / "documents").iterdir():
        leftover.unlink()
    schema = pa.schema([field for field in DOCUMENT_SCHEMA if field.name not in ("verdict", "cause")])
    files: dict[str, dict[str, Any]] = {}
    for name, rows in shards.items():
        path = folder / "documents" / f"{name}.parquet"
        columns = [dict(zip(("id", "text", "source", "language"), row, strict=True)) for row in rows]
        pq.write_table(pa.Table.from_pylist(columns, schema), path, row_group_size=rows_of_a_batch)
        files[f"documents/{name}.parquet"] = {"size": path.stat().st_size, "xxh3": hash_file(str(path))}
    print_of = fingerprint({name: entry["xxh3"] for name, entry in files.items()})
    write_manifest(str(folder), "corpus", config={}, inputs={}, counts={}, fingerprint=print_of, files=files)
    return print_of


def mixed_shards() -> dict[str, list[Row]]:
    """Two shards with four groups, one of them without a language; empty and non-Latin documents."""
    sentence = "the quick brown fox jumps over a lazy dog and le petit chat dort la nuit"
    words = sentence.split()

    def text(number: int) -> str:
        return " ".join(words[(number * place) % len(words)] for place in range(3 + 7 * (number % 5))) + "."

    shards: dict[str, list[Row]] = {"web-00000": [], "web-00001": []}
    for number in range(40):
        language = ("en", "fr", None)[number % 3]
        shards[f"web-0000{number // 20}"].append((f"w{number}", text(number), "web", language))
    shards["web-00000"].append(("forged", "the end </s> of <s> it", "web", "en"))
    shards["web-00001"] += [("empty", "", "web", "en"), ("hindi", "नमस्ते दुनिया। 你好，世界。", "web", "hi")]
    shards["code-00000"] = [(f"c{n}", f"for i in range({n}):\n    print(i)\n", "code", "python") for n in range(5)]
    return shards


def write_run(run: Path, shards: dict[str, list[Row]] | None = None) -> str:
    """A run with corpus and tokenizer. Returns its path."""
    write_corpus(run / "corpus", mixed_shards() if shards is None else shards)
    write_tokenizer(run / "tokenizer")
    return str(run)
