"""Numbers that the original filters produced, and the documents they belong to, from the folder beside the checkout."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import zstandard

from tests.rules.corpora import rows_of

MEASURES = {
    "number_words": "number_of_words",
    "character_repetition_ratio": "character_repetition_ratio",
    "word_repetition_ratio": "word_repetition_ratio",
    "special_characters_ratio": "special_character_ratio",
    "stopwords_ratio": "stop_word_ratio",
    "flagged_words_ratio": "flagged_word_ratio",
}
FILTERS = {
    "number_words": "number_of_words",
    "character_repetition": "character_repetition_ratio",
    "word_repetition": "word_repetition_ratio",
    "special_characters": "special_character_ratio",
    "stopwords": "stop_word_ratio",
    "flagged_words": "flagged_word_ratio",
}


@lru_cache
def golden(shared: Path, name: str) -> list[dict[str, Any]]:
    """The rows of one file."""
    return list(rows_of(shared / "golden" / "roots" / f"{name}.jsonl"))


def word_lists(shared: Path) -> tuple[str, str]:
    """The files of stop words and of flagged words that the numbers were made with."""
    folder = shared / "data" / "wordlists"
    return str(folder / "bigscience_stopwords.json"), str(folder / "bigscience_flagged_words.json")


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@lru_cache
def golden_documents(shared: Path) -> list[tuple[dict[str, Any], str]]:
    """Each row of `roots_filters` with its text."""
    rows = golden(shared, "roots_filters")
    wanted = {(row["lang"], row["id"]) for row in rows}
    texts: dict[str, str] = {}
    for language in sorted({row["lang"] for row in rows}):
        with open(shared / "data" / "corpus" / f"{language}.jsonl.zst", "rb") as file:
            lines = zstandard.ZstdDecompressor().stream_reader(file).read().split(b"\n")
        found = [row for row in map(orjson.loads, filter(None, lines)) if (language, row["id"]) in wanted]
        sample = shared / "sample" / "web" / f"{language}.jsonl"
        found += [row for row in rows_of(sample) if (language, row["id"]) in wanted] if sample.is_file() else []
        texts |= {digest(row["text"]): row["text"] for row in found}
    return [(row, texts[row["sha256"]]) for row in rows]
