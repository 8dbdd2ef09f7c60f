"""Exact duplicates, URLs, repeated lines and sentences, and what a corpus leaves for later ones: CPU time of one core.

    python -m benchmarks.exact_and_lines [megabytes]

Input: English of the folder of real text beside the checkout, loaded beforehand. All rounds of a stage run in one
process, without reading and writing of files. Then the reference of the same documents: seconds, and bytes on disk a
document and as a share of the text.
"""

from __future__ import annotations

import os
import sys
import tempfile
from time import process_time

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks._real_text import texts_or_leave
from benchmarks._rounds import batches_of, run_rounds
from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.stages import Exchange
from roots_pipeline.dedup.exact import ExactDuplicates
from roots_pipeline.dedup.lines import RepeatedLines
from roots_pipeline.dedup.minhash import MinHashDuplicates
from roots_pipeline.dedup.reference import Rememberable
from roots_pipeline.dedup.urls import UrlDuplicates

STAGES: dict[str, Exchange] = {
    "exact": ExactDuplicates(),
    "exact, without white space": ExactDuplicates(ignore="white_space"),
    "exact, as dedup_document": ExactDuplicates(ignore="white_space_digits_punctuation", as_published=True),
    "URLs": UrlDuplicates(),
    "lines, as dedup_template_soft": RepeatedLines(strip_lines=True),
    "lines, as dedup_pseudocrawl_newspapers": RepeatedLines(minimum_characters=0, minimum_times=2, strip_lines=True),
    "lines, as ram_dedup_lines": RepeatedLines(scope="corpus", keep="first", minimum_characters=0, minimum_times=2),
    "spans of three sentences, as C4": RepeatedLines(
        scope="corpus", keep="first", unit="sentences", run=3, minimum_times=2, minimum_characters=0),
}
REMEMBERED: list[Rememberable] = [ExactDuplicates(), MinHashDuplicates()]


def with_urls(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with an address for each document."""
    urls = [f"https://www.example.org/{name[-3:]}/{name}?utm_source=x" for name in batch.column("id").to_pylist()]
    return batch.set_column(batch.schema.names.index("url"), "url", pa.array(urls))


def show_reference(stage: Rememberable, batches: list[pa.RecordBatch], size: int) -> None:
    """Seconds and bytes of the reference of one stage."""
    began, row, parts = process_time(), 0, dict[str, list[pa.Table]]()
    hashing = stage.hashing()
    for batch in batches:
        for name, table in stage.remember(hashing(batch), row).items():
            parts.setdefault(name, []).append(table)
        row += batch.num_rows
    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, pieces in parts.items():
            table = pa.concat_tables(pieces).combine_chunks()
            if "key" in table.schema.names:
                table = table.take(pc.sort_indices(table, sort_keys=[("key", "ascending")]))
            path = os.path.join(folder, name)
            pq.write_table(table, path, compression="zstd")
            total += os.path.getsize(path)
    seconds = process_time() - began
    print(f"reference of {stage.name:<32} {size / seconds / 1e6:7.0f} MB/s {total / row:8.0f} bytes a document, "
          f"{total / size:.1%} of the text")


def main() -> None:
    """Print megabytes of text a second and what was dropped or cut."""
    texts = texts_or_leave(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
    batches = [with_urls(batch) for batch in batches_of(texts)]
    size = sum(len(text.encode()) for text in texts)
    print(f"{size / 1e6:.0f} MB, {len(texts)} documents of {size / len(texts):.0f} bytes")
    small = [make_batch([{"id": "a", "text": "One. Two. Three.\nfour", "source": "s", "url": "http://a"}] * 2)]
    for name, stage in STAGES.items():
        run_rounds(stage, small)  # compiles
        seconds, after = run_rounds(stage, batches)
        total = sum(seconds.values())
        dropped = sum(batch.column("verdict").is_valid().sum().as_py() or 0 for batch in after)
        cutting = [batch.column("cut_bytes") for batch in after if "cut_bytes" in batch.schema.names]
        cut = sum(pc.sum(column).as_py() or 0 for column in cutting)
        steps = ", ".join(f"{step} {value:.2f}" for step, value in seconds.items() if value > 0.05 * total)
        print(f"{name:<42} {size / total / 1e6:7.0f} MB/s, {dropped} dropped, {cut / size:.2%} cut ({steps})")
    for one in REMEMBERED:
        one.remember(one.hashing()(small[0]), 0)
        show_reference(one, batches, size)


if __name__ == "__main__":
    main()
