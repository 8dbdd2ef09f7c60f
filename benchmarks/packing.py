"""Best-fit packing: time and memory for many synthetic documents, fill and cuts on real text beside a stream.

Synthetic lengths are geometric with a mean of 1,000 tokens, samples hold 2,049. Real text: the folder beside the
checkout, the same share of all its languages, in tokens of a tokenizer trained on a third of it.

    python -m benchmarks.packing [millions of documents, default 10] [megabytes of real text, default 30]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks._real_text import texts_or_leave
from benchmarks.encoding import write_tokenizer
from benchmarks.mixture_order import lengths_of, write_zeros
from mixtures.indexed import IndexedReader, IntArray
from mixtures.order import build_order
from mixtures.packed import PackedSamples, shuffled_epochs
from mixtures.packing import PackedIndex, pack
from tokenizer.encode import Encoder

_S = 2048


def fill(index: PackedIndex, tokens: int, sequence_length: int) -> float:
    return tokens / (len(index.labels) * (sequence_length + 1))


def time_packing(documents: int) -> None:
    lengths = lengths_of(documents)
    pack(lengths[:9], np.arange(9), 8, 0)  # compiles
    started = time.process_time()
    index = pack(lengths, np.arange(documents), _S, 0)
    took = time.process_time() - started
    tokens = int(lengths.sum(dtype=np.int64))
    arrays = sum(one.nbytes for one in (index.documents, index.starts, index.samples, index.labels))
    print(f"{documents:,} documents, {tokens:,} tokens: {took:.2f} CPU s, {len(index.labels):,} samples, "
          f"{fill(index, tokens, _S):.5%} full, arrays of {arrays / 1e6:.0f} MB", flush=True)  # fmt: skip


def time_reads(documents: int = 200_000) -> None:
    """Random packed samples of 200 million tokens, and which of their labels count."""
    with tempfile.TemporaryDirectory() as folder:
        lengths = lengths_of(documents)
        write_zeros(f"{folder}/a", lengths)
        index = pack(lengths, np.arange(documents), _S, 0)
        group = PackedSamples(IndexedReader(f"{folder}/a"), _S, 2, index, shuffled_epochs(len(index.labels), 1, 0))
        group.sample(0)  # compiles
        numbers = np.random.RandomState(0).randint(0, len(group), 20_000).tolist()
        for name, read in (("sample", group.sample), ("labels that count", group.counted)):
            started = time.process_time()
            for number in numbers:
                read(number)
            print(f"random {name}: {(time.process_time() - started) / len(numbers) * 1e6:.1f} us")


def measure_real_text(megabytes: float) -> None:
    texts = texts_or_leave(megabytes)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "tokenizer.json")
        write_tokenizer(texts[::3], path)
        _, counts = Encoder.from_file(path).encode_column(pa.array(texts, pa.large_string()), append_eos=True)
    lengths: IntArray = counts.astype(np.int32)
    tokens, documents = int(lengths.sum(dtype=np.int64)), np.arange(len(lengths))
    print(f"real text: {len(texts):,} documents, {tokens:,} tokens, mean {lengths.mean():.0f}, "
          f"longest {lengths.max():,}")  # fmt: skip
    for sequence_length in (512, 1024, _S, 8192):
        index = pack(lengths, documents, sequence_length, 0)
        order = build_order(lengths, documents, sequence_length, None, 0, "bigscience")
        stream = np.unique(order.document_index[order.sample_index[1:-1, 0]][order.sample_index[1:-1, 1] > 0])
        cut = int(np.count_nonzero(lengths > sequence_length + 1))
        print(f"  {sequence_length:5} tokens: {fill(index, tokens, sequence_length):.3%} full, "
              f"{cut / len(lengths):.1%} of the documents are cut (stream {len(stream) / len(lengths):.1%}), "
              f"{int(index.labels.sum()) / tokens:.2%} of the tokens are labels")  # fmt: skip


def main() -> None:
    time_packing(int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 10_000_000)
    time_reads()
    measure_real_text(float(sys.argv[2]) if len(sys.argv) > 2 else 30)


if __name__ == "__main__":
    main()
