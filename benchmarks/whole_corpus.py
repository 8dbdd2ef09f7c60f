"""A whole corpus recipe, read and write included: CPU time per MB, and peak memory, as the input grows.

    python -m benchmarks.whole_corpus [--every 1] [--copies 1] [--workers 1] [--stages all|dedup|rules] [--keep FOLDER]

Input: the folder of real text beside the checkout (82 languages, 359 MB); without it the benchmark says so and stops.
Further copies are edited (a word in twenty is replaced), so that near duplicates and shared passages abound: work grows
with them faster than the text, so sizes are compared at one number of copies, with every Nth document only. The run is
`python -m roots_pipeline run` as a user would call it, in a process of its own: with one worker all is done there, and
its peak is the peak of a worker.
"""

from __future__ import annotations

import argparse
import random
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

import orjson
import yaml
import zstandard

from benchmarks.decontamination import DATA, read_zstd

_WORD = re.compile(r"\S+")
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


def edited(text: str, dice: random.Random) -> str:
    """The text with one word in twenty replaced."""
    return _WORD.sub(lambda word: f"w{dice.randrange(10**6)}" if dice.random() < 0.05 else word[0], text)


def write_input(folder: Path, copies: int, every: int = 1) -> int:
    """Write every `every`-th document of each language `copies` times; returns the bytes of text."""
    size = 0
    packer = zstandard.ZstdCompressor(level=1)
    for path in sorted((DATA / "corpus").glob("*.jsonl.zst")):
        for copy in range(copies):
            dice = random.Random(f"{path.name} {copy}")
            with open(folder / f"{copy}-{path.name}", "wb") as file, packer.stream_writer(file) as out:
                for row in islice(read_zstd(path), 0, None, every):
                    text = row["text"] if copy == 0 else edited(row["text"], dice)
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
    parser.add_argument("--copies", type=int, default=1)
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
        size = write_input(folder / "input", options.copies, options.every)
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
