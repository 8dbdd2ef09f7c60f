"""Text to token ids: ours against Hugging Face's `encode_batch_fast`, language by language, in CPU time of one thread.

Both use the same tokenizer, trained on other documents of the same languages, and must give the same ids. `cold` starts
with an empty cache, `warm` has seen the text. Kernels are compiled before the clock starts. Text: the folder of real
text beside the checkout.

    python -m benchmarks.encoding [megabytes a language]
"""

from __future__ import annotations

import os

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import Tokenizer

from benchmarks._real_text import texts_or_leave
from roots_pipeline.core.documents import make_batch
from tokenizer.bpe import train_bpe
from tokenizer.count import count_batches
from tokenizer.encode import Encoder
from tokenizer.export import tokenizer_files
from tokenizer.weights import weigh

LANGUAGES = ("en", "fr", "zh", "hi", "ar", "vi")
VOCABULARY = 100_000


def write_tokenizer(texts: list[str], path: str) -> None:
    batch = make_batch([{"id": str(number), "text": text, "source": "b"} for number, text in enumerate(texts)])
    pieces = weigh([count_batches([batch])], {("und", "b"): 1}, 1)
    vocabulary = train_bpe(pieces.data, pieces.offsets, pieces.counts, VOCABULARY)
    Path(path).write_bytes(tokenizer_files(vocabulary)["tokenizer.json"])


def inputs(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """The documents to encode: of each language the half that was not trained on, and all languages in turn."""
    held_out = {name: found[::2] for name, found in texts.items()}
    mixed = [text for turn in zip_longest(*held_out.values()) for text in turn if text is not None]
    return {**held_out, "mixed": mixed}


def clock(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    started = time.process_time()
    result = work(*arguments, **options)
    return time.process_time() - started, result


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    texts = {name: texts_or_leave(2 * megabytes, (name,)) for name in LANGUAGES}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tokenizer.json"
        write_tokenizer([text for found in texts.values() for text in found[1::2]], path)
        theirs, encoder = Tokenizer.from_file(path), Encoder.from_file(path)
        theirs.encode_special_tokens = True
        encoder.encode("compile")
        print(f"{VOCABULARY:,} tokens; MB/s of CPU time of one thread")
        print(f"{'':10}{'cold':>8}{'warm':>8}{'peer':>8}   ratio cold, warm")
        failed, sums = False, np.zeros(4)
        for name, chosen in inputs(texts).items():
            size = sum(len(text.encode()) for text in chosen) / 1e6
            column, fresh = pa.array(chosen, pa.large_string()), Encoder.from_file(path)
            cold, (ids, _) = clock(fresh.encode_column, column, append_eos=False)
            peer, expected = clock(theirs.encode_batch_fast, chosen, add_special_tokens=False)
            warm, _ = clock(fresh.encode_column, column, append_eos=False)
            same = np.array_equal(ids, np.concatenate([np.array(e.ids, np.int32) for e in expected]))
            failed |= not same
            sums += (size, cold, warm, peer)
            print(f"{name:10}{size / cold:8.1f}{size / warm:8.1f}{size / peer:8.2f}", end="")
            print(f"   {peer / cold:.1f}, {peer / warm:.1f}{'' if same else '   DIFFERENT IDS'}")
    _, cold, warm, peer = sums
    print(f"all together: {peer / cold:.1f} times faster cold, {peer / warm:.1f} times warm")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
