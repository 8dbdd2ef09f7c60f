"""Blends and sample indices of large mixtures: CPU time beside megatron-core's C++ helpers, peak memory, random reads.

Synthetic lengths (geometric, mean 1,000 tokens), S = 2,048. Prints for each part what both did; arrays must be equal.
megatron-core is left out where it is not installed.

    python -m benchmarks.mixture_order [millions of documents, default 100] [millions of samples of the blend]
"""

from __future__ import annotations

import importlib
import multiprocessing
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from mixtures.blend import blend, normalise
from mixtures.group import GroupSamples
from mixtures.indexed import IndexedReader, indexed_writer
from mixtures.order import build_order, locate_samples, samples_in
from roots_pipeline.core.storage import commit_file

_S = 2048


def helpers() -> Any:
    """megatron-core's helpers, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module("megatron.core.datasets.helpers_cpp")
    except ImportError:
        return None


def time_blend(millions: int, groups: int = 300) -> None:
    samples = millions * 1_000_000
    weights = np.random.RandomState(0).dirichlet(np.ones(groups)).tolist()
    blend(weights, 1000)  # compiles
    started = time.process_time()
    ours = blend(weights, samples)
    print(f"blend of {groups} groups, {samples:,} samples: {time.process_time() - started:.1f} CPU s", flush=True)
    theirs = helpers()
    if theirs is not None:
        few = min(samples, 5_000_000)
        names, numbers = np.zeros(few, np.int16), np.zeros(few, np.int64)
        started = time.process_time()
        theirs.build_blending_indices(names, numbers, normalise(weights), groups, few, False)
        took = time.process_time() - started
        started = time.process_time()
        again = blend(weights, few)
        own = time.process_time() - started
        assert np.array_equal(names, ours.groups[:few]) and np.array_equal(numbers, again.numbers)
        print(f"  first {few:,}: ours {own:.2f}, megatron-core {took:.2f} CPU s ({took / own:.1f}x), equal")


def lengths_of(documents: int) -> np.ndarray[Any, np.dtype[np.int32]]:
    return np.random.Generator(np.random.PCG64(0)).geometric(1 / 1000, documents).astype(np.int32)


def time_index(documents: int) -> None:
    lengths = lengths_of(documents)
    order = np.arange(documents, dtype=np.int32)
    np.random.RandomState(0).shuffle(order)
    tokens = int(lengths.sum(dtype=np.int64))
    samples = samples_in(1, tokens, _S)
    locate_samples(lengths[:9], np.arange(9, dtype=np.int32), 8, 1, 100)  # compiles
    started = time.process_time()
    ours = locate_samples(lengths, order, _S, samples, tokens)
    took = time.process_time() - started
    print(f"sample index of {documents:,} documents, {tokens:,} tokens: {took:.2f} CPU s", flush=True)
    theirs = helpers()
    if theirs is not None:
        started = time.process_time()
        other = theirs.build_sample_idx_int32(lengths, order, _S, 1, tokens, True, 1)
        other_took = time.process_time() - started
        assert np.array_equal(ours, other)
        print(f"  megatron-core {other_took:.2f} CPU s ({other_took / took:.2f}x), equal")


def measure_memory(documents: int) -> None:
    """Peak memory of a whole order in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        peak, arrays, seconds = pool.apply(_build, (documents,))
    print(f"whole order: arrays of {arrays / 1e9:.2f} GB, peak above the inputs {peak / 1e9:.2f} GB "
          f"({peak / arrays:.2f}x), {seconds:.1f} CPU s", flush=True)  # fmt: skip


def _build(documents: int) -> tuple[int, int, float]:
    small = lengths_of(1000)
    build_order(small, np.arange(1000), 8, None, 0, "bigscience")  # compiles
    lengths, chosen = lengths_of(documents), np.arange(documents)
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    before = _peak()
    started = time.process_time()
    order = build_order(lengths, chosen, _S, None, 0, "bigscience")
    seconds = time.process_time() - started
    arrays = sum(one.nbytes for one in (order.document_index, order.sample_index, order.shuffle_index))
    return _peak() - before, arrays, seconds


def _peak() -> int:
    """Bytes of memory that this process had at most (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024


def write_zeros(prefix: str, lengths: np.ndarray[Any, np.dtype[np.int32]]) -> None:
    """An indexed data set of documents of these lengths, whose tokens are all 0."""
    with indexed_writer(prefix, np.int32, commit_file) as writer:
        for first in range(0, len(lengths), 10_000):
            block = lengths[first : first + 10_000]
            writer.append(np.zeros(int(block.sum()), np.int32), block)


def time_reads(documents: int = 200_000) -> None:
    """Random samples of a data set of 200 million tokens, its order in memory."""
    with tempfile.TemporaryDirectory() as folder:
        lengths = lengths_of(documents)
        write_zeros(f"{folder}/a", lengths)
        order = build_order(lengths, np.arange(documents), _S, None, 0, "bigscience")
        group = GroupSamples(
            IndexedReader(f"{folder}/a"), _S, order.document_index, order.sample_index, order.shuffle_index
        )
        group.sample(0)  # compiles
        numbers = np.random.RandomState(0).randint(0, len(group), 20_000).tolist()
        started = time.process_time()
        for number in numbers:
            group.sample(number)
        print(f"random sample of {_S + 1:,} tokens: {(time.process_time() - started) / len(numbers) * 1e6:.1f} us")


def main() -> None:
    documents = int(float(sys.argv[1]) * 1e6) if len(sys.argv) > 1 else 100_000_000
    time_reads()
    time_index(documents)
    measure_memory(documents)
    time_blend(int(sys.argv[2]) if len(sys.argv) > 2 else 100)


if __name__ == "__main__":
    main()
