"""What it costs to replay the plan of a finished corpus run, as every round of a Beam job does.

    python -m benchmarks.replays [--shards 2000]

A recipe with an exchange runs on so many tiny files, one a shard. Then its plan is replayed from the records: first by
a process that knows nothing of them, then again in the same process. Printed: seconds, and microseconds a task.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import yaml

from roots_pipeline.config import load_corpus_recipe
from roots_pipeline.core.progress import Progress
from roots_pipeline.core.replay import Replay
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
from roots_pipeline.run import run_corpus
from roots_pipeline.schedule import Schedule

_STAGES = [{"stage": "massivetext"}, {"stage": "thresholds"}, {"stage": "exact_duplicates"}]


def write_recipe(folder: Path, shards: int) -> str:
    """A recipe over so many files with one document each."""
    (folder / "input").mkdir()
    for number in range(shards):
        text = f"Document {number} tells of a mill by the river, and of those who worked there. " * 3
        (folder / "input" / f"{number:05d}.jsonl").write_bytes(orjson.dumps({"text": text}) + b"\n")
    source = {"name": "tiny", "kind": "jsonl", "path": str(folder / "input")}
    recipe = folder / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"corpus": {"sources": [source], "stages": _STAGES, "shard_size": 100,
                                                 "allow_empty": True}}))
    return str(recipe)


class _Counting(Replay):
    def __init__(self) -> None:
        super().__init__()
        self.tasks = 0

    def run(self, tasks: Sequence[Task], title: str) -> list[dict[str, Any]]:
        self.tasks += len(tasks)
        return super().run(tasks, title)


def replay(recipe: str, folder: str) -> None:
    """Print what two replays in this process cost."""
    began = time.perf_counter()
    schedule = Schedule(load_corpus_recipe(recipe), folder)
    print(f"planning the shards: {time.perf_counter() - began:.2f} s")
    for name in ("first", "second"):
        engine, began = _Counting(), time.perf_counter()
        schedule(engine)
        seconds = time.perf_counter() - began
        print(f"{name} replay: {seconds:.2f} s, {seconds / engine.tasks * 1e6:.0f} µs for each of {engine.tasks} tasks")


def main() -> int:
    """Make the run, then replay it in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--shards", type=int, default=2000)
    parser.add_argument("--replay", nargs=2, metavar=("RECIPE", "FOLDER"), help="replay a run that is there")
    chosen = parser.parse_args()
    if chosen.replay:
        replay(*chosen.replay)
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        recipe, folder = write_recipe(Path(temporary), chosen.shards), os.path.join(temporary, "corpus")
        with LocalEngine() as engine:
            run_corpus(load_corpus_recipe(recipe), folder, engine, Progress(quiet=True))
        command = [sys.executable, "-m", "benchmarks.replays", "--replay", recipe, folder]
        return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
