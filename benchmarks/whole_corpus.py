"""A whole corpus recipe, read and write included: CPU time per MB, and peak memory, as the input grows.

    python -m benchmarks.whole_corpus [--copies 0] [--edits 0.3] [--workers 1] [--stages all|dedup|rules]
                                      [--every 1] [--keep FOLDER]

Input: the folder of real text beside the checkout (82 languages, 359 MB); without it the benchmark says so and stops.
`--copies N` takes it N times, each time edited: a share of its words (`--edits`), or of the characters of scripts
without spaces, is replaced by others of the same document. With 0.3, a copy is as good as new text, and nine copies are
one copy, only larger. With 0.05, near duplicates and shared passages abound, and their number, and the work, grow with
the square of the copies: compare sizes at one number of copies then, with every Nth document only (`--every`). The run
is `python -m roots_pipeline run` as a user would call it, in a process of its own: with one worker all is done there,
and its peak is the peak of a worker.
"""

from __future__ import annotations

import argparse
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import xxhash
import yaml
import zstandard

from benchmarks.decontamination import DATA, read_zstd

# A word; of scripts without spaces (Thai, Lao, Myanmar, Khmer, kana, Han), a character.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_WORD = re.compile(rf"([{_UNSPACED}]|[^\s{_UNSPACED}]+)")
RULES: list[dict[str, Any]] = [{"stage": "identify_language"}, {"stage": "massivetext"}, {"stage": "thresholds"}]
# Both recipes for the web at once: every rule that reads the text, in one pass.
ALL_RULES: list[dict[str, Any]] = [
    {"stage": "roots_modify"}, {"stage": "identify_language"}, {"stage": "language_agrees"}, {"stage": "massivetext"},
    {"stage": "roots_measures"}, {"stage": "pii"}, {"stage": "thresholds"},
    {"stage": "thresholds", "preset": "roots_built_in_lists"},
]
DEDUP: list[dict[str, Any]] = [
    {"stage": "exact_duplicates"}, {"stage": "near_duplicates"}, {"stage": "repeated_passages"},
    {"stage": "decontaminate", "evaluations": [
        {"name": name, "path": str(DATA / "eval" / f"{name}.jsonl.zst")}
        for name in ("gsm8k_test", "hellaswag_val", "lambada", "piqa_valid", "xquad")]},
]


def edited(text: str, share: float, dice: np.random.Generator) -> str:
    """The text with a share of its words replaced by others of it."""
    parts = _WORD.split(text)  # between the words, which are at the odd places
    words = parts[1::2]
    places = np.flatnonzero(dice.random(len(words)) < share)
    for place, other in zip(places.tolist(), dice.integers(max(1, len(words)), size=len(places)).tolist(), strict=True):
        parts[2 * place + 1] = words[other]
    return "".join(parts)


def write_input(folder: Path, copies: int, share: float, every: int = 1) -> int:
    """Write every `every`-th document of each language, as it is or `copies` times edited; the bytes of text."""
    size = 0
    packer = zstandard.ZstdCompressor(level=1)
    for path in sorted((DATA / "corpus").glob("*.jsonl.zst")):
        for copy in range(max(1, copies)):
            dice = np.random.default_rng(xxhash.xxh3_64_intdigest(f"{path.name} {copy}"))
            with open(folder / f"{copy}-{path.name}", "wb") as file, packer.stream_writer(file) as out:
                for row in islice(read_zstd(path), 0, None, every):
                    text = edited(row["text"], share, dice) if copies else row["text"]
                    size += len(text.encode())
                    line = {"id": f"{copy}-{row['id']}", "text": text, "language": row["lang"]}
                    out.write(orjson.dumps(line) + b"\n")
    return size


def run(folder: Path, stages: list[dict[str, Any]], workers: int) -> tuple[float, float, int, str]:
    """CPU seconds, wall seconds, peak bytes of the largest process, and what was printed."""
    recipe = folder / "recipe.yaml"
    source = {"name": "all", "kind": "jsonl", "path": str(folder / "input")}
    recipe.write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": stages}}))
    command = [sys.executable, "-m", "roots_pipeline", "run", "--recipe", str(recipe), "--run", str(folder / "run"),
               "--workers", str(workers)]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - began
    if done.returncode:
        raise SystemExit(done.stderr)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, wall, after.ru_maxrss * 1024, done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--copies", type=int, default=0)
    parser.add_argument("--edits", type=float, default=0.3)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--stages", choices=["all", "dedup", "rules"], default="all")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    if not DATA.exists():
        raise SystemExit(f"there is no folder of real text at {DATA}.")
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        shutil.rmtree(folder / "run", ignore_errors=True)
        (folder / "input").mkdir(parents=True, exist_ok=True)
        size = write_input(folder / "input", options.copies, options.edits, options.every)
        stages = {"all": [*RULES, *DEDUP], "dedup": DEDUP, "rules": ALL_RULES}[options.stages]
        seconds, wall, peak, printed = run(folder, stages, options.workers)
        for line in printed.splitlines():
            if line.startswith('{"event":"stage"'):
                entry = orjson.loads(line)
                print(f"  {entry['stage']:<40} {entry['seconds']:8.1f} s")
        print(printed[printed.index("corpus in") :] if "corpus in" in printed else printed)
        rate = size / seconds / 1e6
        print(f"{size / 1e6:.0f} MB of text, {options.workers} workers: {seconds:.0f} s CPU = {rate:.1f} MB/s a core; "
              f"{wall:.0f} s wall; peak of a process {peak / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
