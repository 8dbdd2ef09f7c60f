"""Decontamination against real evaluation sets beside datatrove's: CPU time of one core, in one process.

    python -m benchmarks.decontamination [--rounds 3] [--languages en fr hi ...] [--peer-megabytes 2] [--hits]

Input: the folder of real text beside the checkout, loaded beforehand; without it the benchmark says so and stops. Ours
runs the stage as a pipeline does, scan, entries and judgement, on Arrow batches against all sets. datatrove's
NGramsDecontFilter sees a sample of the same documents, with the same n-grams of 13 words of all items in its index, and
`str.split` in place of its own slower tokenizer. All run in turns and the best round counts. `--hits` lists every
document that was found, for looking at them one by one.
"""

from __future__ import annotations

import argparse
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import pyarrow as pa
import zstandard

from roots_pipeline.core.documents import make_batch
from roots_pipeline.decontamination.evaluations import Evaluation
from roots_pipeline.decontamination.indexing import build_index
from roots_pipeline.decontamination.items import read_items
from roots_pipeline.decontamination.stage import Decontaminate

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
_ROWS = 1000


def read_zstd(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a compressed JSON-lines file."""
    with open(path, "rb") as file:
        lines = io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8", newline="\n")
        yield from map(json.loads, lines)


def batches_of(path: Path) -> list[pa.RecordBatch]:
    """The documents of a language."""
    rows = [{**row, "language": row["lang"]} for row in read_zstd(path)]
    return [make_batch(rows[at : at + _ROWS]) for at in range(0, len(rows), _ROWS)]


def megabytes(batches: Sequence[pa.RecordBatch]) -> float:
    """How large the texts are as UTF-8."""
    return float(sum(batch.column("text").nbytes for batch in batches) / 1e6)


def our_run(stage: Decontaminate, batches: Sequence[pa.RecordBatch]) -> Callable[[], pa.Table]:
    """A call that scans and judges all documents; returns the findings."""
    scan = stage.prepare()
    scan(batches[0].slice(0, 1))  # build the index; compile, or load what was compiled before

    def run() -> pa.Table:
        entries = [stage.emit(scan(batch), 0, number * _ROWS) for number, batch in enumerate(batches)]
        return stage.resolve(pa.concat_tables(entries).combine_chunks())

    return run


class SplitWords:
    """Takes the place of datatrove's tokenizers."""

    def word_tokenize(self, text: str) -> list[str]:
        """The words of a text."""
        return text.split()


def peer_run(stage: Decontaminate, texts: Sequence[str]) -> Callable[[], int]:
    """A call that has datatrove's filter look at all texts; returns how many it drops."""
    from datatrove.data import Document
    from datatrove.pipeline.decont import n_grams
    from datatrove.utils.text import ngrams, simplify_text

    n_grams.load_word_tokenizer = lambda language: SplitWords()
    judge = n_grams.NGramsDecontFilter("memory://no-index", n_grams.NGramsDecontConfig(n_grams=stage.ngram))
    judge._index_hashes = {
        judge.hash_func(" ".join(gram)): evaluation.name
        for evaluation in stage.evaluations for item in read_items(evaluation)
        for gram in ngrams(simplify_text(item.text, judge.config.norm_config).split(), stage.ngram)
    }
    documents = [Document(text=text, id=str(number)) for number, text in enumerate(texts)]

    def run() -> int:
        return sum(judge.filter(document) is not True for document in documents)

    return run


def best_of(rounds: int, run: Callable[[], Any]) -> tuple[float, Any]:
    """The least CPU time of several rounds, and what the last one returned."""
    times, result = [], None
    for _ in range(rounds):
        start = process_time()
        result = run()
        times.append(process_time() - start)
    return min(times), result


def sample_of(batches: Sequence[pa.RecordBatch], wanted: float) -> list[str]:
    """Documents drawn at random until they hold so many megabytes."""
    texts = [text for batch in batches for text in batch.column("text").to_pylist()]
    random.Random(0).shuffle(texts)
    chosen: list[str] = []
    for text in texts:
        if wanted <= 0:
            break
        chosen.append(text)
        wanted -= len(text.encode()) / 1e6
    return chosen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--languages", nargs="*")
    parser.add_argument("--peer-megabytes", type=float, default=2.0)
    parser.add_argument("--hits", action="store_true")
    options = parser.parse_args()
    files = {path.name.partition(".")[0]: path for path in sorted((DATA / "corpus").glob("*.jsonl.zst"))}
    sets = sorted((DATA / "eval").glob("*.jsonl.zst"))
    if not files or not sets:
        print("skipped: there is no folder of real text beside the checkout.")
        return
    stage = Decontaminate(tuple(Evaluation(path.name.partition(".")[0], str(path)) for path in sets)).rounds()[0]
    assert isinstance(stage, Decontaminate)
    items = [(evaluation.name, read_items(evaluation)) for evaluation in stage.evaluations]
    seconds, index = best_of(2, lambda: build_index(items, stage.matching))
    print(f"index of {len(index.ids):,} items in {len(sets)} sets: {seconds:.1f} s, "
          f"{len(index.place_first) - 1:,} n-grams")
    chosen = options.languages or list(files)
    sample: list[pa.RecordBatch] = []
    total_size = total_time = 0.0
    found: Counter[tuple[str, str]] = Counter()
    for language in chosen:
        batches = batches_of(files[language])
        seconds, findings = best_of(options.rounds, our_run(stage, batches))
        total_size, total_time = total_size + megabytes(batches), total_time + seconds
        if options.languages:
            print(f"  {language:8} {megabytes(batches):7.1f} MB  {megabytes(batches) / seconds:7.1f} MB/s")
        if language == "en":
            sample = batches
        note_hits(batches, findings, found, options.hits)
    print(f"ours: {total_size:.1f} MB in {len(chosen)} languages, {total_size / total_time:.1f} MB/s of one core")
    for (source, evaluation), number in sorted(found.items()):
        print(f"  {number:5} documents of {source} hold items of {evaluation}")
    if sample and options.peer_megabytes > 0:
        compare(stage, sample, options.rounds, options.peer_megabytes)


def note_hits(
    batches: Sequence[pa.RecordBatch], findings: pa.Table, found: Counter[tuple[str, str]], listed: bool
) -> None:
    """Count contaminated documents by source and set, and print them if asked to."""
    causes: dict[int, list[str]] = {}
    for row in findings.filter(findings.column("contaminated")).to_pylist():
        causes.setdefault(row["row"], []).append(row["cause"])
    for row, items in sorted(causes.items()):
        batch, place = batches[row // _ROWS], row % _ROWS
        source = batch.column("source")[place].as_py()
        for evaluation in {item.partition("/")[0] for item in items}:
            found[source, evaluation] += 1
        if listed:
            print(f"  {batch.column('id')[place].as_py()} ({source}): {len(items)} items, among them {items[0]}")


def compare(stage: Decontaminate, batches: Sequence[pa.RecordBatch], rounds: int, wanted: float) -> None:
    """Both on a sample of the English documents."""
    texts = sample_of(batches, wanted)
    own = [make_batch([{"id": str(k), "text": text, "source": "s"} for k, text in enumerate(texts)])]
    ours, _ = best_of(rounds, our_run(stage, own))
    theirs, _ = best_of(rounds, peer_run(stage, texts))
    size = megabytes(own)
    print(f"{len(texts)} English documents, {size:.1f} MB: ours {size / ours:.1f} MB/s, datatrove with str.split "
          f"{size / theirs:.2f} MB/s, {theirs / ours:.0f} times")


if __name__ == "__main__":
    main()
