"""Text to token ids: ours against Hugging Face's `encode_batch_fast` and, where installed, fastokens (the fastest other
encoder we know), language by language, in CPU time of one thread.

All use the same tokenizer of 250,680 tokens, trained on other documents of the same languages, and must give the same
ids. `cold` starts with an empty cache, `warm` has seen the text. Kernels are compiled before the clock starts. Text:
the folder of real text beside the checkout; code: Python's standard library. Then texts without any space, each twice
as long as the one before: their times should double.

    python -m benchmarks.encoding [megabytes a language] [megabytes to train on]
"""

from __future__ import annotations

import os

os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")

import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
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
VOCABULARY = 250_680
Ids = npt.NDArray[np.int32]


def write_tokenizer(texts: list[str], path: str) -> None:
    batch = make_batch([{"id": str(number), "text": text, "source": "b"} for number, text in enumerate(texts)])
    pieces = weigh([count_batches([batch])], {("und", "b"): 1}, 1)
    vocabulary = train_bpe(pieces.data, pieces.offsets, pieces.counts, VOCABULARY)
    Path(path).write_bytes(tokenizer_files(vocabulary)["tokenizer.json"])


def programs(megabytes: float) -> list[str]:
    """Modules of the standard library, about this much."""
    found, size = [], 0.0
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")):
        text = path.read_text("utf-8", errors="replace")
        if size < megabytes * 1e6:
            found.append(text)
            size += len(text.encode())
    return found


def clock(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    started = time.process_time()
    result = work(*arguments, **options)
    return time.process_time() - started, result


def fastokens_of(path: str) -> Any:
    """Its tokenizer, or None if it is not installed."""
    try:
        return import_module("fastokens").Tokenizer.from_file(path)
    except ImportError:
        return None


def flat(tokenizer: Any, texts: list[str]) -> Ids:
    ids, _ = tokenizer.encode_batch_flat(texts, split_special_tokens=True)
    return np.frombuffer(ids, np.uint32).astype(np.int32)


def print_doubling(encoder: Encoder) -> None:
    """Seconds for a text that is one piece, of one character and of random bytes, at three lengths."""
    chance = np.random.default_rng(1)
    word_bytes = np.array([byte for byte in range(1, 256) if byte not in b"\t\n\v\f\r !(),.?|"], np.uint8)
    texts: dict[str, Callable[[int], bytes]] = {
        "one character": lambda size: b"a" * size,
        "random bytes": lambda size: bytes(chance.choice(word_bytes, size)),
    }
    for name, make in texts.items():
        found = []
        for size in (2_500_000, 5_000_000, 10_000_000):
            text = make(size)
            found.append(min(clock(encoder.encode, text)[0] for _ in range(2)))
        print(f"{name}, 2.5, 5 and 10 MB: {', '.join(f'{seconds:.2f}' for seconds in found)} s")


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
    to_train = float(sys.argv[2]) if len(sys.argv) > 2 else 60.0
    texts = {name: texts_or_leave(2 * megabytes, (name,)) for name in LANGUAGES} | {"code": programs(2 * megabytes)}
    everything = texts_or_leave(2 * to_train)
    held_out = {name: found[::2] for name, found in texts.items()}
    mixed = texts_or_leave(8 * megabytes)[::2]
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/tokenizer.json"
        learned = [text for turn in zip_longest(*(found[1::2] for found in texts.values())) for text in turn if text]
        write_tokenizer([*everything[1::2], *learned], path)
        theirs, encoder = Tokenizer.from_file(path), Encoder.from_file(path)
        theirs.encode_special_tokens = True
        encoder.encode("compile")
        print(f"{VOCABULARY:,} tokens; MB/s of CPU time of one thread")
        print(f"{'':10}{'cold':>8}{'warm':>8}{'HF':>8}{'fastokens':>11}{'warm':>8}   HF: times cold, warm")
        failed, sums = False, np.zeros(4)
        for name, chosen in {"mixed": mixed, **held_out}.items():
            size = sum(len(text.encode()) for text in chosen) / 1e6
            column, fresh, other = pa.array(chosen, pa.large_string()), Encoder.from_file(path), fastokens_of(path)
            cold, (ids, _) = clock(fresh.encode_column, column, append_eos=False)
            warm, _ = clock(fresh.encode_column, column, append_eos=False)
            peer, expected = clock(theirs.encode_batch_fast, chosen, add_special_tokens=False)
            same = np.array_equal(ids, np.concatenate([np.array(e.ids, np.int32) for e in expected]))
            line = f"{name:10}{size / cold:8.1f}{size / warm:8.1f}{size / peer:8.2f}"
            if other is not None:
                other_cold, other_ids = clock(flat, other, chosen)
                other_warm, _ = clock(flat, other, chosen)
                same = same and np.array_equal(ids, other_ids)
                line += f"{size / other_cold:11.1f}{size / other_warm:8.1f}"
            else:
                line += f"{'-':>11}{'-':>8}"
            failed |= not same
            sums += (size, cold, warm, peer)
            print(f"{line}   {peer / cold:.1f}, {peer / warm:.1f}{'' if same else '   DIFFERENT IDS'}", flush=True)
        print_doubling(encoder)
    _, cold, warm, peer = sums
    print(f"all together: {peer / cold:.1f} times faster cold, {peer / warm:.1f} times warm")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
