"""The ROOTS measures and document modification beside plain Python: CPU time of one core, side by side in one process.

    python -m benchmarks.roots_filters [--rounds 8] [--megabytes 5] [--plain-megabytes 0.2] [language …]

Input: texts of the folder of real text beside the checkout, in English, French, Chinese, Arabic and Hindi or the
languages named, loaded beforehand; without the folder the benchmark says so and stops. Our stages see Arrow batches,
the plain procedure (`tests.rules.roots_twin`, written like the published one: a document at a time, a pass for each
measure) a sample of the same documents. Both look words up in the same lists. Chinese words are single characters for
both. All run in turns, so that a busy machine slows them alike, and the best round of each counts.
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

from roots_pipeline.core.stages import Map
from roots_pipeline.rules.roots_measures import RootsMeasures
from roots_pipeline.rules.roots_modify import RootsModify
from tests.rules import roots_twin

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LANGUAGES = ("en", "fr", "zh", "ar", "hi")
NAMES = ("measures", "modification", "plain measures", "plain modification")


def load(language: str, megabytes: float) -> list[str]:
    """Texts of a language, drawn at random until they hold so many megabytes."""
    with open(DATA / "corpus" / f"{language}.jsonl.zst", "rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8", newline="\n")
        texts = [json.loads(line)["text"] for line in lines]
    return sample_of(random.Random(0).sample(texts, len(texts)), megabytes)


def sample_of(texts: list[str], megabytes: float) -> list[str]:
    """The first texts that hold so many megabytes."""
    ends = np.cumsum([len(text.encode()) for text in texts])
    return texts[: int(np.searchsorted(ends, megabytes * 1e6)) + 1]


def size_of(texts: list[str]) -> float:
    """Megabytes of texts as UTF-8."""
    return sum(len(text.encode()) for text in texts) / 1e6


def stage_run(stage: Map, texts: list[str], language: str) -> Callable[[], None]:
    """A call of a stage on all texts in batches of 1,000, as in a pipeline."""
    table = pa.table({"text": pa.array(texts, pa.large_string()), "language": pa.array([language] * len(texts))})
    batches = table.to_batches(max_chunksize=1000)
    stage(batches[0].slice(0, 1))  # compile, or load what was compiled before

    def run() -> None:
        for batch in batches:
            stage(batch)

    return run


def plain_runs(texts: list[str], language: str, lists: dict[str, list[str]]) -> list[Callable[[], None]]:
    """Calls of the plain procedure on all texts."""

    def measure() -> None:
        for text in texts:
            roots_twin.measures(text, language, lists["stop_words"], lists["flagged_words"])

    def modify() -> None:
        for text in texts:
            roots_twin.modify(text, language)

    return [measure, modify]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=5)
    parser.add_argument("--plain-megabytes", type=float, default=0.2)
    parser.add_argument("languages", nargs="*", default=LANGUAGES)
    options = parser.parse_args()
    if not (DATA / "corpus").is_dir():
        print(f"skipped: there is no {'/'.join(DATA.parts[-2:])}/corpus beside the checkout.")
        return
    paths = {
        "stop_words": str(DATA / "wordlists" / "bigscience_stopwords.json"),
        "flagged_words": str(DATA / "wordlists" / "bigscience_flagged_words.json"),
    }
    lists = {kind: json.loads(Path(path).read_text("utf-8")) for kind, path in paths.items()}
    measures = RootsMeasures(**paths, as_published=True)  # type: ignore[arg-type]
    modify = RootsModify(as_published=True)
    print(f"{'MB/s of one core':18}" + "".join(f"{name:>20}" for name in NAMES))
    for language in options.languages:
        texts = load(language, options.megabytes)
        sample = sample_of(texts, options.plain_megabytes)
        words = {kind: entries[language] for kind, entries in lists.items()}
        runs = [stage_run(stage, texts, language) for stage in (measures, modify)]
        rates = best_rates(
            [*runs, *plain_runs(sample, language, words)], [size_of(texts)] * 2 + [size_of(sample)] * 2, options.rounds
        )
        print(f"{language:3} ({size_of(texts):5.1f} MB)    " + "".join(f"{rate:20.2f}" for rate in rates), flush=True)


def best_rates(runs: list[Callable[[], None]], sizes: list[float], rounds: int) -> list[float]:
    """Megabytes a second of each run, the best of some rounds."""
    best = [0.0] * len(runs)
    for _ in range(rounds):
        for number, (run, size) in enumerate(zip(runs, sizes, strict=True)):
            start = process_time()
            run()
            best[number] = max(best[number], size / (process_time() - start))
    return best


if __name__ == "__main__":
    main()
