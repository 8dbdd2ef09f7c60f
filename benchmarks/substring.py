"""Exact substring deduplication beside a suffix array (pydivsufsort, if it is installed): CPU time of one core.

    python -m benchmarks.substring [megabytes ...] [--rounds 3] [--only-run]

Input: text in all languages of the folder of real text beside the checkout. The suffix array is that of all documents
with a byte between them that UTF-8 does not have; longest common prefixes by Kasai; a byte is repeated if it lies in a
window whose prefix with a neighbour is as long. Both must cut the same bytes, or the benchmark fails. Then the stage as
a recipe runs it, with its files read and committed: the time that a run takes longer with it than without.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import yaml

from benchmarks._real_text import texts_or_leave
from benchmarks._rounds import batches_of, run_rounds
from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.tasks import Task
from roots_pipeline.dedup.substring import RepeatedPassages
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus

SEPARATOR = b"\xff"


def suffix_array(texts: list[str], length: int) -> tuple[float, npt.NDArray[np.bool_]]:
    """CPU seconds, and which bytes of the texts (with separators) are repeated."""
    peer = importlib.import_module("pydivsufsort")
    text = np.frombuffer(SEPARATOR.join(one.encode() for one in texts), np.uint8).copy()
    began = process_time()
    order = peer.divsufsort(text)
    common = peer.kasai(text, order)
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


def in_memory(texts: list[str], length: int, rounds: int) -> None:
    """All rounds on batches in memory, beside the suffix array; both must cut the same bytes."""
    size = sum(len(text.encode()) for text in texts) / 1e6
    stage = RepeatedPassages(length, keep="none", minimum_left=0)
    run_rounds(stage, batches_of(texts[:50] * 2))  # compiles, or loads what was compiled before
    seconds, batches = min((run_rounds(stage, batches_of(texts)) for _ in range(rounds)),
                           key=lambda found: sum(found[0].values()))
    total = sum(seconds.values())
    cut = [int(value) for batch in batches for value in batch.column("cut_bytes").to_pylist()]
    print(f"{size:.1f} MB, {len(texts)} documents, passages of {length} bytes: {sum(cut) / size / 1e4:.1f} % repeated")
    print(f"  rounds in memory {size / total:6.1f} MB/s; "
          + ", ".join(f"{name} {value * 1000 / size:.2f}" for name, value in seconds.items()) + " ms a MB")
    if importlib.util.find_spec("pydivsufsort") is None:
        print("  pydivsufsort is not installed: left out.")
        return
    theirs, covered = suffix_array(texts, length)
    print(f"  suffix array     {size / theirs:6.1f} MB/s; ratio {theirs / total:.1f}x")
    if cut != cut_at_characters(texts, covered):
        raise SystemExit("the bytes that were cut differ")
    print("  both cut the same bytes")


class Timed(LocalEngine):
    """A local engine of one process that notes the CPU seconds of each kind of task."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seconds: dict[str, float] = {}

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        """Run the tasks and note how long that took."""
        began = process_time()
        results = super().run(tasks, title)
        self.seconds[title] = self.seconds.get(title, 0.0) + process_time() - began
        return results


def run_recipe(folder: str, stages: list[dict[str, Any]]) -> tuple[dict[str, float], float]:
    """CPU seconds of each kind of task of a run over `folder/input`, and the peak of this process in GB."""
    for name in ("warm", "input"):  # the first run compiles, or loads what was compiled before
        recipe = Path(folder, "recipe.yaml")
        source = {"name": "s", "kind": "jsonl", "path": str(Path(folder, name)), "language": "en"}
        recipe.write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": stages, "shard_size": "16MB"}}))
        engine = Timed()
        with TemporaryDirectory() as run:
            run_corpus(load_corpus_recipe(str(recipe)), run, engine, Progress(quiet=True))
    return engine.seconds, peak_memory()


def peak_memory() -> float:
    """The most memory that this process has held, in GB; 0 where the system does not tell.

    Not `ru_maxrss`, which in a new process begins with that of its parent.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return sum(float(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1e6


def as_run(texts: list[str], length: int, rounds: int) -> None:
    """A run of a recipe with the stage, less one without it: reading and committing files included."""
    size = sum(len(text.encode()) for text in texts) / 1e6
    stage = {"stage": RepeatedPassages.name, "passage_bytes": length}
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as fresh:
        for name, chosen in (("warm", texts[:100]), ("input", texts)):
            Path(folder, name).mkdir()
            shards = max(1, round(sum(len(text.encode()) for text in chosen) / 16e6))
            for number in range(shards):
                with open(Path(folder, name, f"{number:04}.jsonl"), "wb") as out:
                    for place in range(number, len(chosen), shards):
                        out.write(orjson.dumps({"id": f"d{place:08}", "text": chosen[place]}) + b"\n")
        best = with_memory = 0.0
        for _ in range(rounds):
            with_stage, with_memory = fresh.submit(run_recipe, folder, [stage]).result()
            without, memory = fresh.submit(run_recipe, folder, []).result()
            more = {name: value - without.get(name, 0.0) for name, value in with_stage.items() if "read" not in name}
            if size / sum(more.values()) > best:
                best, steps = size / sum(more.values()), more
    print(f"  in a run         {best:6.1f} MB/s, at most {with_memory:.2f} GB a worker ({memory:.2f} without); "
          + ", ".join(f"{name} {value * 1000 / size:.2f}" for name, value in steps.items()) + " ms a MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("megabytes", nargs="*", type=float, default=[20.0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only-run", action="store_true", help="leave out the rounds in memory and the suffix array")
    options = parser.parse_args()
    for megabytes in options.megabytes:
        texts = texts_or_leave(megabytes)
        for length in (100, 50):
            if options.only_run:
                print(f"{megabytes:.0f} MB, passages of {length} bytes")
            else:
                in_memory(texts, length, options.rounds)
            as_run(texts, length, options.rounds)


if __name__ == "__main__":
    main()
