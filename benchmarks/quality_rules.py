"""Quality and repetition measures beside datatrove's: CPU time of one core, side by side in one process.

    python -m benchmarks.quality_rules [--rounds 5] [--peer-megabytes 1.5]

Input: the English texts of the folder of real text beside the checkout, loaded beforehand; without it the benchmark
says so and stops. Ours measures the Arrow buffers of all of them. datatrove's GopherQualityFilter and
GopherRepetitionFilter see a sample of the same documents, with the words of `str.split` in place of their own slower
tokenizer. All run in turns, so that a busy machine slows them alike, and the best round of each counts.
"""

from __future__ import annotations

import argparse
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import zstandard

from roots_pipeline.rules.massivetext import Convention, MassiveText

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "data" / "corpus" / "en.jsonl.zst"


def load(path: Path) -> list[str]:
    """The texts of a compressed JSON-lines file."""
    with open(path, "rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8", newline="\n")
        return [json.loads(line)["text"] for line in lines]


def sample_of(texts: list[str], wanted: float) -> list[str]:
    """Documents drawn at random until they hold so many megabytes."""
    order = random.Random(0).sample(texts, len(texts))
    ends = np.cumsum([len(text.encode()) for text in order])
    return order[: int(np.searchsorted(ends, wanted * 1e6)) + 1]


def megabytes(texts: list[str]) -> float:
    """How large the texts are as UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def our_run(texts: list[str], convention: Convention) -> Callable[[], None]:
    """A call that measures all texts, as the stage of a pipeline does."""
    batch = pa.RecordBatch.from_pydict(
        {"text": pa.array(texts, pa.large_string()), "language": pa.array(["en"] * len(texts), pa.string())}
    )
    stage = MassiveText(convention=convention)
    stage(batch.slice(0, 1))  # compile, or load what was compiled before

    def run() -> None:
        stage(batch)

    return run


def peer_run(texts: list[str]) -> Callable[[], None]:
    """A call that has datatrove's two filters judge all texts; every filter looks at every text in full."""
    from datatrove.data import Document
    from datatrove.pipeline.filters import gopher_quality_filter, gopher_repetition_filter

    for module in (gopher_quality_filter, gopher_repetition_filter):
        module.split_into_words = lambda text, language: text.split()
    filters = (gopher_quality_filter.GopherQualityFilter(), gopher_repetition_filter.GopherRepetitionFilter())
    documents = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]

    def run() -> None:
        for document in documents:
            for judge in filters:
                judge.filter(document)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer-megabytes", type=float, default=1.5)
    options = parser.parse_args()
    if not CORPUS.is_file():
        print(f"skipped: there is no {'/'.join(CORPUS.parts[-4:])} beside the checkout.")
        return
    texts = load(CORPUS)
    sample = sample_of(texts, options.peer_megabytes)
    runs = {
        "ours, paper": (our_run(texts, "paper"), texts),
        "ours, datatrove's convention": (our_run(texts, "datatrove"), texts),
        "datatrove with str.split": (peer_run(sample), sample),
    }
    best = dict.fromkeys(runs, 0.0)
    for _ in range(options.rounds):
        for name, (run, input_texts) in runs.items():
            start = process_time()
            run()
            seconds = process_time() - start
            best[name] = max(best[name], megabytes(input_texts) / seconds)
    peer = best["datatrove with str.split"]
    print(f"{len(texts)} documents, {megabytes(texts):.1f} MB of English; MB/s of one core:")
    for name, rate in best.items():
        print(f"  {name:30} {rate:8.2f} MB/s   {rate / peer:6.1f} x")


if __name__ == "__main__":
    main()
