"""MinHash signatures beside datatrove's and rensa's, and the whole of near-duplicate removal: CPU time of one core.

    python -m benchmarks.near_duplicates [megabytes] [megabytes for peers]

Input: English of the folder of real text beside the checkout, loaded beforehand. Same setting for all: 5-grams of
words, 112 hashes, lower-cased. datatrove's MinhashDedupSignature gets the words of `str.split` in place of its own
slower tokenizer and does not write its files; rensa (if it is installed) gets n-grams that Python has joined. All run
in turns, so that a busy machine slows them alike, and the best round of each counts.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
from collections.abc import Callable
from time import process_time
from types import SimpleNamespace

import pyarrow as pa

from benchmarks._real_text import texts_or_leave
from benchmarks._rounds import batches_of, run_rounds
from roots_pipeline.core.documents import text_buffers
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.simhash import SimHashDuplicates
from roots_pipeline.text.minhash import sign_texts
from roots_pipeline.text.ngrams import WORDS, ngrams_of

HASHES, SIZE, ROUNDS = 112, 5, 3


def ours(texts: list[str]) -> Callable[[], None]:
    """Signatures of Arrow buffers."""
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    ngrams = ngrams_of(WORDS, SIZE, lower_case=True)
    return lambda: (sign_texts(data, offsets, ngrams, HASHES, 1, False), None)[1]


def datatrove(texts: list[str]) -> Callable[[], None]:
    """What MinhashDedupSignature does with each document."""
    from datatrove.pipeline.dedup import minhash as module

    module.load_word_tokenizer = lambda language: SimpleNamespace(word_tokenize=str.split)
    step = module.MinhashDedupSignature(tempfile.gettempdir(), module.MinhashConfig())
    assert (step.config.n_grams, step.num_hashes) == (SIZE, HASHES)

    def run() -> None:
        for text in texts:
            shingles = step.get_shingles(text)
            if shingles.size:
                step.get_signature(shingles)

    return run


def rensa(texts: list[str]) -> Callable[[], None]:
    """RMinHash on n-grams joined in Python."""
    from rensa import RMinHash

    def run() -> None:
        for text in texts:
            words = text.lower().split()
            minhash = RMinHash(HASHES, 1)
            minhash.update([" ".join(words[k : k + SIZE]) for k in range(len(words) - SIZE + 1)])
            minhash.digest()

    return run


def size_of(texts: list[str]) -> float:
    return sum(len(text.encode()) for text in texts) / 1e6


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 40.0
    texts = texts_or_leave(megabytes, ("en",))
    sample = texts[:: max(1, int(megabytes / (float(sys.argv[2]) if len(sys.argv) > 2 else 2.0)))]
    runs = {"rootbloom": (ours(texts), size_of(texts)), "datatrove": (datatrove(sample), size_of(sample))}
    if importlib.util.find_spec("rensa"):
        runs["rensa"] = (rensa(sample), size_of(sample))
    else:
        print("rensa is not installed: left out.")
    ours(texts[:2])()  # compiles, or loads what was compiled before
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(ROUNDS):
        for name, (run, _) in runs.items():
            began = process_time()
            run()
            best[name] = min(best[name], process_time() - began)
    speed = {name: size / best[name] for name, (_, size) in runs.items()}
    print(f"signatures, {SIZE}-grams of words, {HASHES} hashes, {size_of(texts):.1f} MB "
          f"({size_of(sample):.1f} for peers):")
    for name, value in speed.items():
        print(f"  {name:10s} {value:7.1f} MB/s, ratio {speed['rootbloom'] / value:.0f}x")
    for stage in (MinHashDuplicates(), MinHashDuplicates(ngram=SIZE), SimHashDuplicates()):
        run_rounds(stage, batches_of(texts[:50] * 2))
        seconds, batches = run_rounds(stage, batches_of(texts))
        dropped = sum(len(batch) - batch.column("verdict").null_count for batch in batches)
        steps = ", ".join(f"{name} {value * 1000 / size_of(texts):.2f}" for name, value in seconds.items())
        print(f"{stage}\n  all rounds: {size_of(texts) / sum(seconds.values()):.1f} MB/s, "
              f"{dropped} of {len(texts)} dropped; {steps} ms a MB")


if __name__ == "__main__":
    main()
