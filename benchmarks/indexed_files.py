"""Text to `.bin/.idx`: ours against the loop of Megatron's preprocess_data, in CPU time of one process.

Theirs: JSON line, Hugging Face tokenizer, end-of-text, megatron-core's builder, document by document. Ours: the two
tasks `encode_shard` and `write_group`. Both write the same documents, and the files must be equal byte for byte. Text:
the folder of real text beside the checkout if there is one, else the sample corpus over and over.

    python -m benchmarks.indexed_files [megabytes]
"""

from __future__ import annotations

import importlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from mixtures.indexed import IndexedWriter
from mixtures.join import write_group
from mixtures.tokenise import encode_shard
from roots_pipeline.core.tasks import Commit

PROJECT = Path(__file__).resolve().parent.parent
VOCABULARY = 32_000
PATTERN = " ?[^(\\s|[.,!?…。，、।۔،])]+"


def texts(megabytes: float) -> list[str]:
    """About this much text in many languages."""
    found, size = [], 0.0
    for text in _stream():
        found.append(text)
        size += len(text.encode()) / 1e6
        if size >= megabytes:
            break
    return found


def _stream() -> Iterator[str]:
    folder = PROJECT.parent / "shared" / "data" / "corpus"
    files = sorted(folder.glob("*.jsonl.zst"))
    if files:
        streams = [_lines(path) for path in files]
        while streams:  # a few documents of every language in turn
            for stream in list(streams):
                text = next(stream, None)
                if text is None:
                    streams.remove(stream)
                else:
                    yield text
    sample = [
        json.loads(line)["text"]
        for path in sorted((PROJECT / "roots_pipeline" / "sample" / "web").glob("*.jsonl"))
        for line in path.read_text("utf-8").split("\n")
        if line
    ]
    while True:
        yield from sample


def _lines(path: Path) -> Iterator[str]:
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as data:
        rest = b""
        while block := data.read(1 << 20):
            *lines, rest = (rest + block).split(b"\n")
            for line in lines:
                yield json.loads(line)["text"]


def train(documents: list[str], path: str) -> None:
    """A byte-level BPE with BLOOM's pre-tokenizer, trained on some of the text."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(PATTERN), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<unk>", "<s>", "</s>", "<pad>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents[::8], trainer)
    tokenizer.save(path)


def builder(folder: Path) -> tuple[Any, str]:
    """megatron-core's builder if it is installed, else a plain writer that costs the loop even less."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch = importlib.import_module("torch")
            indexed = importlib.import_module("megatron.core.datasets.indexed_dataset")
    except ImportError:
        writer = IndexedWriter(str(folder / "theirs.bin"), str(folder / "theirs.idx"), np.uint16)

        def add(ids: list[int]) -> None:
            writer.append(np.array(ids), np.array([len(ids)]))

        return (add, lambda: writer.__exit__(None, None, None)), "our writer, one document at a time"
    theirs = indexed.IndexedDatasetBuilder(str(folder / "theirs.bin"), dtype=np.uint16)
    return (
        lambda ids: theirs.add_document(torch.IntTensor(ids), [len(ids)]),
        lambda: theirs.finalize(str(folder / "theirs.idx")),
    ), "megatron-core"


def run_theirs(folder: Path, source: Path, tokenizer: str) -> tuple[float, str]:
    """CPU seconds of the loop, and what wrote the files."""
    (add, finish), name = builder(folder)
    encoder = Tokenizer.from_file(tokenizer)
    encoder.encode_special_tokens = True  # else `<s>` in a web page becomes a control token
    warnings.simplefilter("ignore")
    started = time.process_time()
    with source.open("rb") as lines:
        for line in lines:
            add([*encoder.encode(json.loads(line)["text"]).ids, 2])
    finish()
    return time.process_time() - started, name


def run_ours(folder: Path, source: Path, tokenizer: str) -> float:
    """CPU seconds of the two tasks."""
    started = time.process_time()
    output = str(folder / "pieces.arrow")
    result = encode_shard(Commit(), documents=str(source), tokenizer=tokenizer, output=output)
    pieces = [(output, result["groups"]["web.mul"]["batches"])]
    write_group(Commit(), pieces=pieces, prefix=str(folder / "ours"), dtype="uint16")
    return time.process_time() - started


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    documents = texts(megabytes)
    size = sum(len(text.encode()) for text in documents) / 1e6
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = str(folder / "tokenizer.json")
        train(documents, tokenizer)
        lines, table = folder / "text.jsonl", folder / "text.parquet"
        lines.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in documents), "utf-8")
        count = len(documents)
        columns = {
            "id": pa.array([str(number) for number in range(count)]),
            "text": pa.array(documents, pa.large_string()),
            "source": pa.array(["web"] * count),
            "language": pa.array(["mul"] * count),
        }
        pq.write_table(pa.table(columns), table, compression="zstd", row_group_size=1024)
        run_ours(folder, table, tokenizer)  # compiles the kernels once
        ours = run_ours(folder, table, tokenizer)
        theirs, writer = run_theirs(folder, lines, tokenizer)
        for suffix in (".bin", ".idx"):
            if (folder / f"ours{suffix}").read_bytes() != (folder / f"theirs{suffix}").read_bytes():
                raise SystemExit(f"the {suffix} files differ")
    print(f"{size:.1f} MB of text, {count} documents; files equal byte for byte")
    print(f"loop with {writer}: {theirs:.2f} CPU s, {size / theirs:.2f} MB/s")
    print(f"rootbloom:                {ours:.2f} CPU s, {size / ours:.2f} MB/s")
    print(f"ratio {theirs / ours:.1f}x")


if __name__ == "__main__":
    main()
