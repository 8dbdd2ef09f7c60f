"""Exact substring deduplication beside a suffix array (pydivsufsort, if it is installed): CPU time of one core.

    python -m benchmarks.substring [megabytes]

Input: text in all languages of the folder of real text beside the checkout. The suffix array is that of all documents
with a byte between them that UTF-8 does not have; longest common prefixes by Kasai; a byte is repeated if it lies in a
window whose prefix with a neighbour is as long. Both must cut the same bytes, or the benchmark fails.
"""

from __future__ import annotations

import importlib.util
import resource
import sys
from time import process_time

import numpy as np
import numpy.typing as npt

from benchmarks._real_text import texts_or_leave
from benchmarks._rounds import batches_of, run_rounds
from roots_pipeline.dedup.substring import RepeatedPassages

SEPARATOR = b"\xff"


def suffix_array(texts: list[str], length: int) -> tuple[float, npt.NDArray[np.bool_]]:
    """CPU seconds, and which bytes of the texts (with separators) are repeated."""
    from pydivsufsort import divsufsort, kasai

    text = np.frombuffer(SEPARATOR.join(one.encode() for one in texts), np.uint8).copy()
    began = process_time()
    order = divsufsort(text)
    common = kasai(text, order)
    repeated = np.zeros(len(text), bool)
    same = common[: len(text) - 1] >= length
    repeated[order[:-1][same]] = True
    repeated[order[1:][same]] = True
    # A window that holds a separator is inside no document.
    ends = np.flatnonzero(np.append(text, 0xFF) == 0xFF)
    room = ends[np.searchsorted(ends, np.arange(len(text)))] - np.arange(len(text))
    repeated &= room >= length
    marks = np.zeros(len(text) + 1, np.int64)
    starts = np.flatnonzero(repeated)
    np.add.at(marks, starts, 1)
    np.add.at(marks, starts + length, -1)
    return process_time() - began, np.cumsum(marks)[:-1] > 0


def cut_at_characters(texts: list[str], covered: npt.NDArray[np.bool_]) -> list[int]:
    """Bytes cut from each text if only whole characters go."""
    cut, at = [], 0
    for text in texts:
        data = text.encode()
        inside = covered[at : at + len(data)]
        starts = np.flatnonzero((np.frombuffer(data, np.uint8) & 0xC0) != 0x80)
        sizes = np.diff(np.append(starts, len(data)))
        whole = np.logical_and.reduceat(inside, starts) if len(data) else np.zeros(0, bool)
        cut.append(int(sizes[whole].sum()))
        at += len(data) + 1
    return cut


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    texts = texts_or_leave(megabytes)
    size = sum(len(text.encode()) for text in texts) / 1e6
    with_peer = importlib.util.find_spec("pydivsufsort") is not None
    if not with_peer:
        print("pydivsufsort is not installed: left out.")
    for length in (100, 50):
        stage = RepeatedPassages(length, keep="none", minimum_left=0)
        run_rounds(stage, batches_of(texts[:50] * 2))  # compiles, or loads what was compiled before
        seconds, batches = run_rounds(stage, batches_of(texts))
        total = sum(seconds.values())
        cut = [int(value) for batch in batches for value in batch.column("cut_bytes").to_pylist()]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        print(f"{size:.1f} MB, {len(texts)} documents, passages of {length} bytes: "
              f"{sum(cut) / size / 1e4:.1f} % repeated")
        print(f"  rootbloom     {size / total:6.1f} MB/s, at most {memory:.2f} GB; "
              + ", ".join(f"{name} {value * 1000 / size:.2f}" for name, value in seconds.items()) + " ms a MB")
        if with_peer:
            theirs, covered = suffix_array(texts, length)
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
            print(f"  suffix array  {size / theirs:6.1f} MB/s, at most {memory:.2f} GB; ratio {theirs / total:.1f}x")
            if cut != cut_at_characters(texts, covered):
                raise SystemExit("the bytes that were cut differ")
            print("  both cut the same bytes")


if __name__ == "__main__":
    main()
