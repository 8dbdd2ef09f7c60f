"""Corpus, piece counts and mixture on every engine: are all bytes equal, and what do time, CPU time and memory come to?

    python -m benchmarks.engines [--recipe sample | --megabytes 200] [--engines local-1,fnapi,portable,…]

Input: a recipe, or so much of the folder of real text beside the checkout (rules of MassiveText, all duplicates,
decontamination; the sample's tokenizer). The first engine's run also trains the tokenizer, outside the times; the
others take it over. Every run is the commands that a user would call; CPU time and memory are those of the commands and
all processes they started, and of the services that were started for them. Memory is the peak of the sum over them, of
what belongs to each alone plus its share of what they have in common (PSS). Without Dask its row is left out.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

import psutil
import yaml

from benchmarks.decontamination import DATA, read_zstd
from benchmarks.whole_corpus import DEDUP, RULES
from tests.engines.chain import digests
from tests.engines.clusters import dask_cluster, portable_runner

ENGINES = ("local-1", "local-2", "local-4", "fnapi", "fnapi-2", "portable", "dask", "datatrove-1", "datatrove-2")


@dataclass
class Meter:
    """Watches this process's descendants: CPU seconds of each, and the peak of their memory together."""

    cpu: dict[int, float] = field(default_factory=dict)
    peak: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        together = 0
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                used = process.cpu_times()
                self.cpu[process.pid] = used.user + used.system
                together += process.memory_full_info().pss
        self.peak = max(self.peak, together)

    def watch(self) -> None:
        while not self._ended.wait(0.5):
            self.look()

    @contextmanager
    def running(self) -> Iterator[None]:
        self._ended.clear()
        watcher = threading.Thread(target=self.watch)
        watcher.start()
        try:
            yield
        finally:
            self._ended.set()
            watcher.join()


def write_recipe(folder: Path, megabytes: float) -> str:
    """A recipe over files of real text, as many as hold so much."""
    (folder / "input").mkdir()
    size, files = 0, sorted((DATA / "corpus").glob("*.jsonl.zst"))
    while files and size < megabytes * 1e6:
        path = files.pop()
        size += sum(len(row["text"].encode()) for row in read_zstd(path))
        (folder / "input" / path.name).symlink_to(path)
    source = {"name": "real", "kind": "jsonl", "path": str(folder / "input" / "*.jsonl.zst")}
    recipe = folder / "recipe.yaml"
    corpus = {"sources": [source], "stages": [*RULES, *DEDUP], "shard_size": "4MB"}
    recipe.write_text(yaml.safe_dump({"corpus": corpus}))
    print(f"{size / 1e6:.0f} MB of text")
    return str(recipe)


@contextmanager
def options_of(name: str, folder: Path) -> Iterator[list[str]]:
    """The options of the command for an engine, with the services it needs up."""
    kind, _, workers = name.partition("-")
    if kind in ("local", "datatrove"):
        yield ["--engine", kind, "--workers", workers]
    elif kind == "fnapi":
        more = ["--direct_num_workers", workers, "--direct_running_mode", "multi_processing"] if workers else []
        yield ["--engine", "beam", "--", *more]
    else:
        with (portable_runner if kind == "portable" else dask_cluster)(folder) as options:
            yield ["--engine", "beam", "--", *options]


def call(package: str, command: str, recipe: str, run: Path, options: list[str]) -> None:
    """A command of one of the packages; ends with its last words if it fails."""
    words = [sys.executable, "-m", package, command, "--recipe", recipe, "--run", str(run), "--quiet", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{package} {command}, {run.name}: {done.stderr.strip()}")


def main() -> int:
    """Print the table; exit code 1 if an engine makes other bytes."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--recipe", default="sample")
    parser.add_argument("--megabytes", type=float)
    parser.add_argument("--engines", default=",".join(ENGINES))
    chosen = parser.parse_args()
    if chosen.megabytes and not (DATA / "corpus").is_dir():
        print("skipped: this benchmark needs the folder of real text beside the checkout.")
        return 0
    different = False
    with tempfile.TemporaryDirectory() as folder:
        recipe = write_recipe(Path(folder), chosen.megabytes) if chosen.megabytes else chosen.recipe
        first: dict[str, str] | None = None
        print("| engine | wall s | CPU s | peak MB | bytes |\n|---|---|---|---|---|", flush=True)
        for name in chosen.engines.split(","):
            if name == "dask" and find_spec("distributed") is None:
                continue
            run, meter = Path(folder, name), Meter()
            run.mkdir()
            with meter.running(), options_of(name, run) as options:
                started = time.monotonic()
                call("roots_pipeline", "run", recipe, run, options)
                call("tokenizer", "count", recipe, run, options)
                wall = time.monotonic() - started
            if first is None:
                call("tokenizer", "train", recipe, run, [])
                trained = run / "tokenizer"
            else:
                shutil.copytree(trained, run / "tokenizer", dirs_exist_ok=True,
                                ignore=shutil.ignore_patterns("*.parquet", ".*"))
            with meter.running(), options_of(name, run) as options:
                started = time.monotonic()
                call("mixtures", "write", recipe, run, options)
                wall += time.monotonic() - started
            made = digests(run)
            first = first or made
            different |= made != first
            print(f"| {name} | {wall:.1f} | {sum(meter.cpu.values()):.1f} | {meter.peak / 1e6:.0f} | "
                  f"{'equal' if made == first else 'DIFFERENT'} |", flush=True)
    return int(different)


if __name__ == "__main__":
    sys.exit(main())
