"""A whole recipe beside the nearest chain of datatrove's steps, from the same files on the disk: CPU time of one core.

    python -m benchmarks.datatrove_chain [--megabytes 40]

Input: the folder of real text beside the checkout (82 languages, 359 MB), and for datatrove so much of it, all
languages in proportion; without the folder the benchmark says so and stops. The same steps for both: the quality and
repetition rules of MassiveText, exact duplicates, near duplicates (5-grams of words, 14 bands of 8), decontamination
against the same evaluation sets, reading and writing included. datatrove's steps get the words of `str.split` in place
of their own slower tokenizers, the decontamination index ready-made, and no rule of stop words, as it has one list for
all languages. Ours runs as a user calls it: on datatrove's part, on all, and on all with what datatrove's chain has no
equal for, identified languages and repeated passages. Each is a process of its own with one worker; starting it counts.
"""

from __future__ import annotations

import argparse
import random
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import orjson
import zstandard

from benchmarks.decontamination import DATA, read_zstd
from benchmarks.whole_corpus import DEDUP, RULES, run

NEAR = {"stage": "near_duplicates", "ngram": 5, "bands": 14, "rows": 8}
SAME: list[dict[str, Any]] = [*RULES[1:], DEDUP[0], NEAR, DEDUP[-1]]
MORE: list[dict[str, Any]] = [*RULES, DEDUP[0], NEAR, *DEDUP[2:]]


def write_input(folder: Path, megabytes: float) -> int:
    """Write documents drawn at random from all languages; returns the bytes of text."""
    paths = sorted((DATA / "corpus").glob("*.jsonl.zst"))
    share = min(1.0, megabytes * 1e6 / 359e6)
    size, packer = 0, zstandard.ZstdCompressor(level=1)
    for path in paths:
        dice = random.Random(path.name)
        with open(folder / path.name, "wb") as file, packer.stream_writer(file) as out:
            for row in read_zstd(path):
                if dice.random() < share:
                    size += len(row["text"].encode())
                    out.write(orjson.dumps({"id": row["id"], "text": row["text"], "language": row["lang"]}) + b"\n")
    return size


def write_index(folder: Path) -> None:
    """Hashes of the n-grams of all items, as datatrove's indexer leaves them (it needs tasks of a hub)."""
    import numpy as np
    from datatrove.pipeline.decont.n_grams import NGramsDecontConfig
    from datatrove.utils.hashing import create_hash_func
    from datatrove.utils.text import ngrams, simplify_text

    from roots_pipeline.decontamination.evaluations import Evaluation
    from roots_pipeline.decontamination.items import read_items

    config = NGramsDecontConfig()
    digest = create_hash_func(config.hash_config)
    for entry in DEDUP[-1]["evaluations"]:
        found = {digest(" ".join(gram)) for item in read_items(Evaluation(entry["name"], entry["path"]))
                 for gram in ngrams(simplify_text(item.text, config.norm_config).split(), config.n_grams)}
        np.array(sorted(found), config.hash_config.np_descr).tofile(folder / f"{entry['name']}.index.hashes")


def peer(folder: Path) -> None:
    """datatrove's chain on FOLDER/input; what it keeps lies in FOLDER/kept."""
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.decont import n_grams
    from datatrove.pipeline.dedup import exact_dedup as exact
    from datatrove.pipeline.dedup import minhash
    from datatrove.pipeline.filters import (
        GopherQualityFilter,
        GopherRepetitionFilter,
        gopher_quality_filter,
        gopher_repetition_filter,
    )
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter

    from benchmarks.decontamination import SplitWords

    for module in (n_grams, minhash):
        module.load_word_tokenizer = lambda language: SplitWords()
    for module in (gopher_quality_filter, gopher_repetition_filter):
        module.split_into_words = lambda text, language="": text.split()

    def passes(*steps: Any) -> None:
        LocalPipelineExecutor(list(steps), tasks=1, workers=1, logging_dir=tempfile.mkdtemp(dir=folder)).run()

    def read(name: str) -> Any:
        return JsonlReader(str(folder / name), compression="infer")

    def write(name: str) -> Any:
        return JsonlWriter(str(folder / name), compression="zstd")

    def at(name: str) -> str:
        return str(folder / name)

    passes(read("input"), GopherRepetitionFilter(), GopherQualityFilter(min_stop_words=0),
           n_grams.NGramsDecontFilter(at("index")), write("filtered"))
    same = exact.ExactDedupConfig(content_getter=lambda document: document.text, only_dedup_in_index=False)
    passes(read("filtered"), exact.ExactDedupSignature(at("exact"), same))
    passes(exact.ExactFindDedups(at("exact"), at("exact_found"), same))
    passes(read("filtered"), exact.ExactDedupFilter(at("exact_found"), same), write("different"))
    config = minhash.MinhashConfig(n_grams=5, num_buckets=14, hashes_per_bucket=8)
    passes(read("different"), minhash.MinhashDedupSignature(at("signatures"), config))
    for bucket in range(14):
        minhash.MinhashDedupBuckets(at("signatures"), at("pairs"), config=config).run(rank=bucket, world_size=14)
    passes(minhash.MinhashDedupCluster(at("pairs"), at("clusters"), config))
    passes(read("different"), minhash.MinhashDedupFilter(at("clusters")), write("kept"))


def measured(command: list[str]) -> float:
    """CPU seconds of a command and the processes that it starts."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=40.0)
    parser.add_argument("--peer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        peer(options.peer)
        return
    if not DATA.exists():
        raise SystemExit(f"there is no folder of real text at {DATA}.")
    with tempfile.TemporaryDirectory() as scratch:
        part, whole = Path(scratch, "part"), Path(scratch, "whole")
        for folder in (part / "input", part / "index", whole / "input"):
            folder.mkdir(parents=True)
        size, all_of_it = write_input(part / "input", options.megabytes), write_input(whole / "input", float("inf"))
        write_index(part / "index")
        theirs = measured([sys.executable, "-m", "benchmarks.datatrove_chain", "--peer", str(part)])
        left = sum(1 for path in (part / "kept").iterdir() for _ in read_zstd(path))
        rate = size / theirs
        print(f"{size / 1e6:.0f} MB of text, one worker, CPU time: datatrove {theirs:.1f} s, {rate / 1e6:.2f} MB/s, "
              f"keeps {left} documents", flush=True)
        for folder, bytes_of_text, stages, name in (
            (part, size, SAME, "the same part"), (whole, all_of_it, SAME, "all text"),
            (whole, all_of_it, MORE, "all text, all stages"),
        ):
            shutil.rmtree(folder / "run", ignore_errors=True)
            seconds, _, _, printed = run(folder, stages, 1)
            kept = next(line for line in printed.splitlines() if "documents kept" in line)
            print(f"  rootbloom, {name}: {seconds:.1f} s, {bytes_of_text / seconds / 1e6:.2f} MB/s, "
                  f"{bytes_of_text / seconds / rate:.1f}x; {kept}", flush=True)


if __name__ == "__main__":
    main()
