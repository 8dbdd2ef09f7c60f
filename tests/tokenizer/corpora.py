"""Small corpora made to hurt a trainer: equal counts, runs, white space, multi-byte characters. Seeded."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from roots_pipeline.core.documents import text_buffers
from tokenizer.bpe import Vocabulary, train_bpe
from tokenizer.piece_table import PieceTable

ALPHABETS = ("ab", "a", "abc", " a.", "=-", "\n ab", "\t  x", "ab é中", "नमस्ते", "你好，。", "🙂🙃 ", "ab<s>/")


def adversarial(seed: int) -> list[str]:
    """Up to 15 texts over one small alphabet, some of them repeated."""
    chance = random.Random(seed)
    alphabet = chance.choice(ALPHABETS)
    texts = [
        "".join(chance.choice(alphabet) * chance.choice([1, 1, 2, 3, 5]) for _ in range(chance.randint(1, 40)))
        for _ in range(chance.randint(1, 15))
    ]
    return texts * chance.choice([1, 1, 2])


def weighted(seed: int) -> dict[bytes, int]:
    """Up to 30 distinct pieces with counts, many of them equal."""
    chance = random.Random(seed)
    alphabet = chance.choice(["ab", "abc", "a", "aab", "\x00\xff"])
    pieces: Counter[bytes] = Counter()
    for _ in range(chance.randint(1, 30)):
        piece = "".join(chance.choice(alphabet) for _ in range(chance.choice([1, 2, 3, 6, 12, 20])))
        pieces[piece.encode("latin-1")] += chance.choice([1, 1, 2, 3, 30])
    return dict(pieces)


def train_on_texts(texts: Iterable[str], vocab_size: int, **options: Any) -> Vocabulary:
    """Our trainer on texts."""
    table = PieceTable()
    column = pa.array(list(texts), pa.large_string())
    table.add_texts(*text_buffers(column), np.zeros(len(column), np.int32))
    arena, starts, _, _, counts = table.entries()
    return train_bpe(arena, np.append(starts, table.arena_bytes), counts, vocab_size, **options)


def train_on_pieces(pieces: Mapping[bytes, int], vocab_size: int, **options: Any) -> Vocabulary:
    """Our trainer on pieces with counts."""
    data = np.frombuffer(b"".join(pieces), np.uint8)
    offsets = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    return train_bpe(data, offsets, np.array(list(pieces.values()), np.int64), vocab_size, **options)


def sample_texts(sample: Path) -> list[str]:
    """The embedded corpus: all web documents and all programs."""
    texts = []
    for path in sorted((sample / "web").glob("*.jsonl")):
        texts += [orjson.loads(line)["text"] for line in path.read_bytes().split(b"\n") if line]
    return texts + [path.read_text("utf-8") for path in sorted((sample / "code").glob("*/*"))]
