"""20,000 documents of real text in all languages: the ids are Hugging Face's. Skipped where the text is not there."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import zstandard
from tokenizers import Tokenizer

from tokenizer.encode import Encoder

_DOCUMENTS = 20_000
_CHARACTERS = 300  # of each document: the whole would take Hugging Face minutes


def _texts(path: Path) -> Iterator[str]:
    with path.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as data:
        for line in io.TextIOWrapper(data, "utf-8", newline="\n"):
            yield orjson.loads(line)["text"]


def test_ids_of_real_documents_are_hugging_faces(shared: Path, sample_file: str) -> None:
    streams = [_texts(path) for path in sorted((shared / "data" / "corpus").glob("*.jsonl.zst"))]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*streams))
    texts = [text[:_CHARACTERS] for text in itertools.islice(filter(None, turns), _DOCUMENTS)]
    assert len(texts) == _DOCUMENTS and len(streams) > 70
    theirs, ours = Tokenizer.from_file(sample_file), Encoder.from_file(sample_file)
    theirs.encode_special_tokens = True
    ids, lengths = ours.encode_column(pa.array(texts, pa.large_string()), append_eos=False)
    expected = [found.ids for found in theirs.encode_batch_fast(texts, add_special_tokens=False)]
    assert lengths.tolist() == list(map(len, expected))
    assert np.array_equal(ids, np.fromiter(itertools.chain.from_iterable(expected), np.int32))
