"""What the text-editing functions of the catalogue cleaning of ROOTS share: texts in, texts out, nothing else read."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers, with_columns
from roots_pipeline.core.stages import Map


class TextMap(Map):
    """A map that reads and writes the text alone."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ("text",)

    @property
    def gives(self) -> tuple[str, ...]:
        return ("text",)


class TextEdit(TextMap):
    """Makes a new text of each text, one after the other, as UTF-8 bytes."""

    @abstractmethod
    def edit(self, text: bytes) -> bytes:
        """The new text; the same object if nothing changes."""

    def __call__(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        data, offsets = text_buffers(batch.column("text"))
        old = [data[start:stop].tobytes() for start, stop in pairwise(offsets.tolist())]
        new = [self.edit(text) for text in old]
        if all(one is other for one, other in zip(old, new, strict=True)):
            return batch
        return with_columns(batch, {"text": to_texts(new)})


def to_texts(texts: Sequence[bytes]) -> pa.Array:
    """A column of text from valid UTF-8."""
    offsets = np.append(0, np.cumsum([len(text) for text in texts], dtype=np.int64))
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(b"".join(texts)))
