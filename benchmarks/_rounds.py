"""All rounds of an exchange over batches in one process, as the engine's tasks run them, with their CPU time."""

from __future__ import annotations

from collections.abc import Sequence
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from roots_pipeline.core.documents import make_batch
from roots_pipeline.core.stages import Exchange


def batches_of(texts: Sequence[str], size: int = 8 << 20) -> list[pa.RecordBatch]:
    """Documents in batches of about `size` bytes."""
    ends = np.cumsum([len(text.encode()) for text in texts])
    cuts = np.searchsorted(ends, np.arange(size, ends[-1], size)).tolist()
    rows = [
        {"id": f"d{number:08d}", "text": text, "source": "s", "language": "en"} for number, text in enumerate(texts)
    ]
    return [make_batch(rows[a:b]) for a, b in zip([0, *cuts], [*cuts, len(rows)], strict=True) if a < b]


def run_rounds(stage: Exchange, batches: list[pa.RecordBatch]) -> tuple[dict[str, float], list[pa.RecordBatch]]:
    """CPU seconds of each step, and the batches in the end."""
    seconds: dict[str, float] = {}
    firsts = np.cumsum([0, *(batch.num_rows for batch in batches)]).tolist()
    for number, exchange in enumerate(stage.rounds(), 1):
        began = process_time()
        prepare = exchange.prepare()
        if prepare is not None:
            batches = [prepare(batch) for batch in batches]
            seconds[f"{number} prepare"], began = process_time() - began, process_time()
        emitted = [exchange.emit(batch, 0, first) for batch, first in zip(batches, firsts, strict=False)]
        seconds[f"{number} emit"], began = process_time() - began, process_time()
        found = exchange.resolve(pa.concat_tables(emitted).combine_chunks())
        found = found.take(pc.sort_indices(found, sort_keys=[("row", "ascending")]))
        seconds[f"{number} resolve"], began = process_time() - began, process_time()
        bounds = np.searchsorted(found.column("row").to_numpy(), firsts).tolist()
        batches = [exchange.apply(batch, found.slice(a, b - a), first) for batch, first, a, b
                   in zip(batches, firsts, bounds, bounds[1:], strict=False)]
        seconds[f"{number} apply"] = process_time() - began
    return seconds, batches
