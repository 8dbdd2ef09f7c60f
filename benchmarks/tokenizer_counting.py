"""Counting pieces with one worker and with two, in seconds on the clock: nothing should run beside it.

Shards of real text from the folder beside the checkout, counted by the local engine; workers have started and kernels
are compiled before the clock starts.

    python -m benchmarks.tokenizer_counting [megabytes]
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks._real_text import texts_or_leave
from benchmarks._rounds import batches_of
from roots_pipeline.core.tasks import Task
from roots_pipeline.engines.local import LocalEngine
from tokenizer.count import count_shard

SHARD = 8 << 20


def seconds_with(workers: int, shards: list[str], folder: Path) -> float:
    def tasks(name: str, paths: list[str]) -> list[Task]:
        return [
            Task(f"{name} {number}", str(folder / f"{workers}-{name}-{number}.json"), "x", count_shard,
                 {"documents": path, "output": str(folder / f"{workers}-{name}-{number}.parquet")})
            for number, path in enumerate(paths)
        ]  # fmt: skip

    with LocalEngine(workers) as engine:
        engine.run(tasks("warm", shards[:workers]), "warm")
        started = time.perf_counter()
        engine.run(tasks("count", shards), "count")
        return time.perf_counter() - started


def main() -> None:
    texts = texts_or_leave(float(sys.argv[1]) if len(sys.argv) > 1 else 100.0)
    size = sum(len(text.encode()) for text in texts) / 1e6
    with tempfile.TemporaryDirectory() as name:
        folder, shards = Path(name), []
        for number, batch in enumerate(batches_of(texts, SHARD)):
            shards.append(str(folder / f"shard-{number}.parquet"))
            pq.write_table(pa.Table.from_batches([batch]), shards[-1], compression="zstd")
        del texts
        one, two = seconds_with(1, shards, folder), seconds_with(2, shards, folder)
    print(f"{size:.0f} MB in {len(shards)} shards")
    print(f"  1 worker   {one:6.2f} s   {size / one:6.1f} MB/s")
    print(f"  2 workers  {two:6.2f} s   {size / two:6.1f} MB/s   {one / two:.2f} times as fast")


if __name__ == "__main__":
    main()
